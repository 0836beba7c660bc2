/* model: a finished run, opened for reading: its vocabulary and the vectors of its rows. */
#ifndef SPTX_MODEL_H
#define SPTX_MODEL_H

#include "run/model_files.h"

/* The kinds of vectors of a row: u, its row of the target table; v, its row of the context table; u + v; u/|u| + v/|v|; the last one spread over
 * the run's graph (model->propagated). */
enum model_view { VIEW_TARGET, VIEW_CONTEXT, VIEW_SUM, VIEW_NORMSUM, VIEW_PROPAGATED, VIEWS };

/* Copies the keys with which the run was trained. Returns 0, or -1 after fail(), also if the run's config.ini is missing. The caller releases the
 * copy in any case. */
int model_copy_keys(struct config *copy, const struct model *model);

/* Returns how many rows are items or words: the first rows. Rows of lists follow. */
uint64_t model_items(const struct model *model);

/* New items of features_open_of() are rows from model->rows on. These functions return the end of all rows, after which new lists have theirs; a
 * row's name; the row of a name, or -1. A relation is also found by its name without VOCAB_RELATION, unless an entity has that name. */
uint64_t model_end(const struct model *model);
const char *model_name(const struct model *model, uint64_t row, uint64_t *length);
int64_t model_named(const struct model *model, const char *name, uint64_t length);
/* Returns 1 if the row is an item's, also a new item's; 0 if it is a list's or a relation's, also if relations are words among the entities. */
int model_is_item(const struct model *model, uint64_t row);

/* Returns a row of a table; NULL if the table does not contain it. A row that is bfloat16 or not aligned is copied to `room`. */
const float *model_table_floats(const struct model *model, enum table_side side, uint64_t row, float room[COLUMNS_MOST]);

/* Writes rows first .. first + count - 1 of a view as float32 to out [count x dim].
 *
 * With examples.mode = adjacency, a vector that was never trained is left out of sums. If lists have rows, a list is trained only in the target
 * table, and an item only in the context table, unless item_targets is set. A row that is trained in one table only has that table's vector in every
 * view. With model.tree the contexts are nodes of a tree, so words have only target vectors.
 */
void model_rows(const struct model *model, enum model_view view, uint64_t first, uint64_t count, float *out);
/* Writes a row of a view, scaled to length 1 if `unit` is 1 (zeros stay zeros). Returns 0, or -1 after fail(), which names the word, if the row
 * contains NaN or infinity. */
int model_row(const struct model *model, enum model_view view, uint64_t row, int unit, float *out);
void model_make_unit(float *vector, uint32_t dim); /* scales a vector to length 1; zeros stay zeros */
/* Returns the first `rows` rows of a view (0: all rows), scaled to length 1 if `unit` is 1; the caller frees them. NULL after
 * fail(). */
float *model_matrix(const struct model *model, enum model_view view, uint64_t rows, int unit);
/* Returns the rows in rows[count] (NULL: the first `count` rows) as a matrix, like model_matrix(); the caller frees it. */
float *model_matrix_of(const struct model *model, enum model_view view, const uint32_t *rows, uint64_t count, int unit);

/* Returns 0, or -1 after fail() if the row is a list's whose vector is only the mean of its items. */
int model_check_list(const struct model *model, uint64_t row);
/* Checks the row like model_check_list(), and that it was trained in this view. If it was not, fails in a run of citations, where the other table
 * has an answer, and warns in other runs. */
int model_check_row(const struct model *model, enum model_view view, uint64_t row);
/* Returns the row of a word; -1 after fail(), which suggests the most similar word, or says that the word has no row in the view. */
int64_t model_find(const struct model *model, enum model_view view, const char *word);

/* Three arguments for %s%s%s in a message: "; did you mean 'near'?", or nothing if `near` is NULL. */
#define DID_YOU_MEAN(near) (near) ? "; did you mean '" : "", (near) ? (near) : "", (near) ? "'?" : ""

/* Computes a vector for a word without a row: of a feature or a new item (features.h), or, if the run trains n-grams (examples.subwords), the mean
 * of the target rows of its n-grams. Returns 1; 0 if the word is neither, or the view has no n-grams; -1 after fail(). */
int model_unseen(const struct model *model, enum model_view view, const char *word, uint64_t length, float *out);
/* Returns the row of a word, like model_find(). If the word has no row but model_unseen() can compute its vector, writes it to out[dim] and
 * returns DRAW_NONE. */
int64_t model_find_or_make(const struct model *model, enum model_view view, const char *word, float *out);

/* Returns "target", "context", "sum", "normsum" or "propagated". */
const char *model_view_name(enum model_view view);
int model_view_named(const char *name);

#endif
