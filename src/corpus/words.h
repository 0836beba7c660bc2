/* words: a set of words, numbered in the order in which they were added, and a hash table that finds a word's number.
 *
 * All tables of words use it: counting, the lists of pairs, the names in a file of questions, and the finished vocabulary. It stores only the bytes
 * of words; other data of word n (its count, its row) is in its user's own arrays, at index n.
 *
 *   hash of a word -> slots[i] {tag, number + 1} -> words_offset(number) -> bytes: the word, then a NUL
 *
 * A look-up in a large table waits for memory three times, once at each arrow. words_ask() and words_find_batch() do many
 * look-ups together, so that these waits overlap. A tag costs 4 bytes a slot. It saves the last two waits if the slot holds
 * another word: 24 million tokens of 2.5 million words are encoded in 2.2 s, without tags in 2.6 s.
 */
#ifndef SPTX_WORDS_H
#define SPTX_WORDS_H

#include "base/pool.h"

#include <stdint.h>
#include <string.h>

/* A place in the hash table. */
struct word_slot {
    _Alignas(8) uint32_t tag; /* low half of the word's hash: decides where the search begins. Words with equal tags are nearly always equal */
    uint32_t number;          /* the word's number + 1; 0: the slot is free */
};

struct words {
    uint64_t size;           /* number of words; at most WORDS_MOST */
    uint64_t used;           /* bytes of all words and their NULs */
    unsigned char *offsets;  /* [size + 1] of WORDS_OFFSET bytes each: where each word begins in `bytes`; read by words_offset() */
    char *bytes;             /* [used] */
    struct word_slot *slots; /* [slot_count] hash table with open addressing, of which at most four fifths are used */
    uint64_t slot_count;
    uint64_t offsets_capacity, bytes_capacity;
};

#define WORDS_MOST 4294967294u /* also the largest number of rows of a table: the two highest 32-bit numbers have special meanings */
#define WORDS_ABSENT UINT32_MAX
enum { WORDS_OFFSET = 5 }; /* bytes of an offset; so all words together have at most 2^40 bytes. With 8, an offset would be as long as half a short
                            * name */

uint64_t words_hash(const char *word, uint64_t length);
/* Adds the word unless it is there already. Returns its number, or -1 after fail(). */
int64_t words_add(struct words *words, uint64_t hash, const char *word, uint64_t length);
/* Adds the word without checking whether it is there already. words_find() finds it only after words_index(). Returns 0, or -1 after fail(). */
int words_put(struct words *words, const char *word, uint64_t length);
/* Returns the word's number, or -1 if it is absent. */
int64_t words_find(const struct words *words, uint64_t hash, const char *word, uint64_t length);
/* Returns the index in `bytes` at which word `number` begins, or `used` for the number `size`. */
static inline uint64_t words_offset(const struct words *words, uint64_t number) {
    const unsigned char *offset = words->offsets + number * WORDS_OFFSET;
    uint32_t low;
    memcpy(&low, offset, sizeof low);
    return low | (uint64_t)offset[4] << 32;
}
static inline void words_set_offset(struct words *words, uint64_t number, uint64_t value) {
    memcpy(words->offsets + number * WORDS_OFFSET, &value, WORDS_OFFSET); /* the low bytes of a little-endian number */
}
/* Returns the word, NUL-terminated; *length may be NULL. */
static inline const char *words_get(const struct words *words, uint64_t number, uint64_t *length) {
    uint64_t begin = words_offset(words, number);
    if (length) *length = words_offset(words, number + 1) - 1 - begin;
    return words->bytes + begin;
}
void words_clear(struct words *words);           /* keeps the memory for the next words */
void words_release(struct words *words);         /* may be called on a struct of zeros */
uint64_t words_bytes(const struct words *words); /* bytes of memory in use */

/* ---- batches of look-ups ---- */

enum { WORDS_BATCH = 64 };
struct word_query {
    const char *word; /* the caller's; must stay valid until words_find_batch() */
    uint64_t length, hash;
};
/* Prepares a query for words_find_batch(), and prefetches the slot where its search begins. */
void words_ask(const struct words *words, struct word_query *query, uint64_t hash, const char *word, uint64_t length);
/* Answers `count` queries (WORDS_BATCH at most): numbers[i] is the number of the word of queries[i], or WORDS_ABSENT. */
void words_find_batch(const struct words *words, const struct word_query *queries, unsigned count, uint32_t *numbers);

/* ---- building a finished table ---- */

/* Reserves memory for exactly `size` words that take `bytes` bytes with their NULs. Returns 0, or -1 after fail(). */
int words_reserve(struct words *words, uint64_t size, uint64_t bytes);
/* Appends a word in reserved memory. words_find() finds it only after words_index(). */
void words_append(struct words *words, const char *word, uint64_t length);
/* Computes the offsets of `size` words from their lengths, and reserves memory for their bytes. Before it, the caller calls words_reserve() and
 * stores 1 + each word's length as its offset; after it, the caller writes each word and its NUL where words_offset() says. */
int words_place(struct words *words, uint64_t size);
/* Builds the hash table of all words, as small as possible. Returns 0, or -1 after fail(). Returns 1 if two words are equal: *first and *again are
 * their numbers, of all such pairs the one with the lowest *again. pool = NULL: only the calling thread works. */
int words_index(struct words *words, struct pool *pool, uint64_t *first, uint64_t *again);
/* Returns the bytes of the hash table that words_index() makes for `size` words. */
uint64_t words_index_bytes(uint64_t size);
/* Frees the hash table. words_get() still works afterwards, but words can be neither found nor added. */
void words_drop_index(struct words *words);

#endif
