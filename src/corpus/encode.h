/* encode: encodes a corpus as an id stream, by a vocabulary. The sentences of the stream, by format:
 *
 *   text        a line; longer lines are cut after every corpus.max_sentence kept tokens
 *   lists       a line without the list's name
 *   adjacency   a line; it is dropped if its target is not in the vocabulary
 *   pairs       all items of a list, in the order of the corpus; lists are in the order of their first items
 *   triples     head, relation, tail (idstream.h); dropped if the head or the tail is not in the vocabulary
 *
 * If lists have rows (corpus_options.list_rows), the sentence of a list begins with the list's id, like a target in adjacency.
 * Words that are not in the vocabulary are left out. Sentences that are then empty are left out, too.
 */
#ifndef SPTX_ENCODE_H
#define SPTX_ENCODE_H

#include "base/pool.h"
#include "corpus.h"
#include "idstream.h"
#include "numbered.h"
#include "vocab.h"

#include <stdint.h>

/* encode_block: turns a block of a numbered corpus into ids, and finds where its lines end. encode.c then handles the blocks in the corpus' order,
 * and with them what spans several blocks: an unfinished sentence, or a target in an earlier block. */
/* An encoded block: the ids of consecutive numbers of the corpus. */
struct encoded {
    uint64_t number;     /* number of the block in the corpus, from 0 */
    int continues;       /* 1: the block's first line began in an earlier block, which has a word of it */
    int line_open;       /* 1: the block's last line continues in the next block, and this block has a word of it */
    uint32_t *ids; /* [count]; ids[-1] may be written */
    uint64_t count;
    uint32_t *memory; /* [memory_capacity]: begins one element before `ids` */
    uint64_t memory_capacity;
    uint64_t *ends; /* [lines] index in ids[] of the first id after line i; lines that end in a later block are not counted */
    uint64_t lines, ends_capacity;
    int target_lost; /* lines with targets: 1 if the last line began in this block, and its target is not in the vocabulary */
};
void encoded_release(struct encoded *encoded); /* may be called on a struct of zeros */

/* Returns 1 if each sentence is a target and its contexts: because of the format, or because lists have rows. */
static inline int encode_has_targets(const struct corpus_options *options) {
    return corpus_formats[options->format].targets || options->list_rows;
}

/* Returns 1 if each word is written as the number of its row: corpus.order = given, and corpus.vocab does not give words other rows. */
int encode_are_rows(const struct corpus_options *options);

/* Stores in rows[] the row of each of `count` queries (from words_ask(), at most WORDS_BATCH); WORDS_ABSENT if a word has no row. */
void encode_rows(const struct vocab *vocab, const struct corpus_options *options, const struct word_query *queries, unsigned count,
                 uint32_t *rows);

/* Sets *numbered to the corpus as numbers of words: those that vocab_build() has written (corpus_set_numbered) or, if it wrote none, *own, which
 * is then made: in a nameless file beside `path`, with rows as numbers. For gathered data *own points to the data's own numbers. The caller closes
 * *own in any case. Returns 0, or -1 after fail(). */
int encode_numbers(const struct numbered **numbered, struct numbered *own, struct corpus *corpus,
                   const struct corpus_options *options, const struct vocab *vocab, const char *path, struct pool *pool);

/* encode_triples: writes triples as an id stream (idstream.h), sorted by their ids and each of them once. */
/* All triples in the corpus' order, as numbers of words: triple i has index stride * i of each array. */
struct triples_met {
    uint64_t count, stride;
    const uint32_t *heads, *relations, *tails;
    const uint32_t *rows;          /* [number] row of the entity with this number; NULL: a number is its row */
    const uint32_t *relation_rows; /* by number: rows of relations */
    uint64_t entities;             /* entities have the rows 0 .. entities - 1 */
    uint64_t at_once;              /* most triples that are sorted in memory together; 0: as many as fit into a third of the free memory */
};

/* Writes the triples whose terms all have rows, and prints how many were left out and how many are repeated. Returns 0, or -1 after fail(). */
int encode_triples(struct idstream_writer *writer, const struct triples_met *met, struct pool *pool);

/* group_pairs: groups the items of pairs by list. Each list becomes a sentence of an id stream: its items in the order of the corpus; lists are in
 * the order of their first item that has a row.
 *
 *   pairs -> number of items and first pair of each list -> lists, numbered -> buckets of lists -> sorted by list
 *
 * Threads share each step. The result does not depend on their number.
 */
/* All pairs, in their order in the corpus. Pair i is at index stride * i of each array. */
struct pairs_met {
    uint64_t count;
    unsigned stride;
    const uint32_t *ids, *names;      /* numbers of the pairs' items and lists */
    const float *weights;             /* NULL: pairs have no weights */
    const uint32_t *rows, *list_rows; /* [number] rows of items, and rows of lists. rows = NULL: an item's number is its row; list_rows = NULL:
                                       * lists have no rows */
    uint64_t list_numbers;            /* highest number of a list, plus 1 */
    uint64_t bucket_ids, round_ids;   /* usual number of ids of a bucket; most ids of a round; 0: chosen by cache and memory */
};

/* Writes the lists' items to a stream, whose `pool` is set, and their weights if weighed = 1. If lists have rows, a list's sentence begins with
 * the list's row, with weight 0. Pairs whose item has no row are left out. Returns 0, or -1 after fail(). */
int group_pairs(struct idstream_writer *writer, const struct pairs_met *met, int weighed, struct pool *pool);

/* Opens the id stream of a corpus. If the file `path` contains it (the fingerprints are equal), maps that file and sets *reused to 1; otherwise
 * encodes the corpus into it (atomically, with all threads) and sets *reused to 0. A corpus that is an id stream itself is mapped from its own
 * file, if it was made with this vocabulary. Returns 0, or -1 after fail(), also for a stream without a token. */
int encode_open(struct idstream *stream, const char *path, struct corpus *corpus, const struct vocab *vocab,
                const struct corpus_options *options, struct pool *pool, int *reused);

/* Returns the fingerprint of the id stream that encoding this corpus with these options and this vocabulary gives. */
uint64_t encode_fingerprint(const struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options);

/* Returns 1 if `name` is a temporary file that a killed process of an earlier version left when it encoded pairs into the file `of`. Partial files
 * of `of` itself are recognized by file_is_partial() only. */
int encode_is_leftover(const char *name, const char *of);

#endif
