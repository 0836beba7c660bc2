/* warm_start: begins a run with rows of an older run, of a fastText model, or of a file of vectors, matched by word (train.from).
 *
 *   word of this run's vocabulary -> row of the same word in the source, if there is one -> first values of this run's row
 *
 * The source is opened, checked and compared with the config before the corpus is read, which may take an hour. A resumed run does not read the
 * source's rows, since its checkpoint contains all rows.
 */
#ifndef SPTX_WARM_START_H
#define SPTX_WARM_START_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "rows/table.h"
#include "rows/vectors_file.h"
#include "run/model_files.h"

/* The source of a run's first values (train.from), and the source's row for each row of this run. */
struct warm_start {
    struct config *config; /* the config of this run, whose model.dim may be taken from the older one; owned by the caller */
    const struct vocab *vocab;   /* the vocabulary of this run; owned by the caller; set by warm_start_match() */
    enum { WARM_NOT, WARM_RUN, WARM_VECTORS } kind; /* WARM_NOT: train.from is empty, or the run is resumed */
    char **paths;                /* [path_count] paths of train.from, owned */
    int64_t path_count;
    struct model run;
    struct vectors_file vectors; /* open file of vectors. A word's vector is used in the table from which `export` would write it; its row in the
                                  * other table gets new first values */
    uint32_t *row;               /* [target rows] the source's row with which each row begins; WORDS_ABSENT: new first values */
    uint64_t rows, known;        /* rows: number of words; known: number of words that the source has a row for */
    uint64_t dropped;            /* number of words of the older run that this run leaves out */
    int scaled;                  /* 1: words have n-grams in this run but not in the source */
    int targets_alone;           /* 1: context rows get new first values, because they belong to nodes of a Huffman tree (train.loss =
                                  * hierarchical) in this run or in the source, and the trees differ */
};

/* Opens the files of train.from, unless that is empty. Returns 0, or -1 after fail(). Call warm_start_release() in any case. */
int warm_start_open(struct warm_start *grow, struct config *config);
void warm_start_release(struct warm_start *grow); /* may be called on a struct of zeros */

/* Reads only the words of train.from, if it is a run or fastText model, for a plan, which needs no rows. Words of other files of vectors are never
 * kept, so nothing is read. Returns 0, or -1 after fail(). */
int warm_start_read_words(struct warm_start *grow, struct config *config);
/* Returns 1 if, by its keys, a resumed run may have kept words of an older run, even if its train.from no longer exists; otherwise 0; -1 after
 * fail(). */
int warm_start_may_keep(const struct config *config);
/* Returns the older run's vocabulary if this run keeps its words (train.from_words = keep); otherwise NULL. */
const struct vocab *warm_start_older(const struct warm_start *grow, const struct config *config);

/* Finds the source's row for each word of `vocab`, which must outlive `grow`. With train.freeze = known, marks these words' rows in `frozen`. All
 * ranks call it together, and it fails unless they find the same rows. */
int warm_start_match(struct warm_start *grow, const struct vocab *vocab, struct frozen *frozen, struct ranks *ranks);

/* Prints how many rows begin with the source's values, on stderr. */
void warm_start_print(const struct warm_start *grow);

/* Fills a table: rows found in the source get its values, all others new first values. */
int warm_start_fill(struct warm_start *grow, struct table *table, struct pool *pool);

/* Returns how many bytes of memory a warm start uses while a run with this number of words trains. */
uint64_t warm_start_bytes(const struct config *config, uint64_t rows);

#endif
