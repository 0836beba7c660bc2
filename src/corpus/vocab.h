/* vocab: words, their ids and counts. An id is a row of both tables; with corpus.order = frequency it is the rank, so
 * that "hot" is id < hot_rows. Ties go to the word met first.
 *
 * On disk (vocab.tsv): word TAB count LF, a line an id.
 */
#ifndef SPTX_VOCAB_H
#define SPTX_VOCAB_H

#include "base/pool.h"
#include "corpus.h"

#include <stdint.h>

struct vocab {
    uint64_t size;     /* words = rows; at most 4,294,967,294 */
    uint64_t *counts;  /* [size] */
    uint64_t *offsets; /* [size + 1] into bytes: word id is bytes[offsets[id]] .. bytes[offsets[id + 1] - 2], then a NUL */
    char *bytes;
    uint32_t *slots;   /* [slot_count], a power of two: open addressing, id + 1 or 0 */
    uint64_t slot_count;
    uint64_t tokens;   /* all counted tokens, words left out too */
    uint64_t kept;     /* tokens of the words that are in */
    uint64_t distinct; /* words before min_count and max_vocab */
};

/* Counts the corpus and keeps what the options say (format, min_count, max_vocab, order, min_rating), or reads
 * options->vocab. Rewinds the corpus first. An empty result is a failure that says why (no token at all, or none that
 * reaches min_count and which count the most frequent word has). */
int vocab_build(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool);
int vocab_read(struct vocab *vocab, const char *path);
int vocab_write(const struct vocab *vocab, const char *path);
void vocab_release(struct vocab *vocab); /* harmless on a zeroed one */
uint64_t vocab_bytes(const struct vocab *vocab); /* that it holds */

/* Many look-ups at once: with millions of rows each is a handful of cache misses, and these overlap. ids[i]: the id, or
 * VOCAB_ABSENT. */
#define VOCAB_ABSENT UINT32_MAX
enum { VOCAB_BATCH = 64 };
struct vocab_query {
    const char *word;
    uint64_t length, hash;
};
void vocab_ask(const struct vocab *vocab, struct vocab_query *query, const char *word, uint64_t length);
void vocab_find_batch(const struct vocab *vocab, const struct vocab_query *queries, unsigned count, uint32_t *ids);

/* The number that a token of corpus.order = given stands for: 0 done, -1 where it is none (no sentence is kept). */
int vocab_given_id(const char *word, uint64_t length, uint64_t *id);

/* The id, or -1. */
int64_t vocab_find(const struct vocab *vocab, const char *word, uint64_t length);
/* The word, NUL-terminated; *length may be NULL. */
const char *vocab_word(const struct vocab *vocab, uint64_t id, uint64_t *length);
/* Whether it has as many words as training needs: before a corpus of them is encoded. 0, or -1 after fail(). */
int vocab_check_size(const struct vocab *vocab);

/* A vocabulary word near `word` by letters among the 100,000 most frequent, or NULL: for "did you mean". */
const char *vocab_near(const struct vocab *vocab, const char *word);

/* A number that changes when a word, a count or the order does: XXH3 of vocab.tsv's bytes. */
uint64_t vocab_fingerprint(const struct vocab *vocab);

/* The field that a format makes of token `index` of a line: whether it counts as a word of the model. */
enum token_part { PART_WORD, PART_NAME, PART_RATING };
enum token_part vocab_part(enum corpus_format format, uint64_t index);

/* ---- word sets: what counting and grouping are made of ---- */

/* Words with their counts, numbered as they were added. */
struct word_set {
    struct word_slot *slots; /* [slot_count], a power of two: open addressing */
    struct word_entry *entries;
    char *bytes;             /* each word behind its length */
    uint64_t slot_count, size, capacity, used, bytes_capacity;
};
struct word_entry {
    uint64_t count;
    uint64_t first; /* lowest position given with the word */
    uint64_t at;    /* of its length and bytes */
};
uint64_t word_hash(const char *word, uint64_t length);
/* Adds `count` to the word, which is put in where it is new. Its number, or -1 after fail(). */
int64_t word_set_add(struct word_set *set, uint64_t hash, const char *word, uint64_t length, uint64_t count,
                     uint64_t first);
/* Its number, or -1 where it is not there. */
int64_t word_set_find(const struct word_set *set, uint64_t hash, const char *word, uint64_t length);
const char *word_set_word(const struct word_set *set, const struct word_entry *entry, uint64_t *length);
void word_set_release(struct word_set *set); /* harmless on a zeroed one */

#endif
