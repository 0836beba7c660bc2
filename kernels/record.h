/* record: what a row is made of, as data. A record is a list of fields, each with a name, a type, its columns, and
 * where it lies in the two forms that a record has:
 *
 *   in memory   two parts: the weights, and the state (everything else). They are one store's or two (stores.h). Columns
 *               are filled up with zeros to whole groups, the grain that kernels read: of four, or of eight in all fields
 *               where one of them is bfloat16, so that a group takes 16 bytes or 32; only a field's offset and bytes say
 *               where it begins and how many bytes it takes
 *   packed      all fields end to end, nothing filled up: what read() and write() take, and a checkpoint holds
 *
 *   field    0        1 .. slots                              last, where rows keep a count
 *   name     weights  the rule's slots, by PyTorch's names    updates
 *   type     by rule_options, float32 or bfloat16             uint32
 */
#ifndef SPTX_RECORD_H
#define SPTX_RECORD_H

#include "optimizers.h"

#include <stddef.h>
#include <stdint.h>

enum { COLUMNS_MOST = 4096 }; /* of a table */

enum value_type { VALUE_FLOAT32, VALUE_UINT32, VALUE_BFLOAT16 };

FN uint64_t value_bytes(enum value_type type) {
    switch (type) {
    case VALUE_FLOAT32:
        return 4;
    case VALUE_UINT32:
        return 4;
    case VALUE_BFLOAT16:
        return 2;
    }
    return 0;
}

/* Returns 1 for a field with a value a column; 0 for the row's count. */
FN int value_is_number(enum value_type type) {
    return type == VALUE_FLOAT32 || type == VALUE_BFLOAT16;
}

struct record_field {
    const char *name; /* a literal */
    enum value_type type;
    uint32_t columns; /* columns without the filling */
    float initial;    /* the first value of every column; weights are drawn instead */
    uint64_t offset;  /* in memory: bytes from the beginning of its part; 0 for the weights */
    uint64_t bytes;   /* in memory, with the filling */
    uint64_t packed;  /* bytes from the beginning of a packed record */
};

enum { RECORD_FIELDS = 1 + RULE_SLOTS + 1, RECORD_WEIGHTS = 0, RECORD_STATE = 1 /* the first field of the state */ };

struct record_layout {
    struct record_field field[RECORD_FIELDS];
    uint32_t fields;
    uint32_t dim;     /* columns of the weights, and of every slot, without the filling */
    uint32_t span;    /* columns with the filling, the same in all fields */
    uint32_t slots;   /* 0..3 */
    uint32_t counted; /* 1: the last field is `updates`, the row's own count of them */
    uint32_t halves;  /* 1: some field is bfloat16 */
    uint64_t packed;  /* bytes of a packed record */
};

/* Returns the columns of a group: columns that are read and written together, and that one rank has. */
FN uint32_t record_grain(const struct record_layout *layout) {
    return layout->halves ? 8 : 4;
}

struct record_layout record_layout_make(const struct rule_options *rule, uint32_t dim);

/* Returns the field, or NULL where the record has none of that name. */
const struct record_field *record_field(const struct record_layout *layout, const char *name);
FN const struct record_field *record_slot(const struct record_layout *layout, uint32_t slot) {
    return &layout->field[RECORD_STATE + slot];
}
/* Returns the field of the row's own count of updates; only where layout->counted. */
FN const struct record_field *record_updates(const struct record_layout *layout) {
    return &layout->field[layout->fields - 1];
}

/* Returns 1 for the weights, the first field; all others are state. */
FN int record_is_weights(const struct record_field *field) {
    return field->packed == 0;
}

/* Returns the groups of four columns of the weights, and of every slot: the grain that kernels read. */
FN uint32_t record_quads(const struct record_layout *layout) {
    return layout->span / 4;
}

/* Bytes of the two parts in memory. */
FN uint64_t record_weights_bytes(const struct record_layout *layout) {
    return layout->field[RECORD_WEIGHTS].bytes;
}
FN uint64_t record_state_bytes(const struct record_layout *layout) {
    if (layout->fields <= RECORD_STATE) return 0;
    const struct record_field *last = &layout->field[layout->fields - 1];
    return last->offset + last->bytes;
}

/* Moves packed records of columns [first, first + part->dim) into packed records of all columns; record_split() does
 * the reverse. A row's own count of updates is the same in every part. */
void record_join(const struct record_layout *whole, const struct record_layout *part, uint32_t first, uint64_t count,
                 void *whole_records, const void *part_records);
void record_split(const struct record_layout *whole, const struct record_layout *part, uint32_t first, uint64_t count,
                  const void *whole_records, void *part_records);

#endif
