/* random_blocks: batches of random blocks, for tests of exact steps. The including file first defines constants: ROWS of a
 * table, BLOCKS of a batch, and MOST_T and MOST_C, the most targets and contexts of a block. */
#ifndef SPTX_TESTS_RANDOM_BLOCKS_H
#define SPTX_TESTS_RANDOM_BLOCKS_H

#include "kernels/backend.h"

static uint64_t state_of_random = 88172645463325252ull;
static uint32_t below(uint32_t n) {
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return (uint32_t)((state_of_random >> 33) % n);
}

struct batch {
    uint64_t target_starts[BLOCKS + 1], context_starts[BLOCKS + 1];
    uint32_t positives[BLOCKS], targets[BLOCKS * MOST_T], contexts[BLOCKS * MOST_C];
    float weights[BLOCKS * MOST_C]; /* each from 0 to 3 */
};

static struct batch_view fill_batch(struct batch *b) {
    uint64_t t = 0, c = 0;
    for (int i = 0; i < BLOCKS; i++) {
        uint32_t targets = 1 + below(MOST_T), contexts = 1 + below(MOST_C);
        b->target_starts[i] = t, b->context_starts[i] = c;
        b->positives[i] = below(contexts + 1);
        while (targets--) b->targets[t++] = below(ROWS);
        while (contexts--) b->weights[c] = (float)below(300) / 100, b->contexts[c++] = below(ROWS);
    }
    b->target_starts[BLOCKS] = t, b->context_starts[BLOCKS] = c;
    return (struct batch_view){.blocks = BLOCKS,
                               .target_starts = b->target_starts,
                               .context_starts = b->context_starts,
                               .positives = b->positives,
                               .target_ids = b->targets,
                               .context_ids = b->contexts,
                               .weights = b->weights};
}

#endif
