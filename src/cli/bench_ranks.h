/* bench_ranks: `bench ranks`, a run's steps over the ranks that mpirun began. */
#ifndef SPTX_BENCH_RANKS_H
#define SPTX_BENCH_RANKS_H

#include <stdint.h>

struct bench_ranks_options {
    const char *config_path;
    const char **settings; /* [setting_count] */
    int setting_count;
    double seconds;
    uint64_t steps; /* 0: as many as `seconds` have */
    int json;
};

/* Every rank calls it; the first one prints. 0, or -1 after fail(). */
int bench_ranks(const struct bench_ranks_options *options);

#endif
