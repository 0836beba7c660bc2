/* encode_block: turns the tokens of one block into ids, with the ends of its lines. encode.c takes the blocks in file
 * order and settles what crosses them: an open sentence, a target in an earlier block, a list's number. */
#ifndef SPTX_ENCODE_BLOCK_H
#define SPTX_ENCODE_BLOCK_H

#include "corpus.h"
#include "gathered.h"
#include "vocab.h"

#include <stdint.h>

/* The place of a list's name: block.bytes[at .. at + length). */
struct list_name {
    uint64_t at, length;
};

/* A block, and the ids that it encodes to. */
struct encoded {
    struct corpus_block block;
    uint32_t *ids; /* [count] */
    uint64_t count, ids_capacity;
    uint64_t *ends; /* [lines]: the ids of line i, which ends in this block, lie before ids[ends[i]] */
    uint64_t lines, ends_capacity;
    struct list_name *names; /* [count]: the list of each id; of scattered lists only */
    float *weights; /* [count]: of each id; of scattered lists with weights only */
    uint64_t names_capacity, weights_capacity;
    int target_lost; /* with targets: the open line began in this block, and its target is not in the vocabulary */
    int ready;       /* 1: waits in the ring to be committed */
};
void encoded_release(struct encoded *encoded); /* harmless on a zeroed one */

/* Returns 1 where a sentence is a target and its contexts: the format says so, or lists have rows. */
static inline int encode_has_targets(const struct corpus_options *options) {
    return corpus_formats[options->format].targets || options->list_rows;
}

/* Returns 1 where words are the numbers of their rows: corpus.order = given, without a vocabulary that says which they are. */
int encode_are_rows(const struct corpus_options *options);

/* Finds the rows of words that were asked for (words_ask), WORDS_BATCH at most; WORDS_ABSENT: no row. */
void encode_rows(const struct vocab *vocab, const struct corpus_options *options, const struct word_query *queries, unsigned count,
                 uint32_t *rows);

/* Encodes encoded->block; the arrays' earlier contents are overwritten. Returns 0, or -1 after fail(). */
int encode_block(struct encoded *encoded, const struct vocab *vocab, const struct corpus_options *options);

/* The rows of gathered words, by their numbers; WORDS_ABSENT: no row. */
struct gathered_rows {
    uint32_t *items; /* [items.words.size] */
    uint32_t *lists; /* [lists.words.size]; NULL where lists have no rows */
};
int gathered_rows_find(struct gathered_rows *rows, const struct gathered *gathered, const struct vocab *vocab);
void gathered_rows_release(struct gathered_rows *rows); /* harmless on a zeroed one */

/* Encodes the gathered sentences from `first` up to `end`, as encode_block() encodes the sentences of a block of whole lines. */
int encode_sentences(struct encoded *encoded, const struct gathered *gathered, const struct gathered_rows *rows,
                     uint64_t first, uint64_t end);

#endif
