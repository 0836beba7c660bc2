/* host_rows: work that backends give to threads of the host: the first touch of memory, packing and unpacking rows, and copying
 * rows to and from a mapped file. It is plain C, which C++ files include, too. */
#ifndef SPTX_HOST_ROWS_H
#define SPTX_HOST_ROWS_H

#include "backend.h"

#include <stdint.h>

struct pool; /* src/base/pool.h */

/* Zeroes memory. Each thread zeroes its part, so that every page is allocated. */
int host_zero(struct pool *pool, void *memory, uint64_t bytes);

/* Returns 0 if the table has rows first .. first + count - 1; -1 after fail(). */
int host_check_rows(const struct table_spec *spec, uint64_t first, uint64_t count);

/* Records in memory, padded with zeros to the layout's span. weights: the first row's weights; state: the first row's first
 * slot; strides: bytes from row to row. host_pack() copies them to packed records (pool = NULL: by the calling thread alone),
 * host_unpack() copies packed records to them. */
struct host_records {
    char *weights, *state;
    uint64_t weights_stride, state_stride;
};
int host_pack(struct pool *pool, const struct record_layout *layout, const struct host_records *records, uint64_t count,
              void *packed);
int host_unpack(struct pool *pool, const struct record_layout *layout, const struct host_records *records, uint64_t count,
                const void *packed);

/* For `count` rows of `stride` bytes: host_gather() copies row ids[i] of `home` to place i of `rows`; host_scatter() copies
 * place i of `rows` to row ids[i] of `home`. */
int host_gather(struct pool *pool, char *rows, const char *home, const uint32_t *ids, uint64_t count, uint64_t stride);
int host_scatter(struct pool *pool, char *home, const char *rows, const uint32_t *ids, uint64_t count, uint64_t stride);

/* Opens a pool of `threads` threads (0: one a core), for files that cannot include src/base/pool.h. */
struct pool *host_pool_open(unsigned threads);
void host_pool_close(struct pool *pool);
unsigned host_pool_threads(const struct pool *pool);

#endif
