/* integers: fast tables for words that are plain numbers, such as the ids in many files. The data of a word is stored in an array
 * at the index that is this number, so no hash table is searched.
 *
 * Words count as integers if they are 0 .. INTEGERS - 1, written in digits without a leading zero, so that equal numbers are equal
 * words.
 */
#ifndef SPTX_INTEGERS_H
#define SPTX_INTEGERS_H

#include "vocab.h"
#include "words.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { INTEGERS = 1 << 26, INTEGER_DIGITS = 8 };
#define NO_INTEGER UINT32_MAX

/* Returns the integer that the word represents; NO_INTEGER if it represents none. */
static inline uint32_t integer_of(const char *word, uint64_t length) {
    uint32_t value = 0;
    if (length > INTEGER_DIGITS || (*word == '0' && length > 1)) return NO_INTEGER;
    for (uint64_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(unsigned char)word[i] - '0';
        if (digit > 9) return NO_INTEGER;
        value = value * 10 + digit;
    }
    return value < INTEGERS ? value : NO_INTEGER;
}

/* ---- integers after a prefix ---- */

/* Ids often consist of a prefix, which all ids share, and an integer: user17 or Q42. Words with the corpus' prefix are then counted
 * as integers, too. A prefix has at most PREFIX_MOST bytes and does not end in a digit, so there is only one way to split a
 * word. */
enum { PREFIX_MOST = 7 };
struct integer_prefix {
    uint64_t bytes, mask; /* the prefix's bytes, then zeros; mask: 0xff for each of these bytes */
    uint64_t length;
    int known;            /* 1: the prefix is chosen; it may be empty */
};

/* Works like integer_of(), for a word that begins with the prefix. Reads 8 bytes from the word's first on. */
static inline uint32_t integer_behind(const struct integer_prefix *prefix, const char *word, uint64_t length) {
    uint64_t head;
    memcpy(&head, word, sizeof head);
    if (length <= prefix->length || ((head ^ prefix->bytes) & prefix->mask)) return NO_INTEGER;
    return integer_of(word + prefix->length, length - prefix->length);
}

/* ---- integers to rows ---- */

struct integer_rows {
    uint32_t *rows; /* [size] the row of each integer; WORDS_ABSENT: it has no row */
    uint64_t size;  /* 0: there is no table, since few words are integers */
};
int integer_rows_make(struct integer_rows *rows, const struct vocab *vocab);
void integer_rows_release(struct integer_rows *rows); /* may be called on a struct of zeros */

/* ---- counting by several threads ---- */

struct integer_count {
    _Atomic uint64_t count;
    _Atomic uint64_t after; /* ~(place in the corpus of the integer's first occurrence); 0: it does not occur */
};
struct integer_counts {
    struct integer_count *counts; /* [size] */
    uint64_t size;
    _Atomic uint64_t prefix;      /* the prefix of all words that are counted: its bytes, and in the highest byte 1 + its length;
                                   * 0: not chosen yet */
};
/* If the word consists of a prefix and an integer, chooses that prefix, unless a thread has chosen one before. Returns the chosen
 * prefix; `known` is 0 if no prefix is chosen yet. */
struct integer_prefix integer_counts_prefix(struct integer_counts *counts, const char *word, uint64_t length);
/* Makes a table of at most `most` bytes. If memory is short, its size is 0. */
void integer_counts_make(struct integer_counts *counts, uint64_t most);
void integer_counts_release(struct integer_counts *counts);

/* Counts an integer that occurs at byte `place` of the corpus. alone: 1: no other thread counts. */
static inline void integer_counts_add(struct integer_counts *counts, uint32_t integer, uint64_t place, int alone) {
    struct integer_count *met = &counts->counts[integer];
    uint64_t after = atomic_load_explicit(&met->after, memory_order_relaxed);
    if (alone) atomic_store_explicit(&met->count, atomic_load_explicit(&met->count, memory_order_relaxed) + 1, memory_order_relaxed);
    else atomic_fetch_add_explicit(&met->count, 1, memory_order_relaxed);
    while (after < ~place && !atomic_compare_exchange_weak_explicit(&met->after, &after, ~place, memory_order_relaxed,
                                                                    memory_order_relaxed))
        continue;
}

#endif
