/* A config of the corpus keys alone, as the vocabulary and the id stream read it. */
#include "train/config.h"

#include <math.h>

static struct config plain_config(int format) {
    return (struct config){.corpus_path = "here",
                           .corpus_format = format,
                           .corpus_max_sentence = 1000,
                           .corpus_min_count = 1,
                           .corpus_vocab = "",
                           .min_rating = -INFINITY,
                           .train_report_seconds = 1};
}
