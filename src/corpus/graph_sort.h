/* graph_sort: sorts the arcs of some rows of a graph, and joins arcs that lead to the same neighbour. */
#ifndef SPTX_GRAPH_SORT_H
#define SPTX_GRAPH_SORT_H

#include <stdint.h>

/* Limits for a group of rows, so that it fits a core's cache; a single row may have more arcs. */
enum { SORT_ARCS = 1 << 15, SORT_ROWS = 1 << 15 };

/* Memory of one worker for sorting. */
struct graph_sort {
    uint64_t *ends;         /* [SORT_ROWS] result of graph_sort(): for each row, the index after its last arc */
    uint64_t *keys, *other; /* [capacity] each */
    float *weights, *other_weights;
    uint64_t capacity;
    uint64_t wrong_row; /* after a failure: the row, and the neighbour, of the arc whose summed weight is too large */
    uint32_t wrong_neighbour;
};

/* Reserves memory for `arcs` arcs. */
int graph_sort_grow(struct graph_sort *sort, uint64_t arcs, int weighted);
void graph_sort_release(struct graph_sort *sort);

/* Sorts `count` arcs by row and then by neighbour, and stores the neighbours. A key is the number of the row, below `rows`, in its
 * upper 32 bits, and the neighbour, below `nodes`. weights: [count], or NULL. Arcs of a row to the same neighbour are joined, and their
 * weights added. `neighbours` may be the memory of the keys. Returns 0, or -1 without a sentence if a sum is too large for a float. */
int graph_sort(struct graph_sort *sort, const uint64_t *keys, uint64_t count, uint32_t *neighbours, float *weights, uint64_t rows,
               uint64_t nodes);

#endif
