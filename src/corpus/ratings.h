/* ratings: tells the user that ratings of pairs have no effect. Without corpus.min_rating and corpus.weights a pair with one star
 * trains like a pair with five, so if ratings differ, one line says so. Of files only the first bytes are examined; of a
 * program's pairs all are. */
#ifndef SPTX_RATINGS_H
#define SPTX_RATINGS_H

#include <stdint.h>

struct corpus;
struct corpus_options;

/* The first ratings of a corpus, and the range of all its ratings. */
struct ratings {
    double *values; /* [count], at most RATINGS_KEPT */
    double least, most; /* smallest and largest rating so far; not set while count is 0 */
    uint64_t count, capacity, missing; /* count: number of stored ratings; missing: number of pairs without a rating */
    char name[32]; /* name of the rating column in the header of the first file; "" if it has no header */
};
enum { RATINGS_KEPT = 1 << 20 };

/* Adds a rating; NaN means no rating and is only counted. Returns 0, or -1 after fail(). */
int ratings_meet(struct ratings *ratings, double rating);
/* If the ratings differ, prints a line with their range, which says that they have no effect and which key would use them. */
void ratings_say(const struct ratings *ratings);
void ratings_release(struct ratings *ratings); /* may be called on a struct of zeros */

/* Calls ratings_say() for the ratings in the first bytes of the corpus' files, or for the ratings that a program has given; does
 * nothing if corpus.min_rating or corpus.weights uses ratings. Returns 0, or -1 after fail(). */
int ratings_note(const struct corpus *corpus, const struct corpus_options *options);

/* Returns 1 if corpus.weights may be tried: in the first bytes of the files every pair has a rating above 0, and the ratings
 * differ. Returns 0 otherwise, and always for pairs that a program has given; -1 after fail(). */
int ratings_may_weigh(const struct corpus *corpus, const struct corpus_options *options);

#endif
