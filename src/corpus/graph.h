/* graph: the arcs of a graph in one mapped file, as compressed sparse rows (CSR). Walks are drawn from it.
 *
 *   starts      0     2           5     6  ..   [nodes + 1]  node v has arcs starts[v] .. starts[v + 1] - 1
 *   neighbours  1 4   0 2 7       1     ..      [arcs]       of each node in rising order, each once, never the node itself
 *   weights     .5 1  .5 2 1      2     ..      [arcs]       only if edges have weights
 *   labels      8 9   8 8 9       9     ..      [arcs]       only if edges are triples: the row of the arc's relation
 *
 * A node is a row of the vocabulary. An undirected edge is two arcs. With labels, a neighbour occurs once for each different label,
 * in rising order; rows of relations have no arcs.
 *
 * The file: a header (magic, version, flags, fingerprint, nodes, arcs, checksum of all that follows),
 * neighbours from byte 128, weights or labels if arcs have them, padding to 8, starts. Opening a graph reads the whole file, with all
 * threads, and checks all of this.
 */
#ifndef SPTX_GRAPH_H
#define SPTX_GRAPH_H

#include "base/file.h"
#include "base/pool.h"
#include "vocab.h"

#include <stdint.h>

struct pool;

/* An opened graph. */
struct graph {
    const uint64_t *starts;     /* [nodes + 1] */
    const uint32_t *neighbours; /* [arcs] */
    const float *weights;       /* [arcs], each above 0 and finite; NULL: every arc weighs 1 */
    const uint32_t *labels;     /* [arcs] rows of relations; NULL: arcs have no labels */
    uint64_t nodes, arcs;
    int directed;      /* 1: an edge is one arc, stored with the node that it leaves; 0: an edge is two arcs */
    uint64_t checksum; /* checksum of all arrays; graphs with equal contents have equal checksums */
    struct file_map map;
};

enum { GRAPH_HEADER = 128 };
#define GRAPH_MAGIC "SPTX-CSR"

/* Returns the size of a graph's file in bytes. valued: 1 if arcs have weights or labels. */
uint64_t graph_bytes(uint64_t nodes, uint64_t arcs, int valued);

/* Maps a graph's file, which must have this fingerprint and `rows` nodes, and checks all of it. Returns 0, or -1 after fail(). */
int graph_open(struct graph *graph, const char *path, uint64_t fingerprint, uint64_t rows, struct pool *pool);
void graph_close(struct graph *graph); /* may be called on a struct of zeros */

/* graph_file: the layout of a graph's file (graph.h), for the code that writes it and the code that maps it. */
enum { GRAPH_VERSION = 1, GRAPH_DIRECTED = 1, GRAPH_WEIGHTED = 2, GRAPH_LABELLED = 4 };

struct graph_header {
    char magic[8];
    uint32_t version, flags;                /* flags: GRAPH_DIRECTED, and GRAPH_WEIGHTED or GRAPH_LABELLED */
    uint64_t fingerprint, nodes, arcs, sum; /* sum: checksum of all bytes after this header (idstream.h) */
    char rest[GRAPH_HEADER - 48];
};
_Static_assert(sizeof(struct graph_header) == GRAPH_HEADER, "neighbours start at byte 128");

/* Returns the bytes of neighbours and of weights or labels, with the padding after them. */
static inline uint64_t graph_arcs_bytes(uint64_t arcs, int valued) {
    return (arcs * (valued ? 8 : 4) + 7) / 8 * 8;
}

/* The value that an arc has in a graph's file beside its neighbour: in a graph of edges its weight, in one of triples its label. */
union arc_value {
    float weight;
    uint32_t label;
};

/* graph_sort: sorts the arcs of some rows of a graph, and joins arcs that lead to the same neighbour. */
/* Most arcs and rows of a group of rows, so that it fits a core's cache; a single row may have more arcs. */
enum { SORT_ARCS = 1 << 15, SORT_ROWS = 1 << 15 };

/* Memory of one worker for sorting. */
struct graph_sort {
    uint64_t *ends;         /* [SORT_ROWS] set by graph_sort(): for each row, the index after its last arc */
    uint64_t *keys, *other; /* [capacity] each */
    union arc_value *values, *other_values; /* [capacity] each; NULL: arcs have neither weights nor labels */
    uint64_t capacity;
    int labelled;           /* set by the caller: 1: values are labels; 0: they are weights */
    uint64_t wrong_row; /* after a failure: row and neighbour of the arc whose summed weight is too large */
    uint32_t wrong_neighbour;
};

