/* vocab: words, their ids and counts. An id is a row of both tables. With corpus.order = frequency ids are ranks of frequency, so
 * the hot rows are those with id < hot_rows; of words with equal counts, the one met first gets the lower id.
 *
 *   corpus -> word_counts: all words with their counts -> vocab_choose: the words that are kept, in order -> struct vocab
 *
 * If lists have rows (corpus_options.list_rows), these are the last rows, in the order in which the corpus first names the lists.
 * The word of such a row is "list:NAME" and its count is 0. No item has a count of 0: this tells a list from an item of the same
 * name, and keeps lists from being drawn as negatives. min_count and max_vocab never leave out a list.
 *
 * The relations of triples are such lists, of words "relation:NAME". If corpus_options.reciprocal is 1, their reciprocals follow in
 * the same order, of words "relation:NAME^-1": the reciprocal of the relation in row r is row r + number of relations.
 *
 * On disk (vocab.tsv): line n is the word of id n, a TAB, its count and an LF.
 */
#ifndef SPTX_VOCAB_H
#define SPTX_VOCAB_H

#include "base/pool.h"
#include "corpus.h"
#include "subwords.h"
#include "word_counts.h"
#include "words.h"

#include <stdint.h>

/* A count of VOCAB_LARGE and more. */
struct vocab_large {
    uint64_t count;
    uint32_t id;
};
#define VOCAB_LARGE UINT32_MAX

/* Returns what struct vocab.counts holds for a count. */
static inline uint32_t vocab_small_count(uint64_t count) {
    return count < VOCAB_LARGE ? (uint32_t)count : VOCAB_LARGE;
}

struct word_counts;

struct vocab {
    uint64_t size;      /* number of words, and of their rows; at most WORDS_MOST */
    struct words words; /* [size]: a word's number is its id */
    uint32_t *counts;   /* [size]: read by vocab_count(). VOCAB_LARGE: the word's count is in `large` */
    struct vocab_large *large; /* [large_count]: by rising ids */
    uint64_t large_count, large_capacity;
    uint64_t tokens;    /* number of all tokens that were counted, including tokens of words that are left out */
    uint64_t kept;      /* number of tokens whose words are in the vocabulary */
    uint64_t distinct;  /* number of different words in the corpus, before min_count and max_vocab leave words out */
    uint64_t lists;     /* number of rows that are lists; they are the last rows */
    uint64_t older;     /* number of rows whose word occurs only in the older run; 0 if the vocabulary was read
                         * from a file */
    struct subwords subwords; /* rows of the words' n-grams, which follow all rows above; all zeros before subwords_make(), or
                               * without n-grams */
};

uint64_t vocab_large_count(const struct vocab *vocab, uint64_t id);
/* Returns how often the word occurs. */
static inline uint64_t vocab_count(const struct vocab *vocab, uint64_t id) {
    return vocab->counts[id] == VOCAB_LARGE ? vocab_large_count(vocab, id) : vocab->counts[id];
}

/* Returns the number of rows of the target table: rows of words and of lists, then rows of n-grams. */
static inline uint64_t vocab_targets(const struct vocab *vocab) {
    return vocab->size + vocab->subwords.rows;
}

/* Prefixes of a list's and of a relation's name in the vocabulary, and the end of the name of a relation's second row. */
#define VOCAB_LIST "list:"
#define VOCAB_RELATION "relation:"
#define VOCAB_RECIPROCAL "^-1"

/* Counts the words of the corpus and keeps some of them (keys format, min_count, max_vocab, order, min_rating); or reads
 * options->vocab. Then adds the words of options->older. It begins at the first byte of the corpus. Returns 0, or -1 after
 * fail(). It is an error if no word is left: the message says that the corpus has no token, or how often its most frequent word
 * occurs. If the corpus is numbered (corpus_set_numbered), its rows are known by these numbers: the vocabulary then has no hash
 * table, unless lists or an older run need it. */
