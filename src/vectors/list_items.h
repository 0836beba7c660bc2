/* list_items: reads files of lists (a user's books, a basket, the papers that a paper cites) and gives each item's row in a
 * model.
 *
 * A file is read as the run's corpus was: a line is a list's name and its items, or, with corpus.format = pairs, a
 * list's name and one item. If a list occurs again, its items are appended; an item that occurs twice is stored twice.
 */
#ifndef SPTX_LIST_ITEMS_H
#define SPTX_LIST_ITEMS_H

#include "names.h"
#include "corpus/gathered.h"

struct list_items {
    uint64_t *starts;       /* [lists + 1] items of list i: codes[starts[i]] .. codes[starts[i + 1] - 1] */
    uint64_t *codes;        /* rows of the model; a number >= model->rows stands for an item that the model does not know */
    unsigned char *met;     /* [lists] 1: the file contains the list. NULL after list_items_read(), since the file contains every
                             * list */
    uint64_t count;         /* number of codes */
    struct list_item *item; /* while a file is read: its items, in the order of the file */
    uint64_t capacity;
};

/* Reads all lists of a file, and adds their names to `lists`, in the order of the file. An item that the model does not know is
 * added to `unknown`, and its code is model->rows + its number there; if `unknown` is NULL, its code is model->rows. */
int list_items_read(struct list_items *items, const char *path, const struct corpus_options *reading,
                    const struct model *model, struct names *lists, struct names *unknown);

/* Reads only lists whose names are in `lists` already. Sets `met` for each of them that the file contains. */
int list_items_read_named(struct list_items *items, const char *path, const struct corpus_options *reading,
                          const struct model *model, struct names *lists);

/* Reads lists from data in memory: pairs, lists with names, or lines of a target and its contexts. If `unknown` is NULL, it
 * works as list_items_read_named(), otherwise as list_items_read(). */
int list_items_take(struct list_items *items, const struct gathered *data, const struct model *model, struct names *lists,
                    struct names *unknown);

void list_items_release(struct list_items *items); /* may be called on a struct of zeros */

#endif
