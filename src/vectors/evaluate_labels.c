/* evaluate_labels: predicts the labels of nodes, as in the papers of DeepWalk and node2vec. One logistic regression for each label is trained on the
 * vectors of some of the labelled nodes. For every other node, its most likely labels are predicted, as many as it really has.
 *
 *   shuffle s   numpy.random.default_rng(s).permutation(nodes), nodes in the file's order; its first nodes are trained on
 *   micro F1    2 tp / (2 tp + fp + fn) of the sums over all labels (true and false positives, false negatives)
 *   macro F1    the mean over labels; 0 for a label that no tested node has and that is not predicted either
 *
 * Labelled nodes that the run does not know have vectors of zeros. A label of all trained nodes is always the most likely one, and a label of none of
 * them the least likely one; neither needs a regression. Of equally likely labels, the first by name wins.
 */
#include "evaluate.h"

#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "names.h"
#include "numeric.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One label of one node. */
struct holding {
    uint32_t node, label;
};

enum { LABELS_SHUFFLES = 10 };

struct labels_job {
    struct names nodes, labels;
    struct holding *holdings; /* [held] (node, label) pairs, sorted, without repetitions */
    uint64_t held, capacity;
    uint64_t *starts; /* [nodes + 1] pairs of node i: holdings[starts[i]] .. holdings[starts[i + 1] - 1] */
    uint32_t dim;
    float *x;         /* [nodes x dim] the nodes' vectors */
    uint32_t *orders; /* [LABELS_SHUFFLES x nodes] orders of the nodes */
    uint64_t trained; /* number of nodes on which regressions are trained at present; all other nodes are tested */
    float *likely;    /* [LABELS_SHUFFLES x tested x labels] score of each label for each tested node */
    double micro[LABELS_SHUFFLES], macro[LABELS_SHUFFLES];
    _Atomic uint64_t next; /* number of the next task for a worker */
};

static uint64_t nodes_of(const struct labels_job *job) {
    return job->nodes.words.size;
}

static uint64_t labels_of(const struct labels_job *job) {
    return job->labels.words.size;
}

static uint64_t tested_of(const struct labels_job *job) {
    return nodes_of(job) - job->trained;
}

/* ---- the file ---- */

static int add_holding(void *user, const struct token *node, const struct token *label) {
    struct labels_job *job = user;
    int64_t a = names_add(&job->nodes, node->text, node->length), b = names_add(&job->labels, label->text, label->length);
    if (a < 0 || b < 0 || mem_grow(&job->holdings, &job->capacity, job->held + 1, sizeof *job->holdings, "labels")) return -1;
    job->holdings[job->held++] = (struct holding){(uint32_t)a, (uint32_t)b};
    return 0;
}

struct named {
    const char *name;
    uint32_t number;
};

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int by_node(const void *a, const void *b) {
    const struct holding *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return x->label < y->label ? -1 : x->label > y->label;
}

/* Gives the labels new numbers, in the order of their names. */
static int number_labels(struct labels_job *job) {
    OWNED struct named *names = mem_alloc(labels_of(job), sizeof *names, "labels");
    OWNED uint32_t *place = mem_alloc(labels_of(job), sizeof *place, "labels");
    int result = names && place ? 0 : -1;
    for (uint64_t i = 0; !result && i < labels_of(job); i++)
        names[i] = (struct named){words_get(&job->labels.words, i, NULL), (uint32_t)i};
    if (!result && labels_of(job)) qsort(names, labels_of(job), sizeof *names, by_name);
    for (uint64_t i = 0; !result && i < labels_of(job); i++) place[names[i].number] = (uint32_t)i;
    for (uint64_t i = 0; !result && i < job->held; i++) job->holdings[i].label = place[job->holdings[i].label];
    return result;
}

