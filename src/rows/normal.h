/* normal: makes standard normals from random words, many at once. */
#ifndef SPTX_NORMAL_H
#define SPTX_NORMAL_H

#include <stdint.h>

#define NORMAL_FURTHEST 6.7

/* Turns `count` words, an even number, into independent standard normals: each two words make two (Box and Muller
 * 1958), none further than NORMAL_FURTHEST from 0. They are within 1e-11 of what exact functions would give. */
void normal_values(const uint32_t *words, uint32_t count, double *out);

#endif
