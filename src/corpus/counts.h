/* counts: counts of pairs (cooccur.h), or the weighted arcs of a graph, as an id stream with weights, which GloVe is trained on.
 *
 *   a sentence   row, column, column, ..   at most `together` columns of one row; the next sentence goes on with that row or the next row
 *   weights      0,   count,  count,  ..
 *
 * So a sentence is a line of corpus.format = adjacency: its first id is the target, and the others are contexts.
 */
#ifndef SPTX_COUNTS_H
#define SPTX_COUNTS_H

#include "cooccur.h"
#include "graph.h"
#include "idstream.h"

struct counts_writer {
    struct idstream_writer out;
    int fd;           /* descriptor of a nameless file of the weights, which are copied behind the ids at the end */
    const char *path; /* of the stream; owned by the caller */
    uint32_t *ids;    /* ids that are not written yet, and their weights */
    float *weights;
    uint64_t used, written; /* used: entries in the two buffers; written: entries before them */
    uint32_t together, row, held; /* together: most columns of a sentence; row, held: the last sentence's row, and its number of columns */
};

/* Begins a stream. counts_writer_put() adds a pair; all pairs of a row must be added one after the other. counts_writer_commit() writes the stream
 * with this fingerprint, and counts_writer_abandon() must be called in any case. */
int counts_writer_open(struct counts_writer *writer, const char *path, uint32_t together);
int counts_writer_put(struct counts_writer *writer, uint32_t row, uint32_t column, float count);
int counts_writer_commit(struct counts_writer *writer, uint64_t fingerprint);
void counts_writer_abandon(struct counts_writer *writer);

/* The input of counting: the encoded corpus, and the keys of [examples] that change the result. */
struct counts_wanted {
    const struct idstream *text; /* a text whose pairs are counted; or */
    const struct graph *graph;   /* a graph whose arcs have weights */
    uint64_t words;              /* number of rows of the vocabulary */
    uint32_t window, together;
    uint64_t memory;             /* as cooccur_wanted.memory */
};
/* Returns the fingerprint that the stream of these counts has. */
uint64_t counts_fingerprint(const struct counts_wanted *wanted);
/* Makes the stream's file, atomically. Returns 0, or -1 after fail(). */
int counts_make(const char *path, const struct counts_wanted *wanted, struct pool *pool);

#endif
