/* scan: finds the tokens of a block 64 bytes at a time, by masks that have a bit for each byte. The functions are inline, since
 * every token of a text passes through them.
 */
#ifndef SPTX_SCAN_H
#define SPTX_SCAN_H

#include "corpus.h"

enum { SCAN_BYTES = 64 };

/* A vector of 16 bytes, for which the compiler uses the processor's vectors (SSE2, NEON). */
typedef uint8_t scan_vector __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t scan_halves __attribute__((vector_size(16)));

/* Returns a bit for each byte of a comparison's result: 1 if all bits of the byte are set. */
static inline uint64_t scan_bits(scan_vector equal) {
    const scan_vector bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint64_t ones = 0x0101010101010101u; /* multiplying by it gives the sum of all 8 bytes in the highest byte */
    scan_halves halves = (scan_halves)(equal & bits);
    return halves[0] * ones >> 56 | halves[1] * ones >> 56 << 8;
}
/* Bit masks of the bytes at[0] .. at[length - 1] and up to 15 more: one marks the bytes equal to `byte`, the other the white
 * bytes. */
static inline uint64_t scan_byte(const char *at, uint64_t length, char byte) {
    uint64_t mask = 0;
    for (uint64_t i = 0; i < length; i += 16)
        mask |= scan_bits((scan_vector)(*(const scan_vector *)(const void *)(at + i) == (uint8_t)byte)) << i;
    return mask;
}
static inline uint64_t scan_white(const char *at, uint64_t length) {
    uint64_t mask = 0;
    for (uint64_t i = 0; i < length; i += 16) {
        scan_vector bytes = *(const scan_vector *)(const void *)(at + i), from_tab = bytes - (uint8_t)'\t';
        mask |= scan_bits((scan_vector)((bytes == (uint8_t)' ') | (from_tab <= 4))) << i; /* TAB, LF, VT, FF, CR: 0 to 4 */
    }
    return mask;
}

/* A walk over the tokens of a block. */
struct scan {
    const char *at, *end;    /* at: the 64 bytes of the masks */
    const char *start;       /* first byte of the word that has begun */
    uint64_t white, newline; /* masks: the white bytes, and the line ends */
    uint64_t edges;          /* bit i: white space begins or ends at byte i. The bits of visited bytes are cleared */
    uint64_t events;         /* bit i: byte i is an edge or a line end, and is not visited yet */
    uint64_t line;           /* number of the line that the last token is on, from 1 */
};

static inline void scan_load(struct scan *scan, uint64_t white_before) {
    uint64_t left = (uint64_t)(scan->end - scan->at), valid = left < SCAN_BYTES ? ((uint64_t)1 << left) - 1 : UINT64_MAX;
    scan->white = scan_white(scan->at, SCAN_BYTES) | ~valid;
    scan->newline = scan_byte(scan->at, SCAN_BYTES, '\n') & valid;
    scan->edges = scan->white ^ (scan->white << 1 | white_before);
    scan->events = scan->edges | scan->newline;
}

static inline void scan_start(struct scan *scan, const struct corpus_block *block) {
    struct corpus_cursor cursor;
    corpus_cursor_start(&cursor, block);
    *scan = (struct scan){.at = cursor.at, .end = cursor.end, .line = cursor.line};
    scan_load(scan, 1);
}

/* Finds the next token, as corpus_token() does: TOKEN_WORD, TOKEN_NEWLINE or TOKEN_END. The block must be one of corpus_next(). */
static inline int scan_next(struct scan *scan, const char **word, uint64_t *length) {
    for (;;) {
        while (!scan->events) {
            if (scan->at == scan->end) return TOKEN_END;
            scan->at = scan->end - scan->at < SCAN_BYTES ? scan->end : scan->at + SCAN_BYTES;
            scan_load(scan, scan->white >> (SCAN_BYTES - 1)); /* at the end all bytes are white, which ends the last word */
        }
        int bit = __builtin_ctzll(scan->events);
        uint64_t mask = scan->events & -scan->events;
        if (!(scan->edges & mask)) {
            scan->events ^= mask;
            scan->line++;
            return TOKEN_NEWLINE;
        }
        scan->edges ^= mask;
        if (!(scan->newline & mask)) scan->events ^= mask;
        if (scan->white & mask) {
            *word = scan->start;
            *length = (uint64_t)(scan->at + bit - scan->start);
            return TOKEN_WORD;
        }
        scan->start = scan->at + bit;
    }
}

#endif
