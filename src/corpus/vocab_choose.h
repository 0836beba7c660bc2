/* vocab_choose: which of the counted words become rows, and in which order. */
#ifndef SPTX_VOCAB_CHOOSE_H
#define SPTX_VOCAB_CHOOSE_H

#include "vocab.h"
#include "word_counts.h"

/* Fills a zeroed vocabulary as the options say (min_count, max_vocab, order), but for its index. The words in `counts`
 * stay; what counting held beside them is freed. corpus_bytes: for the sentence where no word is left. */
int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options,
                 uint64_t corpus_bytes);

#endif
