#include "tune_inner.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "config/defaults_by_size.h"
#include "kernels/draws.h"
#include "train/session.h"
#include "train/trainer.h"
#include "vectors/evaluate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct edge {
    uint32_t from, to;
    float weight;
};
struct listed_edges {
    struct edge *list;
    uint64_t count;
    uint32_t *parent; /* [nodes] the sets of connected nodes, as trees: the parent of each node */
};

/* Lists each edge once. */
static int list_edges(struct listed_edges *edges, const struct graph *graph) {
    edges->list = mem_alloc(graph->arcs, sizeof *edges->list, "edges");
    edges->parent = mem_alloc(graph->nodes, sizeof *edges->parent, "edges");
    if (!edges->list || !edges->parent) return -1;
    for (uint64_t node = 0; node < graph->nodes; node++) {
        edges->parent[node] = (uint32_t)node;
        for (uint64_t arc = graph->starts[node]; arc < graph->starts[node + 1]; arc++)
            if (graph->directed || node < graph->neighbours[arc])
                edges->list[edges->count++] =
                    (struct edge){(uint32_t)node, graph->neighbours[arc], graph->weights ? graph->weights[arc] : 1};
    }
    return 0;
}

static uint32_t root_of(struct listed_edges *edges, uint32_t node) {
    while (edges->parent[node] != node) node = edges->parent[node] = edges->parent[edges->parent[node]];
    return node;
}

/* Joins the sets of the two ends of an edge. Returns 1 if they were different sets before. */
static int joins(struct listed_edges *edges, const struct edge *edge) {
    uint32_t from = root_of(edges, edge->from), to = root_of(edges, edge->to);
    if (from != to) edges->parent[from > to ? from : to] = from > to ? to : from;
    return from != to;
}

static int write_edge(struct file_writer *writer, const struct edge *edge, int weighted) {
    if (weighted) return file_print(writer, "%" PRIu32 "\t%" PRIu32 "\t%.9g\n", edge->from, edge->to, (double)edge->weight);
    return file_print(writer, "%" PRIu32 "\t%" PRIu32 "\n", edge->from, edge->to);
}

static int write_parts(struct listed_edges *edges, uint64_t wanted, uint32_t seed, int weighted, struct file_writer *kept,
                       struct file_writer *out) {
    struct shuffle order = shuffle_make(edges->count, draw_at(seed, DRAW_HELD_OUT, 0, 2, 0));
    uint64_t taken = 0;
    for (uint64_t i = 0; i < edges->count; i++) {
        const struct edge *edge = &edges->list[shuffle_at(&order, i)];
        int stays = joins(edges, edge) || taken == wanted;
        taken += !stays;
        if (stays ? write_edge(kept, edge, weighted) : write_edge(out, edge, 0)) return -1;
    }
    return taken ? 0 : fail("tune holds out edges that no two nodes need to hang together, and this graph has none");
}

/* The files of both parts. */
struct parts {
    struct file_writer kept, out;
};

static int open_parts(struct parts *parts, const char *kept, const char *out) {
    *parts = (struct parts){.kept = {.path = NULL}};
    return file_writer_open(&parts->kept, kept) || file_writer_open(&parts->out, out) ? -1 : 0;
}
static int close_parts(struct parts *parts, int result) {
    if (!result) result = file_commit(&parts->kept) || file_commit(&parts->out) ? -1 : 0;
    file_abandon(&parts->kept);
    file_abandon(&parts->out);
    return result;
}

int split_edges(const struct graph *graph, double share, uint32_t seed, const char *kept, const char *out) {
    struct listed_edges edges = {.count = 0};
    struct parts parts;
    int result = open_parts(&parts, kept, out) || list_edges(&edges, graph) ? -1 : 0;
    uint64_t wanted = (uint64_t)((double)edges.count * share);
    if (!result) result = write_parts(&edges, wanted ? wanted : 1, seed, graph->weights != NULL, &parts.kept, &parts.out);
    mem_free(edges.list, edges.parent);
    return close_parts(&parts, result);
}

static int write_triples(const struct idstream *stream, uint64_t wanted, uint32_t seed, struct parts *parts) {
    struct shuffle order = shuffle_make(stream->triples, draw_at(seed, DRAW_HELD_OUT, 0, 2, 0));
    if (stream->triples < 2) return fail("tune holds out triples and needs two or more; this corpus has %" PRIu64, stream->triples);
    for (uint64_t i = 0; i < stream->triples; i++) {
        const uint32_t *triple = stream->ids + 3 * shuffle_at(&order, i);
        if (file_print(i < wanted ? &parts->out : &parts->kept, "%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\n", triple[0], triple[1], triple[2]))
            return -1;
    }
    return 0;
}

