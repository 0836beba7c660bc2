/* Measures pairs per second of two large shapes, with rows in different places. */
#include "common.h"

struct shape {
    const char *name;
    uint64_t rows;
    uint32_t dim;
    int rule;
};

static int fill_large(struct tables *t, const struct rule_options *rule) {
    const uint64_t piece = 1 << 15;
    char *records = first_records(rule, &t->layout, piece);
    int result = 0;
    for (int side = 0; side < 2; side++)
        for (uint64_t at = 0; at < t->rows && !result; at += piece)
            result = t->ops->table_write(t->backend, t->side[side], at, t->rows - at < piece ? t->rows - at : piece,
                                         records);
    free(records);
    return result;
}

static void measure_speed(const struct shape *shape, const struct placing placing[2], unsigned depth, uint64_t batch,
                          int counted) {
    struct rule_options rule = options_of(shape->rule);
    struct backend *gpu = NULL;
    struct backend_options options = {.depth = depth, .gpu_budget = UINT64_MAX};
    struct corpus c = {.rows = shape->rows, .sentences = 1 << 20};
    struct tables t;
    double began = now(), opened, start;
    rule.count_rows = counted;
    rule.lr = 0.002;
    c.tokens = c.sentences * 8;
    c.ids = need(c.tokens * 4);
    c.starts = need((c.sentences + 1) * 8);
    for (uint64_t i = 0; i < c.tokens; i++) c.ids[i] = (uint32_t)(random_bits() % c.rows);
    for (uint64_t i = 0; i <= c.sentences; i++) c.starts[i] = i * 8;
    struct example_source s = source_of(&c, EXAMPLE_LIST);
    s.noise = NOISE_UNIFORM, s.negatives = 64, s.shuffle = 1;
    s.exclude = 0;
    if (backend_cuda.open(&gpu, &options) ||
        tables_open(&t, &backend_cuda, gpu, &rule, shape->dim, shape->rows, placing) || fill_large(&t, &rule) ||
        backend_cuda.source(gpu, &s)) {
        printf("%s: %s\n", shape->name, report_sentence());
        report_clear();
        if (gpu) backend_cuda.close(gpu);
        return;
    }
    opened = now() - began;
    uint64_t pairs = 0, link = 0;
    int steps = (int)(c.sentences / batch), warm = 16;
    if (steps > 2000) steps = 2000;
    double loss = 0;
    start = now();
    for (int i = 0; i < steps + (int)depth; i++) {
        unsigned stage = (unsigned)i % depth;
        struct step_result done = {0};
        if (i >= (int)depth) {
            if (backend_cuda.result(gpu, stage, &done)) break;
            if (i - (int)depth == warm) start = now();
            if (i - (int)depth > warm) pairs += done.pairs, link += done.link_bytes;
            loss = done.loss;
        }
        if (i >= steps) continue;
        struct batch_request request = {0, (uint64_t)i * batch, batch, 0};
        struct step_request step = {.rule = &rule, .lr = 0.002, .global_step = (uint64_t)i};
        if (backend_cuda.make_batch(gpu, stage, &request) || one_step(&t, stage, &step)) break;
    }
    double seconds = now() - start;
    printf("%-34s batch %6llu depth %u %s/%s%s hot %llu: %8.2f M pairs/s, link %5.1f GB/s, %.3f ms a step (%d), loss "
           "%.4g, opened in %.1f s%s%s\n",
           shape->name, (unsigned long long)batch, depth, placing[0].name, placing[1].name, counted ? " counted" : "",
           (unsigned long long)placing[0].hot_rows, (double)pairs / seconds * 1e-6, (double)link / seconds * 1e-9,
           seconds / (steps - warm - 1) * 1e3, steps, loss, opened, *report_sentence() ? " | " : "", report_sentence());
    report_clear();
    fflush(stdout);
    tables_close(&t);
    backend_cuda.close(gpu);
    free(c.ids);
    free(c.starts);
}

/* Measures three placings: all rows on the GPU; all targets and their state in host memory; the same, but a tenth of the rows, those used
 * most, on the GPU. */
static void large_batches(const struct shape *shape) {
    struct placing hot[2] = {PLACES[1][0], PLACES[1][1]};
    hot[0].hot_rows = shape->rows / 10;
    for (uint64_t batch = 16384; batch <= 32768; batch *= 2) {
        measure_speed(shape, PLACES[0], 3, batch, 0);
        measure_speed(shape, PLACES[1], 3, batch, 0);
        measure_speed(shape, PLACES[1], 5, batch, 0);
        measure_speed(shape, hot, 5, batch, 0);
    }
}

/* Measures the cost of kernel launches, with batches as small as the notebooks'. */
static void small_batches(const struct shape *shape) {
    measure_speed(shape, PLACES[1], 3, 4096, 0);
    measure_speed(shape, PLACES[1], 3, 512, 0);
    measure_speed(shape, PLACES[1], 5, 512, 0);
    measure_speed(shape, PLACES[0], 3, 512, 0);
    measure_speed(shape, PLACES[1], 5, 128, 0);
}

void speed(const char *which) {
    static const struct shape shapes[] = {{"2.83M x 400 adamax", 2829853, 400, RULE_ADAMAX},
                                          {"14.9M x 188 sgd", 14886544, 188, RULE_SGD}};
    for (int i = 0; i < 2; i++) {
        if (strcmp(which, "small")) large_batches(&shapes[i]);
        if (strcmp(which, "large")) small_batches(&shapes[i]);
    }
}
