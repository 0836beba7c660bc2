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

/* Opens the id stream of a corpus. If the file `path` already has it (by its fingerprint), maps that file and sets *reused to 1;
 * otherwise encodes the corpus into it (atomically, with all threads) and sets *reused to 0. A corpus that is an id stream
 * itself is mapped from its own file, if it was made with this vocabulary. Returns 0, or -1 after fail(), also for a stream
 * without a token. */
int encode_open(struct idstream *stream, const char *path, struct corpus *corpus, const struct vocab *vocab,
                const struct corpus_options *options, struct pool *pool, int *reused);

/* Returns the fingerprint of the id stream that this corpus gives with these options and this vocabulary. */
uint64_t encode_fingerprint(const struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options);

/* Returns 1 if `name` is a working file that a killed process left behind when it encoded pairs into a file named `of`. Partial
 * files of `of` itself are recognized by file_is_partial() only. */
int encode_is_leftover(const char *name, const char *of);

#endif
