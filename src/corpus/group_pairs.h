/* group_pairs: puts the items of pairs together by list. Each list becomes a sentence of an id stream: its items in the order met; lists
 * are in the order of their first item that has a row.
 *
 *   pairs -> number of items and first pair of each list -> lists, numbered -> buckets of lists -> sorted by list
 *
 * Threads share each step. The result does not depend on their number.
 */
#ifndef SPTX_GROUP_PAIRS_H
#define SPTX_GROUP_PAIRS_H

#include "idstream.h"

#include <stdint.h>

/* All pairs, in their order in the corpus. Pair i is at index stride * i of each array. */
struct pairs_met {
    uint64_t count;
    unsigned stride;
    const uint32_t *ids, *names; /* numbers of the pairs' items and lists */
    const float *weights;        /* NULL: pairs have no weights */
    const uint32_t *rows, *list_rows; /* by number: rows of items, and of lists. rows = NULL: an item's number is its row;
                                       * list_rows = NULL: lists have no rows */
    uint64_t list_numbers;       /* 1 + the highest number of a list */
    uint64_t bucket_ids, round_ids; /* usual number of ids of a bucket, and most ids of a round; 0: as cache and memory allow */
};

/* Writes the lists' items to a stream, whose `pool` is set, and their weights if weighed = 1. If lists have rows, a list's sentence begins with the list's
 * row, of weight 0. Pairs whose item has no row are left out. Returns 0, or -1 after fail(). */
int group_pairs(struct idstream_writer *writer, const struct pairs_met *met, int weighed, struct pool *pool);

#endif