/* Sorts the pairs by node and label, and removes repetitions. */
static int sort_holdings(struct labels_job *job) {
    uint64_t kept = 0;
    job->starts = mem_zalloc(nodes_of(job) + 1, sizeof *job->starts, "labels");
    if (!job->starts || number_labels(job)) return -1;
    if (job->held) qsort(job->holdings, job->held, sizeof *job->holdings, by_node);
    for (uint64_t i = 0; i < job->held; i++)
        if (!kept || by_node(&job->holdings[kept - 1], &job->holdings[i])) job->holdings[kept++] = job->holdings[i];
    job->held = kept;
    for (uint64_t i = 0; i < kept; i++) job->starts[job->holdings[i].node + 1]++;
    for (uint64_t node = 0; node < nodes_of(job); node++) job->starts[node + 1] += job->starts[node];
    return 0;
}

static int has_label(const struct labels_job *job, uint32_t node, uint64_t label) {
    for (uint64_t i = job->starts[node]; i < job->starts[node + 1]; i++)
        if (job->holdings[i].label == label) return 1;
    return 0;
}

/* ---- vectors ---- */

/* Reads the vectors of the labelled nodes. Returns how many nodes the run knows, or -1 after fail(). */
static int64_t find_vectors(struct labels_job *job, const struct model *model, enum model_view view) {
    int64_t known = 0;
    job->dim = model->dim;
    job->x = mem_zalloc(nodes_of(job), job->dim * sizeof *job->x, "the vectors of nodes");
    if (!job->x) return -1;
    for (uint64_t node = 0; node < nodes_of(job); node++) {
        uint64_t length;
        const char *name = words_get(&job->nodes.words, node, &length);
        int64_t row = model->documents ? vocab_find_list(&model->vocab, name, length) : vocab_find(&model->vocab, name, length);
        if (row < 0 || (!model->documents && !model_is_item(model, (uint64_t)row))) continue;
        if (model_row(model, view, (uint64_t)row, 0, job->x + node * job->dim)) return -1;
        known++;
    }
    return known;
}

/* ---- one regression: a label in a shuffle ---- */

static int judge_label(struct labels_job *job, uint64_t shuffle, uint64_t label, uint8_t *of_class, float *w) {
    const uint32_t *order = job->orders + shuffle * nodes_of(job);
    float *likely = job->likely + shuffle * tested_of(job) * labels_of(job) + label;
    struct logistic_samples samples = {job->x, order, of_class, job->trained, job->dim};
    uint64_t have = 0;
    for (uint64_t i = 0; i < job->trained; i++) have += of_class[i] = (uint8_t)has_label(job, order[i], label);
    int all = have == job->trained, fitted = have && !all;
    if (fitted && logistic_fit(w, &samples)) return -1;
    for (uint64_t i = job->trained; i < nodes_of(job); i++, likely += labels_of(job))
        *likely = fitted ? logistic_score(w, job->x + (uint64_t)order[i] * job->dim, job->dim) : all ? INFINITY : -INFINITY;
    return 0;
}

static int judge_labels(void *context, unsigned worker) {
    struct labels_job *job = context;
    OWNED uint8_t *of_class = mem_alloc(job->trained, sizeof *of_class, "a regression");
    OWNED float *w = mem_alloc((uint64_t)job->dim + 1, sizeof *w, "a regression");
    uint64_t part, end;
    int result = of_class && w ? 0 : -1;
    while (!result && pool_take(&job->next, LABELS_SHUFFLES * labels_of(job), 1, &part, &end))
        result = judge_label(job, part / labels_of(job), part % labels_of(job), of_class, w);
    return result;
}

/* ---- one shuffle's F1 ---- */

/* How often a label was predicted and true, predicted but not true, and true but not predicted. */
struct outcome {
    double right, wrong, missed;
};

static double f1_of(const struct outcome *o) {
    double all = 2 * o->right + o->wrong + o->missed;
    return all > 0 ? 2 * o->right / all : 0;
}

