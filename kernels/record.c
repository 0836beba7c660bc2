#include "record.h"

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

/* Returns the offset of column `first` of a field in a packed record of all columns. */
static uint64_t place_of(const struct record_field *field, uint32_t first) {
    return field->packed + (field->columns > 1 ? first * value_bytes(field->type) : 0);
}

void record_join(const struct record_layout *whole, const struct record_layout *part, uint32_t first, uint64_t count,
                 void *whole_records, const void *part_records) {
    char *to = whole_records;
    for (const char *from = part_records; count--; to += whole->packed, from += part->packed)
        for (uint32_t f = 0; f < part->fields; f++) {
            const struct record_field *field = &part->field[f];
            memcpy(to + place_of(&whole->field[f], first), from + field->packed, field->columns * value_bytes(field->type));
        }
}

void record_split(const struct record_layout *whole, const struct record_layout *part, uint32_t first, uint64_t count,
                  const void *whole_records, void *part_records) {
    char *to = part_records;
    for (const char *from = whole_records; count--; to += part->packed, from += whole->packed)
        for (uint32_t f = 0; f < part->fields; f++) {
            const struct record_field *field = &part->field[f];
            memcpy(to + field->packed, from + place_of(&whole->field[f], first), field->columns * value_bytes(field->type));
        }
}
