/* cache: the encoded corpus and its vocabulary in a directory; one process makes them, and any number of processes read them.
 *
 *   DIRECTORY/corpus.vocab.tsv   word TAB count
 *   DIRECTORY/corpus.ids         an id stream (idstream.h); its fingerprint covers the corpus' files, the keys and the vocabulary
 *   DIRECTORY/corpus.graph       instead of corpus.ids if the corpus is a graph: graph.h, with the same kind of fingerprint
 *   DIRECTORY/corpus.counts      the counts of pairs that GloVe is trained on (counts.h), made of the encoded corpus
 *   DIRECTORY/corpus.lock        exists while a process makes these files
 *
 * Both files are renamed into place when they are complete, and an encoded corpus is used only with the vocabulary that it was
 * made with. So a reader needs no lock, and a read-only directory can be used as long as its files fit the run. A process that
 * finds no fitting files makes them, or waits for another process that is making them. Two runs whose keys give different
 * streams overwrite each other's files: both work, but they should have different directories.
 */
#ifndef SPTX_CACHE_H
#define SPTX_CACHE_H

#include "counts.h"
#include "graph.h"
#include "idstream.h"

/* Opens the vocabulary and the id stream of this corpus with these options, or its graph if corpus.format is graph (then `stream` is zeroed,
 * otherwise `graph`). Reads them from `directory`, or makes them and stores them there. *reused: 1 if they were only read. The vocabulary has no
 * hash table, since no word of an encoded corpus is looked up; vocab_index() makes one. A corpus that is an id stream itself is mapped from its
 * own file, and `directory` is not used. Returns 0, or -1 after fail(). The caller must release vocabulary, stream and graph, also after a
 * failure. */
int cache_open(const char *directory, struct corpus *corpus, const struct corpus_options *options, struct pool *pool,
               struct vocab *vocab, struct idstream *stream, struct graph *graph, int *reused);

/* Opens the counts of an encoded corpus, as an id stream: reads them from `directory` (*reused = 1), or makes and stores them there (*reused = 0).
 * Returns 0, or -1 after fail(); the caller must release *counts in both cases. */
int cache_counts(const char *directory, const struct counts_wanted *wanted, struct pool *pool, struct idstream *counts, int *reused);

/* Removes the cache's files from a directory; does nothing if there are none. Returns 0, or -1 after fail(). */
int cache_remove(const char *directory);

/* Returns 1 if `name` is one of the cache's files, or a file that a process left half written when it was killed. */
int cache_owns(const char *name);

#endif
