/* model: the rows of a finished run as the commands need them: export, nearest, analogy, evaluate. */
#ifndef SPTX_MODEL_H
#define SPTX_MODEL_H

#include "run/model_files.h"

/* The vector of a row, in this order: u, its row of the target table; v, its row of the context table; u + v; u/|u| + v/|v|; the
 * last, spread over the graph that the run was trained on (model->propagated). */
enum model_view { VIEW_TARGET, VIEW_CONTEXT, VIEW_SUM, VIEW_NORMSUM, VIEW_PROPAGATED, VIEWS };

/* Returns the number of rows that are items or words. The rows of lists follow them. */
uint64_t model_items(const struct model *model);

/* Writes rows [first, first + count) of a view as float32; out holds count x dim.
 *
 * With examples.mode = adjacency, a vector that was never trained adds nothing to sums. Where lists have rows, a list
 * is trained only as a target. An item is then trained only as a context, unless lists are means of items, too
 * (model.own). A row that has one vector has it in every view; so has every word where contexts are nodes of a tree (model.tree).
 */
void model_rows(const struct model *model, enum model_view view, uint64_t first, uint64_t count, float *out);
/* Writes one row of a view, of unit length if asked (zeros stay zeros). Returns -1 after fail(), which names the word,
 * where the row holds NaN or infinity. */
int model_row(const struct model *model, enum model_view view, uint64_t row, int unit, float *out);
void model_make_unit(float *vector, uint32_t dim); /* scales it to length 1; zeros stay zeros */
/* Returns the first `rows` rows of a view (0: all), each of unit length if asked, for the caller to free. NULL after
 * fail(). */
float *model_matrix(const struct model *model, enum model_view view, uint64_t rows, int unit);
/* Returns a matrix of rows[count] (NULL: the first `count` rows), made as by model_matrix(), for the caller to free. */
float *model_matrix_of(const struct model *model, enum model_view view, const uint32_t *rows, uint64_t count, int unit);

/* Returns -1 after fail() for a list that is only the mean of its items, and so has no row. */
int model_check_list(const struct model *model, uint64_t row);
/* Does what model_check_list() does, and looks for a row that was never trained in the view. In a run of citations that
 * is a failure, since the other table has an answer; elsewhere it is a warning. */
int model_check_row(const struct model *model, enum model_view view, uint64_t row);
/* Returns the row of a word; -1 after fail(), which names the nearest word, or says that the word has no row in the
 * view. */
int64_t model_find(const struct model *model, enum model_view view, const char *word);

/* Writes the vector of a word that has no row: the mean of its n-grams' target rows, where the run's words have n-grams
 * (examples.subwords). Returns 1; 0 where the word, or the view, has none; -1 after fail(). */
int model_unseen(const struct model *model, enum model_view view, const char *word, uint64_t length, float *out);
/* Does what model_find() does, but for a word that model_unseen() knows: its vector goes to out[dim], and DRAW_NONE is returned. */
int64_t model_find_or_make(const struct model *model, enum model_view view, const char *word, float *out);

/* Returns "target", "context", "sum", "normsum" or "propagated". */
const char *model_view_name(enum model_view view);
int model_view_named(const char *name);

#endif
