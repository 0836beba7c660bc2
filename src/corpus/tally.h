/* tally: counts the words that a thread met first, and knows the words' numbers. From time to time the counts are added to the
 * totals and set to 0. A full tally takes no more words until it is doubled or emptied.
 *
 * Words of up to 16 bytes are compared by two loads, without reading their text. The words' numbers come from a larger table, which
 * all threads share and the owner of the tally keeps (word_counts.c).
 */
#ifndef SPTX_TALLY_H
#define SPTX_TALLY_H

#include "words.h"

#include <string.h>

/* Words of more than TALLY_LONGEST bytes are not kept. */
enum { TALLY_SLOTS = 1 << 16, TALLY_SLOTS_MOST = 1 << 21, TALLY_PADDING = 16, TALLY_LONGEST = 128 };

/* A slot of the hash table: a word, or free. */
struct tally_slot {
    uint64_t key[2]; /* bytes of the word, followed by zeros; if it is longer than 16 bytes, its hash */
    uint32_t end;    /* 1 + length of the word in bytes; 0: the slot is free */
    uint32_t text;   /* index in `texts` of a word of more than 16 bytes */
    uint32_t count;  /* how often the thread has read the word since its count was 0 */
    uint32_t number; /* number of the word in the larger table */
};

struct tally {
    struct words texts; /* texts of the words of more than 16 bytes; it has no hash table */
    uint64_t size;      /* number of words */
    struct tally_slot *slots; /* [slot_count] a power of two; at most half are used */
    uint64_t slot_count, slots_most;
};

/* Opens an empty tally of TALLY_SLOTS slots, which may grow to `most` bytes. Returns 0, or -1 after fail(). */
int tally_open(struct tally *tally, uint64_t most);
void tally_close(struct tally *tally); /* may be called on a struct of zeros */
void tally_clear(struct tally *tally); /* removes all words */
int tally_double(struct tally *tally); /* returns 1, or 0 if the tally has its largest size or memory is short */

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

/* Returns the slot of the word or, if the tally lacks it, the free slot in which to store it. */
static inline struct tally_slot *tally_find(struct tally *tally, const struct tally_query *query) {
    struct tally_slot *slot = tally_home(tally, query);
    for (; slot->end; slot = slot + 1 < tally->slots + tally->slot_count ? slot + 1 : tally->slots)
        if (slot->key[0] == query->key[0] && slot->key[1] == query->key[1] && slot->end == query->length + 1 &&
            (query->length <= 16 || !memcmp(words_get(&tally->texts, slot->text, NULL), query->word, query->length)))
            break;
    return slot;
}

/* Adds a word with its number and the count 0, unless the tally has the word, is full, or the word is too long. Returns 0, or -1
 * after fail(). */
int tally_add(struct tally *tally, const struct tally_query *query, uint32_t number);
static inline int tally_is_full(const struct tally *tally) {
    return tally->size >= tally->slot_count / 2;
}

#endif
