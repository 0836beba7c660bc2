/* clusters: groups of rows that lie in one direction (k-means of unit rows, "spherical k-means", Dhillon and Modha
 * 2001). */
#ifndef SPTX_CLUSTERS_H
#define SPTX_CLUSTERS_H

#include <stdint.h>

/* Fills cluster [count] with the number of each row's cluster, 0 .. *found - 1, numbered in the order of their first
 * rows. rows: [count x dim], each of unit length or zeros. At most `most` clusters are found, which is at most 255. The
 * same rows make the same clusters. Returns 0, or -1 after fail(). */
int clusters_find(uint8_t *cluster, uint32_t *found, const float *rows, uint64_t count, uint32_t dim, uint32_t most);

#endif
