/* phrases: joins words that often follow each other into one word (new york -> new_york), as word2phrase and gensim's Phrases do.
 *
 *   corpus -> vocabulary of all its words -> phrase_tokens: the text as numbers -> for each pass:
 *       bigrams: count the bigrams -> phrase_score: choose the phrases -> join them from left to right, in place
 *   -> the joined text
 *
 * In one pass a word is joined with at most one neighbour; a second pass joins phrases to longer phrases. If the text itself contains the word
 * new_york, its count and that of the bigram new york are added, and both use the sum, as in the two other programs. With phrases.score =
 * word2phrase, bigrams across line ends are counted, too, but not joined, as word2phrase does it; gensim does not count them. Both forget rare
 * bigrams when memory is short; this program does not.
 */
#ifndef SPTX_PHRASES_H
#define SPTX_PHRASES_H

#include "base/pool.h"
#include "corpus.h"
#include "numbered.h"

#include <pthread.h>
#include <stdint.h>

/* phrase_tokens: a whole text as the numbers of its words, in a nameless file that is mapped into memory. The text is read several times, and
 * reading numbers is twenty times as fast as looking words up. */
#define PHRASE_LINE_END NUMBERED_END /* stored after the last word of each line, and once for an empty line */

struct phrase_tokens {
    uint32_t *ids; /* [size] numbers of words, and PHRASE_LINE_END; may be overwritten */
    uint64_t size;
    uint64_t mapped; /* bytes of the mapping */
};

/* bigrams: counts all bigrams of a text exactly, in bounded memory.
 *
 *   a bigram -> its 64-bit hash -> top 6 bits: one of 64 shards, each with its own lock -> open addressing, 16 bytes a slot
 *
 * A shard whose part of the memory is full drops the bigrams in the upper half of its hashes, and from then on counts only the lower half. Each
 * reading of the text is a sweep; another sweep counts the hashes that were dropped. Between sweeps, bigrams that are too rare to become phrases are
 * dropped. Counts do not depend on the memory or the number of threads.
 */
/* Identifies a bigram: by the numbers of its two words (tag 0), or by 95 bits of the hash of its text (tag above 0). */
struct bigram {
    uint64_t key;
    uint32_t tag;
};

/* A slot of a shard's hash table: a bigram and its count. */
struct bigram_slot {
    uint64_t key;
    uint32_t tag;
    uint32_t count; /* number of occurrences; 0: the slot is free. With the bit BIGRAM_KEPT, sweeps never drop the bigram */
};

#define BIGRAM_KEPT ((uint32_t)1 << 31)
#define BIGRAM_MOST (BIGRAM_KEPT - 1) /* the highest count that is stored; higher counts are stored as this one */

/* The bigrams whose hashes have the same highest 6 bits. */
struct bigram_shard {
    pthread_mutex_t lock;
    struct bigram_slot *slots; /* [slot_count] */
    uint64_t slot_count, size;
    uint64_t low, high;        /* the current sweep counts bigrams whose order_of() (32 bits of the hash) is low .. high - 1; low = 2^32: no sweep
                                * is left */
};

enum { BIGRAM_SHARDS = 64, BIGRAM_BATCH = 1 << 16 };
struct bigrams {
    struct bigram_shard shards[BIGRAM_SHARDS];
    uint64_t shard_most; /* most slots of a shard */
    uint64_t memory;     /* bytes that all shards together may use; for messages */
    uint64_t distinct;   /* number of different bigrams that finished sweeps have counted */
};

static inline struct bigram bigram_of_words(uint32_t first, uint32_t second) {
    return (struct bigram){(uint64_t)first << 32 | second, 0};
}
struct bigram bigram_of_text(const char *text, uint64_t length);

/* Prepares an empty table of at most `memory` bytes. The caller must call bigrams_release(). */
void bigrams_init(struct bigrams *bigrams, uint64_t memory);
void bigrams_release(struct bigrams *bigrams);

/* Counts `count` bigrams (at most BIGRAM_BATCH), in any order. counts: [count] how often each occurs; NULL: once. kept = 1: sweeps never drop
 * these bigrams. Any thread may call it. Returns 0, or -1 after fail(). */
int bigrams_add(struct bigrams *bigrams, const struct bigram *met, const uint32_t *counts, uint32_t count, int kept);

/* Ends a sweep. Returns 0 if all bigrams are counted, or 1 if the text must be read again; in that case bigrams that occur fewer than `least`
 * times are dropped first. Returns -1 after fail(). */
int bigrams_next_sweep(struct bigrams *bigrams, uint32_t least);

typedef int bigrams_keeps(void *user, struct bigram bigram, uint32_t count); /* count: how often the bigram occurs. Returns 0 to drop it */
/* For after the last sweep: asks `keeps` about each bigram, and drops those for which it returns 0. Returns 0, or -1 after fail(). */
int bigrams_filter(struct bigrams *bigrams, bigrams_keeps *keeps, void *user);

/* Returns how often the bigram occurs; 0 if the table does not contain it. */
uint32_t bigrams_count(const struct bigrams *bigrams, struct bigram bigram);

/* Called with the joined text, some bytes at a time, in order. Returns 0, or -1 after fail(). */
typedef int phrases_take(void *user, const char *bytes, uint64_t length);

/* Joins the words of a text by options->phrases and passes the result to `take`, as lines of words separated by blanks. With margin = 1 each line
 * begins with a blank, as word2phrase writes it. Returns 0, or -1 after fail(). */
int phrases_join(struct corpus *corpus, const struct corpus_options *options, struct pool *pool, int margin, phrases_take *take,
                 void *user);

/* Joins the words of a corpus before they are counted and encoded: corpus_next() then returns blocks of the joined text. Returns 0, or -1 after
 * fail(). */
int phrases_join_corpus(struct corpus *corpus, const struct corpus_options *options, struct pool *pool);

/* Returns a hash of the options on which the phrases of a text depend. */
uint64_t phrases_fingerprint(const struct phrase_options *options);

#endif
