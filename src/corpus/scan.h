/* scan: finds the tokens of a block 64 bytes at a time, by masks with one bit for each byte. The functions are inline, since they run for every token
 * of a text. */
#ifndef SPTX_SCAN_H
#define SPTX_SCAN_H

#include "corpus.h"

enum { SCAN_BYTES = 64 };

/* A vector of 16 bytes, for which the compiler uses the processor's vectors (SSE2, NEON). */
typedef uint8_t scan_vector __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t scan_halves __attribute__((vector_size(16)));

/* Turns the result of comparing 16 bytes into bits: bit i is 1 if all bits of byte i are set. */
static inline uint64_t scan_bits(scan_vector equal) {
    const scan_vector bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint64_t ones = 0x0101010101010101u; /* multiplying by it gives the sum of all 8 bytes in the highest byte */
    scan_halves halves = (scan_halves)(equal & bits);
    return halves[0] * ones >> 56 | halves[1] * ones >> 56 << 8;
}
/* Returns a bit for each of bytes at[0] .. at[length - 1] and up to 15 more: 1 if the byte equals `byte`. The next function does the same for
 * white bytes. */
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
        mask |= scan_bits((scan_vector)((bytes == (uint8_t)' ') | (from_tab <= 4))) << i; /* TAB, LF, VT, FF, CR have the values 0 to 4 here */
    }
    return mask;
}

/* A walk over the tokens of a block. */
struct scan {
    const char *at, *end;    /* at: the 64 bytes of the masks */
    const char *start;       /* first byte of the word that is being scanned */
    uint64_t white, newline; /* bit i: byte i is white; is a line end */
    uint64_t edges;          /* bit i: white space begins or ends at byte i; cleared when byte i has been visited */
    uint64_t events;         /* bit i: byte i is an edge or a line end that has not been visited */
    uint64_t line;           /* number of the line that contains the last token, from 1 */
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

/* Finds the next token, like corpus_token(): TOKEN_WORD, TOKEN_NEWLINE or TOKEN_END. The block must come from corpus_next(). */
static inline int scan_next(struct scan *scan, const char **word, uint64_t *length) {
    for (;;) {
        while (!scan->events) {
            if (scan->at == scan->end) return TOKEN_END;
            scan->at = scan->end - scan->at < SCAN_BYTES ? scan->end : scan->at + SCAN_BYTES;
            scan_load(scan, scan->white >> (SCAN_BYTES - 1)); /* after the end all bytes count as white, so the last word ends there */
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
