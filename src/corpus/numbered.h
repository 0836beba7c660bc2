/* numbered: a corpus as the numbers of its words. The numbers are written while words are counted, so that the corpus' files are read only once;
 * encode.h and graph.h replace them by rows.
 *
 *   text, lists, adjacency   the number of each word, and NUMBERED_END after each line; a list's name only if lists have rows
 *   pairs                    list, item[, weight] of each pair
 *   graph                    node, node[, weight] of each edge
 *   triples                  head, relation, tail of each triple; relations are numbered as names of lists are, even if they have no rows
 *
 * Each number has 4 bytes, each weight is a float. Which number a word gets depends on the threads; the numbers are stored in the order of the words
 * in the corpus.
 */
#ifndef SPTX_NUMBERED_H
#define SPTX_NUMBERED_H

#include "base/file.h"
#include "base/pool.h"
#include "corpus.h"
#include "fields.h"
#include "words.h"

#include <pthread.h>
#include <stdint.h>

#define NUMBERED_END (UINT32_MAX - 1)

struct numbered {
    int fd;                   /* the nameless file of the numbers; -1: not opened */
    const char *path;         /* path of a file on the same disk, for messages; owned by the caller */
    const uint32_t *numbers;  /* [count], mapped by numbered_finish() */
    uint64_t count;
    int complete;             /* 1: numbered_finish() was called */
    uint32_t *items, *lists;  /* [number] rows of words, and of names of lists; WORDS_ABSENT: no row. items = NULL: a word's number is its row;
                               * lists = NULL: lists have no rows. The caller fills these arrays */
    uint64_t list_numbers;    /* highest number of a list's name, plus 1 */
    struct corpus_left left;   /* for graphs: numbers of edges that were left out */
    struct file_map map;
    pthread_mutex_t lock;     /* held while the fields below are used */
    pthread_cond_t moved;
    uint64_t next;            /* number of the block that is written next */
    int failed;
};

int numbered_open(struct numbered *numbered, const char *path);
/* Writes the numbers of block `block` behind those of all earlier blocks. Any thread may call it, once for each block. Waits until the end of the
 * earlier blocks in the file is known. Returns 0, or -1 after fail() or numbered_give_up(). */
int numbered_put(struct numbered *numbered, uint64_t block, const uint32_t *numbers, uint64_t count);
void numbered_give_up(struct numbered *numbered); /* called after a thread has failed: wakes all threads that wait for the block of that thread */
int numbered_finish(struct numbered *numbered);   /* called after the last block: maps the numbers */
void numbered_close(struct numbered *numbered);

/* Returns how many numbers are stored for a line of pairs, edges or triples. */
static inline unsigned numbered_fields(const struct corpus_options *options) {
    if (corpus_formats[options->format].triples) return TRIPLE_TERMS;
    return 2 + (corpus_formats[options->format].edges ? options->weights == WEIGHTS_YES : options->pair_weights != PAIR_WEIGHTS_NONE);
}

/* Returns 1 if not all names in the data are items or entities: some are names of lists, or of relations, and are numbered, too. */
static inline int numbered_has_names(const struct corpus_options *options) {
    return options->list_rows || corpus_formats[options->format].scattered || corpus_formats[options->format].triples;
}

/* gathered: the data of a corpus that a program hands over in blocks, in place of files.
 *
 *   tokens, as text or as integers -> a number for each different word -> numbers, 4 bytes a token
 *
 * A program may be able to hand its data over only once, so all of it is kept in memory: each word once, and for each token the number of its word.
 * Words are counted at the same time, to choose the vocabulary. Encoding (encode.h) replaces numbers by rows. A corpus of gathered data
 * (corpus_open_gathered) gives the same vocabulary and the same id stream as a file with the same tokens.
 *
 * A token is stored byte for byte, including blanks around it. An empty token, or one that contains a tab or a line end, is an error.
 */

