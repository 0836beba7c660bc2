#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "vectors/evaluate.h"
#include "vectors/known.h"
#include "vectors/list_scores.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PLACES = 1000000 };

struct sets {
    const char *pairs[OPTION_TIMES], *analogies[OPTION_TIMES];
    int pairs_count, analogies_count;
    const char *train, *held_out, *groups, *format, *labels, *edges, *triples, *known;
    double shares[SPTX_SHARES_MOST]; /* shares of the labelled nodes to train on */
    int share_count, directed;
    enum model_view view;
    int score; /* score of lists (enum list_score); -1: the run's default */
    uint64_t restrict_rows, k, met, sample;
    int sample_given; /* 1: --sample is given */
    struct arguments arguments;
};

/* Prints the name of a test set: its file's name without directory and ".txt". */
static void print_name(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    if (n > 4 && !strcmp(name + n - 4, ".txt")) n -= 4;
    terminal_print(name, n);
}

/* Prints NaN as "nan"; printf would print some as "-nan". */
static void print_number(const char *label, double value) {
    if (isnan(value))
        printf(" %s nan", label);
    else
        printf(" %s %.4f", label, value);
}

static int pairs(const struct model *model, enum model_view view, const char *path) {
    struct sptx_pairs_score score;
    if (evaluate_pairs(&score, model, view, path)) return -1;
    print_name(path);
    print_number("rho", score.rho);
    printf(" covered %" PRIu64 "/%" PRIu64 "\n", score.covered, score.total);
    return 0;
}

static int analogies(const struct model *model, enum model_view view, const char *path, uint64_t restrict_rows,
                     const struct config *config) {
    struct sptx_analogies_score score;
    if (evaluate_analogies(&score, model, view, path, restrict_rows, config)) return -1;
    print_name(path);
    print_number("accuracy", score.accuracy);
    if (!isnan(score.semantic) && !isnan(score.syntactic)) {
        print_number("semantic", score.semantic);
        print_number("syntactic", score.syntactic);
    }
    printf(" covered %" PRIu64 "/%" PRIu64 "\n", score.covered, score.total);
    return 0;
}

static int lists(const struct model *model, const struct sets *sets, const struct config *config) {
    struct sptx_lists_score score;
    struct lists_request request = {.train = sets->train, .held_out = sets->held_out, .k = (uint32_t)sets->k};
    struct config run;
    int result = arguments_reading(&request.reading, &request.look, &run, model->directory, sets->format, &sets->arguments);
    if (!result) {
        request.score = sets->score < 0 ? answers_score(model, 1) : (enum list_score)sets->score;
        result = evaluate_lists(&score, model, &request, config);
    }
    config_release(&run);
    if (result) return -1;
    int folded = score.without_row && list_score_folds(model, request.score, -1);
    printf("recall@%" PRIu64 " %.4f ndcg@%" PRIu64 " %.4f hit@%" PRIu64 " %.4f score %s lists %" PRIu64 " unknown %" PRIu64
           " held-out %" PRIu64 " trained %" PRIu64 " cold %" PRIu64,
           sets->k, score.recall, sets->k, score.ndcg, sets->k, score.hit,
           list_score_said(request.score, folded && score.without_row >= score.lists), score.lists, score.unknown, score.held_out,
           score.trained, score.cold);
    if (list_score_of_users(request.score)) printf(" without-row %" PRIu64 "%s", score.without_row, folded ? " folded" : "");
    putchar('\n');
    return 0;
}

static int groups(const struct model *model, const struct sets *sets, const struct config *config) {
    struct groups_request request = {.met = sets->met, .sample = sets->sample, .k = (uint32_t)sets->k};
    struct sptx_groups_score scores[SPTX_GROUPS_MOST];
    char label[32];
    int columns = evaluate_groups(scores, model, sets->view, sets->groups, &request, config);
    for (int i = 0; i < columns; i++) {
        print_name(sets->groups);
        snprintf(label, sizeof label, "share@%" PRIu64, sets->k);
        printf(" column %d", i + 1);
        print_number(label, scores[i].share);
        print_number("chance", scores[i].chance);
        printf(" asked %" PRIu64 "/%" PRIu64 "\n", scores[i].asked, scores[i].rows);
    }
    return columns < 0 ? -1 : 0;
}

static int labels(const struct model *model, const struct sets *sets, const struct config *config) {
    struct sptx_labels_score scores[SPTX_SHARES_MOST];
    if (evaluate_labels(scores, model, sets->view, sets->labels, sets->shares, sets->share_count, config)) return -1;
    for (int i = 0; i < sets->share_count; i++) {
        const struct sptx_labels_score *score = &scores[i];
        print_name(sets->labels);
        printf(" share %g", score->share);
        print_number("micro-f1", score->micro);
        print_number("spread", score->micro_spread);
        print_number("macro-f1", score->macro);
        print_number("spread", score->macro_spread);
        printf(" labels %" PRIu64 " covered %" PRIu64 "/%" PRIu64 "\n", score->labels, score->covered, score->total);
    }
    return 0;
}

