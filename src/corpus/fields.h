/* fields: reads a block of a corpus field by field, by the corpus' format. */
#ifndef SPTX_FIELDS_H
#define SPTX_FIELDS_H

#include "columns.h"
#include "corpus.h"

#include <stdint.h>

/* edges: reads the lines of corpus.format = graph. Each line is an edge: source, target[, weight]; the file's format says which
 * columns these are (columns.h). A line that begins with # or % is a comment.
 *
 * Self-loops and edges of weight 0 (no walk follows them) are left out, and counted for a message.
 */

/* An edge, as read from one line. */
struct edge_line {
    const char *from, *to; /* words of the two nodes; the pointers are into the block */
    uint64_t from_length, to_length;
    uint64_t line;
    float weight; /* 1 if edges have no weights */
};

/* Reads the next edge. Returns 1, 0 at the block's end, or -1 after fail(). The block must consist of whole lines. */
int edges_next(struct corpus_cursor *cursor, const struct corpus_block *block, enum corpus_weights weights,
               struct corpus_left *left, struct edge_line *edge);

/* Reads the first lines of the corpus' first files. Returns 1 if every edge has a number in the weight column, 0 if not; -1 after fail(). */
int edges_look_weighted(const struct corpus *corpus, const struct corpus_options *options);

/* Converts a weight to float. Returns 0, or -1 if it is negative, not finite, or too large or too small for a float. Does not
 * call fail(). */
int edges_weight(double value, float *weight);

/* pairs: reads the lines of corpus.format = pairs: list, item[, rating]; the file's format says which columns these are
 * (columns.h). */

/* A pair, as read from one line. */
struct pair_line {
    const char *list, *item; /* point into the block */
    uint64_t list_length, item_length;
    uint64_t line;
    double rating; /* NaN: the line has no rating */
    float weight;  /* with PAIR_WEIGHTS_NONE 1; otherwise computed from the rating */
};

/* Converts a rating to a weight: 0, or a positive finite float. Returns 0, or -1 if the rating is negative, NaN, or too large or
 * too small for a float. Does not call fail(). */
int pairs_weight(enum pair_weights weights, double rating, float *weight);

/* Reads the next pair that is kept by options->min_rating, options->look.events and options->pair_weights. Counts the other pairs in *left, also
 * those without list or item, and those that did not happen (columns_form.zeros_out). Returns 1; 0 at the end of the block; -1 after fail(). The
 * block must consist of whole lines. */
int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, const struct corpus_options *options,
               struct corpus_left *left, struct pair_line *pair);

/* triples: reads the lines of corpus.format = triples. Each line has the columns head, relation and tail (columns.h), or is a line
 * of N-Triples:
 *
 *   <http://a.org/Ulm> <http://a.org/in> <http://a.org/Germany> .    names are without < and >
 *   _:b1 <http://a.org/name> "Ulm"@de .                              a blank node is _:b1, a literal keeps its quotes and language
 *   # comment                                                        lines may end with a comment, too
 *
 * A fourth term of N-Quads, the graph, is not read.
 */

enum { TRIPLE_HEAD, TRIPLE_RELATION, TRIPLE_TAIL, TRIPLE_TERMS };

/* A triple, as read from one line. */
struct triple_line {
    const char *term[TRIPLE_TERMS]; /* they point into the block */
    uint64_t length[TRIPLE_TERMS];
    uint64_t line;
    int is_true; /* 0: the line has a label that says so */
};

/* Reads the next triple. With literals = 0, N-Triples with a literal are left out, even one with a tab in it, and counted in *left. Returns 1; 0 at
 * the end of the block; -1 after fail(). The block must consist of whole lines. */
int triples_next(struct corpus_cursor *cursor, const struct corpus_block *block, int literals, struct corpus_left *left,
                 struct triple_line *triple);

/* ratings: says if the ratings of pairs have no effect. Without corpus.min_rating and corpus.weights a pair with one star trains like a pair with
 * five; so if ratings differ, one line says so. Of files only the first bytes are examined, of a program's data all pairs. */

