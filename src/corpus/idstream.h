/* idstream: a corpus as 32-bit ids in one mapped file, sentence after sentence. Both backends train on it.
 *
 *   header (magic, version, enum pair_weights, fingerprint, tokens, sentences, checksum of all that follows, triples),
 *   ids u32[tokens] from byte 128, padding to 8; if pairs have weights: weights f32[tokens], padding to 8;
 *   starts u64[sentences + 1]
 *
 * Each id is a row of the vocabulary. A weight is 0 for a list's own id, and positive and finite for an item. Sentence i is the
 * tokens from starts[i] up to starts[i + 1]; it has at least one. starts[0] is 0, and starts[sentences] is `tokens`.
 *
 * A stream of triples contains head, relation and tail of each triple, sorted by these ids, each triple once. Its file has the starts of one sentence
 * only. Opening a stream reads the whole file once, with all threads, and checks all of this.
 */
#ifndef SPTX_IDSTREAM_H
#define SPTX_IDSTREAM_H

#include "base/file.h"
#include "base/pool.h"
#include "vocab.h"

#include <stdint.h>

/* piece_sum: a checksum of a file's bytes that threads compute together. The file is cut into pieces of SUM_PIECE bytes; the
 * checksum is the XXH3 of the pieces' XXH3s. */

enum { SUM_PIECE = 1 << 18 }; /* number of bytes of a piece */

/* ---- while a file is written ---- */

struct piece_sum {
    struct XXH3_state_s *piece, *all; /* piece: hash of the current piece so far; all: hash of the hashes of all earlier pieces */
    uint64_t in_piece;                /* number of bytes of the current piece that were added so far */
};
int piece_sum_open(struct piece_sum *sum); /* call piece_sum_close() even if this fails */
void piece_sum_add(struct piece_sum *sum, const void *data, uint64_t length);
uint64_t piece_sum_end(struct piece_sum *sum); /* returns the checksum of all bytes */
void piece_sum_close(struct piece_sum *sum);   /* may be called on a struct of zeros */

/* ---- of an existing file ---- */

/* Examines one piece of a file, its bytes from .. to - 1; called on any thread. */
typedef void piece_look(void *user, uint64_t from, uint64_t to);
/* Computes the checksum with all threads. Each piece is passed to `look` (unless it is NULL) while it is in the cache. Returns 0, or -1 after
 * fail(). */
int piece_sum_of(const char *bytes, uint64_t size, struct pool *pool, piece_look *look, void *user, uint64_t *sum);

enum { IDSTREAM_HEADER = 128 };

/* An opened id stream. */
struct idstream {
    const uint32_t *ids;    /* [tokens] */
    const uint64_t *starts; /* [sentences + 1] index in ids of each sentence's first token; NULL: the sentences are triples */
    const float *weights;   /* [tokens]; NULL: no item has a weight */
    enum pair_weights weighed; /* how weights were computed from ratings */
    uint64_t tokens, sentences;
    uint64_t triples; /* number of triples; 0: not a stream of triples */
    uint64_t checksum; /* checksum of ids, weights and starts; streams with equal contents have equal checksums */
    struct file_map map;
};

/* Returns the size of a stream's file in bytes. weighed: 1 if it has weights. */
uint64_t idstream_bytes(uint64_t tokens, uint64_t sentences, int weighed);

/* Maps a stream. `rows`: size of its vocabulary. `fingerprint`: the fingerprint that the stream's header must contain:
 * encode_fingerprint() if it was encoded from a corpus; the vocabulary's fingerprint if the stream is itself the corpus. Returns
 * 0, or -1 after fail(). */
int idstream_open(struct idstream *stream, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool);

/* Works like idstream_open(), but accepts a stream with any fingerprint. */
int idstream_open_any(struct idstream *stream, const char *path, uint64_t rows, struct pool *pool);

/* If `path` is a stream with this fingerprint, opens *stream and returns 1; otherwise returns 0. Does not call fail(). */
int idstream_reuse(struct idstream *stream, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool);

/* Returns 1 if the file is a stream whose header contains this checksum, even if the rest is damaged; 0 if it contains another one or the file
 * does not exist; -1 after fail(). */
int idstream_has(const char *path, uint64_t checksum);

void idstream_close(struct idstream *stream); /* may be called on a struct of zeros */

/* A stream that is being written. idstream_append() adds a whole sentence. Or idstream_put() adds any number of ids, and
 * idstream_end_sentence() says where a sentence ends, before or after its ids are added. If `weighed` is set before the commit,
 * idstream_put_weights() must add one weight for each id, in the same order, after all ids.
 *
 * Instead, several threads may write all ids by idstream_put_at() and, after `tokens` is set, all weights by idstream_put_weights_at(); `pool`
 * must then be set before the commit, which reads the whole stream for its checksum. */
struct idstream_writer {
    struct file_writer file;
    struct piece_sum sum;
    uint64_t *starts; /* [sentences + 1] */
    uint64_t sentences, capacity, tokens, weights;
    enum pair_weights weighed; /* set by the caller, before the commit */
    struct pool *pool;         /* set by the caller if idstream_put_at() writes the ids; otherwise NULL */
    int triples;               /* set by the caller before the commit. 1: the tokens are triples, and no sentence was ended */
};
int idstream_writer_open(struct idstream_writer *writer, const char *path);
int idstream_append(struct idstream_writer *writer, const uint32_t *ids, uint64_t count);
int idstream_put(struct idstream_writer *writer, const uint32_t *ids, uint64_t count);
/* Writes ids first .. first + count - 1 of the stream. Any thread may call it. */
int idstream_put_at(struct idstream_writer *writer, uint64_t first, const uint32_t *ids, uint64_t count);
int idstream_put_weights_at(struct idstream_writer *writer, uint64_t first, const float *weights, uint64_t count);
int idstream_put_weights(struct idstream_writer *writer, const float *weights, uint64_t count);
int idstream_end_sentence(struct idstream_writer *writer, uint64_t end); /* the sentence ends before token `end` */
int idstream_writer_commit(struct idstream_writer *writer, uint64_t fingerprint);
void idstream_writer_abandon(struct idstream_writer *writer);

#endif
