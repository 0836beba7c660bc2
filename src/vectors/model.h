/* model: a finished run as export, nearest, analogy and evaluate need it: the vocabulary and the two tables, mapped. */
#ifndef SPTX_MODEL_H
#define SPTX_MODEL_H

#include "base/npy.h"
#include "corpus/vocab.h"

enum model_view { VIEW_TARGET, VIEW_CONTEXT, VIEW_SUM, VIEW_NORMSUM }; /* normsum: u/|u| + v/|v| */

struct model {
    struct vocab vocab;
    struct npy target, context;
    uint64_t rows;
    uint32_t dim;
    char *directory; /* the run directory */
};

/* RUN: a run directory or one checkpoint in it. Refuses tables and vocabulary of different lengths. */
int model_open(struct model *model, const char *run);
void model_close(struct model *model); /* harmless on a zeroed one */

/* Rows [first, first + count) of a view as float32, row after row; out holds count x dim. */
void model_rows(const struct model *model, enum model_view view, uint64_t first, uint64_t count, float *out);
/* The view of the first `rows` rows (0: all) in memory, unit length if asked (rows of zeros stay zeros). Refuses NaN and
 * infinity, naming the word. NULL after fail(); the caller frees. */
float *model_matrix(const struct model *model, enum model_view view, uint64_t rows, int unit);

/* The row of a word, or -1 after fail() that names the nearest one. */
int64_t model_find(const struct model *model, const char *word);

/* "target", "context", "sum", "normsum"; -1 after fail_usage() for another name. */
const char *model_view_name(enum model_view view);
int model_view_named(const char *name);

#endif
