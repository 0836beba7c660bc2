/* run_lists: finds, by name, a list that a finished run was trained on, and the items it had in training.
 *
 *   a run of                           a list is named by        its items are
 *   lists with rows  (user)            its name                  the items of its lines in the encoded corpus
 *   citations        (adjacency)       the target of its line    the contexts of its lines
 *   nodes            (walk)            a node                    none: answers leave out the node's neighbours anyway
 *
 * Runs of other modes do not keep the names of lists. If the encoded corpus is gone, a list's row is found but not its items; a
 * warning says that answers may then contain items of the list.
 */
#ifndef SPTX_RUN_LISTS_H
#define SPTX_RUN_LISTS_H

#include "model.h"
#include "corpus/idstream.h"

struct run_lists {
    struct idstream stream; /* the encoded corpus; zeros if its file is gone or not needed */
    uint64_t first;         /* the first row of a list */
    uint64_t *starts;       /* [rows - first + 1] sentences of row r: sentences[starts[r - first]] .. sentences[starts[r - first
                             * + 1] - 1] */
    uint64_t *sentences;    /* numbers of sentences, sorted by the row with which each begins */
};

/* Returns the row of the list with this name; -1 if the run has no such list, or if lists have no rows in its mode. */
int64_t run_lists_row(const struct model *model, const char *name, uint64_t length);
/* Returns the row of the list with this name; -1 after fail_usage(), which suggests a similar name. */
int64_t run_lists_find(const struct model *model, const char *name);

/* Returns the name most like `name`, to suggest in an error message: of a list, a relation, a paper or a node; NULL if no name is
 * similar. */
const char *run_lists_near(const struct model *model, const char *name);

/* Opens the encoded corpus that the run was trained on. Returns 1; 0 after a warning, which ends with `then`, if it is gone or
 * belongs to another run; -1 after fail(). */
int run_stream_open(struct idstream *stream, const struct model *model, struct pool *pool, const char *then);

/* Returns 0; -1 after fail() if the run was trained on triples, and so has no lists. */
int run_lists_check(const struct model *model);

int run_lists_open(struct run_lists *lists, const struct model *model, struct pool *pool);
void run_lists_close(struct run_lists *lists); /* may be called on a struct of zeros */

/* Appends the items of the list with this row to *codes, which grows, and adds their number to *count. Returns 0, or -1 after
 * fail(). */
int run_lists_items(const struct run_lists *lists, int64_t row, uint64_t **codes, uint64_t *count, uint64_t *capacity);

#endif
