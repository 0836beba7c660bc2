/* subwords: the n-grams of words, and the rows that n-grams share, as in fastText.
 *
 *   word "where" -> "<where>" -> its n-grams of min..max characters -> FNV-1a of each, modulo `buckets` -> the bucket's row
 *
 *   target table:  rows of words, by id | rows of buckets with n-grams of words, the most used first | rows of the other buckets
 *                                                                                                   (absent if `used` is 1)
 *
 * A word's vector is the mean of its own row and its n-grams' rows; the vector of a word that was never seen is the mean of its
 * n-grams' rows. A bucket without a row counts as a row of zeros; a bucket without an n-gram of a word begins as zeros. A character
 * is a byte and all UTF-8 continuation bytes (10xxxxxx) after it, whether or not that is valid UTF-8. An n-gram that occurs twice
 * in a word is twice among its rows. All this depends only on the words, their counts and the form, and takes a fifth of a second
 * for 80,000 words, so it is not stored with the corpus.
 */
#ifndef SPTX_SUBWORDS_H
#define SPTX_SUBWORDS_H

#include <stdint.h>

struct vocab;

#define SUBWORDS_MOST_BUCKETS 2147483647u
#define SUBWORDS_END "</s>" /* fastText's word for a line's end; it has no n-grams */
enum { SUBWORDS_LONGEST = 255 }; /* largest number of characters of an n-gram */

/* The lengths of n-grams, and the number of buckets that they share. */
struct subword_form {
    uint32_t min, max; /* fewest and most characters of an n-gram; max = 0: words have no n-grams */
    uint32_t buckets;
    int used;          /* 1: only buckets that contain an n-gram of the vocabulary get rows */
    int in_order;      /* 1: rows are in the order of bucket numbers, as in fastText's files; 0: the most used bucket has the first row */
};

/* Reads "none" or a range such as "3-6" into form->min and form->max. Returns 0, or -1 without calling fail(). */
int subwords_read_lengths(const char *text, struct subword_form *form);
/* Reads a number of buckets; "used" sets form->used and 2,000,000 buckets. Returns 0, or -1 without calling fail(). */
int subwords_read_buckets(const char *text, struct subword_form *form);

/* Returns the hash of an n-gram, which decides its bucket. */
uint32_t subwords_hash(const char *ngram, uint64_t length);

/* Calls found() for each n-gram of a word, in fastText's order. `word` is without < and >, which n-grams include. Stops when found() does not
 * return 0, and returns its value. Returns -1 after fail() if memory is short. */
int subwords_visit(const struct subword_form *form, const char *word, uint64_t length,
                   int (*found)(void *user, const char *ngram, uint64_t length, uint32_t bucket), void *user);

/* The rows of all n-grams of a vocabulary. */
struct subwords {
    struct subword_form form;
    uint64_t words;   /* number of words of the vocabulary; buckets have the rows from this number on */
    uint64_t rows;    /* number of rows that buckets have; 0: words have no n-grams */
    uint64_t named;   /* number of buckets that contain n-grams of the vocabulary; they have the first rows. With form.in_order: number of all
                       * buckets */
    uint64_t *starts; /* [words + 1] the rows of word w are row[starts[w]] .. row[starts[w + 1] - 1] */
    uint32_t *row;    /* [starts[words]] for each word its own row, then the rows of its n-grams */
    uint32_t *row_of; /* [buckets] the row of each bucket; WORDS_ABSENT: it has none */
    uint64_t *counts; /* [rows] how often the n-grams of this row's bucket occur in the corpus' tokens */
    uint64_t most;    /* largest number of rows of a word */
};

/* Finds the rows of the n-grams of all words; none if form->max is 0. Returns 0, or -1 after fail(). The caller must call subwords_release() in
 * both cases. */
int subwords_make(struct subwords *subwords, const struct subword_form *form, const struct vocab *vocab);
void subwords_release(struct subwords *subwords); /* may be called on a struct of zeros */
uint64_t subwords_bytes(const struct subwords *subwords); /* bytes of memory in use */
uint64_t subwords_making_bytes(const struct subwords *subwords); /* returns the most bytes that subwords_make() used at any time */

/* Finds the rows of the n-grams of any word, which need not be in the vocabulary; WORDS_ABSENT for a bucket without a row. *rows grows as needed;
 * the caller frees it. Returns the number of rows, or -1 after fail(). */
int64_t subwords_of(const struct subwords *subwords, const char *word, uint64_t length, uint32_t **rows, uint64_t *capacity);

#endif
