/* tally: the words that one thread has met lately, in its core's cache, with how often it met each since they were last added up.
 *
 * A word of up to 16 bytes is compared in two loads, without a look at its text. The words' numbers are those of a larger table,
 * which the owner of the tally keeps (word_counts.c).
 */
#ifndef SPTX_TALLY_H
#define SPTX_TALLY_H

#include "words.h"

#include <string.h>

enum { TALLY_SLOTS = 1 << 16, TALLY_MOST = TALLY_SLOTS / 4 * 3, TALLY_PADDING = 16 };
#define TALLY_NEW (UINT32_MAX - 2) /* the number of a word that has none yet */

/* A word, or a free place for one. */
struct tally_slot {
    uint64_t key[2];         /* the word's bytes, zeros after them; of a longer word its hash */
    uint32_t word;           /* its place in `words`, from 1; 0: the slot is free */
    uint32_t length;         /* in bytes */
    uint32_t count, number;  /* times met; number in the larger table, or TALLY_NEW */
};

/* A word of the tally, for the larger table. */
struct tally_word {
    uint64_t hash, first; /* first: byte of the corpus at which the word was first met */
    uint32_t slot;
};

struct tally {
    struct words words; /* the texts; without a hash table */
    uint64_t known;     /* the first `known` words have their number */
    struct tally_word of[TALLY_MOST]; /* [words.size] */
    struct tally_slot slots[TALLY_SLOTS];
};

static inline uint64_t tally_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Finds the word, or the free slot where it belongs. Reads TALLY_PADDING bytes from the word's first on. *key: see tally_slot. */
static inline struct tally_slot *tally_find(struct tally *tally, const char *word, uint64_t length, uint64_t key[2], uint64_t *hash) {
    static const uint64_t masks[18] = {0,           0xff,         0xffff,         0xffffff,         0xffffffff,
                                       0xffffffffff, 0xffffffffffff, 0xffffffffffffff, UINT64_MAX};
    if (__builtin_expect(length <= 16, 1)) {
        memcpy(key, word, 16);
        key[0] &= masks[length < 8 ? length : 8];
        key[1] &= masks[length < 8 ? 0 : length - 8];
    } else {
        key[0] = words_hash(word, length);
        key[1] = 0;
    }
    *hash = tally_mix(key[0] ^ 0x9E3779B97F4A7C15u, key[1] ^ (length + 0xA0761D6478BD642Fu));
    for (uint64_t i = *hash >> 32;; i++) {
        struct tally_slot *slot = &tally->slots[i & (TALLY_SLOTS - 1)];
        if (!slot->word) return slot;
        if (slot->key[0] == key[0] && slot->key[1] == key[1] && slot->length == length &&
            (length <= 16 || !memcmp(words_get(&tally->words, slot->word - 1, NULL), word, length)))
            return slot;
    }
}

/* Adds the word to its free slot; `first` as in tally_word. Returns 0, or -1 after fail(). The tally must have less than TALLY_MOST
 * words. */
int tally_add(struct tally *tally, struct tally_slot *slot, const uint64_t key[2], uint64_t hash, const char *word, uint64_t length,
              uint64_t first);
void tally_clear(struct tally *tally); /* keeps the memory for the next words */

#endif
