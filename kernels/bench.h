/* bench: what measuring needs of a backend with a GPU and training does not (bench_transfer and bench_limits of
 * backend_ops): moving rows between a table and a dense variable on the GPU, and the plain copies that are the limit.
 *
 * Times are medians of BENCH_REPEATS after BENCH_WARM, from the call to the last byte, with sending ids from the host.
 */
#ifndef SPTX_KERNELS_BENCH_H
#define SPTX_KERNELS_BENCH_H

#include "backend.h"

enum { BENCH_REPEATS = 11, BENCH_WARM = 3 };

/* The order of a transfer's ids: random; sorted; random and sorted on the GPU as a part of the work. */
enum bench_order { BENCH_RANDOM, BENCH_SORTED, BENCH_SORTING };

struct bench_request {
    struct backend_table *table; /* in any place, without state */
    uint64_t rows;               /* distinct rows of the table, drawn at random */
    enum bench_order order;
};
struct bench_times {
    double to, from; /* seconds: table -> variable, variable -> table */
    double both;     /* seconds: both at once, on two variables; 0 for the file place, where the host's threads do the work */
};

/* The speed of plain copies in bytes a second: host to GPU, GPU to host, the sum of both at once; inside the GPU,
 * counting reads and writes. */
struct bench_limits {
    double to, from, both, device;
};

#endif
