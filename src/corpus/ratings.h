/* ratings: what the third column of pairs holds, by the first bytes of their files. Pairs without corpus.min_rating
 * count alike whatever they say there, so that a rating of one star trains as a like. */
#ifndef SPTX_RATINGS_H
#define SPTX_RATINGS_H

#include "corpus.h"

/* Prints one line that says so where ratings differ and the options leave none out. 0, or -1 after fail(). */
int ratings_note(const struct corpus *corpus, const struct corpus_options *options);

#endif
