/* host_rows: work that backends let the host's threads do: first touch of memory, rows to and from packed form, rows to
 * and from a mapped file. Plain C, read by C++ as well. */
#ifndef SPTX_HOST_ROWS_H
#define SPTX_HOST_ROWS_H

#include "backend.h"

#include <stdint.h>

struct pool; /* src/base/pool.h */

/* Writes zeros over `bytes` bytes, each thread over a part, so that every page is there. */
int host_zero(struct pool *pool, void *memory, uint64_t bytes);

/* Returns -1 after fail() where the table does not have all of rows [first, first + count). */
int host_check_rows(const struct table_spec *spec, uint64_t first, uint64_t count);

/* Converts between records in memory, with their padding (zeros, up to a layout's span), and packed ones. `state` is
 * the first slot of the first row. */
struct host_records {
    char *weights, *state;
    uint64_t weights_stride, state_stride;
};
int host_pack(struct pool *pool, const struct record_layout *layout, const struct host_records *records, uint64_t count,
              void *packed);
int host_unpack(struct pool *pool, const struct record_layout *layout, const struct host_records *records, uint64_t count,
                const void *packed);

/* Gathers rows[i] = home + ids[i] x stride for `count` rows of `stride` bytes; host_scatter() does the reverse. */
int host_gather(struct pool *pool, char *rows, const char *home, const uint32_t *ids, uint64_t count, uint64_t stride);
int host_scatter(struct pool *pool, char *home, const char *rows, const uint32_t *ids, uint64_t count, uint64_t stride);

/* Opens a pool of `threads` (0: one a core), for files that cannot read src/base/pool.h. */
struct pool *host_pool_open(unsigned threads);
void host_pool_close(struct pool *pool);
unsigned host_pool_threads(const struct pool *pool);

#endif
