/* bench: calls of a backend with a GPU that only measurements use (bench_transfer and bench_limits of backend_ops): copying
 * rows between a table and a dense variable on the GPU, and plain copies, whose speed is the limit.
 *
 * Times are medians of BENCH_REPEATS after BENCH_WARM, from the call to the last byte, including sending ids from the host.
 */
#ifndef SPTX_KERNELS_BENCH_H
#define SPTX_KERNELS_BENCH_H

#include "backend.h"

enum { BENCH_REPEATS = 11, BENCH_WARM = 3 };

/* The order of a transfer's ids: random; sorted; random, and sorted on the GPU within the measured time. */
enum bench_order { BENCH_RANDOM, BENCH_SORTED, BENCH_SORTING };

struct bench_request {
    struct backend_table *table; /* kept in any place; has no state */
    uint64_t rows;               /* number of distinct rows, drawn at random from the table */
    enum bench_order order;
};
struct bench_times {
    double to, from; /* seconds: table -> variable, variable -> table */
    double both;     /* seconds: both directions at once, with two variables; 0 for the file place, whose rows the host's threads
                      * copy */
};

/* Bytes a second of plain copies: host to GPU, GPU to host, the sum of both at once; and inside the GPU, where a read and a
 * write both count. */
struct bench_limits {
    double to, from, both, device;
};

#endif