int split_triples(const struct idstream *stream, double share, uint32_t seed, const char *kept, const char *out) {
    struct parts parts;
    uint64_t wanted = (uint64_t)((double)stream->triples * share);
    int result = open_parts(&parts, kept, out) || write_triples(stream, wanted ? wanted : 1, seed, &parts) ? -1 : 0;
    return close_parts(&parts, result);
}

/* trial: trains one trial in this process, by trainer_run(), and scores it. Messages of the trainer are dropped; its live line is shown after the
 * trial's number. */

/* ---- keys ---- */

int trial_config(const struct tuning *t, const struct space_point *point, struct config *config) {
    return config_copy(config, t->request->config) || space_set(&t->space, point, config) ? -1 : 0;
}

uint64_t trial_epochs(const struct tuning *t, int rung) {
    uint64_t most = t->resolved.train_epochs * (tune_finds_epochs(t) ? HALVING_SHARE : 1), share = 1;
    for (int above = rung + 1; above < HALVING_RUNGS; above++) share *= HALVING_SHARE;
    uint64_t epochs = (most + share / 2) / share;
    return epochs ? epochs : 1;
}

struct setting {
    const char *section, *key, *value;
};

static int set_all(struct config *config, const struct setting *settings) {
    for (; settings->section; settings++)
        if (config_set(config, settings->section, settings->key, settings->value, "tune")) return -1;
    return 0;
}

static const char triples_columns[] = "1,2,3"; /* head, relation, tail, as split_triples() writes them */

/* Returns 1 if trials are trained on a file that the search has written. */
static int is_split(const struct tuning *t) {
    return t->measure == TUNE_LINKS || t->measure == TUNE_TRIPLES;
}

/* Sets the keys that are equal in all trials, such as directories and held-out data, and resolves the config. Split graphs and triples are read
 * from files that tune has written, with numbers as names, instead of corpus.path. */
static int settle(const struct tuning *t, struct config *config) {
    const struct setting settings[] = {{"run", "dir", t->directory.run}, {"run", "checkpoint_every", "end"},
                                       {"run", "keep", "1"},             {"corpus", "cache", t->directory.corpus},
                                       {"train", "patience", "0"},       {"train", "evaluate", ""},
                                       {"run", "checkpoint", "yes"},     {NULL, NULL, NULL}};
    char path[4096];
    const struct setting of_edges[] = {{"corpus", "min_count", "1"}, {"corpus", "max_vocab", "0"},     {"corpus", "header", "no"},
                                       {"corpus", "vocab", ""},      {"corpus", "order", "frequency"}, {"corpus", "path", path},
                                       {"corpus", "columns", t->measure == TUNE_TRIPLES ? triples_columns : "auto"},
                                       {"corpus", "separator", "tab"}, {NULL, NULL, NULL}};
    if (is_split(t) && text_add(path, sizeof path, 0, "\"%s\"", t->directory.edges) + 1 >= sizeof path)
        return fail("the path '%s' is too long", t->directory.edges);
    if (set_all(config, settings) || (is_split(t) && set_all(config, of_edges))) return -1;
    if (t->measure == TUNE_RECALL && !config_is_given(config, "train", "held_out_items") &&
        config_set(config, "train", "held_out_items", "0.1", "tune"))
        return -1;
    if (t->measure == TUNE_LOSS && !config_is_given(config, "train", "held_out") && config_set(config, "train", "held_out", "0.02", "tune"))
        return -1;
    return config_resolve(config);
}

int trial_set_epochs(struct config *config, uint64_t epochs) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, epochs);
    return config_set(config, "train", "epochs", text, "tune");
}

static struct gathered *data_of(const struct tuning *t) {
    return is_split(t) ? NULL : t->request->data;
}

void trial_defaults(struct tuning *t) {
    ENDED_BY(config_release) struct config config = {0};
    report_use(t->quiet);
    int result = config_copy(&config, t->request->config) || settle(t, &config) || session_settle(&config, data_of(t)) ? -1 : 0;
    if (!result) defaults_keep(&t->resolved, &config);
    report_clear();
    report_use(t->said);
}

/* ---- judging ---- */

/* Evaluates by a file, and sets *score to the number with this name in the results. */
static int judge_by(struct evaluate_request *request, const char *measure, const char *path, const char *part, const char *name,
                    struct model *model, const struct config *config, double *score) {
    ENDED_BY(answer_release) struct answer answer = {.count = 0};
    request->path = path;
    int result = evaluate(&answer, model, evaluate_named(measure), request, config);
    if (!result) *score = answer_value(&answer, part, name);
    return result;
}

