/* model: a finished run, opened for reading: its vocabulary and the vectors of its rows. */
#ifndef SPTX_MODEL_H
#define SPTX_MODEL_H

#include "run/model_files.h"

/* The kinds of vectors of a row. In this order: u, its row of the target table; v, its row of the context table; u + v; u/|u| +
 * v/|v|; and the last one spread over the run's graph (model->propagated). */
enum model_view { VIEW_TARGET, VIEW_CONTEXT, VIEW_SUM, VIEW_NORMSUM, VIEW_PROPAGATED, VIEWS };

/* Copies the keys that the run was trained with. Returns 0; -1 after fail(), also if its config.ini is lost. The caller releases the
 * copy in any case. */
int model_copy_keys(struct config *copy, const struct model *model);

/* Returns the number of rows that are items or words; they are the first rows. Rows of lists follow. */
uint64_t model_items(const struct model *model);

/* Returns a row of a table; NULL if the table does not have it. If it is bfloat16 or its floats are not aligned, it is copied to
 * `room`. */
const float *model_table_floats(const struct model *model, enum table_side side, uint64_t row, float room[COLUMNS_MOST]);

/* Writes rows [first, first + count) of a view as float32; out holds count x dim.
 *
 * With examples.mode = adjacency, a vector that was never trained is left out of sums. If lists have rows, a list is trained only
 * in the target table, and an item only in the context table, unless item_targets is set. A row that is trained in just one table
 * has that table's vector in every view. With model.tree the contexts are nodes of a tree, so every word has only its target vector.
 */
void model_rows(const struct model *model, enum model_view view, uint64_t first, uint64_t count, float *out);
/* Writes one row of a view; if `unit` is 1, scaled to length 1 (zeros stay zeros). Returns 0; -1 after fail(), which names the
 * word, if the row contains NaN or infinity. */
int model_row(const struct model *model, enum model_view view, uint64_t row, int unit, float *out);
void model_make_unit(float *vector, uint32_t dim); /* scales a vector to length 1; zeros stay zeros */
/* Returns the first `rows` rows of a view (0: all rows), scaled to length 1 if `unit` is 1; the caller frees them. NULL after
 * fail(). */
float *model_matrix(const struct model *model, enum model_view view, uint64_t rows, int unit);
/* Returns a matrix of rows[count] (NULL: the first `count` rows), as model_matrix() does; the caller frees it. */
float *model_matrix_of(const struct model *model, enum model_view view, const uint32_t *rows, uint64_t count, int unit);

/* Returns 0, or -1 after fail() if the row is a list's and the list's vector is only the mean of its items. */
int model_check_list(const struct model *model, uint64_t row);
/* Makes the check of model_check_list(), and checks that the row was trained in this view. If it was not, fails in a run of
 * citations, where the other table can answer, and only warns in other runs. */
int model_check_row(const struct model *model, enum model_view view, uint64_t row);
/* Returns the row of a word. Returns -1 after fail(), whose message suggests the most similar word, or says that the word has no
 * row in the view. */
int64_t model_find(const struct model *model, enum model_view view, const char *word);

/* Makes three arguments for %s%s%s in a message: "; did you mean 'near'?", or nothing if `near` is NULL. */
#define DID_YOU_MEAN(near) (near) ? "; did you mean '" : "", (near) ? (near) : "", (near) ? "'?" : ""

/* Computes a vector for a word without a row, if the run trains n-grams (examples.subwords): the mean of its n-grams' target
 * rows. Returns 1; 0 if the word or the view has no n-grams; -1 after fail(). */
int model_unseen(const struct model *model, enum model_view view, const char *word, uint64_t length, float *out);
/* Does the work of model_find(). If the word has no row, but model_unseen() can compute its vector, it writes the vector to
 * out[dim] and returns DRAW_NONE. */
int64_t model_find_or_make(const struct model *model, enum model_view view, const char *word, float *out);

/* Returns "target", "context", "sum", "normsum" or "propagated". */
const char *model_view_name(enum model_view view);
int model_view_named(const char *name);

#endif
