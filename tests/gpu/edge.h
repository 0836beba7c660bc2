/* edge: a stream of more than 2^31 tokens, nearly all of them id 0, which the tests of sizes at the edge have in memory
 * and in a file. Batches are made at both ends and around 2^31; other ids than 0 lie there. */
#ifndef SPTX_TESTS_GPU_EDGE_H
#define SPTX_TESTS_GPU_EDGE_H

#include "common.h"

#define GIB         (UINT64_C(1) << 30)
#define EDGE_TOKENS ((UINT64_C(1) << 31) + 1000)

enum { EDGE_SENTENCES = 5, EDGE_NEAR = 500, EDGE_BATCH = 200, EDGE_PLACES = 3 };

static const uint64_t EDGE_STARTS[EDGE_SENTENCES + 1] = {0, 40, 100, EDGE_TOKENS - 400, EDGE_TOKENS - 100, EDGE_TOKENS};
/* The first of each EDGE_NEAR ids, and of a batch among them. */
static const uint64_t EDGE_IDS[EDGE_PLACES] = {0, (UINT64_C(1) << 31) - 250, EDGE_TOKENS - EDGE_NEAR};
static const uint64_t EDGE_BATCHES[EDGE_PLACES] = {0, (UINT64_C(1) << 31) - 100, EDGE_TOKENS - EDGE_BATCH};

/* Returns the j-th of these ids: any row, and every seventh time the last row. */
static inline uint32_t edge_id(uint64_t j, uint64_t rows) {
    return (uint32_t)(j % 7 ? random_bits() % rows : rows - 1);
}

/* Returns 1 where a batch holds the windows that the documentation promises, where nothing is dropped, widths are not
 * drawn, and negatives are uniform and not excluded. */
int is_batch_of_windows(const struct example_source *s, const struct batch_request *r, const struct batch_view *v);

/* edge_session.c: trains on a file of such a stream, from the corpus to a step. */
void test_edge_session(const struct backend_ops *ops);

#endif
