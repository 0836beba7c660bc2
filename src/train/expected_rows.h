/* expected_rows: computes how many rows, and which, a batch is expected to touch. It needs only the counts of the vocabulary. */
#ifndef SPTX_EXPECTED_ROWS_H
#define SPTX_EXPECTED_ROWS_H

#include "config/config.h"
#include "examples.h"

/* Groups of rows with similar counts: sixteen groups for each doubling of the count. Rows of one group count as equally
 * frequent. So the expected number of distinct rows, a sum of 1 - (1 - p)^n over 15 million rows, takes a thousand powers. */
enum { ROW_POOLS = 1 + 64 * 16 };
struct row_pools {
    double rows[ROW_POOLS], count[ROW_POOLS], kept[ROW_POOLS], drawn[ROW_POOLS]; /* sums; drawn: of log-uniform */
};

/* The counts and chances from which expected rows are computed. */
struct expected_rows {
    const struct vocab *vocab;
    const struct examples *examples;
    struct examples_expected expected;
    struct row_pools all;    /* rows of words, or of lists and items */
    struct row_pools ngrams; /* rows of n-grams, which words share; only `rows` and `kept` are set */
    struct row_pools nodes;  /* inner nodes of a Huffman tree if these are the contexts; only `rows` and `count` are set */
    /* Targets and positives are drawn from the corpus, whose tokens are each used once an epoch: a share s of all tokens misses
     * a row that occurs c times with chance (1 - s)^c. Negatives are drawn from the noise distribution. */
    double places;              /* tokens of the corpus that subsampling keeps */
    double ngrams_kept;         /* share of touches of n-gram rows that subsampling keeps */
    double lines;               /* number of lines or lists whose first id is a target; 0 in other modes */
    double chance[ROW_POOLS]; /* chance that one negative is a given row of the group */
};

/* The caller keeps `vocab` and `examples` valid as long as it uses `touches`. */
void expected_rows_init(struct expected_rows *touches, const struct config *config, const struct vocab *vocab,
                  const struct examples *examples);

/* Rows that one batch is expected to touch. A row that is touched twice counts twice, except in distinct_*. */
struct batch_rows {
    double blocks, pairs;
    double targets, positives, negatives;
    double target_draws, positive_draws; /* number of independent draws behind `targets` and `positives`: a word is drawn once,
                                          * but is a target of all windows around it */
    double line_draws;                   /* how many of target_draws are rows that lines begin with */
    double distinct_targets, distinct_contexts;
};
struct batch_rows expected_rows_of_batch(const struct expected_rows *touches, uint64_t examples);

/* Returns how many distinct rows with id >= `first` a batch is expected to touch. */
struct distinct_rows {
    double targets, contexts;
};
struct distinct_rows expected_rows_from(const struct expected_rows *touches, const struct batch_rows *batch, uint64_t first);

/* Returns the share of target touches whose row has an id below `rows`. */
double expected_rows_below(const struct expected_rows *touches, uint64_t rows);

#endif
