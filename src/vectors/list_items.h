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
    uint64_t *starts;       /* [lists + 1] list i is codes[starts[i]] .. codes[starts[i + 1] - 1] */
    uint64_t *codes;        /* row numbers of the model; a number >= model->rows is an item that the model does not know */
    unsigned char *met;     /* [lists] 1: the list occurs in the file. NULL after list_items_read(), where every list does */
    uint64_t count;         /* number of codes */
    struct list_item *item; /* used while a file is read: its items in the file's order */
    uint64_t capacity;
};

/* Reads every list of a file and adds the lists' names to `lists`, in the file's order. An item that the model does not know is
 * added to `unknown`, and its code is model->rows plus its number there; if `unknown` is NULL, its code is model->rows. */
int list_items_read(struct list_items *items, const char *path, const struct corpus_options *reading,
                    const struct model *model, struct names *lists, struct names *unknown);

/* Reads only lists whose names are in `lists` already. Sets `met` for the lists that the file contains. */
int list_items_read_named(struct list_items *items, const char *path, const struct corpus_options *reading,
                          const struct model *model, struct names *lists);

/* Reads lists from data in memory: pairs, lists with names, or lines of a target and its contexts. Works as list_items_read(),
 * or, if `unknown` is NULL, as list_items_read_named(). */
int list_items_take(struct list_items *items, const struct gathered *data, const struct model *model, struct names *lists,
                    struct names *unknown);

void list_items_release(struct list_items *items); /* harmless on a zeroed one */

#endif
