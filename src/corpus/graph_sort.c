#include "graph_sort.h"

#include "base/memory.h"
#include "base/report.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

int graph_sort_grow(struct graph_sort *sort, uint64_t arcs, int weighted) {
    if (!sort->ends || arcs > sort->capacity) { /* even a group without arcs needs `ends` */
        uint64_t need = arcs > SORT_ARCS ? arcs : SORT_ARCS;
        graph_sort_release(sort);
        sort->ends = mem_alloc(SORT_ROWS, sizeof *sort->ends, "sorting arcs");
        sort->keys = mem_alloc(need, sizeof *sort->keys, "sorting arcs");
        sort->other = mem_alloc(need, sizeof *sort->other, "sorting arcs");
        sort->weights = weighted ? mem_alloc(need, sizeof *sort->weights, "sorting arcs") : NULL;
        sort->other_weights = weighted ? mem_alloc(need, sizeof *sort->weights, "sorting arcs") : NULL;
        if (!sort->ends || !sort->keys || !sort->other || (weighted && (!sort->weights || !sort->other_weights)))
            return -1;
        sort->capacity = need;
    }
    return 0;
}

void graph_sort_release(struct graph_sort *sort) {
    free(sort->ends);
    free(sort->keys);
    free(sort->other);
    free(sort->weights);
    free(sort->other_weights);
    *sort = (struct graph_sort){0};
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Sorts the keys by one digit of the neighbour; keys with equal digits keep their order. */
static void sort_by_digit(struct graph_sort *sort, uint64_t count, unsigned shift, int weighted) {
    uint64_t next[DIGITS] = {0}, sum = 0;
    for (uint64_t i = 0; i < count; i++) next[sort->keys[i] >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        uint64_t here = next[d];
        next[d] = sum;
        sum += here;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t place = next[sort->keys[i] >> shift & (DIGITS - 1)]++;
        sort->other[place] = sort->keys[i];
        if (weighted) sort->other_weights[place] = sort->weights[i];
    }
    uint64_t *keys = sort->keys;
    float *weights = sort->weights;
    sort->keys = sort->other;
    sort->weights = sort->other_weights;
    sort->other = keys;
    sort->other_weights = weights;
}

/* Copies the keys, and finds where each row ends. */
static void take_keys(struct graph_sort *sort, const uint64_t *keys, uint64_t count, const float *weights, uint64_t rows) {
    memset(sort->ends, 0, rows * sizeof *sort->ends);
    for (uint64_t i = 0; i < count; i++) {
        sort->keys[i] = keys[i];
        sort->ends[keys[i] >> 32]++;
    }
    for (uint64_t row = 1; row < rows; row++) sort->ends[row] += sort->ends[row - 1];
    if (weights && count) memcpy(sort->weights, weights, count * sizeof *weights);
}

/* Stores each neighbour at the next free place of its row, so each row's neighbours rise. */
static void put_keys(struct graph_sort *sort, uint32_t *neighbours, float *weights, uint64_t rows, uint64_t count) {
    uint64_t begin = 0;
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t end = sort->ends[row];
        sort->ends[row] = begin;
        begin = end;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t place = sort->ends[sort->keys[i] >> 32]++;
        neighbours[place] = (uint32_t)sort->keys[i];
        if (weights) weights[place] = sort->weights[i];
    }
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Returns the sum of weights[count]. They are added from the smallest up, so that their order does not change the result. */
static double sum_of(float *weights, uint64_t count) {
    double sum = 0;
    if (count > 1) qsort(weights, count, sizeof *weights, by_value);
    for (uint64_t i = 0; i < count; i++) sum += weights[i];
    return sum;
}

/* Joins arc `at` and the arcs after it with the same neighbour into arc `to`. Returns how many arcs were joined; 0 if the sum of
 * their weights is too large for a float. */
static uint64_t join(uint32_t *neighbours, float *weights, uint64_t at, uint64_t end, uint64_t to) {
    uint64_t stop = at + 1;
    while (stop < end && neighbours[stop] == neighbours[at]) stop++;
    neighbours[to] = neighbours[at];
    if (weights) {
        double sum = sum_of(weights + at, stop - at);
        if (sum > FLT_MAX) return 0;
        weights[to] = (float)sum;
    }
    return stop - at;
}

static int join_doubles(struct graph_sort *sort, uint32_t *neighbours, float *weights, uint64_t rows) {
    uint64_t at = 0, to = 0;
    for (uint64_t row = 0; row < rows; row++) {
        while (at < sort->ends[row]) {
            uint64_t joined = join(neighbours, weights, at, sort->ends[row], to);
            if (!joined) {
                sort->wrong_row = row;
                sort->wrong_neighbour = neighbours[at];
                return -1;
            }
            at += joined;
            to++;
        }
        sort->ends[row] = to;
    }
    return 0;
}

/* Returns 1 if the neighbours of each row are in rising order, each once. */
static int neighbours_rise(const struct graph_sort *sort, const uint32_t *neighbours, uint64_t rows) {
    for (uint64_t row = 0, at = 0; row < rows; at = sort->ends[row++])
        for (uint64_t next = at + 1; next < sort->ends[row]; next++)
            if (neighbours[next - 1] >= neighbours[next]) return 0;
    return 1;
}

int graph_sort(struct graph_sort *sort, const uint64_t *keys, uint64_t count, uint32_t *neighbours, float *weights, uint64_t rows,
               uint64_t nodes) {
    take_keys(sort, keys, count, weights, rows);
    for (unsigned shift = 0; shift < 32 && (nodes - 1) >> shift; shift += DIGIT_BITS)
        sort_by_digit(sort, count, shift, weights != NULL);
    put_keys(sort, neighbours, weights, rows, count);
    int result = join_doubles(sort, neighbours, weights, rows);
    INVARIANT(result || neighbours_rise(sort, neighbours, rows));
    return result;
}
