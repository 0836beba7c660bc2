/* tiny_corpus: a vocabulary and an id stream in plain memory, for tests of code that needs counts and ids but no
 * files. */
#ifndef SPTX_TEST_TINY_CORPUS_H
#define SPTX_TEST_TINY_CORPUS_H

#include "train/examples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tiny {
    struct vocab vocab;
    struct idstream stream;
    uint32_t *ids;
    uint64_t *starts;
};

/* Makes `sentences` sentences, each of two thirds to four thirds of `length` ids. The ids 0 .. rows - 1 are drawn by Zipf's law
 * with exponent s. */
static void tiny_make(struct tiny *tiny, uint64_t rows, uint64_t sentences, uint64_t length, double s) {
    double *sums = calloc(rows + 1, sizeof *sums);
    uint64_t at = 0;
    *tiny = (struct tiny){0};
    tiny->ids = calloc(sentences * (length + length / 3 + 1), sizeof *tiny->ids);
    tiny->starts = calloc(sentences + 1, sizeof *tiny->starts);
    tiny->vocab.counts = calloc(rows, sizeof *tiny->vocab.counts);
    for (uint64_t i = 0; i < rows; i++) sums[i + 1] = sums[i] + pow((double)(i + 1), -s);
    for (uint64_t i = 0; i < sentences; i++) {
        uint64_t count = length - length / 3 + draw_below(draw_pair(draw_at(9, DRAW_GENERATE, i, 1, 0), 0), 2 * (length / 3) + 1);
        tiny->starts[i] = at;
        for (uint64_t j = 0; j < count; j++, at++) {
            double u = sums[rows] * ldexp((double)draw_pair(draw_at(9, DRAW_GENERATE, at, 0, 0), 0), -64);
            uint64_t low = 0, high = rows - 1;
            while (low < high) {
                uint64_t middle = (low + high) / 2;
                if (sums[middle + 1] > u) high = middle;
                else low = middle + 1;
            }
            tiny->ids[at] = (uint32_t)low;
            tiny->vocab.counts[low]++;
        }
    }
    tiny->starts[sentences] = at;
    free(sums);
    tiny->vocab.size = tiny->vocab.distinct = rows;
    tiny->vocab.tokens = tiny->vocab.kept = at;
    tiny->vocab.subwords.words = rows; /* all rows are words: there are no n-grams */
    tiny->vocab.words = (struct words){.size = rows, .used = 8 * rows, .slot_count = 2 * rows}; /* for vocab_bytes() */
    tiny->stream = (struct idstream){.ids = tiny->ids, .starts = tiny->starts, .tokens = at, .sentences = sentences};
}

/* Turns a tiny corpus into triples: each three ids become head, relation and tail. Adds `relations` rows with a count of 0: first
 * the relations, then as many reciprocals. */
__attribute__((unused)) static void tiny_make_triples(struct tiny *tiny, uint64_t relations) {
    uint64_t rows = tiny->vocab.size, triples = tiny->stream.tokens / 3;
    tiny->vocab.counts = realloc(tiny->vocab.counts, (rows + relations) * sizeof *tiny->vocab.counts);
    memset(tiny->vocab.counts, 0, (rows + relations) * sizeof *tiny->vocab.counts);
    for (uint64_t i = 0; i < 3 * triples; i++) {
        if (i % 3 == 1) tiny->ids[i] = (uint32_t)(rows + tiny->ids[i] % (relations / 2));
        tiny->vocab.counts[tiny->ids[i]] += i % 3 != 1;
    }
    tiny->vocab.size = rows + relations;
    tiny->vocab.lists = relations;
    tiny->stream.starts = NULL;
    tiny->stream.tokens = 3 * triples;
    tiny->stream.sentences = tiny->stream.triples = triples;
}

static void tiny_free(struct tiny *tiny) {
    free(tiny->ids);
    free(tiny->starts);
    free(tiny->vocab.counts);
}

/* Returns a resolved config for the tiny corpus. */
__attribute__((unused)) static struct config tiny_config(int mode) {
    return (struct config){
        .examples_mode = mode,
        .examples_window = 5,
        .examples_shrink = 1,
        .examples_positives = 4,
        .examples_targets = TARGETS_ONE,
        .examples_short = SHORT_SKIP,
        .examples_own = 1,
        .negatives_count = 5,
        .negatives_per = mode == EXAMPLE_WINDOW ? PER_PAIR : PER_EXAMPLE,
        .negatives_law = NOISE_UNIGRAM,
        .negatives_power = 0.75,
        .negatives_exclude = 1,
        .model_dim = 100,
        .optimizer_lr = 0.025,
        .optimizer_bias_correction = COUNT_ROW,
        .train_batch = COUNT_AUTO,
        .train_update = UPDATE_BATCH,
        .run_checkpoint = 1,
        .run_checkpoint_wait = TRUTH_AUTO,
        .train_seed = 1,
        .train_evaluate = "",
        .memory_gpu_budget = COUNT_AUTO,
        .memory_target = PLACE_PINNED,
        .memory_target_state = PLACE_PINNED,
        .memory_context = PLACE_GPU,
        .memory_context_state = PLACE_GPU,
        .memory_hot_rows = COUNT_AUTO,
        .memory_depth = 3,
    };
}

#endif
