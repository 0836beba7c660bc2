/* normal: converts random 32-bit numbers to standard normal values, many at once. */
#ifndef SPTX_NORMAL_H
#define SPTX_NORMAL_H

#include <stdint.h>

#define NORMAL_FURTHEST 6.7

/* Converts `count` random 32-bit numbers to as many independent standard normal values. `count` is even: each two numbers give
 * two values (Box and Muller 1958). No value is further than NORMAL_FURTHEST from 0. Values are within 1e-11 of those that exact
 * functions would give. */
void normal_values(const uint32_t *words, uint32_t count, double *out);

#endif
