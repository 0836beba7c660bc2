/* Rows by id, through the library. Each optimizer, with tables in each place, is compared with the CPU's values; tables on the
 * GPU must agree byte by byte. Ids have many repeats or none; ids and values are in host or GPU memory; calls use two streams;
 * announced lists are fetched, changed before they are fetched, or never fetched. */
#include "common.h"

#include "sptx.h"

#include <cuda_runtime_api.h>

enum { MOST = 6000, OPERATIONS = 16, STEPS = 4 };

/* One of the tables that must agree, and its buffers. */
struct holder {
    const char *name;
    struct sptx_context *context;
    struct sptx_table *table;
    int on_gpu; /* 1: ids and values are passed in GPU memory; 0: in host memory */
    cudaStream_t stream;
    void *gpu_ids, *gpu_values;
    float *values; /* host buffer for fetched rows */
};

static void check_cuda(cudaError_t error, const char *what) {
    CHECK(error == cudaSuccess, "%s: %s", what, cudaGetErrorString(error));
}

static struct sptx_context *open_context(const char *device) {
    struct sptx_context_options options = SPTX_CONTEXT_OPTIONS;
    struct sptx_context *context;
    options.device = device;
    options.gpu_budget = (uint64_t)4 << 30;
    enum sptx_status status = sptx_open(&context, &options);
    CHECK(status == SPTX_OK, "%s: %s", device, sptx_error(context));
    return context;
}

struct case_of {
    const char *optimizer;
    uint32_t rows, dim, hot, momentum, amsgrad, centered, count_rows;
    double clip;
    enum { WHOLE, HALF_WEIGHTS, ALL_HALVES, KEPT_INT8, KEPT_FLOAT8 } kept; /* all float32; bfloat16 weights; bfloat16 weights and state; codes */
};

static void open_holder(struct holder *h, const struct case_of *c, uint32_t weights, uint32_t state, uint64_t hot) {
    struct sptx_table_options options;
    sptx_table_defaults(&options, sizeof options);
    options.rows = c->rows;
    options.dim = c->dim;
    options.weights = weights;
    options.state = state;
    options.hot_rows = hot;
    options.optimizer = c->optimizer;
    options.init = "uniform -0.5 0.5";
    options.lr = 0.05;
    options.clip = c->clip;
    options.directory = directory;
    options.count_rows = c->count_rows;
    options.amsgrad = c->amsgrad;
    options.centered = c->centered;
    const uint32_t dtypes[] = {SPTX_FLOAT32, SPTX_BFLOAT16, SPTX_BFLOAT16, SPTX_INT8, SPTX_FLOAT8};
    options.dtype = dtypes[c->kept];
    options.state_dtype = c->kept == ALL_HALVES ? SPTX_BFLOAT16 : SPTX_FLOAT32;
    if (c->momentum) options.momentum = 0.9;
    enum sptx_status status = sptx_table_open(h->context, &options, &h->table);
    CHECK(status == SPTX_OK, "%s %s: %s", h->name, c->optimizer, sptx_error(h->context));
    h->values = need((uint64_t)MOST * c->dim * sizeof(float));
    if (!h->on_gpu) return;
    check_cuda(cudaMalloc(&h->gpu_ids, MOST * sizeof(int64_t)), "ids");
    check_cuda(cudaMalloc(&h->gpu_values, ((uint64_t)MOST * c->dim + 3) * sizeof(float)), "values");
}

static void close_holder(struct holder *h) {
    sptx_table_close(h->table);
    free(h->values);
    cudaFree(h->gpu_ids);
    cudaFree(h->gpu_values);
    h->gpu_ids = h->gpu_values = NULL;
}

struct list {
    int64_t ids[MOST];
    int32_t narrow[MOST];
    uint64_t count;
    float values[MOST * 600];
};
static struct list current, announced, following;

/* Draws ids. Kind 0: a few rows, each often; 1: all rows with equal chances; 2: ascending, without repeats; 3: a single row,
 * repeated more often than one partial sum of an update covers. */
static void draw_list(struct list *list, uint32_t rows, uint32_t dim) {
    uint64_t kind = random_bits() % 4;
    list->count = 1 + random_bits() % MOST;
    if (kind == 2 && list->count > rows) list->count = rows;
    for (uint64_t i = 0; i < list->count; i++) {
        uint64_t id = kind == 0 ? random_bits() % rows % 37 : kind == 1 ? random_bits() % rows : kind == 2 ? i : rows - 1;
        list->narrow[i] = (int32_t)(list->ids[i] = (int64_t)id);
    }
    for (uint64_t i = 0; i < list->count * dim; i++) list->values[i] = random_float();
}

