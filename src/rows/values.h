/* values: converts the numbers of a packed field (kernels/record.h), or of a field of a file, to float32. No other file in src/ knows how a
 * bfloat16 or a code is stored. Fields need not be aligned. */
#ifndef SPTX_VALUES_H
#define SPTX_VALUES_H

#include "base/npy.h"
#include "kernels/record.h"

#include <stdint.h>

/* Returns the kind of a .npy field (npy.h) that stores values of this type. */
char values_kind(enum value_type type);

/* Reads columns first .. first + count - 1 of a field of a file. Its kind is 'f' (float32) or 'h' (bfloat16). */
void values_of_file(const struct npy_field *field, const void *at, uint32_t first, uint32_t count, float *out);

/* Writes the first `count` columns of a field to a packed record; for weights stored as codes, also their scale. Rounds to nearest, since
 * stochastic rounding is only needed for many small updates. */
void values_write(const struct record_layout *layout, const struct record_field *field, char *record, const float *values, uint32_t count);

/* Returns 1 if every value of a packed field is finite. */
int values_finite(const struct record_field *field, const void *at);

/* normal: converts random 32-bit numbers to standard normal values, many at once. */

#define NORMAL_FURTHEST 6.7

/* Converts `count` random 32-bit numbers to as many independent standard normal values, two at a time (Box and Muller 1958), so `count` is even.
 * No value is further than NORMAL_FURTHEST from 0; values are within 1e-11 of exact ones. */
void normal_values(const uint32_t *words, uint32_t count, double *out);

#endif
