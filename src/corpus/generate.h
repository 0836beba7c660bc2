/* generate: synthetic corpora of a chosen size. They are drawn at random; the same seed gives the same bytes.
 *
 * Rows are in groups: row x is member x % SIZE of group x / SIZE. In a group, member r is drawn with probability
 * ln(1 + 1/(r+1)) / ln(SIZE+1), which is Zipf's law with exponent 1. A draw from all rows obeys the same law, with the
 * first members of all groups before the second members. So popularity falls as 1/rank among all rows and in each group.
 *
 *   books   "user12 b5 b977 .."  genres of 4,096 books, in series of 8. A list has 5 to 79 different books (P(n) as 1/n).
 *                                Of 100 books, 30 are of the same series as the book before, 55 are of the list's three
 *                                genres (a half, a quarter and a quarter of them), and 15 are drawn from all rows
 *   papers  "p7 p1 p5 .."        fields of 2,048 papers. A paper cites 4 to 43 different papers (P(n) as 1/n), nine in ten of
 *                                them of its own field. Papers cite in a random order; none cites twice before all have cited
 *   words   "w3 w17 .."          topics of 512 words. A sentence has 20 words, half of them of its one topic
 *
 *   graph   "17 4"               edges as R-MAT draws them (Chakrabarti et al. 2004): each bit of the two node numbers is drawn
 *                                as one of four quadrants, with probabilities .57, .19, .19 and .05. A node's word is its
 *                                number. An edge may occur more than once; none is a self-loop. Rows are in no groups
 *
 *   triples "17 3 4"             head, relation, tail of a planted knowledge graph (planted.h), whose best MRR is known; names are numbers.
 *                                A triple may occur more than once
 *
 * PATH.groups.tsv lists the group of each row: book TAB series TAB genre, paper TAB field, word TAB topic, entity TAB group TAB
 * type. PATH.valid and PATH.test have triples that were held out.
 *
 * If PATH ends in .ids (not for graph and triples), an id stream (idstream.h) and PATH.vocab.tsv are written, and no text. Ids are
 * then ranks of frequency, lists have no names, the first id of a line is the paper that cites, and rows that no line names are last,
 * with a count of 0. Such a PATH can be used as corpus.path. If PATH ends in .zst, it is packed, in frames of 4,096 lines.
 */
#ifndef SPTX_GENERATE_H
#define SPTX_GENERATE_H

#include "kernels/backend.h"
#include "planted.h"

#include <stdint.h>

/* powers: computes 2^e in integers, so that draws by Zipf's law are the same on every machine.
 *
 * e is a fixed-point number. A table has 2^(t / 1024) for t = 0..1024; between two entries, 2^e is interpolated linearly. If e is
 * uniform in [0, log2 n), the floor of 2^e is k with probability log2(1 + 1/k) / log2 n, which is Zipf's law with exponent 1.
 */

enum {
    POWERS_TABLE = 1024,
    POWERS_POINT = 40 /* e has 40 bits after its point; the first 10 of them choose the entry */
};

struct powers {
    uint64_t of[POWERS_TABLE + 1]; /* 2^(t / 1024), with 31 bits after the point */
};

void powers_init(struct powers *powers);
/* Returns the smallest e for which powers_floor() is at least k; k is at most 2^33. */
uint64_t powers_log(const struct powers *powers, uint64_t k);

/* Returns the integer part of 2^e. */
static inline uint64_t powers_floor(const struct powers *powers, uint64_t e) {
    unsigned whole = (unsigned)(e >> POWERS_POINT), t = (unsigned)(e >> 30) & (POWERS_TABLE - 1);
    uint64_t between = e & (((uint64_t)1 << 30) - 1);
    uint64_t value = (powers->of[t] << 30) + (powers->of[t + 1] - powers->of[t]) * between; /* 61 bits after the point */
    return value >> (61 - whole);
}

/* generate_line: computes line n of a generated corpus from (seed, n).
 *
 * The arguments of draw_at() are:
 *
 *   position  n
 *   epoch     0: the line's length and groups; 1: its tokens; 2: an order of all rows; 3: an edge; 4: a triple; 5: with the seed 0,
 *             what a relation (index 0) and a layer of relations (index 1) lead to
 *   index     of a token: its slot + attempt << 16; word 0 chooses where it is drawn from, words 2 and 3 choose the token
 *             of an edge: (bit / 8) + attempt << 16; each bit of the node numbers uses 16 bits of the draw
 *
 * So any thread can draw any line, more than once and in any order.
 */
enum { LINE_TOKENS = 96 }; /* largest number of tokens in a line */

/* The numbers in which the kinds of generated corpora differ. */
struct line_shape {
    const char *name, *letter;
    uint64_t group;                     /* number of rows of a group */
    uint64_t series;                    /* number of rows in a series; 0: the corpus has no series */
    uint64_t least, beyond;             /* a line has at least `least` and fewer than `beyond` tokens */
    uint32_t series_share, group_share; /* probabilities, times 2^32, that a token is drawn from the previous token's series, or from the line's
                                         * groups */
};

struct line_source {
    const struct generate_options *options;
    struct line_shape shape;
    struct powers powers;
    uint64_t groups, last_size; /* number of groups; number of rows of the last group, which may be smaller */
    uint64_t all, group, last;  /* powers_log() of the number of rows + 1: all rows, a full group, the last group */
    uint64_t least, beyond;     /* powers_log() of shape.least and of shape.beyond */
    struct planted planted;     /* triples: their law */
    struct shuffle order;       /* papers: the order in which papers cite */
};

struct drawn_line {
    uint32_t target; /* papers: the paper that cites others; graph: the edge's first node; triples: the head; otherwise 0 */
    uint64_t count;
    uint32_t rows[LINE_TOKENS]; /* [count]; triples: relation, tail */
    int noise;                  /* triples: the tail was drawn from any group */
};

enum generate_kind { GENERATE_BOOKS, GENERATE_PAPERS, GENERATE_WORDS, GENERATE_GRAPH, GENERATE_TRIPLES, GENERATE_KINDS };

struct generate_options {
    enum generate_kind kind;
    uint64_t rows;  /* number of books, papers, words, nodes or entities: 1 (nodes: 2) to 4,294,967,294 */
    uint64_t lists; /* number of lists, citing papers, sentences, edges or triples: 1 to 2^48 - 1 */
    uint32_t seed;
    /* The rest is of triples, and otherwise 0. */
    uint32_t relations; /* at least 1 */
    uint64_t groups;    /* a multiple of TYPE_GROUPS, at most `rows`, and at most TYPE_GROUPS x relations */
    uint64_t held_out;  /* 0 to 2^30: so many triples are drawn for PATH.valid, and so many for PATH.test; repeated ones are not written */
    double noise;       /* 0 to 1 */
};

int generate_kind_named(const char *name); /* returns the enum generate_kind of a name, or -1 after fail_usage() */
/* Writes the corpus atomically, with a progress line. *best receives the best MRR that PATH.test allows; if nothing is held out, best->triples is 0.
 * Returns 0, or -1 after fail(). */
int generate_write(const struct generate_options *options, const char *path, struct planted_best *best);

#endif
