/* model: the rows of a finished run as export, nearest, analogy and evaluate need them. */
#ifndef SPTX_MODEL_H
#define SPTX_MODEL_H

#include "run/model_files.h"

/* The vector that stands for a row, in this order: u of the target table; v of the context table; u + v; u/|u| + v/|v|. */
enum model_view { VIEW_TARGET, VIEW_CONTEXT, VIEW_SUM, VIEW_NORMSUM };

/* Rows that are items or words: all but those of lists, which come last. */
uint64_t model_items(const struct model *model);

/* Rows [first, first + count) of a view as float32, row after row; out holds count x dim. With examples.mode = adjacency a vector
 * that was never trained adds nothing to sums. Where lists have rows, a list is trained as a target alone and, unless lists are
 * means of items, too (model.own), an item as a context alone: either is the one row that it has in every view. */
void model_rows(const struct model *model, enum model_view view, uint64_t first, uint64_t count, float *out);
/* One row of a view, of unit length if asked (a row of zeros stays zeros). -1 after fail(), which names the word, where it
 * holds NaN or infinity. */
int model_row(const struct model *model, enum model_view view, uint64_t row, int unit, float *out);
/* The first `rows` rows of a view (0: all) in memory, each of unit length if asked. NULL after fail(); the caller frees. */
float *model_matrix(const struct model *model, enum model_view view, uint64_t rows, int unit);
/* A matrix of rows[count] (NULL: of the first `count` rows), made and freed as that of model_matrix(). */
float *model_matrix_of(const struct model *model, enum model_view view, const uint32_t *rows, uint64_t count, int unit);

/* -1 after fail() for a list that is the mean of its items alone, and has no row. */
int model_check_list(const struct model *model, uint64_t row);
/* Does what model_check_list() does. A row that was never trained in a view is a failure, too, where the run is of citations, since
 * another table answers there; elsewhere it is a warning. */
int model_check_row(const struct model *model, enum model_view view, uint64_t row);
/* The row of a word, or -1 after fail() that names the nearest one, or says that the word has none in the view. */
int64_t model_find(const struct model *model, enum model_view view, const char *word);

/* "target", "context", "sum", "normsum"; -1 after fail_usage() for another name. */
const char *model_view_name(enum model_view view);
int model_view_named(const char *name);

#endif