static int judge_sets(const struct tuning *t, struct evaluate_request *request, struct model *model, const struct config *config,
                      double *score) {
    const struct tune_request *r = t->request;
    double sum = 0, one;
    for (int i = 0; i < r->pair_count; i++, sum += one)
        if (judge_by(request, "pairs", r->pairs[i], "", "rho", model, config, &one)) return -1;
    for (int i = 0; i < r->analogy_count; i++, sum += one)
        if (judge_by(request, "analogies", r->analogies[i], "", "accuracy", model, config, &one)) return -1;
    *score = sum / (r->pair_count + r->analogy_count);
    return 0;
}

/* Scores a trial by a measure that is not computed during training. */
static int judge_trial(const struct tuning *t, const struct config *config, double *score) {
    struct evaluate_request request = {.options = SPTX_EVALUATE_OPTIONS, .reading.look = LOOK_AUTO};
    const char *held_out = t->directory.held_out;
    ENDED_BY(model_close) struct model model = {0};
    if (!is_split(t) && t->measure != TUNE_SETS) return 0;
    if (t->measure != TUNE_SETS) request.options.table = "target";
    request.reading.look.columns = triples_columns;
    int result = model_open(&model, t->directory.run);
    if (!result)
        result = t->measure == TUNE_LINKS ? judge_by(&request, "edges", held_out, model.tree ? "cosine" : "cross", "mrr", &model, config, score)
                 : t->measure == TUNE_TRIPLES ? judge_by(&request, "triples", held_out, "", "mrr", &model, config, score)
                                              : judge_sets(t, &request, &model, config, score);
    return result;
}

/* ---- training ---- */

struct listening {
    const struct tuning *t;
    const struct halving_job *job;
};

static int hear(void *user, const struct sptx_progress *report) {
    const struct listening *l = user;
    char line[512];
    if (!isatty(2)) return 0;
    text_add(line, sizeof line, 0, "trial %" PRIu64 ", rung %d of %d  %s", l->job->trial, l->job->rung + 1,
             HALVING_RUNGS, report->line);
    struct report *quiet = report_use(l->t->said);
    report_live(line);
    report_use(quiet);
    return 0;
}

static int train_trial(const struct tuning *t, struct config *config, const struct halving_job *job, double *score) {
    struct listening listening = {t, job};
    struct trainer_score found = {NAN, 0};
    struct trainer_options options = {.data = data_of(t),
                                      .overwrite = 1,
                                      .overwrite_now = 1,
                                      .keep_signals = 1,
                                      .judge = judge_checkpoint,
                                      .score = &found,
                                      .hear = hear,
                                      .user = &listening};
    int result = trainer_run(config, &options);
    *score = found.score;
    return result;
}

/* For each measure, the error message if training succeeded but gave no score. */
static const char *const unjudged[] = {
    [TUNE_RECALL] =
        "no list has an item that could be held out and found again (train.held_out_items): the lists are too short, or too few",
    [TUNE_LINKS] = "no held-out edge joins two nodes of the rest of the graph: it has too few edges",
    [TUNE_LOSS] = "no example was held out to measure the loss of (train.held_out): the text is too short; a longer one, or "
                  "--pairs=FILE or --analogies=FILE, which judge words, give a score",
    [TUNE_TRIPLES] = "no held-out triple has a head, a relation and a tail of the other triples: there are too few triples",
    [TUNE_SETS] = "the --pairs and --analogies give no score: too few of their words are in the vocabulary"};

int trial_run(const struct tuning *t, const struct halving_job *job, uint64_t epochs, struct trial_end *end) {
    ENDED_BY(config_release) struct config config = {0};
    double began = progress_now();
    *end = (struct trial_end){.score = NAN};
    report_use(t->quiet);
    int result = trial_config(t, &t->points[job->trial], &config) || trial_set_epochs(&config, epochs) || settle(t, &config) ? -1 : 0;
    if (!result) result = train_trial(t, &config, job, &end->score);
    end->stopped = result > 0;
    if (!result) result = judge_trial(t, &config, &end->score);
    if (result < 0 || (!result && !isfinite(end->score))) { /* the search goes on without this trial */
        snprintf(end->why, sizeof end->why, "%s", *report_sentence() ? report_sentence() : unjudged[t->measure]);
        end->stopped |= report_exit_code() == REPORT_STOPPED;
        report_clear();
    }
    report_use(t->said);
    if (isatty(2)) report_live("");
    end->seconds = progress_now() - began;
    return 0;
}
