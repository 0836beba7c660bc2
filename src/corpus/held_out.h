/* held_out: removes some items of each list from training, to test later whether they are predicted (train.held_out_items).
 *
 *   whole     u0 a b c d e f g h i j   u1 k l m        a stream of lists (idstream.h)
 *   trained   u0 a b d e f g h i j     u1 k l m        what is trained
 *   ids            c                                   what is held out
 *
 * Of n items, n x share are held out, rounded up or down at random; at least two items of a list are trained. An id that is not an item (a list's own
 * id, or the citing paper at a line's beginning) is never held out. draw_at(seed, DRAW_HELD_OUT, list, 1, 0) decides how many items are held out, and
 * draw_at(.., 1, 1) which ones: for the same lists and share, only the seed changes them.
 */
#ifndef SPTX_HELD_OUT_H
#define SPTX_HELD_OUT_H

#include "idstream.h"

struct held_out {
    struct idstream trained; /* the stream without the held-out items; its arrays are owned, its checksum is the whole stream's */
    uint32_t *ids;           /* [starts[lists]] ids of the held-out items, list after list */
    uint64_t *starts;        /* [lists + 1]: the held-out items of list i are ids[starts[i]] .. ids[starts[i + 1] - 1] */
    uint64_t lists;
    int own; /* 1: the first id of each list is the list's own id, not an item */
};

/* Splits the stream, which must outlive the split. Returns 0, or -1 after fail(), also if no item is held out. */
int held_out_split(struct held_out *held_out, const struct idstream *whole, int own, double share, uint32_t seed);
void held_out_release(struct held_out *held_out); /* may be called on a struct of zeros */

#endif