static int links(const struct model *model, const struct sets *sets, const struct config *config) {
    struct links_request request = {.held_out = sets->edges, .known = sets->known, .directed = sets->directed};
    struct sptx_links_score scores[LINK_SCORES];
    struct sptx_links_counts counts;
    if (evaluate_links(scores, &counts, model, sets->view, &request, config)) return -1;
    for (int i = 0; i < LINK_SCORES; i++) {
        if (isnan(scores[i].auc)) continue;
        print_name(sets->edges);
        printf(" %s", link_score_name((enum link_score)i));
        print_number("auc", scores[i].auc);
        print_number("mrr", scores[i].mrr);
        print_number("hits@10", scores[i].hits);
        printf(" links %" PRIu64 " asked %" PRIu64 " nodes %" PRIu64 " unknown %" PRIu64 " among %" PRIu64 " all %" PRIu64
               " left-out %" PRIu64 " trained %" PRIu64 "\n",
               counts.links, counts.asked, counts.nodes, counts.unknown, counts.among, counts.all, counts.left_out, counts.trained);
    }
    return 0;
}

static int triples(const struct model *model, const struct sets *sets, const struct config *config) {
    struct sptx_triples_score score;
    struct triples_request request = {.held_out = sets->triples, .known = sets->known, .threads = (unsigned)config->device_threads,
                                      .sample = sets->sample_given ? sets->sample : 0};
    struct config run = {.name = NULL};
    int result = run_triples_check(model) || arguments_config_of_run(&run, model->directory, &sets->arguments) ? -1 : 0;
    if (!result) {
        request.look = config_corpus(&run).look;
        request.look.hints = !arguments_set_layout(&sets->arguments);
        result = evaluate_triples(&score, model, &request, config);
    }
    config_release(&run);
    if (result) return -1;
    note("filtered   by '%s'%s%s%s%s", sets->triples, score.filtered_trained ? ", the triples that the run was trained on" : "",
         sets->known ? ", '" : "", sets->known ? sets->known : "", sets->known ? "'" : "");
    if (!model->reciprocal) note("tails      only: the run was trained with triples.reciprocal = no");
    if (score.among < score.entities)
        note("sample     of %" PRIu64 " of %" PRIu64 " entities, half of them drawn evenly and half by how often they occur", score.among,
             score.entities);
    print_name(sets->triples);
    print_number("mrr", score.mrr);
    print_number("hits@1", score.hits1);
    print_number("hits@3", score.hits3);
    print_number("hits@10", score.hits10);
    print_number("tails", score.mrr_tails);
    if (model->reciprocal) print_number("heads", score.mrr_heads);
    printf(" triples %" PRIu64 " asked %" PRIu64 " unknown %" PRIu64 " trained %" PRIu64 " among %" PRIu64 "\n", score.triples, score.asked,
           score.unknown, score.trained, score.among);
    if (!score.unknown) return 0;
    print_name(sets->triples);
    printf(" known");
    print_number("mrr", score.mrr_known);
    print_number("hits@1", score.hits1_known);
    print_number("hits@3", score.hits3_known);
    print_number("hits@10", score.hits10_known);
    printf(" triples %" PRIu64 ", without those of unknown names, which the line above counts as misses\n", score.triples - score.unknown);
    return 0;
}

/* Judges by each file, also after one has failed. */
static int evaluate(const struct model *model, const struct sets *sets, const struct config *config) {
    int result = 0;
    for (int i = 0; i < sets->pairs_count; i++) result |= pairs(model, sets->view, sets->pairs[i]);
    for (int i = 0; i < sets->analogies_count; i++)
        result |= analogies(model, sets->view, sets->analogies[i], sets->restrict_rows, config);
    if (sets->held_out) result |= lists(model, sets, config);
    if (sets->groups) result |= groups(model, sets, config);
    if (sets->labels) result |= labels(model, sets, config);
    if (sets->edges) result |= links(model, sets, config);
    if (sets->triples) result |= triples(model, sets, config);
    return result;
}

static int check_sets(const struct sets *sets, const char *score) {
    if (sets->arguments.count != 1)
        return fail_usage("evaluate wants one run directory, %d given; see 'sptx-w2v help evaluate'", sets->arguments.count);
    if (!sets->train != !sets->held_out)
        return fail_usage("evaluate wants --train=LISTS and --held-out=LISTS together, or neither");
    if (score && !sets->train)
        return fail_usage("evaluate: --score is how held-out items are scored; wanted --train=LISTS and --held-out=LISTS, too");
    if (sets->format && !sets->train)
        return fail_usage("evaluate: --format is how files of lists are read; wanted --train=LISTS and --held-out=LISTS, too");
    if ((sets->known || sets->directed) && !sets->edges && (sets->directed || !sets->triples))
        return fail_usage("evaluate: --known and --directed belong to --edges=FILE, which is wanted, too (--known also to "
                          "--triples=FILE)");
    if (sets->known && sets->edges && sets->triples)
        return fail_usage("evaluate: --known belongs to --edges or to --triples, and both are given");
    if (!sets->pairs_count && !sets->analogies_count && !sets->train && !sets->groups && !sets->labels && !sets->edges && !sets->triples)
        return fail_usage("evaluate wants --pairs=FILE, --analogies=FILE, --groups=FILE, --labels=FILE, --edges=FILE, --triples=FILE, or "
                          "--train=LISTS with --held-out=LISTS");
    return 0;
}