/* Sorts `count` arcs by row and then by neighbour, and stores the neighbours. A key has the row, below `rows`, in its upper 32 bits and the
 * neighbour, below `nodes`, in its lower 32 bits. values: [count], or NULL. Arcs of a row to the same neighbour are joined, and their weights
 * added; arcs with labels are joined only if their labels are equal, too. `neighbours` may be the memory of the keys. Returns 0, or -1 without
 * fail() if a sum is too large for a float. */
int graph_sort(struct graph_sort *sort, const uint64_t *keys, uint64_t count, uint32_t *neighbours, union arc_value *values, uint64_t rows,
               uint64_t nodes);

/* graph_write: writes a graph's file (graph.h) from edges in any order.
 *
 *   edges -> number of arcs of each node -> arcs stored by groups of nodes -> each group sorted -> doubles joined -> the file
 *
 * An edge that occurs more than once becomes one edge, whose weight is the sum of the weights (added from the smallest up, so that
 * the order of edges does not change the sum). Self-loops are left out. Memory: 8 bytes a node, and 8 bytes (12 with weights or labels) for
 * each of the arcs that are sorted at a time. The file does not depend on the number of threads, or of arcs at a time.
 */
/* The edges of which a graph is made, in the caller's memory. */
struct edges {
    const uint32_t *from, *to; /* edge i leads from node from[stride * i] to node to[stride * i] */
    const uint32_t *rows; /* [node number] row of the node; WORDS_ABSENT: its edges are left out. NULL: a node's number is its row */
    const float *weights; /* the weight of edge i is weights[weight_stride * i]; NULL: edges have no weights */
    const uint32_t *labels;     /* edges are triples: the relation of edge i is labels[stride * i]; NULL: edges have no labels */
    const uint32_t *label_rows; /* [relation's number] row of the relation; WORDS_ABSENT: its edges are left out */
    unsigned stride, weight_stride;
    uint64_t count;
    const struct vocab *degrees; /* vocabulary whose counts are the number of arcs of each row, doubles included; NULL: graph_write() counts the
                                  * arcs */
};

struct graph_wanted {
    const char *corpus; /* name of the corpus in messages */
    uint64_t fingerprint;
    uint64_t nodes; /* number of rows of the vocabulary */
    int directed;
    uint64_t at_once; /* number of arcs that are sorted in memory together; 0: as many as fit */
    double report_seconds;
};

/* How many edges were left out of a graph. Both numbers are 0 if `edges->degrees` was set: then nothing is left out. */
struct graph_left {
    uint64_t loops; /* edges from a node to itself */
    uint64_t lost;  /* edges with a node, or a relation, that has no row in the vocabulary */
};

/* Writes the graph atomically. Sets *left. Returns 0, or -1 after fail(). */
int graph_write(const char *path, const struct graph_wanted *wanted, const struct edges *edges, struct pool *pool, struct graph_left *left);

/* graph_make: makes a graph (graph.h) from a corpus of edges or triples and its vocabulary. The nodes are the vocabulary's words; an
 * edge with a word that is not in the vocabulary is left out. Relations of triples become labels if they have rows.
 *
 *   lines -> numbers of the edges' nodes (numbered.h), and the row of each number
 *         -> the graph's file
 */
/* Replaces options->weights = WEIGHTS_AUTO by WEIGHTS_YES if the corpus' first edges all have weights; otherwise leaves it, and edges have no
 * weights. Returns 0, or -1 after fail(). */
int graph_settle(struct corpus_options *options, const struct corpus *corpus);

/* Returns the fingerprint of the graph that this corpus, these options (after graph_settle()) and this vocabulary give. */
uint64_t graph_fingerprint(const struct corpus *corpus, const struct vocab *vocab,
                           const struct corpus_options *options);

/* Makes the graph's file `path` (atomically, with all threads) and opens it. Prints how many self-loops, edges of weight 0 and triples without
 * rows were left out. Returns 0, or -1 after fail(). */
int graph_make(struct graph *graph, const char *path, struct corpus *corpus, const struct vocab *vocab,
               const struct corpus_options *options, struct pool *pool);

#endif
