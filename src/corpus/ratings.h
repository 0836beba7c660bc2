/* ratings: looks at the third column of pairs, by their files' first bytes. Without corpus.min_rating all pairs count
 * alike, so that a rating of one star trains as a like. */
#ifndef SPTX_RATINGS_H
#define SPTX_RATINGS_H

#include "corpus.h"

/* Prints one line that says so where ratings differ and the options leave none out. Returns 0, or -1 after fail(). */
int ratings_note(const struct corpus *corpus, const struct corpus_options *options);

#endif
