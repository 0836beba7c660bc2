/* copies: tables that CPU backends train in turn, merged as on GPUs (kernels/copies.h). This is no faster than training one table;
 * it lets tests without a GPU check the merge. */
#include "cpu.h"

#include "base/memory.h"
#include "base/report.h"
#include "kernels/copies.h"

#include <stdlib.h>
#include <string.h>

struct backend_copies {
    struct backend *backend; /* of the first table; its functions read the rows of all copies */
    struct backend_table *tables[COPIES_MOST];
    unsigned count;
    float *base; /* [rows x span] */
};

static float *base_of(const struct backend_copies *c, uint64_t row) {
    const struct table_spec *spec = &c->tables[0]->spec;
    return c->base + (row - spec->first_row) * spec->layout.span;
}

static void write_row(const struct backend_copies *c, unsigned copy, uint32_t row) {
    const float *from = base_of(c, row);
    uint32_t span = c->tables[0]->spec.layout.span;
    void *to = cpu_weights(c->tables[copy], row);
    cpu_before_change(c->tables[copy], row);
    if (!cpu_halves(c->tables[copy])) memcpy(to, from, span * sizeof *from);
    else
        for (uint32_t j = 0; j < span; j++) ((uint16_t *)to)[j] = bfloat16_nearest(from[j]);
}

static void read_row(const struct backend_copies *c, unsigned copy, uint32_t row, float *to) {
    const float *weights = cpu_read_row(c->backend->rows, c->tables[copy], row, to);
    if (weights != to) memcpy(to, weights, c->tables[0]->spec.layout.span * sizeof *to);
}

static void merge_row(const struct backend_copies *c, uint32_t row, float *rows) {
    uint32_t span = c->tables[0]->spec.layout.span;
    float *base = base_of(c, row), group[COPIES_MOST * COPIES_GROUP];
    for (unsigned r = 0; r < c->count; r++) read_row(c, r, row, rows + (uint64_t)r * span);
    for (uint32_t j = 0; j < span; j += COPIES_GROUP) {
        for (unsigned r = 0; r < c->count; r++) memcpy(group + r * COPIES_GROUP, rows + (uint64_t)r * span + j, sizeof(float) * COPIES_GROUP);
        copies_merge_group(base + j, group, c->count);
    }
    for (unsigned r = 0; r < c->count; r++) write_row(c, r, row);
    if (cpu_halves(c->tables[0])) read_row(c, 0, row, base);
}

int cpu_copies_merge(struct backend_copies *c) {
    const struct table_spec *spec = &c->tables[0]->spec;
    float *rows = mem_alloc((uint64_t)c->count * spec->layout.span, sizeof *rows, "merging copies");
    if (!rows) return -1;
    for (uint64_t row = spec->first_row; row < spec->rows; row++) merge_row(c, (uint32_t)row, rows);
    free(rows);
    return 0;
}

int cpu_copies_open(struct backend *const *owners, struct backend_table *const *tables, unsigned count, struct backend_copies **out) {
    const struct table_spec *spec = &tables[0]->spec;
    struct backend_copies *c = mem_zalloc(1, sizeof *c, "copies of a table");
    *out = c;
    if (!c || !(c->base = mem_alloc(table_row_count(spec) * spec->layout.span, sizeof *c->base, "copies of a table"))) return -1;
    c->backend = owners[0];
    c->count = count;
    memcpy(c->tables, tables, count * sizeof *tables);
    for (uint64_t row = spec->first_row; row < spec->rows; row++) {
        read_row(c, 0, (uint32_t)row, base_of(c, row));
        for (unsigned r = 1; r < count; r++) write_row(c, r, (uint32_t)row);
    }
    return 0;
}

void cpu_copies_close(struct backend_copies *c) {
    if (c) free(c->base);
    free(c);
}
