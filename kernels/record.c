#include "record.h"

#include "kernels/record_width.h"

#include <string.h>

enum { GRAIN = 4 }; /* columns */

static uint64_t bytes_in_memory(enum value_type type, uint32_t columns) {
    if (type != VALUE_FLOAT32) return columns * value_bytes(type);
    uint64_t filled = (columns + GRAIN - 1) / GRAIN * GRAIN * value_bytes(type);
    return (filled + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN + RECORD_SPARE;
}

/* Adds a field. Each begins where the field before it in its part ends. */
static void add(struct record_layout *layout, const char *name, enum value_type type, uint32_t columns, float initial) {
    struct record_field *field = &layout->field[layout->fields];
    *field = (struct record_field){.name = name,
                                   .type = type,
                                   .columns = columns,
                                   .initial = initial,
                                   .offset = record_state_bytes(layout),
                                   .bytes = bytes_in_memory(type, columns),
                                   .packed = layout->packed};
    layout->packed += columns * value_bytes(type);
    layout->fields++;
}

struct record_layout record_layout_make(const struct rule_options *rule, uint32_t dim) {
    struct rule_slot slots[RULE_SLOTS];
    struct record_layout layout = {
        .dim = dim, .span = (dim + GRAIN - 1) / GRAIN * GRAIN, .counted = rule->count_rows != 0};
    layout.slots = (uint32_t)rule_slots(rule, slots);
    add(&layout, "weights", VALUE_FLOAT32, dim, 0);
    for (uint32_t i = 0; i < layout.slots; i++) add(&layout, slots[i].name, VALUE_FLOAT32, dim, slots[i].initial);
    if (layout.counted) add(&layout, "updates", VALUE_UINT32, 1, 0);
    return layout;
}

const struct record_field *record_field(const struct record_layout *layout, const char *name) {
    for (uint32_t i = 0; i < layout->fields; i++)
        if (!strcmp(layout->field[i].name, name)) return &layout->field[i];
    return NULL;
}

/* Returns where a part's columns begin in the field of a whole record. */
static uint64_t place_of(const struct record_field *field, uint32_t first) {
    return field->packed + (field->type == VALUE_FLOAT32 ? first * value_bytes(field->type) : 0);
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
