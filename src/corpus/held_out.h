/* held_out: a part of each list's items, set apart from training and asked for afterwards (train.held_out_items).
 *
 *   whole     u0 a b c d e f g h i j   u1 k l m        a stream of lists (idstream.h)
 *   trained   u0 a b d e f g h i j     u1 k l m        what is trained
 *   ids            c                                   what is held out
 *
 * A list of n items loses n x share of them, rounded up or down by a draw of its own, and keeps two at least. The row
 * that stands in front of them (a list's own, or that of the paper which a line begins with) always stays. The draws
 * are draw_at(seed, DRAW_HELD_OUT, list, 1, 0) for how many and (.., 1, 1) for which: nothing but the seed changes
 * them.
 */
#ifndef SPTX_HELD_OUT_H
#define SPTX_HELD_OUT_H

#include "idstream.h"

struct held_out {
    struct idstream trained; /* what is trained; its arrays are owned, and its checksum is that of the whole stream */
    uint32_t *ids;           /* [starts[lists]]: ids of the items that are held out, list by list */
    uint64_t *starts;        /* [lists + 1]: the held-out items of list i are ids[starts[i]] .. ids[starts[i + 1] - 1] */
    uint64_t lists;
    int own; /* 1: the first id of each list is not one of its items */
};

/* Splits the stream, which must outlive the split. Returns 0, or -1 after fail(), also if no item is held out. */
int held_out_split(struct held_out *held_out, const struct idstream *whole, int own, double share, uint32_t seed);
void held_out_release(struct held_out *held_out); /* harmless on a zeroed one */

#endif
