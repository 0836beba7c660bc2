/* encode: turns a corpus and its vocabulary into an id stream. Its sentences are
 *
 * A sentence of the stream is
 *
 *   text        a line, cut every corpus.max_sentence kept tokens
 *   lists       a line without its name
 *   adjacency   a line; one whose target is not in the vocabulary is dropped
 *   pairs       the items of one list in the order met; lists come by first mention
 *
 * Where lists have rows of their own (corpus_options.list_rows) a list is like a line of adjacency: its own id, then its items.
 * Words that are not in the vocabulary are left out; sentences that are left with none are too.
 */
#ifndef SPTX_ENCODE_H
#define SPTX_ENCODE_H

#include "idstream.h"

/* Maps `path` where it holds this very stream (by its fingerprint), or encodes the corpus into it (atomically, with all
 * threads). *reused tells which. A corpus that is an id stream itself is mapped where it is, if it was made with this
 * vocabulary. A stream without a token is a failure. */
int encode_open(struct idstream *stream, const char *path, struct corpus *corpus, const struct vocab *vocab,
                const struct corpus_options *options, struct pool *pool, int *reused);

/* A number that changes with the corpus, with the keys that matter (those that make the vocabulary too) and with the vocabulary:
 * an encoded stream is believed only where its own is the same. */
uint64_t encode_fingerprint(const struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options);

/* 1 for the name of a file that a killed process left of encoding into a file named `of`, beside a partial one. */
int encode_is_leftover(const char *name, const char *of);

#endif
