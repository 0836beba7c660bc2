/* tally: the words that one thread has met lately, with how often it met each since they were last added up.
 *
 * A word of up to 16 bytes is compared in two loads, without a look at its text. The words' numbers are those of a larger table that
 * all threads share, which the owner of the tally keeps (word_counts.c). A full tally doubles; at its largest size it is emptied.
 */
#ifndef SPTX_TALLY_H
#define SPTX_TALLY_H

#include "words.h"

#include <string.h>

enum { TALLY_SLOTS = 1 << 16, TALLY_SLOTS_MOST = 1 << 21, TALLY_PADDING = 16 };
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
    struct tally_word *of; /* [words.size] */
    struct tally_slot *slots; /* [slot_count]: a power of two; three quarters are in use at most */
    uint64_t slot_count, slots_most, of_capacity;
};

/* Opens an empty tally of TALLY_SLOTS slots, which may grow to `most` bytes. Returns 0, or -1 after fail(). */
int tally_open(struct tally *tally, uint64_t most);
void tally_close(struct tally *tally); /* harmless on a zeroed one */

static inline uint64_t tally_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A word that is looked up. */
struct tally_query {
    const char *word;
    uint64_t length, key[2], hash; /* key: as in tally_slot */
};

/* Makes a query. Reads TALLY_PADDING bytes from the word's first on. */
static inline struct tally_query tally_ask(const char *word, uint64_t length) {
    static const uint64_t masks[] = {0,           0xff,         0xffff,         0xffffff,        0xffffffff,
                                     0xffffffffff, 0xffffffffffff, 0xffffffffffffff, UINT64_MAX};
    struct tally_query query = {.word = word, .length = length};
    if (__builtin_expect(length <= 16, 1)) {
        memcpy(query.key, word, 16);
        query.key[0] &= masks[length < 8 ? length : 8];
        query.key[1] &= masks[length < 8 ? 0 : length - 8];
    } else {
        query.key[0] = words_hash(word, length);
    }
    query.hash = tally_mix(query.key[0] ^ 0x9E3779B97F4A7C15u, query.key[1] ^ (length + 0xA0761D6478BD642Fu));
    return query;
}

static inline struct tally_slot *tally_home(struct tally *tally, const struct tally_query *query) {
    return &tally->slots[query->hash >> 32 & (tally->slot_count - 1)];
}

/* Finds the word, or the free slot where it belongs. */
static inline struct tally_slot *tally_find(struct tally *tally, const struct tally_query *query) {
    struct tally_slot *slot = tally_home(tally, query);
    for (; slot->word; slot = slot + 1 < tally->slots + tally->slot_count ? slot + 1 : tally->slots)
        if (slot->key[0] == query->key[0] && slot->key[1] == query->key[1] && slot->length == query->length &&
            (query->length <= 16 || !memcmp(words_get(&tally->words, slot->word - 1, NULL), query->word, query->length)))
            break;
    return slot;
}

/* Adds the word to its free slot; `first` as in tally_word. Returns 0, or -1 after fail(). The tally must not be full. */
int tally_add(struct tally *tally, struct tally_slot *slot, const struct tally_query *query, uint64_t first);
static inline int tally_is_full(const struct tally *tally) {
    return tally->words.size >= tally->slot_count / 4 * 3;
}
/* Doubles a full tally, whose slots then change, or empties it. All its words must have their numbers. */
void tally_make_room(struct tally *tally);

#endif
