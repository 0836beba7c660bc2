/* tiny_graph: a vocabulary and a graph in plain memory, for tests of code that walks and needs no files. */
#ifndef SPTX_TEST_TINY_GRAPH_H
#define SPTX_TEST_TINY_GRAPH_H

#include "tests/unit/tiny_corpus.h"

struct tiny_graph {
    struct vocab vocab;
    struct graph graph;
    uint64_t *starts;
    uint32_t *neighbours;
    float *weights; /* NULL: edges have no weights */
};

static int tiny_by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Makes about `degree` edges for each node between random pairs of nodes, the first nodes more often; then an edge from each
 * node to the next, so that every node has a neighbour. */
static void tiny_graph_make(struct tiny_graph *g, uint64_t nodes, uint64_t degree, int weighted) {
    uint64_t most = nodes * degree + 2 * nodes, *arcs = calloc(most, sizeof *arcs), count = 0, kept = 0;
    for (uint64_t i = 0; i < nodes * (degree + 2) / 2; i++) {
        struct draw4 drawn = draw_at(9, DRAW_GENERATE, i, 2, 0);
        double u = ldexp(drawn.word[0], -32);
        uint64_t a = i < nodes ? i : (uint64_t)(u * u * (double)nodes), b = i < nodes ? (i + 1) % nodes : drawn.word[1] % nodes;
        if (a != b) arcs[count++] = a << 32 | b, arcs[count++] = b << 32 | a;
    }
    qsort(arcs, count, sizeof *arcs, tiny_by_value);
    *g = (struct tiny_graph){.starts = calloc(nodes + 1, sizeof *g->starts), .neighbours = calloc(count, sizeof *g->neighbours)};
    g->vocab.counts = calloc(nodes, sizeof *g->vocab.counts);
    if (weighted) g->weights = calloc(count, sizeof *g->weights);
    for (uint64_t i = 0; i < count; i++) {
        if (i && arcs[i] == arcs[i - 1]) continue;
        if (weighted) g->weights[kept] = 0.5f + (float)((arcs[i] >> 32) + (uint32_t)arcs[i]) / (float)nodes;
        g->neighbours[kept++] = (uint32_t)arcs[i];
        g->vocab.counts[arcs[i] >> 32]++;
        g->starts[(arcs[i] >> 32) + 1] = kept;
    }
    free(arcs);
    g->vocab.size = g->vocab.distinct = nodes;
    g->vocab.tokens = g->vocab.kept = kept;
    g->vocab.words = (struct words){.size = nodes, .used = 8 * nodes, .slot_count = 2 * nodes}; /* for vocab_bytes() */
    g->graph = (struct graph){
        .starts = g->starts, .neighbours = g->neighbours, .weights = g->weights, .nodes = nodes, .arcs = kept};
}

static void tiny_graph_free(struct tiny_graph *g) {
    free(g->starts);
    free(g->neighbours);
    free(g->weights);
    free(g->vocab.counts);
}

/* Returns a resolved config for the tiny graph. */
__attribute__((unused)) static struct config tiny_graph_config(void) {
    struct config c = tiny_config(MODE_WALK);
    c.walks_length = 12;
    c.walks_per_node = 3;
    c.walks_p = c.walks_q = 1;
    return c;
}

#endif
