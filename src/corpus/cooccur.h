/* cooccur: how often words occur near one another in a text, as GloVe counts it (Pennington et al., 2014).
 *
 *   two words of a sentence, d words apart, d <= window      1 / d is added to the count of the pair, in both directions
 *   a word and itself                                        2 / d
 *
 * Counts are integers: multiples of 1 / unit, where unit is the least common multiple of 1 .. window. So the order in which threads
 * add changes nothing. From a window of COOCCUR_EXACT + 1 words on, 1 / d is rounded to a multiple of 1 / 232,792,560.
 *
 *   pairs of two frequent words (rows below `frequent`)   a triangle of 32-bit counts; an overflow becomes an event of 2^32 units
 *   all other pairs                                       events (row, column, distance) of 64 bits, sorted by a thread when its memory
 *                                                         is full, added up, and written to a nameless file as a sorted run
 *
 * At the end the triangle, the runs and the events in memory are merged in the order of rows: by all threads, each a block of rows, or by one thread
 * if runs are on disk.
 */
#ifndef SPTX_COOCCUR_H
#define SPTX_COOCCUR_H

#include "base/pool.h"

#include <stdint.h>

enum { COOCCUR_EXACT = 22 };

/* A text to count: sentences of ids below `words`. */
struct cooccur_text {
    const uint32_t *ids;    /* [tokens] */
    const uint64_t *starts; /* [sentences + 1] */
    uint64_t tokens, sentences, words;
};

struct cooccur_wanted {
    uint32_t window;
    int one_sided;     /* 1: the row of a pair is its earlier word, the column its later one; 0: each pair is counted in both directions */
    int flat;          /* 1: a pair adds 1 at any distance, instead of 1 / distance */
    uint64_t memory;   /* most bytes of memory for counting; 0: half of the available memory */
    uint64_t frequent; /* number of frequent words; 0: as many as a quarter of the memory allows, but at most COOCCUR_FREQUENT */
    const char *path;  /* runs are written to a nameless file in the directory that contains this path */
};
enum { COOCCUR_FREQUENT = 10000 };

/* How often two words occur together: units / cooccur_unit(). */
struct cooccur_pair {
    uint32_t row, column;
    uint64_t units;
};

struct cooccur;

/* Counts all pairs of a text with all threads. Returns NULL after fail(). */
struct cooccur *cooccur_open(const struct cooccur_text *text, const struct cooccur_wanted *wanted, struct pool *pool);
/* Sets *pair to the next pair, in rising order of (row, column). Returns 1; 0 at the end; -1 after fail(). */
int cooccur_next(struct cooccur *cooccur, struct cooccur_pair *pair);
uint64_t cooccur_unit(const struct cooccur *cooccur);
uint64_t cooccur_runs(const struct cooccur *cooccur); /* returns how many sorted runs were written to disk */
void cooccur_close(struct cooccur *cooccur);          /* may be called with NULL */

#endif
