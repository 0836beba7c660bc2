/* expected_rows: which rows a batch is expected to touch, from counts alone. */
#ifndef SPTX_EXPECTED_ROWS_H
#define SPTX_EXPECTED_ROWS_H

#include "config/config.h"
#include "examples.h"

/* Rows are pooled by count, sixteen pools to a doubling: within one they are alike, so the expected distinct rows
 * 1 - (1 - p)^n of 15 million rows are a thousand powers. */
enum { ROW_POOLS = 1 + 64 * 16 };
struct row_pools {
    double rows[ROW_POOLS], count[ROW_POOLS], kept[ROW_POOLS], drawn[ROW_POOLS]; /* sums; drawn: of log-uniform */
};

struct expected_rows {
    const struct vocab *vocab;
    const struct examples *examples;
    struct examples_expected expected;
    struct row_pools all;    /* of words, or lists and items */
    struct row_pools ngrams; /* rows that words share: rows and kept alone */
    struct row_pools nodes;  /* of a tree, which are the contexts there: rows and count alone */
    /* The sources of a batch's rows. Targets and positives come from the corpus, each place once an epoch: a share s of all
     * places misses a row with count c with chance (1 - s)^c. Negatives come from the noise distribution. */
    double places;              /* kept tokens of the corpus */
    double ngrams_kept;         /* the share of touches of n-grams that are left where words are dropped */
    double lines;               /* adjacency: the first id of each line is a target, except ids of pools */
    double chance[ROW_POOLS]; /* of a row of the pool to be one negative */
};

/* The caller keeps vocabulary and examples as long as it asks. */
void expected_rows_init(struct expected_rows *touches, const struct config *config, const struct vocab *vocab,
                  const struct examples *examples);

/* A batch's, repeats counted unless they are said to be distinct. */
struct batch_rows {
    double blocks, pairs;
    double targets, positives, negatives;
    double target_draws, positive_draws; /* independent ones: a word is the target of all windows around it */
    double line_draws;                   /* of the target draws, lines' own rows */
    double distinct_targets, distinct_contexts;
};
struct batch_rows expected_rows_of_batch(const struct expected_rows *touches, uint64_t examples);

/* Returns the expected number of a batch's distinct rows from row `first` on. */
struct distinct_rows {
    double targets, contexts;
};
struct distinct_rows expected_rows_from(const struct expected_rows *touches, const struct batch_rows *batch, uint64_t first);

/* The share of target touches whose row is below `rows`. */
double expected_rows_below(const struct expected_rows *touches, uint64_t rows);

#endif
