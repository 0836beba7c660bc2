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

/* Opens the vocabulary and the id stream of this corpus with these options, or its graph if corpus.format is graph (the unused
 * one of `stream` and `graph` is zeroed). They are read from `directory`, or made and stored there. *reused: 1 if nothing had to
 * be made. A corpus that is an id stream itself is mapped from its own file, and `directory` is not used. Returns 0, or -1 after
 * fail(). The caller must release all three in both cases. */
int cache_open(const char *directory, struct corpus *corpus, const struct corpus_options *options, struct pool *pool,
               struct vocab *vocab, struct idstream *stream, struct graph *graph, int *reused);

/* Removes the cache's files from a directory. It is no error if the files or the directory do not exist. Returns 0, or -1 after
 * fail(). */
int cache_remove(const char *directory);

/* Returns 1 if `name` is one of the cache's files, or a file that a process left half written when it was killed. */
int cache_owns(const char *name);

#endif
