/* word_counts: counts all words of a corpus, finds where each first occurs, and writes the corpus as numbers of words.
 *
 *   block -> a worker's tallies: the words that it has met early (tally.h), or -> 64 shards by hash, each with its own lock
 *         -> a word that is an integer: a table for integers that all threads share (integers.h)
 *         -> the number of each word, in the corpus' order (numbered.h)
 *
 * The number of an integer, which may have a prefix, is that integer; the numbers of all other words follow. Memory is about that
 * of the different words, and a 64th of the free memory at most for the tallies of all threads. Counts are sums and first positions
 * are minima, so they do not depend on the order or the size of blocks.
 */
#ifndef SPTX_WORD_COUNTS_H
#define SPTX_WORD_COUNTS_H

#include "base/pool.h"
#include "corpus.h"
#include "integers.h"
#include "numbered.h"
#include "vocab.h"
#include "words.h"

#include <pthread.h>
#include <stdint.h>

enum { WORD_SHARDS = 64, WORD_SHARD_BITS = 6 }; /* the highest 6 bits of a word's hash are its shard's number */

/* How often a word occurs, and where it occurs first. It has 12 bytes: there is one for each word that is counted. */
struct __attribute__((packed)) word_count {
    uint64_t count : 48;
    uint64_t first : 48; /* byte of the corpus at which the word first occurs */
};

/* The words whose hashes have the same highest bits. */
struct word_shard {
    pthread_mutex_t lock;
    struct words words;
    struct word_count *counts; /* [words.size], indexed by a word's number in `words` */
    uint64_t counts_capacity;
};

/* All words of one kind: words of the data, or names of lists. */
struct gathered_words;
struct word_counts {
    struct word_shard shards[WORD_SHARDS];
    struct integer_counts integers; /* the words that are integers below its size */
    struct gathered_words *lent; /* gathered words whose table the first shard borrows; word_counts_release() gives it back.
                                  * NULL: nothing is borrowed */
};

/* Words to count, and where to write the words' numbers. */
struct word_counts_wanted {
    struct word_counts *items, *names; /* zeroed; NULL: not counted. Words of a kind that is not counted have no number */
    const struct vocab *given;  /* not NULL: items are not counted, and the number of an item is its row in this vocabulary */
    struct numbered *numbered;  /* opened; NULL: no numbers are written */
};

/* Rewinds the corpus and counts its words, by options->format and min_rating. If order = given, every counted item must be a
 * number. Returns 0, or -1 after fail(). */
int word_counts_read(const struct word_counts_wanted *wanted, struct corpus *corpus, const struct corpus_options *options,
                     struct pool *pool);
void word_counts_release(struct word_counts *counts); /* may be called on a struct of zeros */

/* Returns one more than the highest number of a word. */
uint64_t word_counts_numbers(const struct word_counts *counts);
/* A word is `in_shard` of a shard, and has a number among all words. word_counts_number() computes the latter from the former; the two
 * functions after it compute the shard, and in_shard, from the number. The words of `lent` are all in shard 0, where in_shard is the
 * number. */
static inline uint64_t word_counts_number(const struct word_counts *counts, uint64_t shard, uint64_t in_shard) {
    return counts->lent ? in_shard : counts->integers.size + (in_shard << WORD_SHARD_BITS | shard);
}
static inline const struct word_shard *word_counts_shard(const struct word_counts *counts, uint64_t number) {
    return &counts->shards[counts->lent ? 0 : (number - counts->integers.size) & (WORD_SHARDS - 1)];
}
static inline uint64_t word_counts_in_shard(const struct word_counts *counts, uint64_t number) {
    return counts->lent ? number : (number - counts->integers.size) >> WORD_SHARD_BITS;
}
/* Returns 1 if the number is an integer of the table (whether it occurs or not) or that of a word in a shard. */
static inline int word_counts_has(const struct word_counts *counts, uint64_t number) {
    return number < counts->integers.size || word_counts_in_shard(counts, number) < word_counts_shard(counts, number)->words.size;
}
/* Returns the word of a number; an integer is written into `digits`. */
enum { WORD_DIGITS = 24 };
const char *word_counts_word(const struct word_counts *counts, uint64_t number, char digits[WORD_DIGITS], uint64_t *length);

#endif
