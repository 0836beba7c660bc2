/* rows: the four calls that read and change rows. What a caller passes is checked here, and the backend does the
 * rest. */
#include "handles.h"

#include <inttypes.h>

/* ---- checks ---- */

static int check_memory(const struct sptx_context *context, uint32_t memory, const char *what) {
    if (memory == SPTX_HOST) return 0;
    if (memory != SPTX_CUDA) return fail_usage("%s: memory is 1 (host) or 2 (CUDA), not %u", what, memory);
    if (!context->ops->has_gpu) return fail_usage("%s lie on a GPU, but this context runs on the CPU", what);
    return 0;
}

struct id_check {
    const struct sptx_ids *ids;
    uint64_t rows;
    unsigned workers;
};

static int64_t id_at(const struct sptx_ids *ids, uint64_t i) {
    return ids->bits == 64 ? ((const int64_t *)ids->data)[i] : ((const int32_t *)ids->data)[i];
}

/* Returns 1 where an id of ids[first..end) is no row: then the id, or its distance to the last row, has its highest bit
 * set. There is no branch, so that the compiler checks several ids at once. */
static int have_wrong(const struct sptx_ids *ids, uint64_t first, uint64_t end, uint64_t rows) {
    const int64_t *wide = ids->data;
    const int32_t *narrow = ids->data;
    uint64_t last = rows - 1, seen = 0;
    uint32_t narrow_last = last < INT32_MAX ? (uint32_t)last : INT32_MAX, narrow_seen = 0;
    if (ids->bits == 64)
        for (uint64_t i = first; i < end; i++) seen |= (uint64_t)wide[i] | (last - (uint64_t)wide[i]);
    else
        for (uint64_t i = first; i < end; i++) narrow_seen |= (uint32_t)narrow[i] | (narrow_last - (uint32_t)narrow[i]);
    return (seen >> 63 | narrow_seen >> 31) != 0;
}

static int check_share(void *context, unsigned worker) {
    const struct id_check *check = context;
    uint64_t first, end;
    pool_share(check->ids->count, worker, check->workers, &first, &end);
    if (!have_wrong(check->ids, first, end, check->rows)) return 0;
    for (uint64_t i = first; i < end; i++)
        if ((uint64_t)id_at(check->ids, i) >= check->rows)
            return fail_usage("ids[%" PRIu64 "] = %" PRId64 " is no row of a table of %" PRIu64, i, id_at(check->ids, i),
                              check->rows);
    return 0;
}

static int check_ids(const struct sptx_table *table, const struct sptx_ids *ids) {
    enum { FEW = 1 << 17 }; /* more ids are shared out over the threads, whose waking takes as long as checking so many */
    struct sptx_context *context = table->context;
    if (!ids) return fail_usage("ids are NULL");
    if (ids->bits != 32 && ids->bits != 64) return fail_usage("ids have 32 or 64 bits, not %u", ids->bits);
    if (check_count(ids->count, "ids")) return -1;
    if (ids->count && !ids->data) return fail_usage("%" PRIu64 " ids at NULL", ids->count);
    if (check_aligned(ids->data, ids->bits / 8, "ids") || check_memory(context, ids->memory, "ids")) return -1;
    if (ids->memory != SPTX_HOST) return 0;
    struct id_check check = {ids, table->table.spec.rows, ids->count > FEW ? pool_threads(context->pool) : 1};
    return check.workers > 1 ? pool_run(context->pool, check_share, &check) : check_share(&check, 0);
}

static int check_values(const struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                        enum sptx_memory memory, const char *what) {
    if (ids->count && !values) return fail_usage("%s are NULL", what);
    return check_aligned(values, sizeof *values, what) || check_memory(table->context, memory, what) ? -1 : 0;
}

static struct rows_request request_for(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                                       enum sptx_memory memory, void *stream, uint64_t steps) {
    return (struct rows_request){.table = table->table.store,
                                 .ids = ids->data,
                                 .count = ids->count,
                                 .id_bits = ids->bits,
                                 .ids_on_gpu = ids->memory == SPTX_CUDA,
                                 .values_on_gpu = memory == SPTX_CUDA,
                                 .values = (float *)(uintptr_t)values, /* only a fetch writes to it */
                                 .stream = stream,
                                 .rule = &table->rule,
                                 .lr = table->rule.lr,
                                 .global_step = steps};
}

/* ---- the calls ---- */

typedef int rows_call(struct backend *backend, const struct rows_request *request);

static enum sptx_status ask(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                            enum sptx_memory memory, void *stream, const char *what, rows_call *call) {
    struct sptx_context *context = table->context;
    if (check_ids(table, ids) || (what && check_values(table, ids, values, memory, what))) return leave(context, -1);
    uint64_t stores = call == context->ops->rows_store ? table->stores : 0;
    struct rows_request request = request_for(table, ids, values, memory, stream, table->steps + stores);
    return leave(context, ids->count ? call(context->backend, &request) : 0);
}

enum sptx_status sptx_fetch(struct sptx_table *table, const struct sptx_ids *ids, float *out, enum sptx_memory memory,
                            void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return ask(table, ids, out, memory, stream, "fetched values", table->context->ops->rows_fetch);
}

enum sptx_status sptx_prefetch(struct sptx_table *table, const struct sptx_ids *ids, void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return ask(table, ids, NULL, SPTX_HOST, stream, NULL, table->context->ops->rows_prefetch);
}

enum sptx_status sptx_update(struct sptx_table *table, const struct sptx_ids *ids, const float *gradients,
                             enum sptx_memory memory, void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    if (table->fixed)
        return leave(table->context, fail_usage("the table was opened with optimizer 'none': it has no update"));
    enum sptx_status status = ask(table, ids, gradients, memory, stream, "gradients", table->context->ops->rows_update);
    if (status == SPTX_OK) table->steps++;
    return status;
}

enum sptx_status sptx_store(struct sptx_table *table, const struct sptx_ids *ids, const float *values,
                            enum sptx_memory memory, void *stream) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    enum sptx_status status = ask(table, ids, values, memory, stream, "values", table->context->ops->rows_store);
    if (status == SPTX_OK) table->stores++;
    return status;
}
