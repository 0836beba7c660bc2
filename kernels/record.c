#include "record.h"

#include "base/pool.h"
#include "base/report.h"

#include "kernels/record_width.h"

#include <string.h>

static uint64_t bytes_in_memory(const struct record_layout *layout, enum value_type type, uint32_t columns) {
    if (!value_is_number(type) || columns != layout->dim) return columns * value_bytes(type);
    uint64_t filled = layout->span * value_bytes(type);
    return (filled + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN + RECORD_SPARE;
}

static enum value_type type_of(int precision) {
    return precision == PRECISION_BFLOAT16 ? VALUE_BFLOAT16
           : precision == PRECISION_INT8   ? VALUE_INT8
           : precision == PRECISION_FLOAT8 ? VALUE_FLOAT8
                                           : VALUE_FLOAT32;
}

/* Adds a field. It begins at the end of the field before it, in the weights' part or in the state's. */
static void add(struct record_layout *layout, const char *name, enum value_type type, uint32_t columns, float initial) {
    struct record_field *field = &layout->field[layout->fields];
    *field = (struct record_field){.name = name,
                                   .type = type,
                                   .columns = columns,
                                   .initial = initial,
                                   .offset = record_state_bytes(layout),
                                   .bytes = bytes_in_memory(layout, type, columns),
                                   .packed = layout->packed};
    layout->packed += columns * value_bytes(type);
    layout->fields++;
}

struct record_layout record_layout_make(const struct rule_options *rule, uint32_t dim) {
    struct rule_slot slots[RULE_SLOTS];
    struct record_layout layout = {.dim = dim, .by_row = RULE_BY_ROW(rule->rule), .counted = rule->count_rows != 0};
    enum value_type weights = type_of(rule->precision), state = type_of(rule->state_precision);
    layout.slots = (uint32_t)rule_slots(rule, slots);
    layout.halves = weights != VALUE_FLOAT32 || (layout.slots > layout.by_row && state == VALUE_BFLOAT16);
    layout.span = (dim + record_grain(&layout) - 1) / record_grain(&layout) * record_grain(&layout);
    add(&layout, "weights", weights, dim, 0);
    if (value_is_code(weights)) layout.field[RECORD_WEIGHTS].offset = RECORD_CODES;
    for (uint32_t i = 0; i < layout.slots; i++) {
        int of_row = layout.by_row && i + 1 == layout.slots;
        add(&layout, slots[i].name, of_row ? VALUE_FLOAT32 : state, of_row ? 1 : dim, slots[i].initial);
    }
    if (layout.counted) add(&layout, "updates", VALUE_UINT32, 1, 0);
    if (value_is_code(weights)) {
        struct record_field *scale = &layout.field[layout.fields++];
        *scale = (struct record_field){"scale", VALUE_FLOAT32, 1, 0, 0, sizeof(float), layout.packed};
        layout.packed += sizeof(float);
        layout.coarse = 1;
    }
    /* a group of columns is read at once: fields begin at the beginning of a group, and both parts of a record are whole groups */
    INVARIANT(layout.span >= dim && layout.span % record_grain(&layout) == 0);
    INVARIANT(layout.fields == RECORD_STATE + layout.slots + (layout.counted ? 1 : 0) + layout.coarse);
    return layout;
}

const struct record_field *record_field(const struct record_layout *layout, const char *name) {
    for (uint32_t i = 0; i < layout->fields; i++)
        if (!strcmp(layout->field[i].name, name)) return &layout->field[i];
    return NULL;
}

/* ---- ranks share out the columns ---- */

/* Shares out neighbouring columns in groups. */
static struct columns share_columns(uint32_t dim, uint32_t group, unsigned ranks, unsigned number) {
    uint64_t first, end, groups = (dim + group - 1) / group, grain = groups < ranks ? 1 : group;
    pool_share(groups < ranks ? dim : groups, number, ranks, &first, &end);
    first *= grain;
    end = end * grain < dim ? end * grain : dim;
    INVARIANT(first <= end && end <= dim && (number + 1 < ranks || end == dim)); /* the last rank's columns end where the row ends */
    return (struct columns){(uint32_t)first, (uint32_t)(end - first), 0};
}

struct columns record_columns(const struct record_layout *whole, unsigned ranks, unsigned number) {
    if (ranks == 1 || !whole->complex) return share_columns(whole->dim, record_grain(whole), ranks, number);
    struct columns real = share_columns(whole->dim / 2, record_grain(whole) / 2, ranks, number);
    return (struct columns){real.first, 2 * real.count, whole->dim / 2};
}

/* A field's columns that are neighbours both in a record of all columns and in a rank's record. */
struct stretch {
    uint64_t of_whole, of_part, bytes; /* of_whole, of_part: offsets in packed records */
};
enum { STRETCHES = 2 * RECORD_FIELDS };

/* Lists all stretches, and returns their number. */
static unsigned list_stretches(const struct record_layout *whole, const struct record_layout *part, struct columns own,
                               struct stretch list[STRETCHES]) {
    unsigned count = 0;
    for (uint32_t f = 0; f < part->fields; f++) {
        const struct record_field *of_part = &part->field[f], *of_whole = &whole->field[f];
        uint64_t size = value_bytes(of_part->type);
        if (of_whole->columns == 1) list[count++] = (struct stretch){of_whole->packed, of_part->packed, size};
        for (uint32_t at = 0; of_whole->columns > 1 && at < own.count; at += record_run(own, at).count) {
            struct columns run = record_run(own, at);
            list[count++] = (struct stretch){of_whole->packed + run.first * size, of_part->packed + at * size, run.count * size};
        }
    }
    INVARIANT(count <= STRETCHES);
    return count;
}

void record_join(const struct record_layout *whole, const struct record_layout *part, struct columns own, uint64_t count,
                 void *whole_records, const void *part_records) {
    struct stretch list[STRETCHES];
    unsigned stretches = list_stretches(whole, part, own, list);
    char *to = whole_records;
    for (const char *from = part_records; count--; to += whole->packed, from += part->packed)
        for (unsigned i = 0; i < stretches; i++) memcpy(to + list[i].of_whole, from + list[i].of_part, list[i].bytes);
}

void record_split(const struct record_layout *whole, const struct record_layout *part, struct columns own, uint64_t count,
                  const void *whole_records, void *part_records) {
    struct stretch list[STRETCHES];
    unsigned stretches = list_stretches(whole, part, own, list);
    char *to = part_records;
    for (const char *from = whole_records; count--; to += part->packed, from += whole->packed)
        for (unsigned i = 0; i < stretches; i++) memcpy(to + list[i].of_part, from + list[i].of_whole, list[i].bytes);
}
