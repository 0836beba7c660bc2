/* record: describes what is stored for a row. A record is a list of fields, each with a name, a type, its columns, and its offset in the two forms of
 * a record:
 *
 *   in memory   two parts: the weights, and the state (everything else), in one store or in two (backend.h). Columns are
 *               padded with zeros to whole groups, which kernels read at once: four columns, or eight in all fields if
 *               one of them is bfloat16, so that a group takes 16 bytes or 32; only a field's offset and bytes say
 *               where it begins and how many bytes it takes
 *   packed      all fields one after the other, without padding: used by read() and write(), and in checkpoints
 *
 *   field    0        1 .. slots                              next, where rows keep a count    last, of coarse rows
 *   name     weights  the rule's slots, by PyTorch's names    updates                          scale
 *   type     by rule_options                                  uint32                           float32
 *
 * A rule with RULE_BY_ROW has one column in its last slot, float32, which is not padded.
 *
 * Coarse rows (int8, float8) store a code of one byte a column, and one scale a row; a weight is its code's value x the scale
 * (rounding.h). In memory the weights' part then begins with the scale, so that one request brings both:
 *
 *   byte     0        4         16
 *            [scale | unused  | codes, padded to whole groups and to 16 bytes]
 */
#ifndef SPTX_RECORD_H
#define SPTX_RECORD_H

#include "optimizers.h"

#include <stddef.h>
#include <stdint.h>

enum { COLUMNS_MOST = 4096 }; /* most columns of a table */

enum value_type { VALUE_FLOAT32, VALUE_UINT32, VALUE_BFLOAT16, VALUE_INT8, VALUE_FLOAT8 };

FN uint64_t value_bytes(enum value_type type) {
    switch (type) {
    case VALUE_FLOAT32:
        return 4;
    case VALUE_UINT32:
        return 4;
    case VALUE_BFLOAT16:
        return 2;
    case VALUE_INT8:
    case VALUE_FLOAT8:
        return 1;
    }
    return 0;
}

/* Returns 1 if the values of a field are numbers; 0 if it is the row's count of updates. */
FN int value_is_number(enum value_type type) {
    return type != VALUE_UINT32;
}
/* Returns 1 for the types whose values are codes, to be multiplied by a row's scale. */
FN int value_is_code(enum value_type type) {
    return type == VALUE_INT8 || type == VALUE_FLOAT8;
}

struct record_field {
    const char *name; /* a string literal */
    enum value_type type;
    uint32_t columns; /* number of columns, without padding */
    float initial;    /* first value of every column; not used for weights: those are drawn */
    uint64_t offset;  /* in memory: bytes before the field, from the beginning of the state; for weights and scale, from the beginning of the
                       * weights' part */
    uint64_t bytes;   /* in memory: bytes of the field, with padding */
    uint64_t packed;  /* in a packed record: bytes before the field */
};

enum {
    RECORD_FIELDS = 1 + RULE_SLOTS + 2,
    RECORD_WEIGHTS = 0,
    RECORD_STATE = 1, /* the first field of the state */
    RECORD_CODES = 16 /* in a coarse row's weights' part: offset of the codes, after the scale */
};

struct record_layout {
    struct record_field field[RECORD_FIELDS];
    uint32_t fields;
    uint32_t dim;     /* columns without padding, of the weights and of every slot (but of one only, if by_row, in the last slot) */
    uint32_t span;    /* columns with padding; equal in all fields */
    uint32_t slots;   /* 0..3 */
    uint32_t by_row;  /* 1: the last slot is one number for the whole row (RULE_BY_ROW) */
    uint32_t counted; /* 1: the field after the slots is `updates`, the number of the row's updates */
    uint32_t coarse;  /* 1: weights are codes, and the row's scale is the last field */
    uint32_t halves;  /* 1: some field is bfloat16, or weights are codes */
    uint32_t complex; /* 1: columns j and j + dim / 2 are the parts of a complex number (triples.h), and belong to the same rank */
    uint64_t packed;  /* bytes of a packed record */
};

/* Returns the number of columns in a group. The columns of a group are read and written together, and never belong to different ranks. */
FN uint32_t record_grain(const struct record_layout *layout) {
    return layout->halves ? 8 : 4;
}

struct record_layout record_layout_make(const struct rule_options *rule, uint32_t dim);

/* Returns the field with this name; NULL if the record has none. */
const struct record_field *record_field(const struct record_layout *layout, const char *name);
FN const struct record_field *record_slot(const struct record_layout *layout, uint32_t slot) {
    return &layout->field[RECORD_STATE + slot];
}
/* Returns the field that counts the row's updates. layout->counted must be 1. */
FN const struct record_field *record_updates(const struct record_layout *layout) {
    return &layout->field[RECORD_STATE + layout->slots];
}
/* Returns the field of a row's scale. layout->coarse must be 1. */
FN const struct record_field *record_scale(const struct record_layout *layout) {
    return &layout->field[layout->fields - 1];
}

/* Returns 1 for the weights, the first field. */
FN int record_is_weights(const struct record_field *field) {
    return field->packed == 0;
}

/* Returns the number of groups of four columns, which is the same for the weights and every slot. */
FN uint32_t record_quads(const struct record_layout *layout) {
    return layout->span / 4;
}

/* Return the bytes of the weights, and of the state, in memory. */
FN uint64_t record_weights_bytes(const struct record_layout *layout) {
    return layout->field[RECORD_WEIGHTS].offset + layout->field[RECORD_WEIGHTS].bytes;
}
FN uint64_t record_state_bytes(const struct record_layout *layout) {
    uint32_t fields = layout->fields - layout->coarse;
    if (fields <= RECORD_STATE) return 0;
    const struct record_field *last = &layout->field[fields - 1];
    return last->offset + last->bytes;
}

/* ---- ranks share out the columns (ranks.h) ----
 *
 *   columns of     real numbers: one run      complex numbers: a run of real parts, and their imaginary parts
 *   rank 0         0 .. 19                    0 .. 9             25 .. 34
 *   rank 1         20 .. 35                   10 .. 17           35 .. 42
 *   rank 2         36 .. 49                   18 .. 24           43 .. 49
 *
 * In a rank's own record the imaginary parts come after the real parts, as in a whole record of fewer columns.
 */
struct columns {
    uint32_t first, count; /* first: the first column; count: number of columns */
    uint32_t apart; /* 0: these are consecutive columns. Otherwise they are two runs of count / 2 consecutive columns each, of which the second
                     * begins at column first + apart */
};

/* Returns the columns of rank `number` of `ranks` (at most as many as there are columns, or complex numbers). Their number is a multiple of
 * record_grain() if there are enough groups for all ranks; the last rank may have fewer. No rank has more columns than rank 0. */
struct columns record_columns(const struct record_layout *whole, unsigned ranks, unsigned number);

/* Returns the run of columns that begins at a rank's own column `at`; its count is 0 after the last column. */
FN struct columns record_run(struct columns own, uint32_t at) {
    uint32_t half = own.apart ? own.count / 2 : own.count;
    struct columns run = {at < half ? own.first + at : own.first + own.apart + (at - half), (at < half ? half : own.count) - at, 0};
    return run;
}

/* record_join() copies packed records of a rank's columns into packed records of all columns; record_split() copies in the other direction. The
 * count of updates, and a slot of one column, are equal in every part. */
void record_join(const struct record_layout *whole, const struct record_layout *part, struct columns own, uint64_t count,
                 void *whole_records, const void *part_records);
void record_split(const struct record_layout *whole, const struct record_layout *part, struct columns own, uint64_t count,
                  const void *whole_records, void *part_records);

#endif
