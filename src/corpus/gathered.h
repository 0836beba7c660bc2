/* gathered: the data of a corpus that a program hands over, block by block, instead of files.
 *
 *   tokens, or numbers that stand for them -> a number for each different word -> ids [tokens], 4 bytes a token
 *
 * Data may come only once, so it is kept as it comes, in the program's memory: each word once, and for each token the
 * number of its word. The counts that choose a vocabulary are made on the way. Encoding (encode.h) turns these numbers
 * into rows. A corpus of gathered data (corpus_open_gathered) gives the same vocabulary and the same id stream as a
 * file of the same tokens would.
 *
 * A token is stored byte for byte, with any blanks around it. An empty token, or one with a tab or a line end in it, is an error.
 */
#ifndef SPTX_GATHERED_H
#define SPTX_GATHERED_H

#include "corpus.h"
#include "edges.h"
#include "ratings.h"
#include "word_counts.h"
#include "words.h"

#include <stdint.h>

/* How tokens are handed over. */
enum token_kind {
    TOKENS_TEXT,    /* bytes; token i is data[offsets[i] .. offsets[i + 1]) */
    TOKENS_NUMBERS, /* integers from 0; the word of 7 is "7" */
    TOKENS_KNOWN,   /* integers: places in the dictionary that gathered_learn() has made */
};

/* A run of tokens, in the caller's memory. */
struct tokens {
    enum token_kind kind;
    unsigned bits;       /* of an integer, or of an offset: 32 or 64 */
    const void *data;    /* bytes, or integers [count] */
    const void *offsets; /* [count + 1]; of text only */
    uint64_t count;
};

/* The words of one kind: items (text's words, too), or the names of lists. */
struct gathered_words {
    struct words words;
    struct word_count *counts; /* [words.size]; `first` counts the tokens before */
    uint64_t counts_capacity;
    uint32_t *known; /* [known_count]: the dictionary, as numbers of words */
    uint64_t known_count, known_capacity;
    uint32_t *of_integer; /* [of_integer_count]: the number of an integer's word, plus one; 0: none yet */
    uint64_t of_integer_count;
};

struct gathered {
    const struct corpus_options *options; /* the caller's: format, order, min_rating, pair_weights, max_word, list_rows */
    struct gathered_words items, lists;
    uint32_t *ids; /* [tokens]: the number of each token's word */
    uint64_t tokens, ids_capacity;
    uint64_t *ends; /* [sentences]: sentence i ends before token ends[i]. Pairs have no sentences */
    uint64_t sentences, ends_capacity;
    uint32_t *names; /* the number of each sentence's or each pair's list; nothing where no list has a name */
    uint64_t named, names_capacity;
    float *weights; /* of edges [tokens / 2], whose nodes are ids[2 i] and ids[2 i + 1]; of pairs [tokens]; NULL: none has a weight */
    uint64_t weights_capacity;
    struct edges_left left; /* edges that were left out */
    struct ratings ratings; /* ratings of the pairs, if corpus.min_rating and corpus.weights are none */
};

void gathered_release(struct gathered *gathered); /* harmless on a zeroed one */

/* Appends words to a dictionary. lists: 1 for the names of lists. */
int gathered_learn(struct gathered *gathered, int lists, const struct tokens *words);

/* Takes sentences, lists, or lines of a target and its contexts; all are called sentences here. Sentence i is the tokens from
 * starts[i] up to starts[i + 1]. names: [count] names of lists; NULL: lists are named by their number, from 0. */
int gathered_take_sentences(struct gathered *gathered, const struct tokens *tokens, const uint64_t *starts,
                            uint64_t count, const struct tokens *names);

/* Takes pairs: lists[i] holds items[i], rated ratings[i] (NULL, or NaN: not rated, which options->min_rating and pair_weights
 * refuse). */
int gathered_take_pairs(struct gathered *gathered, const struct tokens *lists, const struct tokens *items,
                        const double *ratings);

/* Takes edges from from[i] to to[i], which weigh weights[i] (NULL: nothing). Blocks with weights and without do not mix. */
int gathered_take_edges(struct gathered *gathered, const struct tokens *from, const struct tokens *to, const double *weights);

/* Returns a number that changes with the data. */
uint64_t gathered_fingerprint(const struct gathered *gathered);

#endif
