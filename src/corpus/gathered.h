/* gathered: the data of a corpus that a program hands over in blocks, instead of files.
 *
 *   tokens, as text or as integers -> a number for each different word -> ids [tokens], 4 bytes a token
 *
 * A program may hand its data over only once, so the data is kept in memory: each word once, and for each token the number
 * of its word. Words are counted at the same time, to choose the vocabulary. Encoding (encode.h) turns the numbers into
 * rows. A corpus of gathered data (corpus_open_gathered) gives the same vocabulary and the same id stream as a file
 * with the same tokens.
 *
 * A token is stored byte for byte, with any blanks around it. An empty token, or one with a tab or a line end in it, is an error.
 */
#ifndef SPTX_GATHERED_H
#define SPTX_GATHERED_H

#include "base/pool.h"
#include "corpus.h"
#include "fields.h"
#include "word_counts.h"
#include "words.h"

#include <stdint.h>

/* The form in which a program hands tokens over. */
enum token_kind {
    TOKENS_TEXT,    /* token i is the bytes data[offsets[i]] .. data[offsets[i + 1] - 1] */
    TOKENS_NUMBERS, /* integers from 0; the word of an integer is its decimal digits: 7 is the word "7" */
    TOKENS_KNOWN,   /* indices into the dictionary of gathered_learn() */
};

/* An array of tokens, in the caller's memory. */
struct tokens {
    enum token_kind kind;
    unsigned bits;       /* number of bits of an integer or of an offset: 32 or 64 */
    const void *data;    /* TOKENS_TEXT: bytes; otherwise [count] integers */
    const void *offsets; /* for TOKENS_TEXT: [count + 1] where each token begins in `data` */
    uint64_t count;
};

/* The different words of one kind: words of the data, or names of lists. */
struct gathered_words {
    struct words words;
    struct word_count *counts; /* [words.size]; the field `first` is the number of tokens before the word's first occurrence */
    uint64_t counts_capacity;
    uint32_t *known; /* [known_count] the dictionary of gathered_learn(): the number in `words` of each of its words */
    uint64_t known_count, known_capacity;
    uint32_t *of_integer; /* [of_integer_count] for each integer: 1 + the number of its word in `words`; 0: the word is not added
                           * yet */
    uint64_t of_integer_count;
};

/* All data that a program has handed over for one corpus. */
struct gathered {
    struct pool *pool; /* the caller's threads, which number text; NULL: the calling thread alone */
    const struct corpus_options *options; /* the caller's; the keys used are format, order, min_rating, pair_weights, weights,
                                           * max_word and list_rows */
    struct gathered_words items, lists;
    uint32_t *ids; /* [tokens] for each token: the number of its word in items.words; of triples: head, tail of each */
    uint64_t tokens, ids_capacity;
    uint64_t *ends; /* [sentences] token ends[i] is the first token after sentence i; not used for pairs */
    uint64_t sentences, ends_capacity;
    int line_open; /* 1: the last tokens are of a line of gathered_take_text() that goes on; `ends` does not have it yet */
    uint32_t *names; /* [named] for each sentence or pair: the number of its list's name in lists.words; for each triple: the
                      * number of its relation's name; empty if lists have no names */
    uint64_t named, names_capacity;
    float *weights; /* for pairs: [tokens]; for graphs: [tokens / 2], of the edge from ids[2 i] to ids[2 i + 1]; NULL: they have
                     * no weights */
    uint64_t weights_capacity;
    struct corpus_left left; /* numbers of pairs and edges that were left out */
    int zeros_out;           /* 1: a pair of rating 0 did not happen (columns_form.zeros_out), and is left out */
    struct ratings ratings; /* ratings of all pairs, collected only if neither corpus.min_rating nor corpus.weights uses them */
};

void gathered_release(struct gathered *gathered); /* may be called on a struct of zeros */

/* Appends words to the dictionary of items, or of names of lists if lists = 1. Returns 0, or -1 after fail(). */
int gathered_learn(struct gathered *gathered, int lists, const struct tokens *words);

/* Adds `count` sentences (or lists, or lines of a target and its contexts). Sentence i is the tokens from starts[i] up to
 * starts[i + 1]. names: [count] the lists' names; NULL: lists are named by their number, from 0. Returns 0, or -1 after fail(). */
int gathered_take_sentences(struct gathered *gathered, const struct tokens *tokens, const uint64_t *starts,
                            uint64_t count, const struct tokens *names);

/* Adds text: words parted by white space; a line feed ends a sentence. The text ends with a whole word; its last line goes on in the
 * next call until gathered_end_line(), which does nothing if no line is open. Return 0, or -1 after fail(). */
int gathered_take_text(struct gathered *gathered, const char *text, uint64_t bytes);
int gathered_end_line(struct gathered *gathered);

/* Adds pairs: items[i] is in lists[i] and has the rating ratings[i]. Without a rating (ratings is NULL, or NaN), it is an error
 * if options->min_rating or pair_weights needs one. Returns 0, or -1 after fail(). */
int gathered_take_pairs(struct gathered *gathered, const struct tokens *lists, const struct tokens *items,
                        const double *ratings);

/* Adds edges from from[i] to to[i] with weights[i]; NULL: edges without weights. Either all calls have weights, or no call.
 * Returns 0, or -1 after fail(). */
int gathered_take_edges(struct gathered *gathered, const struct tokens *from, const struct tokens *to, const double *weights);

/* Adds triples: relations[i] leads from heads[i] to tails[i]. Returns 0, or -1 after fail(). */
int gathered_take_triples(struct gathered *gathered, const struct tokens *heads, const struct tokens *relations,
                          const struct tokens *tails);

/* Sets `counts`, whose shards are zeroed, to the counts that the data has: the words are lent (counts->lent), the counts copied, since
 * vocab_choose() frees them. Returns 0, or -1 after fail(). */
int gathered_counts(struct word_counts *counts, struct gathered_words *words);

/* Returns a hash of the data. */
uint64_t gathered_fingerprint(const struct gathered *gathered);

#endif
