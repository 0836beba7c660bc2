/* model_files: what a run leaves to whoever goes on with it: its words and its two tables, mapped and verified. */
#ifndef SPTX_MODEL_FILES_H
#define SPTX_MODEL_FILES_H

#include "base/npy.h"
#include "rows/table.h"
#include "corpus/vocab.h"
#include "state.h"

struct model {
    struct vocab vocab;
    /* Rows that were trained: contexts are items, so that table ends where the lists begin, and where no item is a target, the
     * target table begins there. Of earlier versions both have all rows. model_table_row() knows. */
    struct npy target, context;
    uint64_t rows;
    uint32_t dim;
    int mode;   /* enum config_mode: what the run made its examples of; MODE_AUTO where it has lost its config.ini */
    int cosine; /* 1: trained by cosines (train.score) */
    double own; /* examples.own: below 1 items have target rows, too, as parts of their lists' means. 1 where they have none */
    struct init_values first[2]; /* of each enum table_side: how its rows began, which tells those that were never trained */
    uint32_t seed;               /* of these */
    char *directory; /* the run directory, links followed */
    struct run_state state; /* of its checkpoint */
};

/* RUN: a run directory or one checkpoint in it. Believes nothing before checksums are verified; refuses tables and vocabulary
 * that do not belong together. */
int model_open(struct model *model, const char *run);
void model_close(struct model *model); /* harmless on a zeroed one */

/* A row of a field of either table, in the mapping; NULL where the table does not have the row. */
const void *model_table_row(const struct model *model, enum table_side side, const struct npy_field *field, uint64_t row);

/* Returns 1 where a row of a table was trained, that is, where it is no longer what it began as. A run that has lost its config.ini
 * does not say what rows began as; there every row counts as trained. */
int model_is_trained(const struct model *model, enum table_side side, uint64_t row);

#endif
