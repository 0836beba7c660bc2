/* encode: turns a corpus and its vocabulary into an id stream. Its sentences are
 *
 *   text        lines, cut every corpus.max_sentence kept tokens
 *   lists       lines without their name
 *   adjacency   lines; one whose target is not in the vocabulary is dropped
 *   pairs       the items of one list, in the order met; lists by first mention
 *
 * Where lists have rows of their own (corpus_options.list_rows), a list is like a line of adjacency: its own id, then its
 * items. Words that are not in the vocabulary are left out, and so are sentences that are then empty.
 */
#ifndef SPTX_ENCODE_H
#define SPTX_ENCODE_H

#include "idstream.h"

/* Maps `path` where it holds this very stream (by its fingerprint), or encodes the corpus into it (atomically, with all
 * threads). *reused tells which. A corpus that is an id stream itself is mapped where it is, if it was made with this
 * vocabulary. A stream without a token is a failure. */
int encode_open(struct idstream *stream, const char *path, struct corpus *corpus, const struct vocab *vocab,
                const struct corpus_options *options, struct pool *pool, int *reused);

/* Returns the fingerprint of this corpus' id stream, under these keys (including keys of the vocabulary) and with this
 * vocabulary. */
uint64_t encode_fingerprint(const struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options);

/* Returns 1 for the name of a working file that a killed process left of encoding into a file named `of`;
 * file_is_partial() tells its partial file. */
int encode_is_leftover(const char *name, const char *of);

#endif
