/* idstream: the corpus as 32-bit ids in one mapped file, sentence after sentence. Both backends train on it.
 *
 *   header (magic, version, how pairs are weighed, fingerprint, tokens, sentences, checksum of all that follows),
 *   ids u32[tokens] from byte 128, padding to 8, weights f32[tokens] and padding to 8 where pairs are weighed,
 *   starts u64[sentences + 1]
 *
 * Each id is a row of the vocabulary. A weight is finite and not negative: 0 of a list's own row, above 0 of an item. starts[0] is
 * 0, each sentence has a token or more, and starts[sentences] is tokens.
 * Opening reads all of it once, with all threads, and verifies all of this.
 */
#ifndef SPTX_IDSTREAM_H
#define SPTX_IDSTREAM_H

#include "base/file.h"
#include "base/file_map.h"
#include "piece_sum.h"
#include "vocab.h"

enum { IDSTREAM_HEADER = 128 };

struct idstream {
    const uint32_t *ids;    /* [tokens] */
    const uint64_t *starts; /* [sentences + 1] */
    const float *weights;   /* [tokens]; NULL: no item has a weight */
    enum pair_weights weighed; /* what they are */
    uint64_t tokens, sentences;
    uint64_t checksum; /* of ids, weights and starts; equal contents have equal checksums */
    struct file_map map;
};

/* Returns the bytes of a stream's file, and of its mapping. */
uint64_t idstream_bytes(uint64_t tokens, uint64_t sentences, int weighed);

/* Maps the stream that was made with a vocabulary of `rows` words. The fingerprint is the vocabulary's for a stream
 * that is a corpus itself, and encode_fingerprint() for one that was made of a corpus. Returns 0, or -1 after
 * fail(). */
int idstream_open(struct idstream *stream, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool);

/* Like idstream_open(), but does not check which corpus and vocabulary the stream was made of. `rows`: size of the vocabulary. */
int idstream_open_any(struct idstream *stream, const char *path, uint64_t rows, struct pool *pool);

/* Returns 1 with *stream open where `path` holds such a stream, otherwise 0 (no sentence is kept). */
int idstream_reuse(struct idstream *stream, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool);

void idstream_close(struct idstream *stream); /* harmless on a zeroed one */

/* Writes a stream. idstream_append() takes a whole sentence; idstream_put() takes any run of ids, and
 * idstream_end_sentence() says where sentences end, before or after those ids are put. Where `weighed` is set before the commit,
 * idstream_put_weights() takes a weight for each id, in their order, after all ids. */
struct idstream_writer {
    struct file_writer file;
    struct piece_sum sum;
    uint64_t *starts; /* [sentences + 1] */
    uint64_t sentences, capacity, tokens, weights;
    enum pair_weights weighed; /* the caller sets it */
};
int idstream_writer_open(struct idstream_writer *writer, const char *path);
int idstream_append(struct idstream_writer *writer, const uint32_t *ids, uint64_t count);
int idstream_put(struct idstream_writer *writer, const uint32_t *ids, uint64_t count);
int idstream_put_weights(struct idstream_writer *writer, const float *weights, uint64_t count);
int idstream_end_sentence(struct idstream_writer *writer, uint64_t end); /* before token `end` */
int idstream_writer_commit(struct idstream_writer *writer, uint64_t fingerprint);
void idstream_writer_abandon(struct idstream_writer *writer);

#endif
