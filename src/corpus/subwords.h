/* subwords: the n-grams of words, and the rows that they share, as fastText has them.
 *
 *   word "where" -> "<where>" -> its n-grams of min..max characters -> FNV-1a of each, modulo `buckets` -> the bucket's row
 *
 *   target table:  rows of words, by id | rows of buckets that words name, the most named first | rows of the other buckets
 *                                                                                               (none of these with `used`)
 *
 * A word's vector is the mean of its own row and of its n-grams' rows; that of a word never seen is the mean of its n-grams'. A
 * bucket that has no row counts as a row of zeros, and one that no word names begins as such. A character is a byte and all bytes
 * behind it that go on with a character of UTF-8 (10xxxxxx), whether or not that is valid. An n-gram that a word has twice stands
 * twice among its rows. All this follows from the words, their counts and the form alone, in a fifth of a second for 80,000 words,
 * so it is not stored with the corpus.
 */
#ifndef SPTX_SUBWORDS_H
#define SPTX_SUBWORDS_H

#include <stdint.h>

struct vocab;

#define SUBWORDS_MOST_BUCKETS 2147483647u
#define SUBWORDS_END "</s>" /* fastText's mark of a line's end, which has no n-grams */
enum { SUBWORDS_LONGEST = 255 }; /* characters of an n-gram */

/* Says which n-grams words have, and in how many buckets they fall. */
struct subword_form {
    uint32_t min, max; /* characters of an n-gram; max = 0: words have none */
    uint32_t buckets;
    int used;          /* 1: only buckets that a word of the vocabulary names have rows */
    int in_order;      /* 1: buckets have rows in their own order, as in fastText's files */
};

/* Reads "none" or "3-6". Returns 0, or -1 (no sentence). */
int subwords_read_lengths(const char *text, struct subword_form *form);
/* Reads a number of buckets, or "used", which means at most 2,000,000. Returns 0, or -1 (no sentence). */
int subwords_read_buckets(const char *text, struct subword_form *form);

/* Returns the hash that says which bucket an n-gram falls into. */
uint32_t subwords_hash(const char *ngram, uint64_t length);

/* Calls found() for each n-gram of a word in fastText's order, with its place in "<word>"; `word` stands without the bounds.
 * Stops where found() returns other than 0, and returns that. -1 after fail() where there is no memory. */
int subwords_visit(const struct subword_form *form, const char *word, uint64_t length,
                   int (*found)(void *user, const char *ngram, uint64_t length, uint32_t bucket), void *user);

struct subwords {
    struct subword_form form;
    uint64_t words;   /* of the vocabulary; the first row of a bucket has this number */
    uint64_t rows;    /* of buckets; 0: words have no n-grams */
    uint64_t named;   /* number of first buckets that some word names; all buckets, if form.in_order keeps them from being told
                       * apart */
    uint64_t *starts; /* [words + 1] where a word's rows begin */
    uint32_t *row;    /* [starts[words]] for each word its own row, then the rows of its n-grams */
    uint32_t *row_of; /* [buckets] the row of each; WORDS_ABSENT: it has none */
    uint64_t *counts; /* [rows] how often the corpus' words name it */
    uint64_t most;    /* rows of a word, at most */
};

/* Finds the rows of all words of a vocabulary. Returns 0, or -1 after fail(); released in any case. With form.max = 0 it makes
 * nothing. */
int subwords_make(struct subwords *subwords, const struct subword_form *form, const struct vocab *vocab);
void subwords_release(struct subwords *subwords); /* harmless on a zeroed one */
uint64_t subwords_bytes(const struct subwords *subwords); /* that it holds */
uint64_t subwords_making_bytes(const struct subwords *subwords); /* largest number of bytes in use during subwords_make() */

/* Finds the rows of any word, which need not be one of the vocabulary: *rows grows to hold them and is the caller's to free, with
 * its *capacity. A bucket without a row is WORDS_ABSENT. Returns how many there are, or -1 after fail(). */
int64_t subwords_of(const struct subwords *subwords, const char *word, uint64_t length, uint32_t **rows, uint64_t *capacity);

#endif
