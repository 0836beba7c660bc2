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

/* Evaluates by a measure, and checks its numbers: shares and rank correlations lie in their ranges, and no more questions are covered than
 * are asked. */
static void check(const char *measure, const char *path, const char *known, struct evaluate_request request) {
    struct answer answer = {.count = 0};
    request.path = path, request.known = known;
    request.options.table = request.options.score ? NULL : "target";
    request.options.k = 3, request.options.sample = 8;
    if (fuzz_accepted(evaluate(&answer, &model, evaluate_named(measure), &request, &config)))
        for (uint64_t i = 0; i < answer.count; i++) {
            const struct sptx_number *number = &answer.numbers[i];
            double least = strcmp(number->name, "rho") ? 0 : -1 - 1e-9, most = number->count ? 1 + 1e-9 : 1 << 20;
            HOLDS(isnan(number->value) || (number->value >= least && number->value <= most), "%s %s is %g", measure, number->name,
                  number->value);
            if (i && number->text[0] == '/') HOLDS(number[-1].value <= number->value, "%s: more are covered than asked", measure);
        }
    answer_release(&answer);
}

/* Handles byte 0 from 128 on: files about a graph. */
static void check_graph(unsigned kind, const char *path, const uint8_t *bytes, size_t length) {
    static const double shares[] = {0.1, 0.5, 0.9};
    struct evaluate_request request = {.options = {.shares = shares, .share_count = 3, .directed = kind >> 1 & 1}};
    const char *known = kind % 2 && kind & 4 ? scratch_file("known", bytes + length / 2, length - length / 2) : NULL;
    check(kind % 2 ? "edges" : "labels", path, known, request);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (!length) return 0;
    unsigned first = *bytes, kind = first < 128 ? first % 4 : 4;
    enum corpus_format format = *bytes / 4 % 2 ? FORMAT_PAIRS : FORMAT_LISTS;
    enum list_score by = *bytes / 8 % LIST_SCORES;
    char *path = scratch_file("given", ++bytes, --length);
    struct evaluate_request request = {.reading = config_corpus(&config)};
    if (kind == 0) check("pairs", path, NULL, request);
    if (kind == 1) check("analogies", path, NULL, request);
    if (kind == 3) check("groups", path, NULL, request);
    request.reading.format = format;
    request.options.score = list_score_name(by);
    if (kind == 2) check("held_out", scratch_file("held-out", bytes + length / 2, length - length / 2), path, request);
    if (kind == 4) check_graph(first - 128, path, bytes, length);
    return 0;
}
