/* evaluate: takes any bytes as a file of questions about a small model. Each score must be within its bounds, and no more
 * questions may be answered than are asked.
 *
 *   byte 0     kind of the file and, for lists, format and score
 *   the rest   the file. The second file of lists and links is the second half of these bytes
 */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/small_run.h"
#include "vectors/evaluate.h"

enum { ROWS = 12, DIM = 4 };
static struct small_run run;
static struct model model;
static struct config config;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    float rows[ROWS * DIM];
    char words[ROWS * 8] = "";
    if (fuzz_begin()) return -1;
    for (int i = 0; i < ROWS * DIM; i++) rows[i] = (float)scratch_random(2000) / 1000 - 1;
    for (int i = 0; i < ROWS; i++) sprintf(words + strlen(words), "%c\t%d\n", 'a' + i, ROWS - i);
    small_run_make(&run, words, ROWS, DIM, rows, rows);
    if (model_open(&model, run.directory) || !(model.propagated = model_matrix(&model, VIEW_NORMSUM, 0, 0))) return -1;
    return config_init(&config) ||
           config_set(&config, "device", "threads", "1", "here") ||
           config_set(&config, "device", "backend", "cpu", "here") || config_resolve(&config);
}

static void share_holds(double share, const char *what) {
    HOLDS(isnan(share) || (share >= 0 && share <= 1), "%s is %g", what, share);
}

static void check_pairs(const char *path) {
    struct sptx_pairs_score score;
    if (!fuzz_accepted(evaluate_pairs(&score, &model, VIEW_TARGET, path))) return;
    HOLDS(score.covered <= score.total, "more pairs are covered than asked");
    HOLDS(isnan(score.rho) || fabs(score.rho) <= 1 + 1e-9, "rho is %g", score.rho);
}

static void check_analogies(const char *path) {
    struct sptx_analogies_score score;
    if (!fuzz_accepted(evaluate_analogies(&score, &model, VIEW_TARGET, path, 0, &config))) return;
    HOLDS(score.covered <= score.total, "more questions are covered than asked");
    share_holds(score.accuracy, "accuracy");
    share_holds(score.semantic, "semantic accuracy");
    share_holds(score.syntactic, "syntactic accuracy");
}

static void check_lists(const char *train, const char *held_out, enum corpus_format format, enum list_score by) {
    struct sptx_lists_score score;
    struct lists_request request = {.train = train, .held_out = held_out, .reading = config_corpus(&config), .score = by, .k = 3};
    request.reading.format = format;
    if (!fuzz_accepted(evaluate_lists(&score, &model, &request, &config))) return;
    share_holds(score.recall, "recall");
    share_holds(score.ndcg, "ndcg");
    share_holds(score.hit, "hit");
}

static void check_groups(const char *path) {
    struct sptx_groups_score scores[SPTX_GROUPS_MOST];
    struct groups_request request = {.sample = 8, .k = 3};
    int columns = evaluate_groups(scores, &model, VIEW_TARGET, path, &request, &config);
    if (!fuzz_accepted(columns < 0 ? -1 : 0)) return;
    HOLDS(columns <= SPTX_GROUPS_MOST, "%d columns", columns);
    for (int i = 0; i < columns; i++) {
        share_holds(scores[i].share, "share");
        share_holds(scores[i].chance, "chance");
        HOLDS(scores[i].asked <= scores[i].rows && scores[i].rows <= ROWS, "more rows than there are");
    }
}

static void check_labels(const char *path) {
    static const double shares[] = {0.1, 0.5, 0.9};
    struct sptx_labels_score scores[3];
    if (!fuzz_accepted(evaluate_labels(scores, &model, VIEW_TARGET, path, shares, 3, &config))) return;
    for (int i = 0; i < 3; i++) {
        share_holds(scores[i].micro, "micro F1");
        share_holds(scores[i].macro, "macro F1");
        HOLDS(scores[i].covered <= scores[i].total && scores[i].covered <= ROWS, "more nodes than there are");
    }
}

static void check_links(const char *path, const char *known, int directed) {
    struct sptx_links_score scores[LINK_SCORES];
    struct sptx_links_counts counts;
    struct links_request request = {.held_out = path, .known = known, .directed = directed};
    if (!fuzz_accepted(evaluate_links(scores, &counts, &model, VIEW_TARGET, &request, &config))) return;
    for (int i = 0; i < LINK_SCORES; i++) {
        share_holds(scores[i].auc, "AUC");
        share_holds(scores[i].mrr, "MRR");
        share_holds(scores[i].hits, "hits");
    }
    HOLDS(counts.unknown < counts.nodes && counts.asked <= 2 * counts.links, "more nodes or links than there are");
}

/* Handles byte 0 from 128 on: files about a graph. */
static void check_graph(unsigned kind, const char *path, const uint8_t *bytes, size_t length) {
    if (kind % 2) {
        const char *known = kind & 4 ? scratch_file("known", bytes + length / 2, length - length / 2) : NULL;
        check_links(path, known, kind >> 1 & 1);
    } else {
        check_labels(path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (!length) return 0;
    unsigned first = *bytes, kind = first < 128 ? first % 4 : 4;
    enum corpus_format format = *bytes / 4 % 2 ? FORMAT_PAIRS : FORMAT_LISTS;
    enum list_score by = *bytes / 8 % LIST_SCORES;
    char *path = scratch_file("given", ++bytes, --length);
    if (kind == 0) check_pairs(path);
    if (kind == 1) check_analogies(path);
    if (kind == 2) check_lists(path, scratch_file("held-out", bytes + length / 2, length - length / 2), format, by);
    if (kind == 3) check_groups(path);
    if (kind == 4) check_graph(first - 128, path, bytes, length);
    return 0;
}
