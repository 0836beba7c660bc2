/* ratings: the ratings of pairs. Without corpus.min_rating a pair with one star trains like a pair with five, so if ratings differ,
 * one printed line says that they have no effect. Files are sampled by their first bytes; a program's pairs are all counted. */
#ifndef SPTX_RATINGS_H
#define SPTX_RATINGS_H

#include <stdint.h>

struct corpus;
struct corpus_options;

/* The first ratings of a corpus, and the range of all. */
struct ratings {
    double *values; /* [count], at most RATINGS_KEPT */
    double least, most; /* smallest and largest rating so far; not set if count is 0 */
    uint64_t count, capacity, missing; /* missing: pairs without a rating */
    char name[32]; /* name of the rating column in the first file's header; "" if it has none */
};
enum { RATINGS_KEPT = 1 << 20 };

/* Adds a rating; NaN means no rating and is only counted. Returns 0, or -1 after fail(). */
int ratings_meet(struct ratings *ratings, double rating);
/* If the ratings differ, prints one line: their range, and that all pairs count alike. */
void ratings_say(const struct ratings *ratings);
void ratings_release(struct ratings *ratings); /* harmless on a zeroed one */

/* If corpus.min_rating and corpus.weights are none, calls ratings_say() for the ratings of the corpus: the ratings in the
 * first bytes of its files, or the ratings that a program has given. Returns 0, or -1 after fail(). */
int ratings_note(const struct corpus *corpus, const struct corpus_options *options);

/* Returns 1 if corpus.weights may be tried: the pairs in the first bytes of the files all have a rating above 0, and the ratings
 * differ. 0 otherwise, and for pairs that a program has given; -1 after fail(). */
int ratings_may_weigh(const struct corpus *corpus, const struct corpus_options *options);

#endif
