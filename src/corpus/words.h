/* words: different words, numbered in the order in which they were added, and a hash table that finds a word's number.
 *
 * The one table of words here: counting, the lists of pairs, the names of a file of questions, and the finished
 * vocabulary all use it. It knows nothing of a word but its bytes; what a user knows of word n (its count, its row)
 * lies in an array of that user's own, at place n.
 *
 *   hash of a word -> slots[i] {tag, number + 1} -> offsets[number] -> bytes: the word, then a NUL
 *
 * A look-up in a large table waits for memory three times, once at each arrow. words_ask() and words_find_batch() do
 * many look-ups side by side, so that these waits overlap. A tag costs 4 bytes a slot and saves the other two waits where
 * the slot holds another word: 24 million tokens of 2.5 million words are encoded in 2.2 s for 2.6 s without tags.
 */
#ifndef SPTX_WORDS_H
#define SPTX_WORDS_H

#include <stdint.h>

struct word_slot {
    uint32_t tag;    /* low half of the word's hash: says where the word belongs, and nearly always whether it is the one */
    uint32_t number; /* + 1; 0: the slot is free */
};

struct words {
    uint64_t size;           /* words; at most WORDS_MOST */
    uint64_t used;           /* bytes of all words, with their NULs */
    uint64_t *offsets;       /* [size + 1]: word n is bytes[offsets[n]] .. bytes[offsets[n + 1] - 2], then a NUL */
    char *bytes;             /* [used] */
    struct word_slot *slots; /* [slot_count]: open addressing, at most four fifths in use */
    uint64_t slot_count;
    uint64_t offsets_capacity, bytes_capacity;
};

#define WORDS_MOST 4294967294u /* and rows of a table: the two highest 32-bit numbers mean something else */
#define WORDS_ABSENT UINT32_MAX

uint64_t words_hash(const char *word, uint64_t length);
/* Adds the word where it is new. Its number, or -1 after fail(). */
int64_t words_add(struct words *words, uint64_t hash, const char *word, uint64_t length);
/* Its number, or -1 where it is not there. */
int64_t words_find(const struct words *words, uint64_t hash, const char *word, uint64_t length);
/* The word, NUL-terminated; *length may be NULL. */
static inline const char *words_get(const struct words *words, uint64_t number, uint64_t *length) {
    if (length) *length = words->offsets[number + 1] - 1 - words->offsets[number];
    return words->bytes + words->offsets[number];
}
void words_clear(struct words *words);           /* no words; its memory stays for the next ones */
void words_release(struct words *words);         /* harmless on a zeroed one */
uint64_t words_bytes(const struct words *words); /* of memory in use */

/* ---- many look-ups side by side ---- */

enum { WORDS_BATCH = 64 };
struct word_query {
    const char *word; /* the caller's, until the batch is found */
    uint64_t length, hash;
};
/* Begins one look-up: its slot is on its way from memory. */
void words_ask(const struct words *words, struct word_query *query, uint64_t hash, const char *word, uint64_t length);
/* Ends `count` of them (WORDS_BATCH at most): numbers[i] is the word's number, or WORDS_ABSENT. */
void words_find_batch(const struct words *words, const struct word_query *queries, unsigned count, uint32_t *numbers);

/* ---- many words at once ---- */

/* Memory for exactly `size` words of `bytes` bytes, their NULs counted, and no more: 0, or -1 after fail(). */
int words_reserve(struct words *words, uint64_t size, uint64_t bytes);
/* Puts a word after the others, in memory that is reserved; it cannot be found before words_index(). */
void words_append(struct words *words, const char *word, uint64_t length);
/* The hash table of all words, just as large as they need. 0; -1 after fail(); or 1 where two words are the same: numbers
 * *first and *again, the lowest such *again. */
int words_index(struct words *words, uint64_t *first, uint64_t *again);
/* Frees the hash table. The words stay, to be had by number only; none is found or added any more. */
void words_drop_index(struct words *words);

#endif
