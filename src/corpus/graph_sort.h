/* graph_sort: sorts the arcs of some rows of a graph and joins arcs that occur more than once. */
#ifndef SPTX_GRAPH_SORT_H
#define SPTX_GRAPH_SORT_H

#include <stdint.h>

/* Bounds for a group of rows, which should fit a core's cache; one row alone may have more arcs. */
enum { SORT_ARCS = 1 << 15, SORT_ROWS = 1 << 15 };

/* A worker's memory. */
struct graph_sort {
    uint64_t *ends;         /* [SORT_ROWS], the caller's: where each row ends among the arcs, before and after */
    uint64_t *keys, *other; /* [capacity] */
    float *weights, *other_weights;
    uint64_t capacity;
    uint64_t wrong_row; /* the edge whose weights have no sum */
    uint32_t wrong_neighbour;
};

/* Makes room for as many arcs. */
int graph_sort_grow(struct graph_sort *sort, uint64_t arcs, int weighted);
void graph_sort_release(struct graph_sort *sort);

/* Sorts the arcs of rows [rows], the first of which begins at place 0 and which end at sort->ends, by their neighbour
 * (below `nodes`); weights [arcs] may be NULL. Arcs of one row to one neighbour become one, whose weight is the sum of
 * theirs. The rows then lie without gaps, and sort->ends has their new ends. Returns -1, and no sentence, where a sum
 * is more than a float holds. */
int graph_sort(struct graph_sort *sort, uint32_t *neighbours, float *weights, uint64_t rows, uint64_t nodes);

#endif
