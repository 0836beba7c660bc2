/* rows: the four calls that read and change rows. This file checks the caller's arguments, and the backend does the rest. */
#include "base/checks.h"
#include "handles.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- checks ---- */

static int check_memory(const struct sptx_context *context, uint32_t memory, const char *what) {
    if (memory == SPTX_HOST) return 0;
    if (memory != SPTX_CUDA) return fail_usage("%s: memory is 1 (host) or 2 (CUDA), not %u", what, memory);
    if (!context->ops->has_gpu) return fail_usage("%s lie on a GPU, but this context runs on the CPU", what);
    return 0;
}

struct id_taking {
    const struct sptx_ids *ids;
    uint32_t *to;
    uint64_t rows;
    unsigned workers;
    _Atomic int wrong; /* 1: an id is not a row number */
};

static int take_share(void *context, unsigned worker) {
    struct id_taking *taking = context;
    const struct sptx_ids *ids = taking->ids;
    uint64_t first, end;
    pool_share(ids->count, worker, taking->workers, &first, &end);
    const char *from = (const char *)ids->data + first * (ids->bits / 8);
    if (ids_take(from, ids->bits, end - first, taking->rows, taking->to + first)) taking->wrong = 1;
    return 0;
}

static int64_t id_at(const struct sptx_ids *ids, uint64_t i) {
    return ids->bits == 64 ? ((const int64_t *)ids->data)[i] : ((const int32_t *)ids->data)[i];
}

/* Fails with the first wrong id in the array; threads may have found a later one first. */
static int refuse_ids(const struct sptx_ids *ids, uint64_t rows) {
    for (uint64_t i = 0; i < ids->count; i++) {
        int64_t id = id_at(ids, i);
        if ((uint64_t)id >= rows) return fail_usage("ids[%" PRIu64 "] = %" PRId64 " is no row of a table of %" PRIu64, i, id, rows);
    }
    return fail_usage("ids were changed during a call");
}

static int check_ids(const struct sptx_table *table, const struct sptx_ids *ids) {
    if (!ids) return fail_usage("ids are NULL");
    if (ids->bits != 32 && ids->bits != 64) return fail_usage("ids have 32 or 64 bits, not %u", ids->bits);
    if (check_count(ids->count, "ids")) return -1;
    if (ids->count && !ids->data) return fail_usage("%" PRIu64 " ids at NULL", ids->count);
    return check_aligned(ids->data, ids->bits / 8, "ids") || check_memory(table->context, ids->memory, "ids") ? -1 : 0;
}

/* Prepares ids for the backend. Ids in host memory are checked and copied to the backend's buffer in a single pass. */
static int take_ids(struct sptx_table *table, const struct sptx_ids *given, struct sptx_ids *taken) {
    enum { FEW = 1 << 17 }; /* fewer ids are copied by one thread: waking the others would take as long as copying this number */
    struct sptx_context *context = table->context;
    if (check_ids(table, given)) return -1;
    *taken = *given;
    if (given->memory != SPTX_HOST || !given->count) return 0;
    struct id_taking taking = {
        .ids = given, .rows = table->table.spec.rows, .workers = given->count > FEW ? pool_threads(context->pool) : 1};
    if (context->ops->rows_ids(context->backend, given->count, &taking.to)) return -1;
    *taken = (struct sptx_ids){taking.to, given->count, 32, SPTX_HOST};
    if (taking.workers > 1 ? pool_run(context->pool, take_share, &taking) : take_share(&taking, 0)) return -1;
    return taking.wrong ? refuse_ids(given, taking.rows) : 0;
}

static int check_values(const struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                        enum sptx_memory memory, const char *what) {
    if (ids->count && !values) return fail_usage("%s are NULL", what);
    return check_aligned(values, sizeof *values, what) || check_memory(table->context, memory, what) ? -1 : 0;
}

struct finite_check {
    const float *values;
    uint64_t count;
    _Atomic uint64_t next;
    _Atomic int found; /* 1: a value is NaN or infinite */
};

