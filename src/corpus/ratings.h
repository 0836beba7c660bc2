/* ratings: the third values of pairs. Without corpus.min_rating all pairs count alike, so that a rating of one star trains as a
 * like: one line says so where ratings differ. Of files the first bytes are looked at; what a program gives is met pair by pair. */
#ifndef SPTX_RATINGS_H
#define SPTX_RATINGS_H

#include <stdint.h>

struct corpus;
struct corpus_options;

/* The ratings of a corpus: their range, and the first ones. */
struct ratings {
    double *values; /* [count], at most RATINGS_KEPT */
    double least, most; /* of all that were met; nothing where count is 0 */
    uint64_t count, capacity;
    char name[32]; /* of their column, in the first file's header; "" where it has none */
};
enum { RATINGS_KEPT = 1 << 20 };

/* Counts one more rating; NaN is none. Returns 0, or -1 after fail(). */
int ratings_meet(struct ratings *ratings, double rating);
/* Prints one line that says that all count alike, where ratings differ. */
void ratings_say(const struct ratings *ratings);
void ratings_release(struct ratings *ratings); /* harmless on a zeroed one */

/* Looks at the pairs of files, or at what a program has given, and says what ratings_say() says where the options leave no pair out. Returns 0, or -1 after fail(). */
int ratings_note(const struct corpus *corpus, const struct corpus_options *options);

#endif
