/* run_lists: the lists that a finished run was trained on, by name, with the items that they had.
 *
 *   a run of                           a list is named by        its items are
 *   lists with rows  (user)            its name                  those of its lines in the encoded corpus
 *   citations        (adjacency)       the target of its line    the contexts of its lines
 *   nodes            (walk)            a node                    none: answers leave out its neighbours by themselves
 *
 * Lists of another mode have no names that a run keeps. Where the encoded corpus is gone, a warning says that a list's own row
 * answers alone, and that its items may be among the answers.
 */
#ifndef SPTX_RUN_LISTS_H
#define SPTX_RUN_LISTS_H

#include "model.h"
#include "corpus/idstream.h"

struct run_lists {
    struct idstream stream; /* all zeros where there is none */
    uint64_t first;         /* the first row that a list has */
    uint64_t *starts;       /* [rows - first + 1] into sentences */
    uint64_t *sentences;    /* numbers of sentences, by the row that they begin with */
};

/* Returns the row of the list of that name in runs of the kinds above; -1 where there is none. */
int64_t run_lists_row(const struct model *model, const char *name, uint64_t length);
/* Does the same, but calls fail_usage() where there is none. */
int64_t run_lists_find(const struct model *model, const char *name);

int run_lists_open(struct run_lists *lists, const struct model *model, struct pool *pool);
void run_lists_close(struct run_lists *lists); /* harmless on a zeroed one */

/* Puts the items of the list that has this row behind codes[*count]. Returns 0, or -1 after fail(). */
int run_lists_items(const struct run_lists *lists, int64_t row, uint64_t **codes, uint64_t *count, uint64_t *capacity);

#endif
