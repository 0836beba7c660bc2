/* cache: the encoded corpus and its vocabulary in a directory, made by one process and read by any number.
 *
 *   DIRECTORY/corpus.vocab.tsv   word TAB count
 *   DIRECTORY/corpus.ids         idstream.h; its fingerprint is that of the corpus' files, the keys and this vocabulary
 *   DIRECTORY/corpus.lock        while a process makes the two
 *
 * Both files appear whole or not at all, and a stream is only used with the vocabulary that it was made with. So reading takes
 * no lock, and a directory that cannot be written serves as long as its files fit. A process that finds none that fit makes them,
 * or waits for the one that does. Runs whose keys make different streams replace each other's files in turn: they work but share
 * nothing, and are better given directories of their own.
 */
#ifndef SPTX_CACHE_H
#define SPTX_CACHE_H

#include "idstream.h"

/* Opens the vocabulary and the stream of this corpus under these keys, from DIRECTORY or made into it. *reused: 1 where
 * nothing was made. A corpus that is an id stream itself is mapped where it is, and needs no directory. Returns -1
 * after fail(); the caller releases both in any case. */
int cache_open(const char *directory, struct corpus *corpus, const struct corpus_options *options, struct pool *pool,
               struct vocab *vocab, struct idstream *stream, int *reused);

/* Returns 1 for the names of the three files, and of what a killed process left of making them. */
int cache_owns(const char *name);

#endif
