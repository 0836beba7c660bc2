/* by_id: reads and changes rows of the tables by id, for other people's models.
 *
 * A fetch divides the ids among workers, which copy rows. In an update each row belongs to one worker (row mod workers), which
 * sums the gradients of the row's places in the order of the ids and applies the rule once, so the result is the same with any
 * number of workers. A store also divides rows: if an id repeats, its last values are kept.
 */
#include "cpu.h"

#include "base/memory.h"

#include <string.h>

enum { FEW_VALUES = 1 << 14 }; /* a call with fewer values is done by one worker, since waking the others would take longer */

struct by_id {
    struct backend *backend;
    const struct rows_request *request;
    const uint32_t *ids;
    uint32_t dim;
    unsigned workers;
};

/* ---- ids ---- */

int cpu_rows_ids(struct backend *backend, uint64_t count, uint32_t **ids) {
    if (mem_grow(&backend->ids, &backend->id_capacity, count, sizeof *backend->ids, "ids")) return -1;
    *ids = backend->ids;
    return 0;
}

static int run(struct backend *backend, const struct rows_request *request, pool_job *job) {
    struct by_id call = {
        .backend = backend, .request = request, .ids = request->ids, .dim = request->table->spec.layout.dim, .workers = 1};
    if (request->count * call.dim > FEW_VALUES) call.workers = pool_threads(backend->pool);
    return call.workers > 1 ? pool_run(backend->pool, job, &call) : job(&call, 0);
}

/* ---- fetch ---- */

enum { AHEAD = 8 }; /* a row is prefetched this many rows before it is read, since each row is a cache miss */

static int fetch_rows(void *context, unsigned worker) {
    const struct by_id *call = context;
    const struct backend_table *table = call->request->table;
    int halves = cpu_halves(table);
    uint64_t first, end, bytes = call->dim * sizeof(float);
    pool_share(call->request->count, worker, call->workers, &first, &end);
    for (uint64_t i = first; i < end; i++) {
        float *to = call->request->values + i * call->dim;
        if (i + AHEAD < end) __builtin_prefetch(cpu_weights(table, call->ids[i + AHEAD]));
        if (halves) call->backend->rows->widen(cpu_weights(table, call->ids[i]), call->dim, to);
        else memcpy(to, cpu_weights(table, call->ids[i]), bytes);
    }
    return 0;
}

int cpu_rows_fetch(struct backend *backend, const struct rows_request *request) {
    return run(backend, request, fetch_rows);
}

/* ---- update and store ---- */

static struct cpu_row_set own_rows(const struct by_id *call, unsigned worker) {
    return cpu_row_set(&call->backend->shared, call->ids, call->request->count, worker, call->workers,
                       call->request->table->spec.rows);
}

static void store_row(const struct by_id *call, uint32_t row, const float *values) {
    const struct backend_table *table = call->request->table;
    const struct cpu_draws draws = {&table->spec.rounding, DRAW_ROUND_STORE, call->request->global_step, row, 0};
    cpu_before_change(table, row);
    if (cpu_halves(table)) call->backend->rows->write(cpu_weights(table, row), values, call->dim, &draws);
    else memcpy(cpu_weights(table, row), values, call->dim * sizeof *values);
}

static int store_rows(void *context, unsigned worker) {
    const struct by_id *call = context;
    struct cpu_row_set set = own_rows(call, worker);
    struct cpu_named_row row;
    for (uint64_t at = 0; cpu_next_row(&set, &at, &row);) {
        uint64_t last = (uint32_t)row.key[row.places - 1];
        store_row(call, row.row, call->request->values + last * call->dim);
    }
    return 0;
}

int cpu_rows_store(struct backend *backend, const struct rows_request *request) {
    return cpu_grow_keys(&backend->shared, request->count) || run(backend, request, store_rows) ? -1 : 0;
}

static int update_rows(void *context, unsigned worker) {
    const struct by_id *call = context;
    const struct rows_request *request = call->request;
    struct cpu_scratch *scratch = &call->backend->scratch[worker];
    struct rule_step constants = rule_prepare(request->rule, request->lr, request->global_step);
    struct cpu_memo memo = {0};
    struct cpu_row_set set = own_rows(call, worker);
    struct cpu_named_row row;
    for (uint64_t at = 0; cpu_next_row(&set, &at, &row);) {
        cpu_sum_places(&row, request->values, call->dim, call->dim, scratch->gradient);
        if (row.places > 1 && constants.clip > 0)
            cpu_shorten(&constants, call->dim, scratch->gradient, row.places, cpu_squares(call->dim, scratch->gradient));
        cpu_apply_rule(call->backend->rows, request->rule, request->lr, request->global_step, request->table, row.row,
                       scratch->gradient, scratch->rule_scratch, &memo);
    }
    return 0;
}

/* Updates rows. All memory is allocated before a row changes, so an update is done completely or not at all. */
int cpu_rows_update(struct backend *backend, const struct rows_request *request) {
    if (cpu_grow_keys(&backend->shared, request->count)) return -1;
    for (unsigned i = 0; i < pool_threads(backend->pool); i++)
        if (cpu_grow_gradient(&backend->scratch[i], request->table->spec.layout.span)) return -1;
    return run(backend, request, update_rows);
}

/* ---- view ---- */

int cpu_rows_cached(struct backend *backend, const struct backend_table *table, uint32_t *rows, uint64_t most, uint64_t *count) {
    *count = 0;
    return 0;
}

struct rows_view cpu_rows_view(struct backend *backend, const struct backend_table *table,
                               const struct record_field *field) {
    uint64_t first = table->spec.first_row;
    if (record_is_weights(field))
        return (struct rows_view){.data = cpu_weights(table, (uint32_t)first), .first = first, .stride = table->weights.stride};
    return (struct rows_view){.data = (char *)(table->state_base + first * table->state_stride + field->offset),
                              .first = first,
                              .stride = table->state_stride};
}