static int check_share(void *context, unsigned worker) {
    struct finite_check *check = context;
    uint64_t first, end;
    (void)worker;
    while (!check->found && pool_take(&check->next, check->count, 1 << 16, &first, &end)) {
        uint32_t found = 0, bits;
        for (uint64_t i = first; i < end; i++) {
            memcpy(&bits, &check->values[i], sizeof bits);
            found |= (bits & 0x7F800000) == 0x7F800000; /* all bits of the exponent: NaN or infinity */
        }
        if (found) check->found = 1;
    }
    return 0;
}

/* Fails if a gradient is NaN or infinite. */
static int check_finite(const struct sptx_table *table, const struct sptx_ids *ids, const float *gradients, enum sptx_memory memory) {
    struct finite_check check = {.values = gradients, .count = ids->count * sptx_table_dim(table)};
    if (memory != SPTX_HOST) return fail_usage("the table has check_finite, for which gradients must be in host memory");
    if (pool_run(check.count > 1 << 18 ? table->context->pool : NULL, check_share, &check)) return -1;
    for (uint64_t i = 0; check.found && i < check.count; i++)
        if (!isfinite(gradients[i]))
            return fail_usage("gradients[%" PRIu64 "][%" PRIu64 "] is %g: the table is unchanged", i / sptx_table_dim(table),
                              i % sptx_table_dim(table), (double)gradients[i]);
    return 0;
}

static struct rows_request request_for(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                                       enum sptx_memory memory, void *stream, uint64_t steps) {
    return (struct rows_request){.table = table->table.store,
                                 .ids = ids->data,
                                 .count = ids->count,
                                 .id_bits = ids->bits,
                                 .ids_on_gpu = ids->memory == SPTX_CUDA,
                                 .values_on_gpu = memory == SPTX_CUDA,
                                 .values = (float *)(uintptr_t)values, /* the cast drops const, but only a fetch writes */
                                 .stream = stream,
                                 .rule = &table->rule,
                                 .lr = table->rule.lr,
                                 .global_step = steps};
}

/* ---- the calls ---- */

typedef int rows_call(struct backend *backend, const struct rows_request *request);

static enum sptx_status ask_backend(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                                    enum sptx_memory memory, void *stream, const char *what, rows_call *call) {
    struct sptx_context *context = table->context;
    struct sptx_ids taken;
    saving_look(table);
    if (take_ids(table, ids, &taken) || (what && check_values(table, ids, values, memory, what)) ||
        (table->check_finite && call == context->ops->rows_update && check_finite(table, ids, values, memory)))
        return leave(context, -1);
    uint64_t stores = call == context->ops->rows_store ? table->stores : 0;
    struct rows_request request = request_for(table, &taken, values, memory, stream, table->steps + stores);
    return leave(context, ids->count ? call(context->backend, &request) : 0);
}

enum sptx_status sptx_fetch(struct sptx_table *table, const struct sptx_ids *ids, float *out, enum sptx_memory memory,
                            void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return ask_backend(table, ids, out, memory, stream, "fetched values", table->context->ops->rows_fetch);
}

enum sptx_status sptx_prefetch(struct sptx_table *table, const struct sptx_ids *ids, void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return ask_backend(table, ids, NULL, SPTX_HOST, stream, NULL, table->context->ops->rows_prefetch);
}

enum sptx_status sptx_update(struct sptx_table *table, const struct sptx_ids *ids, const float *gradients,
                             enum sptx_memory memory, void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    if (table->fixed) return leave(table->context, fail_usage("the table was opened with optimizer 'none': it has no update"));
    enum sptx_status status = ask_backend(table, ids, gradients, memory, stream, "gradients", table->context->ops->rows_update);
    if (status == SPTX_OK) table->steps++;
    return status;
}

enum sptx_status sptx_store(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                            enum sptx_memory memory, void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    enum sptx_status status = ask_backend(table, ids, values, memory, stream, "values", table->context->ops->rows_store);
    if (status == SPTX_OK) table->stores++;
    return status;
}