/* Stores which labels are predicted for a node: the most likely ones, as many as it really has. */
static void give_labels(const struct labels_job *job, uint32_t node, const float *likely, uint8_t *given,
                        struct outcome *outcomes) {
    memset(given, 0, labels_of(job));
    for (uint64_t i = job->starts[node]; i < job->starts[node + 1]; i++) {
        uint64_t best = UINT64_MAX;
        for (uint64_t label = 0; label < labels_of(job); label++)
            if (!given[label] && (best == UINT64_MAX || likely[label] > likely[best])) best = label;
        given[best] = 1;
    }
    for (uint64_t i = job->starts[node]; i < job->starts[node + 1]; i++) {
        uint8_t *was_given = &given[job->holdings[i].label];
        outcomes[job->holdings[i].label].right += *was_given;
        outcomes[job->holdings[i].label].missed += !*was_given;
        *was_given = 0;
    }
    for (uint64_t label = 0; label < labels_of(job); label++) outcomes[label].wrong += given[label];
}

static int score_shuffle(struct labels_job *job, uint64_t shuffle) {
    const uint32_t *order = job->orders + shuffle * nodes_of(job);
    const float *likely = job->likely + shuffle * tested_of(job) * labels_of(job);
    struct outcome *outcomes = mem_zalloc(labels_of(job), sizeof *outcomes, "F1"), sum = {0, 0, 0};
    OWNED uint8_t *given = mem_alloc(labels_of(job), sizeof *given, "F1");
    int result = outcomes && given ? 0 : -1;
    for (uint64_t i = job->trained; !result && i < nodes_of(job); i++, likely += labels_of(job))
        give_labels(job, order[i], likely, given, outcomes);
    job->macro[shuffle] = 0;
    for (uint64_t label = 0; !result && label < labels_of(job); label++) {
        struct outcome *o = &outcomes[label];
        sum = (struct outcome){sum.right + o->right, sum.wrong + o->wrong, sum.missed + o->missed};
        job->macro[shuffle] += f1_of(o) / (double)labels_of(job);
    }
    job->micro[shuffle] = f1_of(&sum);
    free(outcomes);
    return result;
}

static int score_shuffles(void *context, unsigned worker) {
    struct labels_job *job = context;
    uint64_t shuffle, end;
    while (pool_take(&job->next, LABELS_SHUFFLES, 1, &shuffle, &end))
        if (score_shuffle(job, shuffle)) return -1;
    return 0;
}

/* ---- one share ---- */

static void find_mean(const double values[LABELS_SHUFFLES], double *mean, double *spread) {
    double squares = 0;
    *mean = 0;
    for (int i = 0; i < LABELS_SHUFFLES; i++) *mean += values[i] / LABELS_SHUFFLES;
    for (int i = 0; i < LABELS_SHUFFLES; i++) squares += (values[i] - *mean) * (values[i] - *mean) / LABELS_SHUFFLES;
    *spread = sqrt(squares);
}

static int judge_share(struct labels_job *job, double share, struct pool *pool) {
    job->trained = (uint64_t)(share * (double)nodes_of(job));
    if (!job->trained || job->trained >= nodes_of(job))
        return fail("a share of %g of %" PRIu64 " labelled nodes is %" PRIu64 ": wanted at least one to train on and one to test",
                    share, nodes_of(job), job->trained);
    job->likely = mem_alloc(LABELS_SHUFFLES * tested_of(job), labels_of(job) * sizeof *job->likely, "the likeliest labels");
    int result = job->likely ? 0 : -1;
    job->next = 0;
    if (!result) result = pool_run(pool, judge_labels, job);
    job->next = 0;
    if (!result) result = pool_run(pool, score_shuffles, job);
    free(job->likely);
    return result;
}

/* Adds (node, label) pairs that are read from memory, field by field. */
struct taking_pairs {
    struct labels_job *job;
    struct token node;
};
static int take_pair(void *user, const struct corpus_field *field) {
    struct taking_pairs *t = user;
    struct token token = {.text = (char *)field->text, .length = field->length};
    if (field->part != PART_NAME) return add_holding(t->job, &t->node, &token);
    t->node = token;
    return 0;
}

