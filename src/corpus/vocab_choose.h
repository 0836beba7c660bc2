/* vocab_choose: chooses which of the counted words become rows, and in which order. */
#ifndef SPTX_VOCAB_CHOOSE_H
#define SPTX_VOCAB_CHOOSE_H

#include "vocab.h"
#include "word_counts.h"

/* Fills a zeroed vocabulary by the options (min_count, max_vocab, order), but builds no hash table. The shards of `counts` keep
 * their words; their counts and hash tables are freed. corpus_bytes is the corpus' size, for the message if no word is left.
 * Returns 0, or -1 after fail(). */
int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options,
                 uint64_t corpus_bytes);

#endif
