/* values: converts the numbers of a packed field (kernels/record.h), or of a field of a file, to float32. No other place of src/
 * knows how a bfloat16 is stored there. Fields need not be aligned. */
#ifndef SPTX_VALUES_H
#define SPTX_VALUES_H

#include "kernels/record.h"
#include "base/npy.h"

/* The kind of a file's field (npy.h) that has values of a type. */
char values_kind(enum value_type type);

/* Reads columns [first, first + count) of a field of a file, which is 'f' or 'h'. */
void values_of_file(const struct npy_field *field, const void *at, uint32_t first, uint32_t count, float *out);

/* Writes `count` numbers to a packed field; bfloat16 is rounded to nearest, since this is done once. */
void values_write(enum value_type type, void *at, const float *values, uint32_t count);

/* Returns 1 where no value of a packed field is infinite or NaN. */
int values_finite(const struct record_field *field, const void *at);

#endif
