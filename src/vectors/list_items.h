/* list_items: reads files of lists (a user's books, a basket, the papers that one cites) as rows of a model, list by
 * list.
 *
 * A file is read as the run's corpus was: a line is a list's name and its items, or, with corpus.format = pairs, a
 * list's name and one item. A list that comes again is continued, and an item that comes again counts again.
 */
#ifndef SPTX_LIST_ITEMS_H
#define SPTX_LIST_ITEMS_H

#include "names.h"
#include "corpus/gathered.h"

struct list_items {
    uint64_t *starts;       /* [lists + 1] into codes */
    uint64_t *codes;        /* rows of the model; numbers from its row count on are items that the model does not know */
    unsigned char *met;     /* [lists] 1: the file has the list. NULL after list_items_read(), which reads only lists that it has */
    uint64_t count;         /* of codes */
    struct list_item *item; /* used while a file is read: the items in the order met */
    uint64_t capacity;
};

/* Reads every list of a file and adds their names to `lists`, in the order met. Items that the model does not know get
 * numbers in `unknown`: their code is rows + number. With `unknown` NULL they all have the code `rows`. */
int list_items_read(struct list_items *items, const char *path, const struct corpus_options *reading,
                    const struct model *model, struct names *lists, struct names *unknown);

/* Reads only the lists of a file whose names are in `lists` already; `met` tells which of these the file has. */
int list_items_read_named(struct list_items *items, const char *path, const struct corpus_options *reading,
                          const struct model *model, struct names *lists);

/* Reads lists as list_items_read() and list_items_read_named() do, from data in memory: pairs, lists with names, or lines of a target and its contexts.
 * `unknown` NULL: reads only lists whose names are in `lists` already, as list_items_read_named() does. */
int list_items_take(struct list_items *items, const struct gathered *data, const struct model *model, struct names *lists,
                    struct names *unknown);

void list_items_release(struct list_items *items); /* harmless on a zeroed one */

#endif