static struct sptx_ids ids_of(struct holder *h, const struct list *list, int narrow) {
    struct sptx_ids ids = {narrow ? (const void *)list->narrow : (const void *)list->ids, list->count, narrow ? 32 : 64,
                           SPTX_HOST};
    if (!h->on_gpu) return ids;
    cudaStreamSynchronize(h->stream); /* the GPU may still be reading the ids of an earlier prefetch from this buffer */
    sptx_wait(h->context);
    check_cuda(cudaMemcpyAsync(h->gpu_ids, ids.data, ids.count * ids.bits / 8, cudaMemcpyHostToDevice, h->stream), "ids");
    ids.data = h->gpu_ids;
    ids.memory = SPTX_CUDA;
    return ids;
}

static void fetch(struct holder *h, const struct list *list, uint32_t dim, int narrow, int odd) {
    struct sptx_ids ids = ids_of(h, list, narrow);
    uint64_t bytes = list->count * dim * sizeof(float);
    float *out = h->on_gpu ? (float *)h->gpu_values + odd : h->values; /* odd > 0: not aligned to 16 bytes */
    enum sptx_status status = sptx_fetch(h->table, &ids, out, h->on_gpu ? SPTX_CUDA : SPTX_HOST, h->stream);
    CHECK(status == SPTX_OK, "%s fetch: %s", h->name, sptx_error(h->context));
    if (!h->on_gpu) return;
    check_cuda(cudaMemcpyAsync(h->values, out, bytes, cudaMemcpyDeviceToHost, h->stream), "fetched");
    check_cuda(cudaStreamSynchronize(h->stream), "fetched");
}

static void change(struct holder *h, const struct list *list, uint32_t dim, int narrow, int odd, int update) {
    struct sptx_ids ids = ids_of(h, list, narrow);
    const float *values = list->values;
    if (h->on_gpu) {
        values = (float *)h->gpu_values + odd;
        check_cuda(cudaMemcpyAsync((float *)h->gpu_values + odd, list->values, list->count * dim * sizeof(float),
                                   cudaMemcpyHostToDevice, h->stream),
                   "values");
    }
    enum sptx_status status =
        (update ? sptx_update : sptx_store)(h->table, &ids, values, h->on_gpu ? SPTX_CUDA : SPTX_HOST, h->stream);
    CHECK(status == SPTX_OK, "%s %s: %s", h->name, update ? "update" : "store", sptx_error(h->context));
}

static void announce(struct holder *h, const struct list *list, int narrow) {
    struct sptx_ids ids = ids_of(h, list, narrow);
    enum sptx_status status = sptx_prefetch(h->table, &ids, h->stream);
    CHECK(status == SPTX_OK, "%s prefetch: %s", h->name, sptx_error(h->context));
}

/* Compares fetched values. holders[0] is the table of the CPU; all others are on the GPU and must be equal byte by byte. */
static void compare(const struct holder *holders, int count, uint64_t values, const struct case_of *c, int operation) {
    double worst = 0, apart = 0;
    for (uint64_t i = 0; i < values; i++) {
        double wanted = holders[0].values[i], off = fabs(holders[1].values[i] - wanted) / (1 + fabs(wanted));
        if (!(off <= worst)) worst = off;
        apart += !(off < 5e-5);
    }
    /* Both sides draw the same random bits for rounding, so only a few values differ by some steps. */
    const char *const types[] = {"float32", "bfloat16", "bfloat16", "int8", "float8"};
    CHECK(c->kept ? apart <= 0.02 * (double)values && worst < (c->kept == KEPT_FLOAT8 ? 0.3 : 0.1) : worst < 5e-5,
          "%s, %u columns of %s, operation %d: the GPU is %g from the CPU, and %g of the values are apart", c->optimizer, c->dim,
          types[c->kept], operation, worst, apart / (double)values);
    for (int h = 2; h < count; h++)
        CHECK(!memcmp(holders[1].values, holders[h].values, values * sizeof(float)),
              "%s, %u columns, operation %d: %s differs from %s", c->optimizer, c->dim, operation, holders[h].name,
              holders[1].name);
}

