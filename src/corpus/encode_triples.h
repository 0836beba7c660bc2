/* encode_triples: writes triples as an id stream (idstream.h), sorted by their ids and each of them once. */
#ifndef SPTX_ENCODE_TRIPLES_H
#define SPTX_ENCODE_TRIPLES_H

#include "idstream.h"

/* All triples in the corpus' order, as numbers of words: head i is heads[i * stride], its tail is tails[i * stride], its relation
 * is relations[i * relation_stride]. */
struct triples_met {
    uint64_t count, stride, relation_stride;
    const uint32_t *heads, *relations, *tails;
    const uint32_t *rows;          /* by number: rows of entities; NULL: a number is its row */
    const uint32_t *relation_rows; /* by number: rows of relations */
    uint64_t entities;             /* rows of entities: 0 .. entities - 1 */
    uint64_t at_once;              /* most triples that are sorted in memory at a time; 0: a third of the free memory */
};

/* Writes the triples whose terms all have rows. Says how many are left out, and how many are repeated. Returns 0, or -1 after
 * fail(). */
int encode_triples(struct idstream_writer *writer, const struct triples_met *met, struct pool *pool);

#endif
