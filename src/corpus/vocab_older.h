/* vocab_older: keeps the words of an older run in the vocabulary of a corpus that lacks some of them (train.from_words = keep), as
 * gensim's build_vocab(update=True) does. A word of both counts what the two count together. */
#ifndef SPTX_VOCAB_OLDER_H
#define SPTX_VOCAB_OLDER_H

#include "vocab.h"

/* Adds the words of `older` to `vocab`, each of which finds its words. Where words are ordered by frequency, all of them are; in any
 * other order the added ones come behind those of the corpus. Names of lists are added only where the options give lists rows.
 * vocab->older gets how many words were added. Returns 0, or -1 after fail(); the caller then releases `vocab`. */
int vocab_keep_older(struct vocab *vocab, const struct vocab *older, const struct corpus_options *options);

#endif