static void run_case(struct sptx_context *cpu, struct sptx_context *gpu, cudaStream_t streams[2], const struct case_of *c) {
    struct holder holders[] = {{"cpu", cpu, .on_gpu = 0},
                               {"gpu", gpu, .on_gpu = 1, .stream = streams[0]},
                               {"pinned", gpu, .on_gpu = 1, .stream = streams[1]},
                               {"pinned, some hot, given from the host", gpu, .on_gpu = 0},
                               {"weights pinned, state on the GPU", gpu, .on_gpu = 1, .stream = streams[0]},
                               {"file, some hot", gpu, .on_gpu = 1, .stream = streams[1]},
                               {"weights pinned, state in a file", gpu, .on_gpu = 0}};
    enum { HOLDERS = sizeof holders / sizeof *holders };
    const uint32_t places[HOLDERS][3] = {{0, 0, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {2, 2, 1}, {0, 2, 0}};
    int waiting = 0, stepping = 0; /* stepping: number of training steps to do yet */
    for (int h = 0; h < HOLDERS; h++) open_holder(&holders[h], c, places[h][0], places[h][1], places[h][2] ? c->hot : 0);
    for (int operation = 0; operation < OPERATIONS; operation++) {
        int what = (int)(random_bits() % 7), narrow = (int)(random_bits() % 2), odd = (int)(random_bits() % 4);
        draw_list(&current, c->rows, c->dim);
        if (what == 5 && waiting) { /* fetch the announced list, even if rows have changed since */
            waiting = 0;
            for (int h = 0; h < HOLDERS; h++) fetch(&holders[h], &announced, c->dim, narrow, odd);
            compare(holders, HOLDERS, announced.count * c->dim, c, operation);
            continue;
        }
        if (what == 6) { /* training steps: the next list is announced or not, this one is fetched and updated; rows are in both */
            int ahead = (int)(random_bits() % 2);
            for (stepping = STEPS; stepping; stepping--, current = following) {
                draw_list(&following, c->rows, c->dim);
                for (int h = 0; h < HOLDERS; h++) {
                    if (ahead && stepping > 1) announce(&holders[h], &following, narrow);
                    fetch(&holders[h], &current, c->dim, narrow, odd);
                }
                compare(holders, HOLDERS, current.count * c->dim, c, operation);
                for (int h = 0; h < HOLDERS; h++) change(&holders[h], &current, c->dim, narrow, odd, 1);
            }
            continue;
        }
        if (what >= 4) {
            announced = current;
            waiting = 1;
        }
        for (int h = 0; h < HOLDERS; h++) {
            if (what >= 4) announce(&holders[h], &announced, narrow);
            else if (what >= 1) change(&holders[h], &current, c->dim, narrow, odd, what >= 2);
            else fetch(&holders[h], &current, c->dim, narrow, odd);
        }
        if (what == 0) compare(holders, HOLDERS, current.count * c->dim, c, operation);
    }
    current.count = c->rows < MOST ? c->rows : MOST;
    for (uint64_t i = 0; i < current.count; i++) current.ids[i] = (int64_t)i;
    for (int h = 0; h < HOLDERS; h++) fetch(&holders[h], &current, c->dim, 0, 0);
    compare(holders, HOLDERS, current.count * c->dim, c, OPERATIONS);
    CHECK(sptx_wait(gpu) == SPTX_OK, "%s", sptx_error(gpu));
    for (int h = 0; h < HOLDERS; h++) close_holder(&holders[h]);
}

/* Ids in GPU memory are checked on the GPU: bad ids are skipped, and one wait reports them. */
static void check_bad_ids(struct sptx_context *gpu) {
    struct case_of c = {.optimizer = "sgd", .rows = 10, .dim = 4, .count_rows = 1};
    struct holder h = {"pinned", gpu, .on_gpu = 1};
    int64_t given[4] = {3, 10, -1, 4};
    float before[16], after[16];
    open_holder(&h, &c, 0, 0, 0);
    for (int i = 0; i < 16; i++) before[i] = -7;
    struct sptx_ids ids = {h.gpu_ids, 4, 64, SPTX_CUDA};
    cudaMemcpy(h.gpu_ids, given, sizeof given, cudaMemcpyHostToDevice);
    cudaMemcpy(h.gpu_values, before, sizeof before, cudaMemcpyHostToDevice);
    CHECK(sptx_fetch(h.table, &ids, h.gpu_values, SPTX_CUDA, NULL) == SPTX_OK, "%s", sptx_error(gpu));
    cudaMemcpy(after, h.gpu_values, sizeof after, cudaMemcpyDeviceToHost);
    CHECK(after[0] != -7 && after[4] == -7 && after[8] == -7 && after[12] != -7, "rows that are none were fetched");
    CHECK(sptx_wait(gpu) == SPTX_FAILED && strstr(sptx_error(gpu), "no rows"), "%s", sptx_error(gpu));
    CHECK(sptx_wait(gpu) == SPTX_OK, "said twice: %s", sptx_error(gpu));
    close_holder(&h);
}

/* What is stored has the same bytes on the CPU and on the GPU: stored from the host or the GPU, few rows or many, often or once. */
static void check_stored_codes(struct sptx_context *cpu, struct sptx_context *gpu) {
    static const uint32_t dims[] = {1, 5, 16, 64, 127, 130, 600};
    for (size_t i = 0; i < 2 * sizeof dims / sizeof *dims; i++) {
        struct case_of c = {.optimizer = "adam", .rows = 2500, .dim = dims[i / 2], .count_rows = 1, .kept = i % 2 ? KEPT_INT8 : KEPT_FLOAT8};
        struct holder holders[] = {{"cpu", cpu, .on_gpu = 0}, {"gpu", gpu, .on_gpu = 1}, {"pinned", gpu, .on_gpu = 0},
                                   {"pinned, some hot", gpu, .on_gpu = 1}};
        for (int h = 0; h < 4; h++) open_holder(&holders[h], &c, h == 1, h == 1, h == 3 ? 700 : 0);
        for (int round = 0; round < 8; round++) {
            draw_list(&current, c.rows, c.dim);
            for (int h = 0; h < 4; h++) change(&holders[h], &current, c.dim, round & 1, 0, 0);
            for (int h = 0; h < 4; h++) fetch(&holders[h], &current, c.dim, 0, round & 3);
            for (int h = 1; h < 4; h++)
                CHECK(!memcmp(holders[0].values, holders[h].values, current.count * c.dim * sizeof(float)),
                      "%u columns of %s: what is stored differs between the CPU and %s", c.dim, i % 2 ? "int8" : "float8", holders[h].name);
        }
        for (int h = 0; h < 4; h++) close_holder(&holders[h]);
    }
}

/* The widest records, which need the most shared memory; and a gradient with a NaN, which makes its whole row NaN. */
static void check_wide_codes(struct sptx_context *cpu, struct sptx_context *gpu) {
    for (int kind = KEPT_INT8; kind <= KEPT_FLOAT8; kind++) {
        struct case_of c = {.optimizer = "adam", .rows = 300, .dim = 4096, .amsgrad = 1, .count_rows = 1, .kept = kind};
        struct holder holders[] = {{"cpu", cpu, .on_gpu = 0}, {"gpu", gpu, .on_gpu = 1}, {"pinned", gpu, .on_gpu = 1}};
        for (int h = 0; h < 3; h++) open_holder(&holders[h], &c, h == 1, h == 1, 0);
        current.count = 400;
        for (uint64_t i = 0; i < current.count; i++) current.ids[i] = current.narrow[i] = (int32_t)(i % c.rows);
        for (int round = 0; round < 3; round++) {
            for (uint64_t i = 0; i < current.count * c.dim; i++) current.values[i] = random_float();
            for (int h = 0; h < 3; h++) change(&holders[h], &current, c.dim, 0, 0, 1);
            for (int h = 0; h < 3; h++) fetch(&holders[h], &current, c.dim, 0, 0);
            compare(holders, 3, current.count * c.dim, &c, round);
        }
        current.count = 2;
        current.values[5] = NAN;
        for (int h = 0; h < 3; h++) change(&holders[h], &current, c.dim, 0, 0, 1);
        for (int h = 0; h < 3; h++) fetch(&holders[h], &current, c.dim, 0, 0);
        for (int h = 0; h < 3; h++)
            for (uint32_t i = 0; i < c.dim; i++)
                CHECK(isnan(holders[h].values[i]) && isfinite(holders[h].values[c.dim + i]), "%s: a row with a NaN in column %u", holders[h].name, i);
        for (int h = 0; h < 3; h++) close_holder(&holders[h]);
    }
}

void test_by_id(void) {
    static const struct case_of cases[] = {
        {.optimizer = "sgd", .rows = 5000, .dim = 128, .hot = 700},
        {.optimizer = "sgd", .rows = 300, .dim = 4, .hot = 300, .momentum = 1},
        {.optimizer = "adagrad", .rows = 2000, .dim = 101, .hot = 1, .clip = 0.5},
        {.optimizer = "adadelta", .rows = 900, .dim = 64, .hot = 64},
        {.optimizer = "rmsprop", .rows = 900, .dim = 33, .hot = 20, .momentum = 1, .centered = 1},
        {.optimizer = "adam", .rows = 1500, .dim = 257, .hot = 500, .count_rows = 1},
        {.optimizer = "adam", .rows = 1500, .dim = 384, .hot = 500, .amsgrad = 1},
        {.optimizer = "adamw", .rows = 700, .dim = 512, .hot = 10, .count_rows = 1},
        {.optimizer = "adam", .rows = 700, .dim = 510, .hot = 10, .amsgrad = 1, .count_rows = 1}, /* the widest that visits */
        {.optimizer = "sparse_adam", .rows = 700, .dim = 516, .hot = 10},
        {.optimizer = "adamax", .rows = 2900, .dim = 400, .hot = 290, .count_rows = 1, .clip = 1},
        {.optimizer = "adamax", .rows = 901, .dim = 65, .hot = 450, .count_rows = 1}, /* the most hot rows that visit */
        {.optimizer = "adamax", .rows = 901, .dim = 65, .hot = 451, .count_rows = 1},
        {.optimizer = "asgd", .rows = 800, .dim = 2, .hot = 8, .count_rows = 1},
        {.optimizer = "rprop", .rows = 800, .dim = 1, .hot = 8},
        {.optimizer = "rowwise_adagrad", .rows = 2000, .dim = 101, .hot = 1, .clip = 0.5},
        {.optimizer = "rowwise_adagrad", .rows = 900, .dim = 128, .hot = 451},
        {.optimizer = "rowwise_adagrad", .rows = 700, .dim = 516, .hot = 10},
        {.optimizer = "rowwise_adagrad", .rows = 800, .dim = 1, .hot = 8},
        {.optimizer = "rowwise_adam", .rows = 900, .dim = 101, .hot = 451, .clip = 0.5, .count_rows = 1},
        {.optimizer = "rowwise_adam", .rows = 900, .dim = 128, .hot = 20, .kept = ALL_HALVES},
        {.optimizer = "sgd", .rows = 5000, .dim = 128, .hot = 700, .kept = HALF_WEIGHTS},
        {.optimizer = "sgd", .rows = 300, .dim = 4, .hot = 300, .momentum = 1, .kept = ALL_HALVES},
        {.optimizer = "adagrad", .rows = 2000, .dim = 101, .hot = 1, .clip = 0.5, .kept = HALF_WEIGHTS},
        {.optimizer = "rowwise_adagrad", .rows = 2000, .dim = 101, .hot = 1, .clip = 0.5, .kept = HALF_WEIGHTS},
        {.optimizer = "adam", .rows = 1500, .dim = 257, .hot = 500, .count_rows = 1, .kept = ALL_HALVES},
        {.optimizer = "adam", .rows = 700, .dim = 510, .hot = 10, .amsgrad = 1, .count_rows = 1, .kept = HALF_WEIGHTS},
        {.optimizer = "adamax", .rows = 2900, .dim = 400, .hot = 290, .count_rows = 1, .kept = ALL_HALVES},
        {.optimizer = "adamax", .rows = 901, .dim = 65, .hot = 450, .count_rows = 1, .kept = ALL_HALVES},
        {.optimizer = "sparse_adam", .rows = 700, .dim = 516, .hot = 10, .kept = ALL_HALVES},
        {.optimizer = "sgd", .rows = 5000, .dim = 128, .hot = 700, .kept = KEPT_INT8},
        {.optimizer = "sgd", .rows = 300, .dim = 4, .hot = 300, .momentum = 1, .kept = KEPT_FLOAT8},
        {.optimizer = "rowwise_adagrad", .rows = 2000, .dim = 64, .hot = 1, .clip = 0.5, .kept = KEPT_INT8},
        {.optimizer = "rowwise_adagrad", .rows = 900, .dim = 101, .hot = 451, .kept = KEPT_FLOAT8},
        {.optimizer = "rowwise_adam", .rows = 900, .dim = 65, .hot = 20, .count_rows = 1, .kept = KEPT_INT8},
        {.optimizer = "adam", .rows = 700, .dim = 510, .hot = 10, .amsgrad = 1, .count_rows = 1, .kept = KEPT_INT8},
        {.optimizer = "adamax", .rows = 800, .dim = 1, .hot = 8, .count_rows = 1, .kept = KEPT_FLOAT8},
    };
    struct sptx_context *cpu = open_context("cpu"), *gpu = open_context("cuda");
    cudaStream_t streams[2];
    for (int i = 0; i < 2; i++) check_cuda(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "stream");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(cpu, gpu, streams, &cases[i]);
    check_bad_ids(gpu);
    check_stored_codes(cpu, gpu);
    check_wide_codes(cpu, gpu);
    for (int i = 0; i < 2; i++) cudaStreamDestroy(streams[i]);
    sptx_close(cpu);
    sptx_close(gpu);
}
