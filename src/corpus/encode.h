/* encode: encodes a corpus as an id stream, by a vocabulary. The sentences of the stream, by format:
 *
 *   text        lines; a line is cut after every corpus.max_sentence tokens that are kept
 *   lists       lines without the list's name
 *   adjacency   lines; a line whose target is not in the vocabulary is dropped
 *   pairs       one for each list: its items in the order met; lists are in the order of their first mention
 *   triples     head, relation, tail (idstream.h); a triple whose head or tail is not in the vocabulary is dropped
 *
 * If lists have rows (corpus_options.list_rows), the sentence of a list begins with the list's id, like a target in adjacency.
 * Words that are not in the vocabulary are left out. Sentences that are then empty are left out, too.
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

/* Returns 1 if `name` is a working file that a killed process of an earlier version left when it encoded pairs into a file named
 * `of`. Partial
 * files of `of` itself are recognized by file_is_partial() only. */
int encode_is_leftover(const char *name, const char *of);

#endif