/* The form in which a program hands tokens over. */
enum token_kind {
    TOKENS_TEXT,    /* token i is the bytes data[offsets[i]] .. data[offsets[i + 1] - 1] */
    TOKENS_NUMBERS, /* integers from 0 on; the word of an integer is its decimal digits: 7 is the word "7" */
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
    struct word_count *counts; /* [words.size] `first` is the number of tokens before the word's first occurrence */
    uint64_t counts_capacity;
    uint32_t *known; /* [known_count] for each word of the dictionary that gathered_learn() was given: its number in `words` */
    uint64_t known_count, known_capacity;
    uint32_t *of_integer; /* [of_integer_count] for each integer: the number of its word in `words`, plus 1; 0: not added yet */
    uint64_t of_integer_count;
};

/* All data that a program has handed over for one corpus. */
struct gathered {
    struct pool *pool; /* the caller's threads, which look up words of text; NULL: only the calling thread does */
    const struct corpus_options *options; /* the caller's; only these are used: format, order, min_rating, pair_weights, weights, max_word,
                                           * list_rows */
    struct gathered_words items, lists;
    uint32_t *numbers; /* [count] numbers as struct numbered stores them; the last line may be unfinished */
    uint64_t count, capacity;
    uint64_t tokens, sentences, named; /* total numbers of words, of lines, and of names of lists or relations */
    int line_open; /* 1: the last line of `numbers` continues in the next call of gathered_take_text() */
    int weighted;  /* 1: edges have weights, or pairs need them because of options->pair_weights */
    struct corpus_left left; /* numbers of pairs and edges that were left out */
    int zeros_out;           /* 1: a pair of rating 0 did not happen (columns_form.zeros_out) and is left out */
    struct ratings ratings; /* ratings of all pairs, collected only while neither corpus.min_rating nor corpus.weights uses ratings */
};

void gathered_release(struct gathered *gathered); /* may be called on a struct of zeros */

/* Appends words to the dictionary: of items, or of names of lists if lists = 1. Returns 0, or -1 after fail(). */
int gathered_learn(struct gathered *gathered, int lists, const struct tokens *words);

/* Adds `count` sentences (or lists, or lines of a target and its contexts). Sentence i is the tokens from starts[i] up to
 * starts[i + 1]. names: [count] the lists' names; NULL: lists are named by their number, from 0. Returns 0, or -1 after fail(). */
int gathered_take_sentences(struct gathered *gathered, const struct tokens *tokens, const uint64_t *starts,
                            uint64_t count, const struct tokens *names);

/* Adds text: words separated by white space, sentences by line feeds. The text must end with a whole word; its last line continues in the next
 * call, unless gathered_end_line() ends it (which does nothing between lines). Both return 0, or -1 after fail(). */
int gathered_take_text(struct gathered *gathered, const char *text, uint64_t bytes);
int gathered_end_line(struct gathered *gathered);

/* Adds pairs: items[i] is in lists[i] and has the rating ratings[i]. Ratings may be missing (`ratings` is NULL, or a rating NaN) unless
 * options->min_rating or pair_weights needs them. Returns 0, or -1 after fail(). */
int gathered_take_pairs(struct gathered *gathered, const struct tokens *lists, const struct tokens *items,
                        const double *ratings);

/* Adds edges from from[i] to to[i] with weights[i]. weights = NULL: no weights; either all calls have weights or none has. Returns 0, or -1 after
 * fail(). */
int gathered_take_edges(struct gathered *gathered, const struct tokens *from, const struct tokens *to, const double *weights);

/* Adds triples: relations[i] leads from heads[i] to tails[i]. Returns 0, or -1 after fail(). */
int gathered_take_triples(struct gathered *gathered, const struct tokens *heads, const struct tokens *relations,
                          const struct tokens *tails);

/* Calls `take` for each word and name of all lines, pairs, edges or triples, in order, as PART_WORD and PART_NAME; weights and lines without words
 * are left out. The first word of a line is its name if the line has no other. Returns 0, or -1 if `take` did. */
typedef int gathered_take(void *user, const struct corpus_field *field);
int gathered_fields(const struct gathered *data, gathered_take *take, void *user);

/* Returns a hash of the data. */
uint64_t gathered_fingerprint(const struct gathered *gathered);

#endif
