/* word_counts: every word of a corpus, how often it comes and where it comes first.
 *
 *   block -> a worker's tally: the words of that block, in its cache -> 64 shards by hash, each under its own lock
 *         -> where words are ids, a table of all threads: integers (integers.h), which are put among the others at the end
 *
 * Memory stays near that of the different words, whatever the number of threads. Counts are sums and first positions are
 * minima, so neither the order of blocks nor their size shows in the result.
 */
#ifndef SPTX_WORD_COUNTS_H
#define SPTX_WORD_COUNTS_H

#include "base/pool.h"
#include "corpus.h"
#include "vocab.h"
#include "words.h"

#include <pthread.h>
#include <stdint.h>

enum { WORD_SHARDS = 64, WORD_SHARD_SHIFT = 58 }; /* the top bits of a word's hash are its shard */

struct word_count {
    uint64_t count;
    uint64_t first; /* the byte of the corpus where the word comes first */
};

struct word_shard {
    pthread_mutex_t lock;
    struct words words;
    struct word_count *counts; /* [words.size], by the word's number */
    uint64_t counts_capacity;
};

struct gathered_words;
struct word_counts {
    struct word_shard shards[WORD_SHARDS];
    struct gathered_words *lent; /* the counts that own the first shard's words until these counts are released; NULL: this one
                                  * owns them */
};

/* Counts the words of the corpus, or the names of its lists, from its beginning, by the options (format, min_rating;
 * order = given demands numbers). */
int word_counts_init(struct word_counts *counts, struct corpus *corpus, const struct corpus_options *options,
                     enum token_part part, struct pool *pool);
void word_counts_release(struct word_counts *counts); /* also after an init that failed */

#endif
