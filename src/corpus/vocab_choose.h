/* vocab_choose: chooses which of the counted words become rows, and in which order. */
#ifndef SPTX_VOCAB_CHOOSE_H
#define SPTX_VOCAB_CHOOSE_H

#include "vocab.h"
#include "word_counts.h"

/* Fills a zeroed vocabulary by the options (min_count, max_vocab, order), but builds no hash table. The shards of `counts` keep
 * their words; their counts and hash tables are freed. rows: if not NULL, *rows is a new array with the row of each number of a
 * word (word_counts.h), WORDS_ABSENT for a word that is left out; the caller frees it. corpus_bytes is the corpus' size, for the
 * message if no word is left. Returns 0, or -1 after fail(). */
int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options, uint64_t corpus_bytes,
                 struct pool *pool, uint32_t **rows);

#endif
