/* cpu_batches: opens the CPU backend and makes batches as arrays, for the tests of this folder. Include this after testing.h. */
#ifndef SPTX_TESTS_CPU_BATCHES_H
#define SPTX_TESTS_CPU_BATCHES_H

#include "kernels/backend.h"

static inline struct backend *open_cpu(unsigned threads) {
    struct backend *backend = NULL;
    struct backend_options options = {.threads = threads, .depth = 3};
    assert_int_equal(backend_cpu.open(&backend, &options), 0);
    return backend;
}

/* Returns a batch as arrays, which are valid until the backend's next batch. */
static inline struct batch_view make(struct backend *backend, uint32_t epoch, uint64_t first, uint64_t count, int held_out) {
    struct batch_request request = {epoch, first, count, held_out};
    struct batch_view view;
    assert_int_equal(backend_cpu.make_batch(backend, 0, &request), 0);
    assert_int_equal(backend_cpu.batch_view(backend, 0, &view), 0);
    return view;
}

#endif
