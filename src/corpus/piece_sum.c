#include "piece_sum.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"

#include <stdlib.h>
#include <xxhash.h>

int piece_sum_open(struct piece_sum *sum) {
    *sum = (struct piece_sum){XXH3_createState(), XXH3_createState(), 0};
    int ready = sum->piece && sum->all && XXH3_64bits_reset(sum->piece) == XXH_OK && XXH3_64bits_reset(sum->all) == XXH_OK;
    return ready ? 0 : fail("not enough memory for a checksum");
}

static void end_piece(struct piece_sum *sum) {
    uint64_t hash = XXH3_64bits_digest(sum->piece);
    XXH3_64bits_update(sum->all, &hash, sizeof hash);
    XXH3_64bits_reset(sum->piece);
    sum->in_piece = 0;
}

void piece_sum_add(struct piece_sum *sum, const void *data, uint64_t length) {
    const char *bytes = data;
    for (uint64_t at = 0, n; at < length; at += n) {
        n = SUM_PIECE - sum->in_piece < length - at ? SUM_PIECE - sum->in_piece : length - at;
        XXH3_64bits_update(sum->piece, bytes + at, n);
        sum->in_piece += n;
        if (sum->in_piece == SUM_PIECE) end_piece(sum);
    }
}

uint64_t piece_sum_end(struct piece_sum *sum) {
    if (sum->in_piece) end_piece(sum);
    return XXH3_64bits_digest(sum->all);
}

void piece_sum_close(struct piece_sum *sum) {
    XXH3_freeState(sum->piece);
    XXH3_freeState(sum->all);
    *sum = (struct piece_sum){0};
}

/* ---- of an existing file ---- */

/* State of computing one checksum; the workers share it. */
struct checking {
    const char *bytes;
    uint64_t size;
    piece_look *look;
    void *user;
    uint64_t *sums; /* [pieces] */
    _Atomic uint64_t next;
};

static int check_pieces(void *context, unsigned worker) {
    struct checking *c = context;
    uint64_t from, to;
    while (pool_take(&c->next, c->size, SUM_PIECE, &from, &to)) {
        if (interrupt_check()) return -1;
        c->sums[from / SUM_PIECE] = XXH3_64bits(c->bytes + from, to - from);
        if (c->look) c->look(c->user, from, to);
    }
    return 0;
}

int piece_sum_of(const char *bytes, uint64_t size, struct pool *pool, piece_look *look, void *user, uint64_t *sum) {
    uint64_t pieces = (size + SUM_PIECE - 1) / SUM_PIECE;
    struct checking c = {.bytes = bytes, .size = size, .look = look, .user = user};
    c.sums = mem_alloc(pieces, sizeof *c.sums, "checking a file");
    int result = c.sums ? pool_run(pool, check_pieces, &c) : -1;
    if (!result) *sum = XXH3_64bits(c.sums, pieces * sizeof *c.sums);
    free(c.sums);
    return result;
}
