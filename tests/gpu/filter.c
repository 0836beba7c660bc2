/* Rows spread over a graph. Both backends must find the same rows, except for rounding: for nodes without arcs, for a node with
 * very many arcs, with weights, and for more and fewer columns than one pass handles. If a GPU lacks the memory, it must say so
 * and leave the rows unchanged. */
#include "common.h"

struct spread {
    struct filter_request request;
    uint64_t *starts;
    uint32_t *neighbours;
    float *weights, *x;
};

/* Makes a graph: node 0 has an arc to most other nodes, and each of these has one back and a few more; every seventh node has no
 * arc. */
static struct spread spread_make(uint64_t nodes, uint32_t dim, int weighted) {
    struct spread s = {
        .starts = need((nodes + 1) * 8), .neighbours = need(nodes * 8 * 4), .weights = need(nodes * 8 * 4)};
    uint64_t arcs = 0;
    for (uint64_t node = 0; node < nodes; node++) {
        s.starts[node] = arcs;
        if (node % 7 == 6) continue;
        uint64_t degree = node ? 1 + random_bits() % 5 : nodes - 1;
        for (uint64_t i = 0; i < degree; i++)
            s.neighbours[arcs++] = (uint32_t)(node ? i ? random_bits() % nodes : 0 : i + 1);
    }
    s.starts[nodes] = arcs;
    for (uint64_t arc = 0; arc < arcs; arc++) s.weights[arc] = 1 + fabsf(random_float());
    s.x = need(nodes * dim * 4);
    for (uint64_t i = 0; i < nodes * dim; i++) s.x[i] = random_float();
    s.request = (struct filter_request){.starts = s.starts,
                                        .neighbours = s.neighbours,
                                        .weights = weighted ? s.weights : NULL,
                                        .loop = 1,
                                        .nodes = nodes,
                                        .arcs = arcs,
                                        .dim = dim};
    return s;
}

static void spread_free(struct spread *s) {
    free(s->starts);
    free(s->neighbours);
    free(s->weights);
    free(s->x);
}

/* Returns the rows after the filter, for the caller to free. *result: the value that the call returned. */
static float *run(const struct backend_ops *ops, uint64_t budget, const struct spread *s, int *result) {
    struct backend *backend = NULL;
    struct backend_options options = {.threads = 2, .depth = 1, .gpu_budget = budget};
    struct filter_request request = s->request;
    uint64_t bytes = request.nodes * request.dim * 4;
    request.x = need(bytes);
    memcpy(request.x, s->x, bytes);
    *result = ops->open(&backend, &options) ? -1 : ops->filter(backend, &request);
    if (backend) ops->close(backend);
    return request.x;
}

static double largest_difference(const float *a, const float *b, uint64_t count) {
    double most = 0;
    for (uint64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]) / (1 + fabs((double)a[i])));
    return most;
}

void test_filter(void) {
    static const struct {
        uint64_t nodes;
        uint32_t dim;
        int weighted;
    } cases[] = {{1, 1, 0},    {5, 3, 1},     {700, 31, 0}, {700, 32, 1},
                 {700, 33, 0}, {8193, 64, 1}, {8194, 5, 0}, {40000, 128, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spread s = spread_make(cases[i].nodes, cases[i].dim, cases[i].weighted);
        int on_cpu, on_gpu, without;
        float *cpu = run(&backend_cpu, UINT64_MAX, &s, &on_cpu), *gpu = run(&backend_cuda, UINT64_MAX, &s, &on_gpu);
        double apart = largest_difference(cpu, gpu, cases[i].nodes * cases[i].dim);
        CHECK(!on_cpu && !on_gpu && apart < 2e-4, "filter: %llu nodes x %u columns: returned %d and %d, %.3g apart",
              (unsigned long long)cases[i].nodes, cases[i].dim, on_cpu, on_gpu, apart);
        float *kept = run(&backend_cuda, (uint64_t)48 << 20, &s, &without);
        CHECK(without == 1 && !memcmp(kept, s.x, cases[i].nodes * cases[i].dim * 4),
              "filter: without memory it returned %d and changed rows", without);
        free(cpu);
        free(gpu);
        free(kept);
        spread_free(&s);
    }
}
