/* expected_rows: computes how many rows, and which, a batch is expected to touch. It needs only the counts of the vocabulary. */
#ifndef SPTX_EXPECTED_ROWS_H
#define SPTX_EXPECTED_ROWS_H

#include "config/config.h"
#include "examples.h"

/* Rows are divided into groups of similar counts: sixteen groups for each doubling of the count. All rows of a group count as
 * equally frequent. So the expected number of distinct rows, a sum of 1 - (1 - p)^n over 15 million rows, needs only a thousand
 * powers. */
enum { ROW_POOLS = 1 + 64 * 16 };
struct row_pools {
    double rows[ROW_POOLS], count[ROW_POOLS], kept[ROW_POOLS], drawn[ROW_POOLS]; /* by group: sums over its rows; drawn: of the
                                                                                  * chances of the log-uniform distribution */
};

/* The counts and chances from which expected rows are computed. */
struct expected_rows {
    const struct vocab *vocab;
    const struct examples *examples;
    struct examples_expected expected;
    struct row_pools all;    /* rows of words, or of lists and items */
    struct row_pools ngrams; /* rows of n-grams, which words share; only `rows` and `kept` are set */
    struct row_pools nodes;  /* inner nodes of a Huffman tree, if these are the contexts; only `rows` and `count` are set */
    /* Targets and positives are drawn from the corpus, whose tokens are each used once an epoch: a share s of all tokens misses
     * a row that occurs c times with chance (1 - s)^c. Negatives are drawn from the noise distribution. */
    double places;              /* number of tokens of the corpus that subsampling keeps */
    double ngrams_kept;         /* of all touches of n-gram rows: the share that subsampling keeps */
    double lines;               /* number of lines or lists whose first id is a target, or of triples whose relation is one; 0 in
                                 * other modes */
    double chance[ROW_POOLS]; /* by group: chance that one negative is a given row of the group */
};

/* Prepares the computation. `vocab` and `examples` must outlive `touches`. */
void expected_rows_init(struct expected_rows *touches, const struct config *config, const struct vocab *vocab,
                  const struct examples *examples);

/* How many rows one batch is expected to touch. The fields distinct_* count each row once; all other fields count a row as often
 * as the batch touches it. */
struct batch_rows {
    double blocks, pairs;
    double targets, positives, negatives; /* positives: with model.tied, also the heads of triples */
    double target_draws, positive_draws; /* number of independent draws that give `targets` and `positives`: a word is drawn
                                          * once, but is a target of all windows around it */
    double line_draws;                   /* how many of the target_draws are first rows of lines */
    double distinct_targets, distinct_contexts;
};
struct batch_rows expected_rows_of_batch(const struct expected_rows *touches, uint64_t examples);

/* Returns how many distinct rows with ids of at least `first` a batch is expected to touch. */
struct distinct_rows {
    double targets, contexts;
};
struct distinct_rows expected_rows_from(const struct expected_rows *touches, const struct batch_rows *batch, uint64_t first);

/* Returns the share of all touches of targets whose row has an id below `rows`. */
double expected_rows_below(const struct expected_rows *touches, uint64_t rows);

#endif
