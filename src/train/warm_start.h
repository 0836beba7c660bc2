/* warm_start: a run that begins from an older one, from a model of fastText, or from vectors of any program, by word (train.from).
 *
 *   word of this run's vocabulary -> row of the same word in the source, if it has one -> first values of this run's row
 *
 * The source is opened, verified and compared with the config before the corpus is read, which may take an hour. A resumed run does
 * not read the source's rows: its checkpoint has all rows.
 */
#ifndef SPTX_WARM_START_H
#define SPTX_WARM_START_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "rows/table.h"
#include "rows/vectors_file.h"
#include "run/model_files.h"

/* The source of a run's first values (train.from), and which of its rows each row of this run starts from. */
struct warm_start {
    const struct config *config; /* the config of this run; owned by the caller */
    const struct vocab *vocab;   /* the vocabulary of this run; owned by the caller; set by warm_start_match() */
    enum { WARM_NOT, WARM_RUN, WARM_VECTORS } kind; /* WARM_NOT: train.from is empty, or a resumed run */
    char **paths;                /* [path_count] paths of train.from, owned */
    int64_t path_count;
    struct model run;
    struct vectors_file vectors; /* open file of vectors. The vector of a word is put into one table, the table from which
                                  * `export` would take it; the word's row in the other table gets first values */
    uint32_t *row;               /* [target rows] the source's row that each row starts from; WORDS_ABSENT: the row gets first
                                  * values */
    uint64_t rows, known;        /* rows: number of words; known: number of words that have a row in the source */
    uint64_t dropped;            /* number of words of the older run that this run does not have */
    int scaled;                  /* 1: words have n-grams in this run but not in the source */
    int targets_alone;           /* 1: context rows get first values, because contexts are nodes of a Huffman tree (train.loss =
                                  * hierarchical) in this run or in the source, and the trees differ */
};

/* Opens the files of train.from, if it is not empty. Returns 0, or -1 after fail(). Call warm_start_release() in any case. */
int warm_start_open(struct warm_start *grow, const struct config *config);
void warm_start_release(struct warm_start *grow); /* may be called on a struct of zeros */

/* Reads only the words of the run or fastText model that train.from names, for a plan, which needs no rows. Reads nothing for other
 * files of vectors: their words are never kept. Returns 0, or -1 after fail(). */
int warm_start_read_words(struct warm_start *grow, const struct config *config);
/* Returns 1 if a resumed run may have kept words of an older run, as far as its keys show; also if the path in its train.from no
 * longer exists. Otherwise returns 0, or -1 after fail(). */
int warm_start_may_keep(const struct config *config);
/* Returns the vocabulary of the older run, if this run keeps its words (train.from_words = keep); otherwise NULL. */
const struct vocab *warm_start_older(const struct warm_start *grow, const struct config *config);

/* Finds the source's row of each word of `vocab`, which must outlive `grow`. If train.freeze = known, marks the rows that it
 * finds in `frozen`. All ranks call it together, and it fails unless they find the same rows. */
int warm_start_match(struct warm_start *grow, const struct vocab *vocab, struct frozen *frozen, struct ranks *ranks);

/* Prints on stderr how many rows start from the source. */
void warm_start_print(const struct warm_start *grow);

/* Fills a table: rows that the source has get its values, all others get first values. */
int warm_start_fill(struct warm_start *grow, struct table *table, struct pool *pool);

/* Returns the bytes of memory that a warm start uses while a run with this number of words trains. */
uint64_t warm_start_bytes(const struct config *config, uint64_t rows);

#endif