/* Reads --share: numbers between 0 and 1, separated by commas. */
static int read_shares(struct sets *sets, const char *text) {
    if (text && !sets->labels) return fail_usage("evaluate: --share is of the nodes of --labels=FILE, which is wanted, too");
    for (const char *at = text ? text : "0.5"; at;) {
        size_t length = strcspn(at, ",");
        char one[32] = "";
        double share = 0;
        if (length < sizeof one) memcpy(one, at, length);
        if (text_real(one, &share) || share <= 0 || share >= 1)
            return fail_usage("evaluate: --share = '%.*s' is not a number between 0 and 1", text_shown(length), at);
        if (sets->share_count == SPTX_SHARES_MOST)
            return fail_usage("evaluate: --share takes at most %d numbers", SPTX_SHARES_MOST);
        sets->shares[sets->share_count++] = share;
        at = at[length] ? at + length + 1 : NULL;
    }
    return 0;
}

/* Chooses the table to judge, and the score of lists: the one of --score, else the one that compares rows of --table, else the
 * run's default. */
static int choose_rows(struct sets *sets, struct model *model, const char *table, const char *score, unsigned threads) {
    int view = answers_view_named(model, table, threads);
    if (view < 0) return -1;
    sets->view = (enum model_view)view;
    sets->score = table ? (int)list_score_of_view(sets->view) : -1;
    if (!score) return 0;
    sets->score = answers_score_named(model, score, 1, threads);
    return sets->score < 0 ? -1 : 0;
}

/* sptx-w2v evaluate RUN [--pairs=FILE ...] [--analogies=FILE ...] [--restrict=30000] [--train=LISTS --held-out=LISTS]
 * [--format=F] [--groups=FILE --met=5 --sample=2000] [--labels=FILE --share=0.5] [--edges=FILE --known=FILE
 * --directed] [--triples=FILE --known=FILES --sample=N] [--k=20] [--table=TABLE] [--score=SCORE] */
int cmd_evaluate(int argc, char **argv) {
    struct sets sets = {.restrict_rows = 30000, .k = 20, .met = 5, .sample = 2000};
    const char *restrict_text = NULL, *k_text = NULL, *met = NULL, *sample = NULL, *table = NULL, *score = NULL, *share = NULL;
    const struct option options[] = {{.name = "pairs", .texts = sets.pairs, .count = &sets.pairs_count},
                                     {.name = "analogies", .texts = sets.analogies, .count = &sets.analogies_count},
                                     {.name = "restrict", .text = &restrict_text},
                                     {.name = "train", .text = &sets.train},
                                     {.name = "held-out", .text = &sets.held_out},
                                     {.name = "format", .text = &sets.format},
                                     {.name = "groups", .text = &sets.groups},
                                     {.name = "met", .text = &met},
                                     {.name = "sample", .text = &sample},
                                     {.name = "labels", .text = &sets.labels},
                                     {.name = "share", .text = &share},
                                     {.name = "edges", .text = &sets.edges},
                                     {.name = "triples", .text = &sets.triples},
                                     {.name = "known", .text = &sets.known},
                                     {.name = "directed", .flag = &sets.directed},
                                     {.name = "k", .text = &k_text},
                                     {.name = "table", .text = &table},
                                     {.name = "score", .text = &score},
                                     {0}};
    struct model model = {.rows = 0};
    struct config config = {.name = NULL};
    int result = -1;
    if (arguments_read(&sets.arguments, "evaluate", argc, argv, options, "device, memory, corpus")) goto out;
    if (check_sets(&sets, score) || read_shares(&sets, share)) goto out;
    if (arguments_number("evaluate", "restrict", restrict_text, 0, UINT32_MAX, &sets.restrict_rows)) goto out;
    if (arguments_number("evaluate", "met", met, 0, UINT64_MAX / 4, &sets.met)) goto out;
    if (arguments_number("evaluate", "sample", sample, 1, UINT32_MAX, &sets.sample)) goto out;
    sets.sample_given = sample != NULL;
    if (arguments_number("evaluate", "k", k_text, 1, MOST_PLACES, &sets.k)) goto out;
    if ((table && model_view_named(table) < 0) || (score && list_score_named(score) < 0)) goto out;
    if (arguments_config_beside(&config, &sets.arguments) || model_open(&model, sets.arguments.given[0])) goto out;
    if (choose_rows(&sets, &model, table, score, (unsigned)config.device_threads)) goto out;
    result = evaluate(&model, &sets, &config);
out:
    model_close(&model);
    config_release(&config);
    arguments_release(&sets.arguments);
    return result;
}
