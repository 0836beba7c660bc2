/* vocab_choose: chooses which of the counted words become rows, and in which order. */
#ifndef SPTX_VOCAB_CHOOSE_H
#define SPTX_VOCAB_CHOOSE_H

#include "vocab.h"
#include "word_counts.h"

/* Fills a zeroed vocabulary, but for its index, by the options (min_count, max_vocab, order). The words in `counts`
 * stay; their other arrays are freed. corpus_bytes is for the sentence where no word is left. */
int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options,
                 uint64_t corpus_bytes);

#endif
