/* update: what all exact updates of rows need: a worker's row set, a row's summed and clipped gradient, and the rule on a record. */
#include "cpu.h"

#include "base/memory.h"
#include "base/report.h"

#include <string.h>

/* A field of a row while a rule changes it: in place, or as floats if it is stored in another type. */
struct open_field {
    float *values;
    void *kept; /* the stored field; NULL: changed in place */
};

static struct open_field open_field(const struct cpu_rows *rows, const struct record_layout *layout, uint32_t field, void *at, float *spare) {
    enum value_type type = layout->field[field].type;
    if (type == VALUE_FLOAT32) return (struct open_field){at, NULL};
    spare += (1 + field) * (uint64_t)layout->span;
    if (value_is_code(type)) rows->open_codes(at, type == VALUE_FLOAT8, layout->span, spare);
    else rows->widen(at, layout->span, spare);
    return (struct open_field){spare, at};
}

static void close_field(const struct cpu_rows *rows, const struct table_spec *spec, uint32_t field, const struct open_field *open,
                        uint64_t global_step, uint32_t row) {
    const struct cpu_draws draws = {&spec->rounding, field ? DRAW_ROUND_STATE : DRAW_ROUND_WEIGHTS, global_step,
                                    round_row(&spec->rounding, row), field ? field - RECORD_STATE : 0};
    enum value_type type = spec->layout.field[field].type;
    if (open->kept && value_is_code(type)) rows->close_codes(open->kept, type == VALUE_FLOAT8, open->values, spec->layout.span, &draws);
    else if (open->kept) rows->write(open->kept, open->values, spec->layout.span, &draws);
}

void cpu_apply_rule(const struct cpu_rows *rows, const struct rule_options *rule, double lr, uint64_t global_step, struct backend_table *table,
                    uint32_t row, const float *gradient, float *rule_scratch, struct cpu_memo *memo) {
    if (table_is_frozen(&table->spec, row)) return;
    cpu_before_change(table, row);
    const struct record_layout *layout = &table->spec.layout;
    struct rule_slot slots[RULE_SLOTS];
    float *role[RULE_SLOTS] = {rule_scratch, rule_scratch, rule_scratch};
    struct open_field open[1 + RULE_SLOTS] = {open_field(rows, layout, RECORD_WEIGHTS, cpu_weights(table, row), rule_scratch)};
    uint32_t fields = RECORD_STATE + (uint32_t)rule_slots(rule, slots);
    for (uint32_t f = RECORD_STATE; f < fields; f++) {
        open[f] = open_field(rows, layout, f, cpu_slot(table, row, f - RECORD_STATE), rule_scratch);
        role[slots[f - RECORD_STATE].role] = open[f].values;
    }
    uint64_t updates = layout->counted ? (*cpu_updates(table, row))++ : global_step;
    unsigned entry = updates % 64;
    if (memo->updates[entry] != updates + 1) {
        memo->updates[entry] = updates + 1;
        memo->step[entry] = rule_prepare(rule, lr, updates);
    }
    struct rule_step step = memo->step[entry];
    if (layout->by_row) {
        float *of_row = open[RECORD_STATE + layout->slots - 1].values;
        *of_row = rule_row_sum(&step, *of_row, cpu_squares(layout->dim, gradient), layout->dim);
        step.lr = rule_row_rate(&step, *of_row);
    }
    rows->rule[rule->rule](&step, layout->dim, gradient, open[RECORD_WEIGHTS].values, role[0], role[1], role[2]);
    for (uint32_t f = 0; layout->halves && f < fields; f++) close_field(rows, &table->spec, f, &open[f], global_step, row);
}

float cpu_squares(uint32_t dim, const float *gradient) {
    float squares = 0;
    for (uint32_t column = 0; column < dim; column++) squares += gradient[column] * gradient[column];
    return squares;
}

void cpu_shorten(const struct rule_step *constants, uint32_t dim, float *gradient, uint64_t places, float squares) {
    float share = rule_share(constants->clip, places, squares);
    for (uint32_t column = 0; share != 1 && column < dim; column++) gradient[column] *= share;
}

int cpu_grow_keys(struct cpu_shared *shared, uint64_t ids) {
    return mem_grow(&shared->keys, &shared->key_capacity, ids, sizeof *shared->keys, "sorting a batch") ||
                   mem_grow(&shared->spare, &shared->spare_capacity, ids, sizeof *shared->spare, "sorting a batch")
               ? -1
               : 0;
}

/* Sorts by row, with a stable radix sort. Each worker uses its own part of the shared arrays. */
struct cpu_row_set cpu_row_set(const struct cpu_shared *shared, const uint32_t *ids, uint64_t count, unsigned worker,
                               unsigned workers, uint64_t rows) {
    uint64_t n = 0, before = 0; /* n: number of this worker's places; before: number of earlier workers' places */
    for (uint64_t i = 0; i < count; i++) {
        unsigned owner = ids[i] % workers;
        n += owner == worker;
        before += owner < worker;
    }
    uint64_t *from = shared->keys + before, *to = shared->spare + before;
    n = 0;
    for (uint64_t i = 0; i < count; i++)
        if (ids[i] % workers == worker) from[n++] = (uint64_t)ids[i] << 32 | i;
    for (unsigned shift = 32; shift < 64 && (rows - 1) >> (shift - 32); shift += 11) {
        uint32_t at[2048] = {0};
        for (uint64_t i = 0; i < n; i++) at[from[i] >> shift & 2047]++;
        uint32_t sum = 0;
        for (int i = 0; i < 2048; i++) {
            uint32_t here = at[i];
            at[i] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < n; i++) to[at[from[i] >> shift & 2047]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    return (struct cpu_row_set){from, n};
}

int cpu_next_row(const struct cpu_row_set *set, uint64_t *at, struct cpu_named_row *row) {
    uint64_t end = *at;
    if (end == set->count) return 0;
    row->row = (uint32_t)(set->key[end] >> 32);
    row->key = set->key + end;
    while (end < set->count && set->key[end] >> 32 == row->row) end++;
    row->places = end - *at;
    INVARIANT(end == set->count || set->key[end] >> 32 > row->row); /* rows rise, and each is met once */
    *at = end;
    return 1;
}

void cpu_sum_places(const struct cpu_named_row *row, const float *gradients, uint64_t stride, uint32_t dim, float *sum) {
    memcpy(sum, gradients + (uint32_t)row->key[0] * stride, dim * sizeof(float));
    for (uint64_t i = 1; i < row->places; i++) {
        const float *more = gradients + (uint32_t)row->key[i] * stride;
        for (uint32_t column = 0; column < dim; column++) sum[column] += more[column];
    }
}

float *cpu_grow_wide(struct cpu_scratch *scratch, uint64_t rows, uint64_t span) {
    const uintptr_t line = CPU_WIDE_SPARE * sizeof(float);
    if (mem_grow(&scratch->wide, &scratch->wide_capacity, rows * span + CPU_WIDE_SPARE, sizeof(float), "a block's rows")) return NULL;
    return (float *)(((uintptr_t)scratch->wide + line - 1) / line * line);
}

int cpu_grow_gradient(struct cpu_scratch *scratch, uint64_t span) {
    return mem_grow(&scratch->gradient, &scratch->gradient_capacity, span, sizeof(float), "a gradient") ||
                   mem_grow(&scratch->rule_scratch, &scratch->rule_scratch_capacity, CPU_FIELDS * span, sizeof(float), "a gradient")
               ? -1
               : 0;
}
