/* encode_block: the tokens of one block as ids, with the ends of its lines. What crosses blocks (an open sentence, a target in
 * an earlier block, a list's number) is left to encode.c, which takes blocks in file order. */
#ifndef SPTX_ENCODE_BLOCK_H
#define SPTX_ENCODE_BLOCK_H

#include "corpus.h"
#include "vocab.h"

#include <stdint.h>

/* The name of a list: block.bytes[at .. at + length). */
struct list_name {
    uint64_t at, length;
};

/* A block and what it encodes to. */
struct encoded {
    struct corpus_block block;
    uint32_t *ids; /* [count] */
    uint64_t count, ids_capacity;
    uint64_t *ends; /* [lines]: line i, which ends in this block, has the ids before ids[ends[i]] */
    uint64_t lines, ends_capacity;
    struct list_name *names; /* [count]: the list of each id; of scattered lists only */
    uint64_t names_capacity;
    int target_lost; /* with targets: the line left open began in this block and its target is not in the vocabulary */
    int ready;       /* in the ring: waits for its turn */
};
void encoded_release(struct encoded *encoded); /* harmless on a zeroed one */

/* 1 where a sentence is a target and its contexts: the format says so, or lists have rows. */
static inline int encode_has_targets(const struct corpus_options *options) {
    return corpus_formats[options->format].targets || options->list_rows;
}

/* Encodes encoded->block; what an earlier block left in the arrays is overwritten. 0, or -1 after fail(). */
int encode_block(struct encoded *encoded, const struct vocab *vocab, const struct corpus_options *options);

#endif