int vocab_build(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool);
int vocab_read(struct vocab *vocab, const char *path);
/* Reads a vocabulary that the user names: skips a byte order mark at its front, and refuses known binary formats. */
int vocab_read_given(struct vocab *vocab, const char *path);
/* Reads a vocabulary by all threads, and builds no hash table. given: 1: the user names it. */
int vocab_read_words(struct vocab *vocab, const char *path, int given, struct pool *pool);
int vocab_write(const struct vocab *vocab, const char *path);
void vocab_release(struct vocab *vocab); /* may be called on a struct of zeros */
uint64_t vocab_bytes(const struct vocab *vocab); /* bytes of memory in use */

/* Reads a token as a row's number, for corpus.order = given. Returns 0, or -1 if it is not such a number (without a call of
 * fail()). */
int vocab_given_id(const char *word, uint64_t length, uint64_t *id);

/* Returns the word's id; -1 if it is not in the vocabulary. */
int64_t vocab_find(const struct vocab *vocab, const char *word, uint64_t length);
/* Returns the row of the list or relation with this name; -1 if none has it. */
int64_t vocab_find_list(const struct vocab *vocab, const char *name, uint64_t length);
/* Returns the prefix of the last rows: VOCAB_RELATION, or VOCAB_LIST if they are no relations. */
const char *vocab_prefix(const struct vocab *vocab);
/* Returns 1 if the last rows are relations and their reciprocals. */
int vocab_is_reciprocal(const struct vocab *vocab);
/* Returns the word, NUL-terminated; *length may be NULL. */
const char *vocab_word(const struct vocab *vocab, uint64_t id, uint64_t *length);
/* Checks, before a corpus is encoded, that the vocabulary has the two words that training needs. Returns 0, or -1 after fail(). */
int vocab_check_size(const struct vocab *vocab);

/* Returns the word whose spelling is nearest to `word`, among the 100,000 most frequent; NULL if none is near. For "did you
 * mean". */
const char *vocab_near(const struct vocab *vocab, const char *word);

/* Returns XXH3 of vocab.tsv's bytes: it changes when a word, a count or the order changes. */
uint64_t vocab_fingerprint(const struct vocab *vocab);

/* ---- making a vocabulary word by word ---- */

/* Reserves memory for `size` words in all, which occupy `bytes` bytes with their NULs. Returns 0, or -1 after fail(). */
int vocab_reserve(struct vocab *vocab, uint64_t size, uint64_t bytes);
/* Appends a word, which gets the next id, in reserved memory. Returns 0, or -1 after fail(): a large count needs more memory. */
int vocab_append(struct vocab *vocab, const char *word, uint64_t length, uint64_t count);
int vocab_set_count(struct vocab *vocab, uint64_t id, uint64_t count); /* returns 0, or -1 after fail() */
/* Builds the hash table that vocab_find() uses. Returns 0, or -1 after fail(), also if two words are equal; `path` names the
 * file that the message calls the source of the words. pool: NULL: the caller's thread does it. */
int vocab_index(struct vocab *vocab, const char *path, struct pool *pool);

/* vocab_choose: chooses which of the counted words become rows, and in which order. */
/* Fills a zeroed vocabulary by the options (min_count, max_vocab, order), but builds no hash table. The shards of `counts` keep
 * their words; their counts and hash tables are freed. rows: if not NULL, *rows is a new array with the row of each number of a
 * word (word_counts.h), WORDS_ABSENT for a word that is left out; the caller frees it. corpus_bytes is the corpus' size, for the
 * message if no word is left. Returns 0, or -1 after fail(). */
int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options, uint64_t corpus_bytes,
                 struct pool *pool, uint32_t **rows);

/* vocab_older: adds the words of an older run to the vocabulary of a corpus (train.from_words = keep), as gensim's
 * build_vocab(update=True) does. A word that both have gets the sum of both counts. */
/* Adds the words of the vocabulary `older` to `vocab`; both must have hash tables (vocab_index). With corpus.order = frequency,
 * all words are then sorted by their new counts; otherwise the added words follow those of the corpus. Names of lists are added
 * only if options->list_rows is 1. Stores the number of added words and lists in vocab->older. Returns 0, or -1 after fail();
 * the caller then releases `vocab`. */
int vocab_keep_older(struct vocab *vocab, const struct vocab *older, const struct corpus_options *options);

#endif
