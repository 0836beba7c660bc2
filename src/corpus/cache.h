/* cache: the encoded corpus and its vocabulary in a directory, made by one process and read by any number.
 *
 *   DIRECTORY/corpus.vocab.tsv   word TAB count
 *   DIRECTORY/corpus.ids         idstream.h; its fingerprint is that of the corpus' files, the keys and this vocabulary
 *   DIRECTORY/corpus.graph       graph.h, instead of the ids, where the corpus is a graph; its fingerprint is of the same kind
 *   DIRECTORY/corpus.lock        while a process makes these
 *
 * Both files appear whole or not at all, and an encoded corpus is only used with the vocabulary that it was made with.
 * So reading takes no lock, and a directory that cannot be written serves as long as its files fit. A process that
 * finds none that fit makes them, or waits for the one that does. Runs whose keys make different streams replace each
 * other's files in turn: they work but share nothing, and are better given directories of their own.
 */
#ifndef SPTX_CACHE_H
#define SPTX_CACHE_H

#include "graph.h"
#include "idstream.h"

/* Opens the vocabulary and the stream of this corpus under these keys, or its graph where corpus.format is one (the
 * other of the two stays zeroed), from DIRECTORY or made into it. *reused: 1 where nothing was made. A corpus that is
 * an id stream itself is mapped where it is, and needs no directory. Returns -1 after fail(); the caller releases all
 * three in any case. */
int cache_open(const char *directory, struct corpus *corpus, const struct corpus_options *options, struct pool *pool,
               struct vocab *vocab, struct idstream *stream, struct graph *graph, int *reused);

/* Removes the cache's files from a directory. Missing files, and a missing directory, are no error. Returns 0, or -1 after
 * fail(). */
int cache_remove(const char *directory);

/* Returns 1 for the names of these files, and of files that a killed process leaves while it makes them. */
int cache_owns(const char *name);

#endif