struct corpus;
struct corpus_options;

/* The first ratings of a corpus, and the range of those seen so far. */
struct ratings {
    double *values; /* [count], at most RATINGS_KEPT */
    double least, most; /* smallest and largest rating so far; not set while count is 0 */
    uint64_t count, capacity, missing; /* count: number of stored ratings; missing: number of pairs without a rating */
    int part;      /* 1: only the corpus' first ratings were read, and there may be more */
    char name[32]; /* name of the rating column in the header of the first file; "" if it has no header */
};
enum { RATINGS_KEPT = 1 << 20 };

/* Adds a rating; NaN means no rating and is only counted. Returns 0, or -1 after fail(). */
int ratings_meet(struct ratings *ratings, double rating);
void ratings_release(struct ratings *ratings); /* may be called on a struct of zeros */

/* Prints the line of ratings_say() for the ratings in the files' first bytes, or for those of a program's data; prints nothing if
 * corpus.min_rating or corpus.weights uses the ratings. Returns 0, or -1 after fail(). */
int ratings_note(const struct corpus *corpus, const struct corpus_options *options);

/* Returns 1 if corpus.weights is worth trying: in the files' first bytes every pair has a rating above 0, and ratings differ. Otherwise returns 0,
 * always for pairs that a program has given; -1 after fail(). */
int ratings_may_weigh(const struct corpus *corpus, const struct corpus_options *options);

/* A field of a line; or the end of a line. */
struct corpus_field {
    enum token_part part;
    const char *text; /* points into the block; NULL: the end of a line */
    uint64_t length;
    uint64_t line; /* number of the line in the file, from 1 */
    float weight;  /* weight of the pair or edge; of a triple 1, or 0 if its label says that it is false; not set for text and lists */
};

/* The state of reading the fields of one block. */
struct corpus_fields {
    const struct corpus_format_properties *format;
    const struct corpus_block *block;
    struct corpus_cursor cursor;
    const struct corpus_options *options;
    struct corpus_left left;   /* numbers of rows that were left out so far */
    uint64_t index;            /* index of the next token in its line */
    struct corpus_field later[2]; /* [later_count] fields of the current pair, edge or triple that the next calls return, last one first */
    unsigned later_count;
    struct column_walk walk; /* for lists with a separator: the unread rest of the current line */
    uint64_t line;           /* number of the line of `walk` */
    int in_line;             /* 1: the line of `walk` may have more fields */
};

void corpus_fields_start(struct corpus_fields *fields, const struct corpus_block *block,
                         const struct corpus_options *options);

/* Returns 1 if the fields of a block are simply its words, separated by blanks. */
int fields_are_tokens(const struct corpus_block *block, const struct corpus_options *options);

/* Stores the next field. Returns 1; 0 at the end of the block; -1 after fail(). */
static inline int corpus_fields_next(struct corpus_fields *fields, struct corpus_field *field) {
    return fields->format->read(fields, field);
}

/* The readers (formats.def names one for each format):
 *
 *   tokens   each token of a line is a field; after a line's last token, a field whose text is NULL marks its end
 *   lists    like tokens, but split at the separator of the file's format, so that an item may contain blanks
 *   pairs    each line gives two fields, list and item, and no line end; pairs with a rating below options->min_rating, or of
 *            weight 0, are left out
 *   edges    each line gives two fields, its nodes; self-loops and edges of weight 0 are left out
 *   triples  each line gives three fields: head, relation (PART_NAME), tail
 */
corpus_reader fields_of_tokens, fields_of_lists, fields_of_pairs, fields_of_edges, fields_of_triples;

/* Calls `take` with each field of a file or directory. Returns 0, or -1 after fail() or as soon as `take` returns -1. */
int fields_read_file(const char *path, const struct corpus_options *options, int (*take)(void *user, const struct corpus_field *field), void *user);

#endif
