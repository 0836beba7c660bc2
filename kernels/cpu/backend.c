/* backend_cpu: the interface of backend.h on the processor. Each call has done its work when it returns. */
#define _GNU_SOURCE
#include "cpu.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "kernels/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- stores ---- */

/* Maps memory of zeros, in huge pages if the system allows, because a table's rows are used in random order. */
static int map_memory(struct cpu_store *store, const char *name) {
    void *base = mmap(NULL, store->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return fail("not enough memory for the %s table (%llu bytes): %s", name, (unsigned long long)store->bytes, strerror(errno));
    madvise(base, store->bytes, MADV_HUGEPAGE);
    store->memory = base;
    return 0;
}

/* Creates a file without a name in the directory of `path`, and maps it. So it cannot be mistaken for another file, and the system removes it when
 * the process ends. */
static int map_file(struct cpu_store *store, const char *path) {
    int fd = file_open_unnamed(path);
    if (fd < 0) return -1;
    int error = retry_allocate(fd, store->bytes);
    void *base = error ? MAP_FAILED : mmap(NULL, store->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (base == MAP_FAILED)
        return fail("cannot map a file of %llu bytes beside '%s': %s", (unsigned long long)store->bytes, path, strerror(error ? error : errno));
    store->memory = base;
    return 0;
}

static int store_open(struct cpu_store *store, const struct table_spec *spec, const struct store_shape *shape) {
    store->stride = shape->stride;
    store->in_file = shape->place == PLACE_FILE;
    if (spec->rows > INT64_MAX / store->stride)
        return fail("the %s table of %llu rows x %llu bytes is more than any machine addresses", spec->name,
                    (unsigned long long)spec->rows, (unsigned long long)store->stride);
    store->bytes = table_row_count(spec) * store->stride;
    store->given = spec->given != NULL;
    if (store->given) store->memory = spec->given;
    else if (store->in_file ? map_file(store, spec->file_path) : map_memory(store, spec->name)) return -1;
    store->base = (uintptr_t)store->memory - spec->first_row * store->stride;
    return 0;
}

static void store_close(struct cpu_store *store) {
    if (store->memory && !store->given) munmap(store->memory, store->bytes);
    *store = (struct cpu_store){0};
}

/* ---- tables ---- */

static void close_table(struct backend_table *table) {
    store_close(&table->weights);
    store_close(&table->state);
    free(table);
}

static int table_open(struct backend *backend, const struct table_spec *spec, struct backend_table **out) {
    struct table_shape shape = table_shape(spec, 0);
    struct backend_table *table = mem_zalloc(1, sizeof *table, "a table");
    if (!table) return -1;
    table->spec = *spec;
    if (store_open(&table->weights, spec, &shape.store[0]) || (shape.stores == 2 && store_open(&table->state, spec, &shape.store[1]))) {
        close_table(table);
        return -1;
    }
    table->state_base = shape.stores == 1 ? table->weights.base + shape.weights : table->state.base;
    table->state_stride = shape.store[shape.stores - 1].stride;
    table->next = backend->tables;
    backend->tables = table;
    *out = table;
    return 0;
}

static void table_close(struct backend *backend, struct backend_table *table) {
    struct backend_table **at = &backend->tables;
    if (!table) return;
    while (*at && *at != table) at = &(*at)->next;
    if (*at) *at = table->next;
    cpu_snapshot_end(backend, table);
    close_table(table);
}

struct host_records cpu_records_from(const struct backend_table *table, uint64_t first) {
    return (struct host_records){.weights = (char *)(table->weights.base + first * table->weights.stride),
                                 .state = (char *)(table->state_base + first * table->state_stride),
                                 .weights_stride = table->weights.stride, .state_stride = table->state_stride};
}

static int table_read(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed) {
    if (host_check_rows(&table->spec, first, count)) return -1;
    struct host_records records = cpu_records_from(table, first);
    return host_pack(backend->pool, &table->spec.layout, &records, count, packed);
}

static int table_write(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, const void *packed) {
    if (host_check_rows(&table->spec, first, count)) return -1;
    struct host_records records = cpu_records_from(table, first);
    return host_unpack(backend->pool, &table->spec.layout, &records, count, packed);
}

static int table_move(struct backend *backend, struct backend_table *table, const uint32_t *row, uint64_t count, void *packed, int write) {
    struct host_records records = cpu_records_from(table, 0);
    records.row = row;
    for (uint64_t i = 0; i < count; i++)
        if (host_check_rows(&table->spec, row[i], 1)) return -1;
    return (write ? host_unpack(backend->pool, &table->spec.layout, &records, count, packed)
                  : host_pack(backend->pool, &table->spec.layout, &records, count, packed));
}

/* ---- the backend ---- */

static void close_backend(struct backend *backend) {
    if (!backend) return;
    while (backend->tables) table_close(backend, backend->tables);
    cpu_release_arrays(backend);
    pool_close(backend->pool);
    mem_free(backend->ids, backend);
}

static int open_backend(struct backend **out, const struct backend_options *options) {
    struct backend *backend = mem_zalloc(1, sizeof *backend, "the CPU backend");
    if (!backend) return -1;
    backend->ops = &backend_cpu;
    backend->rows = cpu_rows_best();
    backend->ranks = options->ranks;
    backend->pool = pool_open(options->threads);
    if (backend->pool) backend->scratch = mem_zalloc(pool_threads(backend->pool), sizeof *backend->scratch, "the workers' scratch");
    if (!backend->scratch) {
        close_backend(backend);
        return -1;
    }
    *out = backend;
    return 0;
}

static int info(struct backend *backend, struct backend_info *out) {
    *out = (struct backend_info){.threads = pool_threads(backend->pool)};
    snprintf(out->name, sizeof out->name, "CPU, %u thread%s, level %s", out->threads, out->threads == 1 ? "" : "s", backend->rows->name);
    out->host_used = cpu_allocated(backend);
    for (struct backend_table *t = backend->tables; t; t = t->next)
        out->host_used += (t->weights.in_file ? 0 : t->weights.bytes) + (t->state.in_file ? 0 : t->state.bytes);
    return 0;
}

static int present(char *why, size_t capacity) {
    return 1;
}

/* Describes the processor as one device, whose threads are its cores. */
static int devices(struct backend_info *out, int capacity) {
    struct backend_options options = {.threads = 0, .depth = 1};
    struct backend *backend;
    if (open_backend(&backend, &options)) return -1;
    if (capacity > 0) info(backend, out);
    close_backend(backend);
    return 1;
}

static int source(struct backend *backend, const struct example_source *from) {
    backend->source = *from;
    backend->sizes = cpu_sizes(from);
    return 0;
}

static int result(struct backend *backend, unsigned stage, struct step_result *out) {
    *out = backend->stage[stage].result;
    return 0;
}

static int drain(struct backend *backend) {
    return 0;
}

static int nothing_ahead(struct backend *backend, const struct rows_request *request) {
    return 0;
}

static int topk(struct backend *backend, const struct topk_request *request) {
    return cpu_topk(backend->pool, request);
}

const struct backend_ops backend_cpu = {
    .name = "cpu",
    .halves = 1,
    .present = present,
    .devices = devices,
    .estimate = cpu_estimate,
    .open = open_backend,
    .close = close_backend,
    .info = info,
    .table_open = table_open,
    .table_close = table_close,
    .table_read = table_read,
    .table_write = table_write,
    .table_move = table_move,
    .snapshot_begin = cpu_snapshot_begin,
    .snapshot_read = cpu_snapshot_read,
    .snapshot_stop = cpu_snapshot_stop,
    .snapshot_end = cpu_snapshot_end,
    .source = source,
    .make_batch = cpu_make_batch,
    .set_batch = cpu_set_batch,
    .batch_view = cpu_batch_view,
    .step = cpu_step,
    .result = result,
    .drain = drain,
    .rows_ids = cpu_rows_ids,
    .rows_fetch = cpu_rows_fetch,
    .rows_prefetch = nothing_ahead,
    .rows_update = cpu_rows_update,
    .rows_store = cpu_rows_store,
    .rows_wait = drain,
    .rows_view = cpu_rows_view,
    .rows_cached = cpu_rows_cached,
    .draw_walks = cpu_draw_walks,
    .hogwild = cpu_hogwild,
    .topk = topk,
    .filter = cpu_filter,
    .fold_open = cpu_fold_open,
    .fold_solve = cpu_fold_solve,
    .fold_close = cpu_fold_close,
};
