/* bench: calls that only measurements use, of a backend with a GPU (bench_transfer and bench_limits of backend_ops). One copies
 * rows between a table and an array on the GPU; the other makes plain copies, whose speed is the limit.
 *
 * Times are medians of BENCH_REPEATS copies, after BENCH_WARM copies that are not counted. They are from the call to the last
 * byte, and include sending ids from the host.
 */
#ifndef SPTX_KERNELS_BENCH_H
#define SPTX_KERNELS_BENCH_H

#include "backend.h"

enum { BENCH_REPEATS = 11, BENCH_WARM = 3 };

/* The order of a transfer's ids: random; sorted; or random, and sorted by the GPU within the measured time. */
enum bench_order { BENCH_RANDOM, BENCH_SORTED, BENCH_SORTING };

struct bench_request {
    struct backend_table *table; /* in any place; without state */
    uint64_t rows;               /* number of distinct rows, drawn at random from the table */
    enum bench_order order;
};
struct bench_times {
    double to, from; /* seconds: table to array, and array to table */
    double both;     /* seconds: both directions at once, with two arrays; 0 for the file place, whose rows the host's threads
                      * copy */
};

/* Bytes per second of plain copies: from host to GPU; from GPU to host; both at once, added; and within the GPU, where each byte
 * counts twice, as read and as written. */
struct bench_limits {
    double to, from, both, device;
};

#endif
