/* plain_options: options of a corpus at "here", by its format. No word or pair is left out by its count or rating. */
#include "corpus/corpus.h"

#include <math.h>

static struct corpus_options plain_options(enum corpus_format format) {
    return (struct corpus_options){.path = "here",
                                   .vocab = "",
                                   .format = format,
                                   .look = LOOK_AUTO,
                                   .max_sentence = 1000,
                                   .min_count = 1,
                                   .min_rating = -INFINITY,
                                   .report_seconds = 1};
}
