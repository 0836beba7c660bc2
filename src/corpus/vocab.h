/* vocab: words, their ids and counts. An id is a row of both tables. With corpus.order = frequency ids are ranks of frequency, so
 * the hot rows are those with id < hot_rows; of words with equal counts, the one met first gets the lower id.
 *
 *   corpus -> word_counts: all words with their counts -> vocab_choose: the words that are kept, in order -> struct vocab
 *
 * If lists have rows (corpus_options.list_rows), these are the last rows, in the order in which the corpus first names the lists. The word of such a
 * row is "list:NAME" and its count is 0. No item has a count of 0; so a list differs from an item of the same name, and is never drawn as a negative.
 * min_count and max_vocab leave out no list.
 *
 * The relations of triples are stored like lists, as words "relation:NAME". If corpus_options.reciprocal is 1, their reciprocals follow in the same
 * order, as words "relation:NAME^-1": the reciprocal of the relation in row r is in row r + number of relations.
 *
 * If triples are walked (corpus_options.walked), relations are words like entities: "relation:NAME" with the number of its triples as its count. With
 * corpus.order = frequency they stand among the entities by their counts, after entities with the same count; otherwise behind all entities.
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

/* Returns the element of struct vocab.counts that stands for a count. */
static inline uint32_t vocab_small_count(uint64_t count) {
    return count < VOCAB_LARGE ? (uint32_t)count : VOCAB_LARGE;
}

struct word_counts;

