/* idstream: the corpus as 32-bit ids in one mapped file, sentence after sentence: what both backends train on.
 *
 *   header (magic, version, fingerprint of corpus + keys + vocabulary, tokens, sentences, XXH3 of all that follows),
 *   ids u32[tokens] from byte 128, padding to 8, starts u64[sentences + 1]
 *
 * text: a line, cut every corpus.max_sentence kept tokens; lists: a line without its name; adjacency: a line, dropped
 * where its target is not in the vocabulary; pairs: the items of one list, in the order met, lists by first mention.
 * Words that are not in the vocabulary are left out; sentences that are left with none are too.
 */
#ifndef SPTX_IDSTREAM_H
#define SPTX_IDSTREAM_H

#include "base/file.h"
#include "vocab.h"

enum { IDSTREAM_HEADER = 128 };

struct idstream {
    const uint32_t *ids;    /* [tokens] */
    const uint64_t *starts; /* [sentences + 1] */
    uint64_t tokens, sentences;
    uint64_t checksum; /* of ids and starts: the same for the same content */
    struct file_map map;
};

/* Maps `path` where it holds this very stream (fingerprint), or encodes the corpus into it (atomically, all threads).
 * *reused tells which. A corpus that is an id stream itself is mapped where it lies, if it was made with this
 * vocabulary. A stream without a token is a failure. */
int idstream_open(struct idstream *stream, const char *path, struct corpus *corpus, const struct vocab *vocab,
                  const struct corpus_options *options, struct pool *pool, int *reused);
void idstream_close(struct idstream *stream); /* harmless on a zeroed one */

/* What the stream of this corpus, these keys (those that make the vocabulary too) and this vocabulary is checked by. */
uint64_t idstream_fingerprint(const struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options);

/* Whether `path` maps as a stream with this fingerprint: 1 with *stream open, 0 otherwise (no sentence is kept). */
int idstream_reuse(struct idstream *stream, const char *path, uint64_t fingerprint);

/* Writing one directly, for generators: ids are given sentence by sentence. The fingerprint of a stream that is to be
 * used as a corpus itself is its vocabulary's. */
struct idstream_writer {
    struct file_writer file;
    struct XXH3_state_s *sum;
    uint64_t *starts; /* [sentences + 1] */
    uint64_t sentences, room, tokens;
};
int idstream_writer_open(struct idstream_writer *writer, const char *path);
int idstream_append(struct idstream_writer *writer, const uint32_t *ids, uint64_t count);
int idstream_writer_commit(struct idstream_writer *writer, uint64_t fingerprint);
void idstream_writer_abandon(struct idstream_writer *writer);

#endif
