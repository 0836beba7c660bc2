/* choice: all parameters of a training run, drawn at random from one seed and near the thresholds of the kernels: corpus,
 * examples, rule, sizes, places, threads, depth, and the order of calls. */
#ifndef SPTX_TESTS_GPU_CHOICE_H
#define SPTX_TESTS_GPU_CHOICE_H

#include "common.h"

/* How a run is executed. Runs that differ only in this must give the same bytes. */
struct machine {
    unsigned threads, depth;
    struct placing placing[2];
};

struct choice {
    uint64_t seed;
    const char *aim; /* name of the threshold near which sizes are drawn */
    uint64_t rows, sentences, longest;
    uint64_t first_row;           /* first row of the target table; rows below it are never targets */
    double slope;                 /* how steeply word counts fall in the corpus; 1: all words are equally frequent */
    struct example_source source; /* its arrays are set later, by choice_source() */
    int subsample;
    unsigned walks; /* 0: windows over sentences; otherwise windows over walks, and walks - 1 is the `kind` of source_walks() */
    struct rule_case rule;
    struct loss_options loss;
    unsigned frozen[2]; /* of each side: every how many rows one is frozen (frozen_of()); 0: none */
    const uint32_t *frozen_rows[2]; /* bits made from `frozen` by choice_freeze() */
    uint32_t dim;
    int mean;
    double summed; /* estimate of the number of pairs whose gradients add up in a row; if steps take the mean, divided by the
                    * batch */
    double places; /* number of times that a batch of full blocks names its most frequent row */
    uint64_t batch;
    unsigned epochs;
    struct machine machine;
    /* Each is done once in this number of steps; 0: never. loss_only: a step that changes no row. arrays: the batch is given by
     * set_batch. apart: a step with no other batch in flight, and a drain after each call. touched: rows are read and written
     * back while batches are in flight. */
    unsigned loss_only, arrays, apart, touched;
    int flowing; /* 1: the pipeline is not emptied between epochs */
};

struct choice choice_make(uint64_t seed);
/* Turns examples of items or triples, which are trained in batches only, into lines of adjacency. */
void choice_without_items(struct choice *c);
/* Makes the run's corpus, in which every row from `first_row` on is a word; corpus_free() frees it. */
void choice_corpus(const struct choice *c, struct corpus *corpus);
struct example_source choice_source(const struct choice *c, struct corpus *corpus);
/* Return another way to execute the run: machine_other() with threads and depth by `seed`; machine_plain() with whole tables on
 * the GPU and one batch at a time. */
struct machine machine_other(const struct machine *machine, uint64_t seed);
struct machine machine_plain(const struct machine *machine);
/* Makes the bits of frozen rows; choice_thaw() frees them. */
void choice_freeze(struct choice *c);
void choice_thaw(struct choice *c);
/* Writes the whole choice in one line, for the message of a failed test. */
void choice_describe(const struct choice *c, char *text, size_t capacity);

#endif
