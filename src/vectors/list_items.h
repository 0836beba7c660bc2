/* list_items: files of lists (a user's books, a basket, the papers that one cites) as rows of a model, list by list.
 *
 * A file is read as the corpus of a run was: a line is a list's name and its items, or, with corpus.format = pairs, a
 * list's name and one item. A list that comes again is continued, and an item that comes again stands there again.
 */
#ifndef SPTX_LIST_ITEMS_H
#define SPTX_LIST_ITEMS_H

#include "names.h"
#include "corpus/corpus.h"

struct list_items {
    uint64_t *starts;       /* [lists + 1] into codes */
    uint64_t *codes;        /* a row of the model; its number of rows and above: an item that the model does not know */
    unsigned char *met;     /* [lists] 1: the file has the list. NULL after list_items_read(): it has them all */
    uint64_t count;         /* of codes */
    struct list_item *item; /* while a file is read: items in the order met */
    uint64_t capacity;
};

/* Every list of a file: its names are added to `lists`, in the order met. The items that the model does not know are
 * told apart by their numbers in `unknown`, which code - rows is; where that is NULL they all have the code `rows`. */
int list_items_read(struct list_items *items, const char *path, const struct corpus_options *reading,
                    const struct model *model, struct names *lists, struct names *unknown);

/* Of a file, the lists that have a name in `lists` already. Other lists are passed over; `met` tells which are there.
 */
int list_items_read_named(struct list_items *items, const char *path, const struct corpus_options *reading,
                          const struct model *model, struct names *lists);

void list_items_release(struct list_items *items); /* harmless on a zeroed one */

#endif
