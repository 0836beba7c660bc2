#include "examples_walks.h"

#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { NODES_AT_ONCE = 1024 };

/* ---- weights ---- */

struct tables {
    const struct graph *graph;
    struct alias *arcs;
    double *weights; /* [threads x most arcs of a node] */
    uint64_t most;
    _Atomic uint64_t taken;
};

static uint64_t arcs_of(const struct graph *graph, uint64_t node) {
    return graph->starts[node + 1] - graph->starts[node];
}

static int make_table(const struct tables *t, uint64_t node, double *weights) {
    uint64_t first = t->graph->starts[node], count = arcs_of(t->graph, node);
    if (!count) return 0;
    for (uint64_t i = 0; i < count; i++) weights[i] = t->graph->weights[first + i];
    return examples_alias(t->arcs + first, weights, count);
}

static int make_tables_of_nodes(void *context, unsigned worker) {
    struct tables *t = context;
    uint64_t node, end;
    while (pool_take(&t->taken, t->graph->nodes, NODES_AT_ONCE, &node, &end))
        for (; node < end; node++)
            if (make_table(t, node, t->weights + worker * t->most)) return -1;
    return 0;
}

/* Makes one alias table a node, from which a walk draws its next arc by weight with a single draw. */
static int make_arcs(struct examples *examples, const struct graph *graph, struct pool *pool) {
    struct tables t = {.graph = graph};
    for (uint64_t i = 0; i < graph->nodes; i++)
        if (arcs_of(graph, i) > t.most) t.most = arcs_of(graph, i);
    t.arcs = examples->arcs = mem_alloc(graph->arcs, sizeof *t.arcs, "the tables of a graph's weights");
    t.weights = mem_alloc(t.most * pool_threads(pool), sizeof *t.weights, "the tables of a graph's weights");
    int result = t.arcs && t.weights ? pool_run(pool, make_tables_of_nodes, &t) : -1;
    free(t.weights);
    return result;
}

/* ---- the graph ---- */

int examples_take_graph(struct examples *examples, const struct config *config, const struct graph *graph, struct pool *pool) {
    struct example_source *source = &examples->source;
    struct walks *walks = &source->walks;
    if (!graph->arcs)
        return fail("no edge of the graph joins two nodes of the vocabulary, so there is nowhere to walk; lower corpus.min_count, "
                    "or check corpus.format");
    if (graph->weights && make_arcs(examples, graph, pool)) return -1;
    *walks = (struct walks){.starts = graph->starts,
                            .neighbours = graph->neighbours,
                            .alias = examples->arcs,
                            .nodes = graph->nodes,
                            .arcs = graph->arcs,
                            .length = (uint32_t)config->walks_length,
                            .per_node = (uint32_t)config->walks_per_node};
    walks_set_biases(walks, config->walks_p, config->walks_q, graph->directed);
    source->sentences = walks_count(walks);
    source->tokens = walks_positions(walks);
    source->longest = walks->length;
    return 0;
}
