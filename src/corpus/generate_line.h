/* generate_line: computes line n of a generated corpus from (seed, n).
 *
 * The arguments of draw_at() are:
 *
 *   position  n
 *   epoch     0: the line's length and groups; 1: its tokens; 3: an edge; 4: a triple (0: head and relation; 1: tail); 5: a
 *             relation's permutation of the clusters, with the relation as the position and the seed 0
 *   index     of a token: its slot + attempt << 16; word 0 chooses where it is drawn from, words 2 and 3 choose the token
 *             of an edge: (bit / 8) + attempt << 16; each bit of the node numbers uses 16 bits of the draw
 *
 * So any thread can draw any line, more than once and in any order.
 */
#ifndef SPTX_GENERATE_LINE_H
#define SPTX_GENERATE_LINE_H

#include "kernels/backend.h" /* draws.h */
#include "generate.h"
#include "powers.h"

#include <stdint.h>

enum { LINE_TOKENS = 96 }; /* largest number of tokens in a line */

/* The numbers by which the kinds of corpora differ. */
struct line_shape {
    const char *name, *letter;
    uint64_t group;                     /* number of rows of a group */
    uint64_t series;                    /* number of rows of a series; 0: the corpus has no series */
    uint64_t least, beyond;             /* a line has least .. beyond - 1 tokens */
    uint32_t series_share, group_share; /* probability, times 2^32, that a token is of the series of the one before, or of the
                                         * line's groups */
};

struct line_source {
    const struct generate_options *options;
    struct line_shape shape;
    struct powers powers;
    uint64_t groups, last_size; /* number of groups; number of rows of the last group, which may be smaller */
    uint64_t all, group, last;  /* powers_log() of rows + 1, for all rows, for a full group, and for the last group */
    uint64_t least, beyond;     /* powers_log() of shape.least and of shape.beyond */
    uint64_t relations;         /* triples: powers_log() of relations + 1 */
    struct shuffle order;       /* papers: the order in which papers cite */
};
void line_source_init(struct line_source *source, const struct generate_options *options);

struct drawn_line {
    uint32_t target; /* papers: the paper that cites; graph: the edge's first node; triples: the head; otherwise 0 */
    uint64_t count;
    uint32_t rows[LINE_TOKENS]; /* [count]; triples: relation, tail */
};
void line_draw(const struct line_source *source, uint64_t number, struct drawn_line *line);

#endif
