/* vocab: words, their ids and counts. An id is a row of both tables; with corpus.order = frequency it is the rank, so that "hot"
 * is id < hot_rows. Ties go to the word met first.
 *
 *   corpus -> word_counts: every word, with its count -> vocab_choose: those that stay, in order -> struct vocab
 *
 * Where lists have rows (corpus_options.list_rows), those rows come last, in the order in which the corpus first names the
 * lists. Their words are "list:NAME". They count 0, which no item does: that tells a list from an item of the same name, and
 * keeps lists from being drawn as negatives. Neither min_count nor max_vocab leaves one out.
 *
 * On disk (vocab.tsv, vocab_file.c): word TAB count LF, a line an id.
 */
#ifndef SPTX_VOCAB_H
#define SPTX_VOCAB_H

#include "base/pool.h"
#include "corpus.h"
#include "subwords.h"
#include "words.h"

#include <stdint.h>

struct vocab {
    uint64_t size;      /* words = rows; at most WORDS_MOST */
    struct words words; /* [size]: a word's number is its id */
    uint64_t *counts;   /* [size] */
    uint64_t tokens;    /* number of all counted tokens, including tokens whose words are left out */
    uint64_t kept;      /* tokens of the words that are kept */
    uint64_t distinct;  /* words before min_count and max_vocab */
    uint64_t lists;     /* how many rows, at the end, are lists */
    uint64_t older;     /* number of rows whose word only the older run has (vocab_older.h); 0 if read from a file */
    struct subwords subwords; /* the rows of words' n-grams, behind all these; all zeros until subwords_make(), and without them */
};

/* Returns the number of rows of the target table: rows of words and of lists, then rows of n-grams. */
static inline uint64_t vocab_targets(const struct vocab *vocab) {
    return vocab->size + vocab->subwords.rows;
}

#define VOCAB_LIST "list:" /* stands before the name of a list */

/* Counts the corpus and keeps what the options say (format, min_count, max_vocab, order, min_rating), or reads
 * options->vocab. Words of options->older are added. Rewinds the corpus first. An empty result is a failure whose message says why:
 * there is no token at all, or no word reaches min_count (then it names the most frequent word's count). */
int vocab_build(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool);
int vocab_read(struct vocab *vocab, const char *path);
/* Reads a file that the user names. A byte order mark at its front is no part of the first word. */
int vocab_read_given(struct vocab *vocab, const char *path);
int vocab_write(const struct vocab *vocab, const char *path);
void vocab_release(struct vocab *vocab); /* harmless on a zeroed one */
uint64_t vocab_bytes(const struct vocab *vocab); /* that it holds */

/* Reads the number of a token of corpus.order = given. Returns 0, or -1 if the token is not a number (no sentence is kept). */
int vocab_given_id(const char *word, uint64_t length, uint64_t *id);

/* Returns the id, or -1. */
int64_t vocab_find(const struct vocab *vocab, const char *word, uint64_t length);
/* Returns the row of a list by its name, or -1. */
int64_t vocab_find_list(const struct vocab *vocab, const char *name, uint64_t length);
/* Returns the word, NUL-terminated; *length may be NULL. */
const char *vocab_word(const struct vocab *vocab, uint64_t id, uint64_t *length);
/* Checks that there are as many words as training needs, before a corpus of them is encoded. Returns 0, or -1 after
 * fail(). */
int vocab_check_size(const struct vocab *vocab);

/* Returns the word nearest to `word` by letters among the 100,000 most frequent, or NULL: for "did you mean". */
const char *vocab_near(const struct vocab *vocab, const char *word);

/* Returns a number that changes when a word, a count or the order does: XXH3 of vocab.tsv's bytes. */
uint64_t vocab_fingerprint(const struct vocab *vocab);

/* ---- making one, a word at a time ---- */

/* Reserves memory for `size` words of `bytes` bytes, counting their NULs, in a zeroed vocabulary. */
int vocab_reserve(struct vocab *vocab, uint64_t size, uint64_t bytes);
void vocab_append(struct vocab *vocab, const char *word, uint64_t length, uint64_t count); /* gives it the next id */
/* Makes words findable. Returns -1 after fail() where one is there twice. `path`: the file whose lines they are. */
int vocab_index(struct vocab *vocab, const char *path);

#endif