struct vocab {
    uint64_t size;      /* number of words, each of which has a row; at most WORDS_MOST */
    struct words words; /* [size]: a word's number is its id */
    uint32_t *counts;   /* [size] use vocab_count() to read it; VOCAB_LARGE: the word's count is in `large` */
    struct vocab_large *large; /* [large_count]: by rising ids */
    uint64_t large_count, large_capacity;
    uint64_t tokens;    /* number of all tokens that were counted, including tokens of words that were left out */
    uint64_t kept;      /* number of tokens whose words are in the vocabulary */
    uint64_t distinct;  /* number of different words in the corpus before min_count and max_vocab */
    uint64_t lists;     /* number of lists; they have the last rows */
    uint64_t older;     /* number of words that only the older run contains; 0 if the vocabulary was read from a file */
    uint64_t forgot;    /* number of words of the older run that left because of corpus.forget */
    uint32_t *age;      /* [size] ages: for how many runs in a row, up to this one, the word has been missing from the corpus (0: it is in this
                         * run's corpus). NULL: all ages are 0, or they have not been read (run_ages_read) */
    struct subwords subwords; /* rows of n-grams, after all rows of words and lists; all zeros before subwords_make() and without n-grams */
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

/* The vocabulary contains names of lists, which begin with VOCAB_LIST, and names of relations, which begin with VOCAB_RELATION. A relation has two
 * rows: one for tails, and one for heads, whose name ends with VOCAB_RECIPROCAL. */
#define VOCAB_LIST "list:"
#define VOCAB_RELATION "relation:"
#define VOCAB_RECIPROCAL "^-1"

/* Fills the vocabulary: counts the words of the whole corpus and keeps some of them (keys format, min_count, max_vocab, order, min_rating), or
 * reads options->vocab; then adds the words of options->older. Returns 0, or -1 after fail(). If no word is left, that is an error, which says
 * that the corpus has no token, or how often its most frequent word occurs. If the corpus is numbered (corpus_set_numbered), rows are found by
 * these numbers, and the vocabulary has no hash table, unless lists or an older run need it. */
int vocab_build(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool);
int vocab_read(struct vocab *vocab, const char *path);
/* Reads a vocabulary file that the user has named: skips a byte order mark, and refuses known binary formats. */
int vocab_read_given(struct vocab *vocab, const char *path);
/* Reads a vocabulary file by all threads; builds no hash table. given = 1: the user has named the file. */
int vocab_read_words(struct vocab *vocab, const char *path, int given, struct pool *pool);
int vocab_write(const struct vocab *vocab, const char *path);
void vocab_release(struct vocab *vocab); /* may be called on a struct of zeros */
uint64_t vocab_bytes(const struct vocab *vocab); /* bytes of memory in use */

/* Reads a token as the number of a row, for corpus.order = given. Returns 0, or -1 (without calling fail()) if it is not one. */
int vocab_given_id(const char *word, uint64_t length, uint64_t *id);

/* Returns the word's id; -1 if it is not in the vocabulary. */
int64_t vocab_find(const struct vocab *vocab, const char *word, uint64_t length);
/* Joins `prefix` and `name` to a word, and returns its row. If the vocabulary has no such word, returns -1; after fail(), too. */
int64_t vocab_find_prefixed(const struct vocab *vocab, const char *prefix, const char *name, uint64_t length);
/* Returns VOCAB_RELATION for triples, otherwise VOCAB_LIST: what precedes the name of a list or relation in its word. */
const char *vocab_prefix_of(const struct corpus_options *options);
/* Returns the row of the list or relation that has this name, or -1 if there is none. Where relations are words among the entities, it returns -1,
 * too. */
int64_t vocab_find_list(const struct vocab *vocab, const char *name, uint64_t length);
/* Returns the prefix of the last rows' words: VOCAB_RELATION if they are relations, otherwise VOCAB_LIST. */
const char *vocab_prefix(const struct vocab *vocab);
/* Returns 1 if the last rows are relations and their reciprocals. */
int vocab_is_reciprocal(const struct vocab *vocab);
/* Returns the word, NUL-terminated; *length may be NULL. */
const char *vocab_word(const struct vocab *vocab, uint64_t id, uint64_t *length);
/* Checks, before a corpus is encoded, that the vocabulary has at least the two words that training needs. Returns 0, or -1 after fail(). */
int vocab_check_size(const struct vocab *vocab);

/* Returns the word, among the 100,000 most frequent ones, whose spelling is nearest to `word`, for "did you mean"; NULL if none is near. */
const char *vocab_near(const struct vocab *vocab, const char *word);

/* Returns XXH3 of vocab.tsv's bytes: it changes when a word, a count or the order changes. */
uint64_t vocab_fingerprint(const struct vocab *vocab);

/* ---- making a vocabulary word by word ---- */

/* Reserves memory for `size` words in all, whose bytes with their NULs are `bytes`. Returns 0, or -1 after fail(). */
int vocab_reserve(struct vocab *vocab, uint64_t size, uint64_t bytes);
/* Appends a word in reserved memory; it gets the next id. Returns 0, or -1 after fail(), since a large count needs more memory. */
int vocab_append(struct vocab *vocab, const char *word, uint64_t length, uint64_t count);
int vocab_set_count(struct vocab *vocab, uint64_t id, uint64_t count); /* returns 0, or -1 after fail() */
/* Builds the hash table for vocab_find(). Returns 0, or -1 after fail(), also if two words are equal; the message then names `path` as their
 * source. pool = NULL: only the calling thread works. */
int vocab_index(struct vocab *vocab, const char *path, struct pool *pool);

/* vocab_choose: chooses which of the counted words become rows, and in which order. */
/* Fills a zeroed vocabulary by the options (min_count, max_vocab, order); builds no hash table. Frees the counts and hash tables of the shards of
 * `counts`, but not their words. rows: if not NULL, *rows is a new array, which the caller frees: by a word's number (word_counts.h) its row, or
 * WORDS_ABSENT. corpus_bytes: size of the corpus, for the message if no word is left. Returns 0, or -1 after fail(). */
int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options, uint64_t corpus_bytes,
                 struct pool *pool, uint32_t **rows);

/* vocab_older: adds the words of an older run to the vocabulary of a corpus (train.from_words = keep), as gensim's build_vocab(update=True) does.
 * A word in both gets the sum of both counts.
 *
 * With corpus.forget, words leave until max_vocab are left, of the older run and of the corpus alike:
 *   count   those with the least sums of counts
 *   age     those that have not occurred in the most runs, of these those with the least sums of counts
 * Of equal words, those that only the older run has leave first, then those with the higher ids. Lists never leave. */
/* Adds the words of the vocabulary `older` to `vocab`; both must have hash tables (vocab_index). With corpus.order = frequency,
 * all words are then sorted by their new counts; otherwise the added words follow those of the corpus. Names of lists are added
 * only if options->list_rows is 1. Stores the number of added words and lists in vocab->older, and the ages of all
 * words in vocab->age if one is above 0; says which words leave. Returns 0, or -1 after fail(); the caller then releases `vocab`. */
int vocab_keep_older(struct vocab *vocab, const struct vocab *older, const struct corpus_options *options);

#endif
