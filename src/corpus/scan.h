/* scan: finds the tokens of a block 64 bytes at a time, by masks that have a bit for each byte. The functions are inline, since every
 * token of a text passes through them.
 */
#ifndef SPTX_SCAN_H
#define SPTX_SCAN_H

#include "corpus.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { SCAN_BYTES = 64 };

#ifdef __SSE2__
static inline uint64_t scan_byte(const char *at, char byte) {
    uint64_t mask = 0;
    for (int i = 0; i < SCAN_BYTES; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        mask |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte))) << i;
    }
    return mask;
}
static inline uint64_t scan_white(const char *at) {
    uint64_t mask = 0;
    for (int i = 0; i < SCAN_BYTES; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        __m128i from_tab = _mm_sub_epi8(bytes, _mm_set1_epi8('\t')); /* TAB, LF, VT, FF and CR become 0 to 4 */
        __m128i breaks = _mm_cmpeq_epi8(_mm_min_epu8(from_tab, _mm_set1_epi8(4)), from_tab);
        mask |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_or_si128(breaks, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')))) << i;
    }
    return mask;
}
#else
static inline uint64_t scan_byte(const char *at, char byte) {
    uint64_t mask = 0;
    for (int i = 0; i < SCAN_BYTES; i++) mask |= (uint64_t)(at[i] == byte) << i;
    return mask;
}
static inline uint64_t scan_white(const char *at) {
    uint64_t mask = 0;
    for (int i = 0; i < SCAN_BYTES; i++) mask |= (uint64_t)token_is_white(at[i]) << i;
    return mask;
}
#endif

/* A walk over the tokens of a block. */
struct scan {
    const char *at, *end;    /* at: the 64 bytes of the masks */
    const char *start;       /* the word that has begun */
    uint64_t white, newline; /* bytes that are white, and line ends */
    uint64_t edges;          /* bytes of another kind (white or not) than the byte before; those that are still to be visited */
    uint64_t events;         /* edges and line ends that are still to be visited */
    uint64_t line;           /* number of the line that the last token is on, from 1 */
};

static inline void scan_load(struct scan *scan, uint64_t white_before) {
    uint64_t left = (uint64_t)(scan->end - scan->at), valid = left < SCAN_BYTES ? ((uint64_t)1 << left) - 1 : UINT64_MAX;
    scan->white = scan_white(scan->at) | ~valid;
    scan->newline = scan_byte(scan->at, '\n') & valid;
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
