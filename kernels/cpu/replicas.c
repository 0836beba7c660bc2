/* replicas: whole tables on several ranks, by way of MPI: what the rows of each have moved by is added up on the host. */
#include "cpu.h"

#include "base/memory.h"

#include <string.h>

enum { MOVED_FLOATS = 1 << 20 }; /* that are added up at once: whole rows in 4 MB */

static uint64_t rows_at_once(uint64_t span) {
    return MOVED_FLOATS / span;
}

uint64_t cpu_replica_floats(uint64_t span) {
    return rows_at_once(span) * span;
}

int cpu_replica_open(struct backend *backend, struct backend_table *table) {
    struct table_spec spec = replica_base(&table->spec);
    struct table_shape shape = table_shape(&spec, 0);
    uint64_t floats = cpu_replica_floats(spec.layout.span);
    if (mem_reserve(&backend->moved, &backend->moved_capacity, floats, sizeof *backend->moved, "what rows have moved by") ||
        cpu_store_open(&table->base, &spec, &shape.store[0]))
        return -1;
    memcpy(table->base.memory, table->weights.memory, table->base.bytes);
    return 0;
}

static float *base_row(const struct backend_table *table, uint64_t row) {
    return (float *)(table->base.base + row * table->base.stride);
}

/* moved[count x span]: by how much rows [first, first + count) are away from the base. */
static void measure(const struct backend_table *table, uint64_t first, uint64_t count, float *moved) {
    uint32_t span = table->spec.layout.span;
    for (uint64_t row = first; row < first + count; row++, moved += span) {
        const float *weights = cpu_weights(table, (uint32_t)row), *base = base_row(table, row);
        for (uint32_t j = 0; j < span; j++) moved[j] = weights[j] - base[j];
    }
}

static void move(struct backend_table *table, uint64_t first, uint64_t count, const float *moved) {
    uint32_t span = table->spec.layout.span;
    for (uint64_t row = first; row < first + count; row++, moved += span) {
        float *weights = cpu_weights(table, (uint32_t)row), *base = base_row(table, row);
        for (uint32_t j = 0; j < span; j++) {
            if (moved[j] != 0) base[j] += moved[j]; /* what has not moved stays as it is, -0 too */
            weights[j] = base[j];
        }
    }
}

static int merge(struct backend *backend, struct backend_table *table, uint64_t rows) {
    uint64_t span = table->spec.layout.span, most = rows_at_once(span), end = rows < table->spec.rows ? rows : table->spec.rows;
    for (uint64_t first = table->spec.first_row; first < end; first += most) {
        uint64_t count = end - first < most ? end - first : most;
        measure(table, first, count, backend->moved);
        if (ranks_sum(backend->replicas, backend->moved, count * span)) return -1;
        move(table, first, count, backend->moved);
    }
    return 0;
}

int cpu_replica_merge(struct backend *backend, struct backend_table *target, struct backend_table *context, uint64_t rows) {
    return merge(backend, target, rows) || merge(backend, context, rows) ? -1 : 0;
}
