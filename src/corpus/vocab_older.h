/* vocab_older: adds the words of an older run to the vocabulary of a corpus (train.from_words = keep), as gensim's
 * build_vocab(update=True) does. A word that both have gets the sum of both counts. */
#ifndef SPTX_VOCAB_OLDER_H
#define SPTX_VOCAB_OLDER_H

#include "vocab.h"

/* Adds the words of the vocabulary `older` to `vocab`; both must have hash tables (vocab_index). With corpus.order = frequency,
 * all words are then sorted by their new counts; otherwise the added words follow those of the corpus. Names of lists are added
 * only if options->list_rows is 1. Stores the number of added words and lists in vocab->older. Returns 0, or -1 after fail();
 * the caller then releases `vocab`. */
int vocab_keep_older(struct vocab *vocab, const struct vocab *older, const struct corpus_options *options);

#endif
