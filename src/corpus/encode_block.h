/* encode_block: turns the words of a part of a numbered corpus into ids, and finds where its lines end. encode.c then takes the
 * blocks in the corpus' order and handles what spans several blocks: an open sentence, a target in an earlier block. */
#ifndef SPTX_ENCODE_BLOCK_H
#define SPTX_ENCODE_BLOCK_H

#include "corpus.h"
#include "gathered.h"
#include "numbered.h"
#include "base/pool.h"
#include "vocab.h"

#include <stdint.h>

/* An encoded block: the ids of consecutive numbers of the corpus. */
struct encoded {
    uint64_t number;     /* number of the block in the corpus, from 0 */
    int continues;       /* 1: the block's first line began in an earlier block, and has a word there */
    int line_open;       /* 1: the block's last line continues in the next block, and already has a word */
    uint32_t *ids; /* [count]; ids[-1] may be written */
    uint64_t count;
    uint32_t *memory; /* [memory_capacity]: begins one element before `ids` */
    uint64_t memory_capacity;
    uint64_t *ends; /* [lines] ids[ends[i]] is the first id after line i; lines that end in a later block are not counted */
    uint64_t lines, ends_capacity;
    int target_lost; /* only for lines with targets: 1: the last line began in this block, and its target is not in the
                      * vocabulary */
};
void encoded_release(struct encoded *encoded); /* may be called on a struct of zeros */

/* Returns 1 if each sentence is a target and its contexts: because of the format, or because lists have rows. */
static inline int encode_has_targets(const struct corpus_options *options) {
    return corpus_formats[options->format].targets || options->list_rows;
}

/* Returns 1 if each word is the number of its row: corpus.order = given, and no vocabulary of corpus.vocab gives words other
 * rows. */
int encode_are_rows(const struct corpus_options *options);

/* Stores in rows[] the rows of the words of `count` queries (prepared by words_ask(), WORDS_BATCH at most); WORDS_ABSENT if a
 * word has no row. */
void encode_rows(const struct vocab *vocab, const struct corpus_options *options, const struct word_query *queries, unsigned count,
                 uint32_t *rows);

/* Stores in *numbered the corpus as vocab_build() has numbered it (corpus_set_numbered). If it has not, numbers it in *own, with the
 * vocabulary's rows as numbers, in a nameless file beside `path`. The caller closes *own in any case. Gathered data is
 * not numbered: *numbered is then NULL. Returns 0, or -1 after fail(). */
int encode_numbers(const struct numbered **numbered, struct numbered *own, struct corpus *corpus,
                   const struct corpus_options *options, const struct vocab *vocab, const char *path, struct pool *pool);

/* Encodes the numbers first .. end - 1 of the corpus into the arrays of `encoded`, whose earlier contents are overwritten. Not for
 * scattered lists. Returns 0, or -1 after fail(). */
int encode_numbered(struct encoded *encoded, const struct numbered *numbered, const struct corpus_options *options, uint64_t first,
                    uint64_t end);

/* The rows of gathered words, indexed by the words' numbers; WORDS_ABSENT if a word has no row. */
struct gathered_rows {
    uint32_t *items; /* [items.words.size] */
    uint32_t *lists; /* [lists.words.size]; NULL if lists have no rows */
};
int gathered_rows_find(struct gathered_rows *rows, const struct gathered *gathered, const struct vocab *vocab);
void gathered_rows_release(struct gathered_rows *rows); /* may be called on a struct of zeros */

/* Encodes the gathered sentences first .. end - 1; the result is that of encode_numbered() for these lines. */
int encode_sentences(struct encoded *encoded, const struct gathered *gathered, const struct gathered_rows *rows,
                     uint64_t first, uint64_t end);

#endif