enum { LABELS_FEW = 20 }; /* a file with fewer different labels than this is never refused as a list of edges */

/* Sorts the labels that were read, and reads the vectors of their nodes. Returns how many nodes the run knows, or -1 after fail(). */
static int64_t prepare(struct labels_job *job, const struct model *model, enum model_view view, const char *path) {
    if (sort_holdings(job)) return -1;
    if (!job->held) return fail("'%s' has no line of a node and its labels, with blanks or tabs between", path);
    if (labels_of(job) < 2)
        return fail("all nodes of '%s' have the label '%s': wanted two labels or more", path,
                    words_get(&job->labels.words, 0, NULL));
    if (labels_of(job) >= LABELS_FEW && labels_of(job) * 2 > nodes_of(job)) /* probably a list of edges, whose second column contains nodes */
        return fail("'%s' has %" PRIu64 " different labels of %" PRIu64 " nodes: it looks like edges (evaluate --edges=FILE); wanted lines "
                    "of a node and its labels, which nodes share",
                    path, labels_of(job), nodes_of(job));
    int64_t known = find_vectors(job, model, view);
    job->orders = mem_alloc(LABELS_SHUFFLES * nodes_of(job), sizeof *job->orders, "shuffles of nodes");
    for (uint32_t seed = 0; job->orders && seed < LABELS_SHUFFLES; seed++) {
        struct numpy_draws draws = numpy_draws_make(seed);
        numpy_draws_permutation(&draws, job->orders + seed * nodes_of(job), nodes_of(job));
    }
    if (known < 0 || !job->orders) return -1;
    if (known) return known;
    return fail("none of the %" PRIu64 " nodes of '%s' is in the vocabulary of '%s'", nodes_of(job), path, model->directory);
}

/* Adds the numbers of the i-th share of nodes (from 0) to the answer. */
static int add_share(struct answer *answer, const struct labels_job *job, uint64_t i, double share, uint64_t known) {
    double micro, micro_spread, macro, macro_spread;
    uint64_t all = nodes_of(job);
    char part[32];
    snprintf(part, sizeof part, "%" PRIu64, i + 1);
    find_mean(job->micro, &micro, &micro_spread);
    find_mean(job->macro, &macro, &macro_spread);
    return answer_add(answer, part, "share", share, all, " share %g", share) ||
                   answer_add(answer, part, "micro", micro, all, " micro-f1 #") ||
                   answer_add(answer, part, "micro_spread", micro_spread, all, " spread #") ||
                   answer_add(answer, part, "macro", macro, all, " macro-f1 #") ||
                   answer_add(answer, part, "macro_spread", macro_spread, all, " spread #") ||
                   answer_add(answer, part, "labels", (double)labels_of(job), 0, " labels #") ||
                   answer_add(answer, part, "covered", (double)known, 0, " covered #") ||
                   answer_add(answer, part, "total", (double)all, 0, "/#")
               ? -1 : 0;
}

int evaluate_labels(struct answer *answer, const struct model *model, const struct evaluate_request *request, const struct config *config) {
    const struct sptx_evaluate_options *options = &request->options;
    struct labels_job job = {.held = 0};
    int64_t known = (request->data ? gathered_fields(request->data, take_pair, &(struct taking_pairs){.job = &job})
                                   : labels_read(request->path, add_holding, &job))
                        ? -1 : prepare(&job, model, request->view, request->path);
    ENDED_BY(pool_end) struct pool *pool = known < 0 ? NULL : pool_open(config ? (unsigned)config->device_threads : 0);
    int result = pool ? 0 : -1;
    for (uint64_t i = 0; !result && i < options->share_count; i++)
        result = judge_share(&job, options->shares[i], pool) || add_share(answer, &job, i, options->shares[i], (uint64_t)known) ? -1 : 0;
    names_release(&job.nodes);
    names_release(&job.labels);
    mem_free(job.holdings, job.starts, job.x, job.orders);
    return result;
}
