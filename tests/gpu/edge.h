/* edge: a stream of more than 2^31 tokens for tests of sizes at the limits, in memory and in a file. Nearly all tokens are id 0.
 * Other ids are only at both ends and around 2^31, where batches are made. */
#ifndef SPTX_TESTS_GPU_EDGE_H
#define SPTX_TESTS_GPU_EDGE_H

#include "common.h"

#define GIB         (UINT64_C(1) << 30)
#define EDGE_TOKENS ((UINT64_C(1) << 31) + 1000)

enum { EDGE_SENTENCES = 5, EDGE_NEAR = 500, EDGE_BATCH = 200, EDGE_PLACES = 3 };

static const uint64_t EDGE_STARTS[EDGE_SENTENCES + 1] = {0, 40, 100, EDGE_TOKENS - 400, EDGE_TOKENS - 100, EDGE_TOKENS};
/* Positions at which each run of EDGE_NEAR ids begins, and positions of batches within these runs. */
static const uint64_t EDGE_IDS[EDGE_PLACES] = {0, (UINT64_C(1) << 31) - 250, EDGE_TOKENS - EDGE_NEAR};
static const uint64_t EDGE_BATCHES[EDGE_PLACES] = {0, (UINT64_C(1) << 31) - 100, EDGE_TOKENS - EDGE_BATCH};

/* Returns the j-th id of these runs: a random row; every seventh id is the last row. */
static inline uint32_t edge_id(uint64_t j, uint64_t rows) {
    return (uint32_t)(j % 7 ? random_bits() % rows : rows - 1);
}

/* Returns 1 if a batch has the windows that the documentation describes, when no word is dropped, widths are fixed, and
 * negatives are uniform and not excluded. */
int is_batch_of_windows(const struct example_source *s, const struct batch_request *r, const struct batch_view *v);

/* Trains on a file with such a stream, from the corpus to steps (edge_session.c). */
void test_edge_session(const struct backend_ops *ops);

#endif
