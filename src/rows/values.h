/* values: converts the numbers of a packed field (kernels/record.h), or of a field of a file, to float32. Only this file of src/
 * knows how a bfloat16 is stored there. Fields need not be aligned. */
#ifndef SPTX_VALUES_H
#define SPTX_VALUES_H

#include "kernels/record.h"
#include "base/npy.h"

/* Returns the kind of a .npy field (npy.h) that stores values of this type. */
char values_kind(enum value_type type);

/* Reads columns first .. first + count - 1 of a field of a file. Its kind is 'f' (float32) or 'h' (bfloat16). */
void values_of_file(const struct npy_field *field, const void *at, uint32_t first, uint32_t count, float *out);

/* Writes `count` numbers to a packed field. For bfloat16 it rounds to nearest: rounding at random is only needed for many small
 * updates. */
void values_write(enum value_type type, void *at, const float *values, uint32_t count);

/* Returns 1 if every value of a packed field is finite. */
int values_finite(const struct record_field *field, const void *at);

#endif
