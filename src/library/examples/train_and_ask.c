/* Trains on lists in the program's memory. Then asks the run which items are similar to an item, and which items suit a new list.
 *
 *   cc train_and_ask.c $(pkg-config --cflags --libs sptx) && ./a.out
 *
 * The first argument names the run directory (default runs/example). Exits with 0 if all answers are of the right kind.
 */
#include <sptx.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LISTS = 3000, LENGTH = 6, KINDS = 4, ITEMS = 80, K = 3 }; /* item i is of kind i % KINDS */

static uint32_t items[LISTS * LENGTH];
static uint64_t starts[LISTS + 1];

/* Fills the lists: all items of a list are of one kind. */
static void make_lists(void) {
    uint32_t random = 1;
    for (uint32_t list = 0; list < LISTS; list++)
        for (uint32_t i = 0; i < LENGTH; i++) {
            random = random * 1664525u + 1013904223u;
            items[list * LENGTH + i] = random / 65536 % (ITEMS / KINDS) * KINDS + list % KINDS;
        }
    for (uint64_t list = 0; list <= LISTS; list++) starts[list] = list * LENGTH;
}

static void check(enum sptx_status status, const struct sptx_context *context) {
    if (status == SPTX_OK) return;
    fprintf(stderr, "train_and_ask: %s\n", sptx_error(context));
    exit(1);
}

static void train(struct sptx_context *context, const char *directory) {
    char run_dir[4096];
    snprintf(run_dir, sizeof run_dir, "run.dir=%s", directory);
    const char *settings[] = {"corpus.format=lists", "corpus.min_count=1", "model.dim=16", run_dir};
    struct sptx_tokens tokens = {.kind = SPTX_NUMBERS, .bits = 32, .data = items, .count = LISTS * LENGTH};
    struct sptx_corpus *corpus;
    check(sptx_corpus_open(context, NULL, settings, sizeof settings / sizeof *settings, &corpus), context);
    check(sptx_corpus_sentences(corpus, &tokens, starts, LISTS, NULL), context);
    check(sptx_corpus_train(corpus, SPTX_OVERWRITE, NULL, NULL), context);
    sptx_corpus_close(corpus);
}

/* Prints k rows with their scores. Returns the number of rows that are of the kind `wanted`. */
static int show(const struct sptx_run *run, const char *what, const uint32_t *rows, const float *scores, int wanted) {
    int right = 0;
    printf("%s:", what);
    for (int i = 0; i < K && rows[i] != UINT32_MAX; i++) {
        const char *word = sptx_run_word(run, rows[i], NULL);
        right += atoi(word) % KINDS == wanted;
        printf(" %s (%.3f)", word, scores[i]);
    }
    printf("\n");
    return right;
}

int main(int argc, char **argv) {
    const char *directory = argc > 1 ? argv[1] : "runs/example";
    struct sptx_context_options machine = SPTX_CONTEXT_OPTIONS;
    struct sptx_nearest_options others = SPTX_NEAREST_OPTIONS;
    struct sptx_context *context;
    struct sptx_run *run;
    uint64_t row, list[2];
    uint32_t self, rows[K];
    float vector[16], scores[K];
    check(sptx_open(&context, &machine), context);
    make_lists();
    train(context, directory);
    check(sptx_run_open(context, directory, &run), context);
    check(sptx_run_find(run, "5", &row), context);
    check(sptx_run_vectors(run, NULL, &row, 1, vector), context);
    self = (uint32_t)row;
    others.excluded = &self;
    check(sptx_run_nearest(run, vector, 1, &others, K, rows, scores), context);
    int right = show(run, "nearest to 5", rows, scores, 5 % KINDS);
    check(sptx_run_find(run, "6", &list[0]), context);
    check(sptx_run_find(run, "10", &list[1]), context);
    check(sptx_run_recommend(run, (const uint64_t[]){0, 2}, list, 1, NULL, K, rows, scores), context);
    right += show(run, "for a list of 6 and 10", rows, scores, 6 % KINDS);
    sptx_run_close(run);
    sptx_close(context);
    return right == 2 * K ? 0 : 1;
}
