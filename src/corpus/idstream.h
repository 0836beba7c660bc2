/* idstream: the corpus as 32-bit ids in one mapped file, sentence after sentence: what both backends train on.
 *
 *   header (magic, version, fingerprint, tokens, sentences, checksum of all that follows),
 *   ids u32[tokens] from byte 128, padding to 8, starts u64[sentences + 1]
 *
 * Each id is a row of the vocabulary. starts[0] is 0, each sentence has a token or more, and starts[sentences] is tokens.
 * Opening reads all of it once, with all threads, and believes nothing else.
 */
#ifndef SPTX_IDSTREAM_H
#define SPTX_IDSTREAM_H

#include "base/file.h"
#include "base/file_map.h"
#include "vocab.h"

enum { IDSTREAM_HEADER = 128 };

struct idstream {
    const uint32_t *ids;    /* [tokens] */
    const uint64_t *starts; /* [sentences + 1] */
    uint64_t tokens, sentences;
    uint64_t checksum; /* of ids and starts: the same for the same content */
    struct file_map map;
};

/* Bytes of a stream's file, and of its mapping. */
uint64_t idstream_bytes(uint64_t tokens, uint64_t sentences);

/* Maps the stream that was made with a vocabulary of `rows` words. Its fingerprint is the vocabulary's where it is a corpus
 * itself, encode_fingerprint() where it was made of one. 0, or -1 after fail(). */
int idstream_open(struct idstream *stream, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool);

/* Whether `path` holds such a stream: 1 with *stream open, 0 otherwise (no sentence is kept). */
int idstream_reuse(struct idstream *stream, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool);

void idstream_close(struct idstream *stream); /* harmless on a zeroed one */

/* Writing one: idstream_append() takes a whole sentence; idstream_put() takes any run of ids, and idstream_end_sentence() says
 * where sentences end, before or after those ids are put. */
struct idstream_writer {
    struct file_writer file;
    struct XXH3_state_s *piece, *sum; /* of the bytes since a piece began; of the pieces' sums */
    uint64_t in_piece;                /* bytes */
    uint64_t *starts;                 /* [sentences + 1] */
    uint64_t sentences, capacity, tokens;
};
int idstream_writer_open(struct idstream_writer *writer, const char *path);
int idstream_append(struct idstream_writer *writer, const uint32_t *ids, uint64_t count);
int idstream_put(struct idstream_writer *writer, const uint32_t *ids, uint64_t count);
int idstream_end_sentence(struct idstream_writer *writer, uint64_t end); /* before token `end` */
int idstream_writer_commit(struct idstream_writer *writer, uint64_t fingerprint);
void idstream_writer_abandon(struct idstream_writer *writer);

#endif
