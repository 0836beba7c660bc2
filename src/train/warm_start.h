/* warm_start: a run that begins from an older one, from a model of fastText, or from vectors of any program, by word (train.from).
 *
 *   word of this run's vocabulary -> the source's row of the same word, or none -> first values of the table's row
 *
 * The source is opened, verified and held against the config before the corpus is read, which may take an hour. A run that goes
 * on needs nothing of it: its tables have what came from there.
 */
#ifndef SPTX_WARM_START_H
#define SPTX_WARM_START_H

#include "config/config.h"
#include "kernels/ranks.h"
#include "run/frozen.h"
#include "run/model_files.h"
#include "rows/table.h"
#include "rows/vectors_file.h"

struct warm_start {
    const struct config *config; /* the caller's */
    const struct vocab *vocab;   /* of this run; the caller's, since warm_start_match() */
    enum { WARM_NOT, WARM_RUN, WARM_VECTORS } kind; /* not: no train.from, or a run that goes on */
    char **paths;                /* [path_count] that train.from names; owned */
    int64_t path_count;
    struct model run;
    struct vectors_file vectors; /* each in the table that export takes it from; the word's other row begins at first values */
    uint32_t *row;               /* [target rows] of the source where each row begins; WORDS_ABSENT: at first values */
    uint64_t rows, known;        /* words, and how many of them are not WORDS_ABSENT */
    uint64_t dropped;            /* number of words of the older run that this run does not have */
    int scaled;                  /* 1: words have n-grams here, and had none in the source */
    int targets_alone;           /* 1: contexts begin anew, since they are nodes of a tree (train.loss = hierarchical) here or in the
                                  * source, and not of the same one in both */
};

/* Opens what train.from names, if anything. 0, or -1 after fail(); released in any case. */
int warm_start_open(struct warm_start *grow, const struct config *config);
void warm_start_release(struct warm_start *grow); /* harmless on a zeroed one */

/* Reads only the words of the run or fastText model that train.from names, for a plan, which needs no rows. Reads nothing for other
 * files of vectors: their words are never kept. Returns 0, or -1 after fail(). */
int warm_start_read_words(struct warm_start *grow, const struct config *config);
/* Returns 1 if a resumed run may have kept words of an older run, as far as its keys tell, and also if train.from no longer exists;
 * otherwise 0, or -1 after fail(). */
int warm_start_may_keep(const struct config *config);
/* Returns the vocabulary of the older run, if this run keeps its words (train.from_words = keep); otherwise NULL. */
const struct vocab *warm_start_older(const struct warm_start *grow, const struct config *config);

/* Finds the rows of the words of `vocab`, which stays the caller's and outlives this; where known rows are frozen, says which
 * those are. By all ranks together: they must have found the same. */
int warm_start_match(struct warm_start *grow, const struct vocab *vocab, struct frozen *frozen, struct ranks *ranks);

/* Says on stderr what was found. */
void warm_start_print(const struct warm_start *grow);

/* First values of a table. */
int warm_start_fill(struct warm_start *grow, struct table *table, struct pool *pool);

/* Returns the bytes that it will hold while a run with this number of words trains. */
uint64_t warm_start_bytes(const struct config *config, uint64_t rows);

#endif
