/* word_counts: counts all words of a corpus, and finds where each first occurs.
 *
 *   block -> a worker's tally: the words of that block, in the core's cache -> 64 shards by hash, each with its own lock
 *         -> if words are ids: a table for integers that all threads share (integers.h); in the end its counts are added to the
 *            shards
 *
 * Memory is about that of the different words, whatever the number of threads. Counts are sums and first positions are
 * minima, so the result does not depend on the order or the size of blocks.
 */
#ifndef SPTX_WORD_COUNTS_H
#define SPTX_WORD_COUNTS_H

#include "base/pool.h"
#include "corpus.h"
#include "vocab.h"
#include "words.h"

#include <pthread.h>
#include <stdint.h>

enum { WORD_SHARDS = 64, WORD_SHARD_SHIFT = 58 }; /* the highest 6 bits of a word's hash are its shard's number */

/* How often a word occurs, and where it first does. */
struct word_count {
    uint64_t count;
    uint64_t first; /* byte of the corpus at which the word first occurs */
};

/* The words whose hashes have the same highest bits. */
struct word_shard {
    pthread_mutex_t lock;
    struct words words;
    struct word_count *counts; /* [words.size], indexed by a word's number in `words` */
    uint64_t counts_capacity;
};

struct gathered_words;
struct word_counts {
    struct word_shard shards[WORD_SHARDS];
    struct gathered_words *lent; /* gathered words whose table the first shard borrows; word_counts_release() gives it back.
                                  * NULL: nothing is borrowed */
};

/* Rewinds the corpus and counts its words (part = PART_WORD) or the names of its lists (PART_NAME), by options->format and
 * min_rating. If order = given, every word must be a number. Returns 0, or -1 after fail(). */
int word_counts_init(struct word_counts *counts, struct corpus *corpus, const struct corpus_options *options,
                     enum token_part part, struct pool *pool);
void word_counts_release(struct word_counts *counts); /* must be called even if word_counts_init() failed */

#endif
