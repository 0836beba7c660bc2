#include "values.h"

#include "kernels/rounding.h"

#include <string.h>

char values_kind(enum value_type type) {
    switch (type) {
    case VALUE_FLOAT32:
        return 'f';
    case VALUE_UINT32:
        return 'u';
    case VALUE_BFLOAT16:
        return 'h';
    }
    return 0;
}

static float widened(const char *at) {
    uint16_t kept;
    memcpy(&kept, at, sizeof kept);
    return bfloat16_value(kept);
}

void values_of_file(const struct npy_field *field, const void *at, uint32_t first, uint32_t count, float *out) {
    const char *from = at;
    if (field->kind == 'f') memcpy(out, from + first * sizeof *out, count * sizeof *out);
    for (uint32_t i = 0; field->kind == 'h' && i < count; i++) out[i] = widened(from + (first + i) * sizeof(uint16_t));
}

void values_write(enum value_type type, void *at, const float *values, uint32_t count) {
    char *to = at;
    if (type == VALUE_FLOAT32) memcpy(to, values, count * sizeof *values);
    for (uint32_t i = 0; type == VALUE_BFLOAT16 && i < count; i++) {
        uint16_t kept = bfloat16_nearest(values[i]);
        memcpy(to + i * sizeof kept, &kept, sizeof kept);
    }
}

/* float32 and bfloat16: infinity and NaN have an exponent with all bits set. */
int values_finite(const struct record_field *field, const void *at) {
    const char *from = at;
    int bad = 0;
    for (uint32_t i = 0; field->type == VALUE_FLOAT32 && i < field->columns; i++) {
        uint32_t bits;
        memcpy(&bits, from + i * sizeof bits, sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    for (uint32_t i = 0; field->type == VALUE_BFLOAT16 && i < field->columns; i++) {
        uint16_t bits;
        memcpy(&bits, from + i * sizeof bits, sizeof bits);
        bad |= (bits & 0x7F80u) == 0x7F80u;
    }
    return !bad;
}
