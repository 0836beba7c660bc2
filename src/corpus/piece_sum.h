/* piece_sum: a checksum of a file's bytes that threads compute together. The file is cut into pieces of SUM_PIECE bytes; the
 * checksum is the XXH3 of the pieces' XXH3s. */
#ifndef SPTX_PIECE_SUM_H
#define SPTX_PIECE_SUM_H

#include "base/pool.h"

#include <stdint.h>

enum { SUM_PIECE = 1 << 18 }; /* number of bytes of a piece */

/* ---- while a file is written ---- */

struct piece_sum {
    struct XXH3_state_s *piece, *all; /* piece: state of the hash of the current piece; all: state of the hash of all earlier
                                       * pieces' hashes */
    uint64_t in_piece;                /* number of bytes that the current piece has so far */
};
int piece_sum_open(struct piece_sum *sum); /* call piece_sum_close() even if this fails */
void piece_sum_add(struct piece_sum *sum, const void *data, uint64_t length);
uint64_t piece_sum_end(struct piece_sum *sum); /* returns the checksum of all bytes */
void piece_sum_close(struct piece_sum *sum);   /* may be called on a struct of zeros */

/* ---- of an existing file ---- */

/* Examines one piece of a file, its bytes from .. to - 1; called on any thread. */
typedef void piece_look(void *user, uint64_t from, uint64_t to);
/* Computes the checksum with all threads, and passes each piece to `look` (unless it is NULL) while the piece is in the cache.
 * Returns 0, or -1 after fail(). */
int piece_sum_of(const char *bytes, uint64_t size, struct pool *pool, piece_look *look, void *user, uint64_t *sum);

#endif
