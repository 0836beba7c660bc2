/* choice: everything that decides a training run, drawn at random from one number and near the thresholds of the
 * kernels: corpus, examples, rule, sizes, places, threads, depth, and how the calls are made. */
#ifndef SPTX_TESTS_GPU_CHOICE_H
#define SPTX_TESTS_GPU_CHOICE_H

#include "common.h"

/* Runs that differ only in these must make the same bytes. */
struct machine {
    unsigned threads, depth;
    struct placing placing[2];
};

struct choice {
    uint64_t seed;
    const char *aim; /* the threshold that its sizes are drawn around */
    uint64_t rows, sentences, longest;
    uint64_t first_row;           /* no row below is a target; 0: each may be one */
    double slope;                 /* how steeply word counts fall in the made-up corpus; 1: all rows are equally frequent */
    struct example_source source; /* without its arrays */
    int subsample;
    unsigned walks; /* 0: windows run over sentences; otherwise over walks, by the bits of walks - 1 (source_walks) */
    struct rule_case rule;
    struct loss_options loss;
    unsigned frozen[2]; /* by side, as frozen_of() has it; 0: none */
    const uint32_t *frozen_rows[2]; /* made from `frozen` by choice_freeze() */
    uint32_t dim;
    int mean;
    double summed; /* about how many pairs add up in a row's gradient, divided by the batch where steps take the mean */
    double places; /* how often a batch names its most frequent row, if all its blocks are full */
    uint64_t batch;
    unsigned epochs;
    struct machine machine;
    /* Each happens once in so many steps, 0: never. loss_only: a step that changes nothing. arrays: the batch comes by
     * set_batch. apart: nothing else is in flight, and everything is drained between the calls. touched: rows are read
     * and written back while batches are in flight. */
    unsigned loss_only, arrays, apart, touched;
    int flowing; /* 1: an epoch's first batch follows the last one of the epoch before without a pause */
};

struct choice choice_make(uint64_t seed);
/* Makes its corpus, whose words are all rows from `first_row` on; corpus_free() frees it. */
void choice_corpus(const struct choice *c, struct corpus *corpus);
struct example_source choice_source(const struct choice *c, struct corpus *corpus);
/* Returns another machine by `seed`, with other threads and depth; or one with everything on the GPU in whole tables, one batch at
 * a time. */
struct machine machine_other(const struct machine *machine, uint64_t seed);
struct machine machine_plain(const struct machine *machine);
/* Makes the bits of frozen rows; choice_thaw() frees them. */
void choice_freeze(struct choice *c);
void choice_thaw(struct choice *c);
/* Writes all of it in one line, for the sentence of a test that failed. */
void choice_describe(const struct choice *c, char *text, size_t capacity);

#endif
