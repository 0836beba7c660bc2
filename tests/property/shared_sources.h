/* shared_sources: sources whose batches share their negatives: items of lists, and triples. Include this after testing.h. */
#ifndef SPTX_TESTS_SHARED_SOURCES_H
#define SPTX_TESTS_SHARED_SOURCES_H

#include "cpu_batches.h"

enum { ITEMS = 400, LISTS = 60, ROWS = ITEMS + LISTS, TOKENS = 1500 };

static uint32_t ids[TOKENS];
static uint64_t starts[LISTS + 1];

/* Makes lists of 1 to 48 places, of which the first is the list's own row. Frequent items have low ids. */
static struct example_source lists(uint32_t negatives) {
    uint64_t at = 0;
    srand(5);
    for (uint32_t list = 0; list < LISTS; list++) {
        uint64_t items = list + 1 == LISTS ? TOKENS - at - 1 : (uint64_t)(rand() % 48);
        starts[list] = at;
        ids[at++] = ITEMS + list;
        while (items--) {
            double u = (rand() + 0.5) / (RAND_MAX + 1.0);
            ids[at++] = (uint32_t)(ITEMS * u * u);
        }
    }
    starts[LISTS] = TOKENS;
    return (struct example_source){.ids = ids,
                                   .starts = starts,
                                   .tokens = TOKENS,
                                   .sentences = LISTS,
                                   .rows = ROWS,
                                   .target_only = LISTS,
                                   .longest = TOKENS,
                                   .mode = EXAMPLE_ITEM,
                                   .positives = 1,
                                   .shuffle = 1,
                                   .short_repeat = 1,
                                   .per_batch = 1,
                                   .negatives = negatives,
                                   .exclude = 1,
                                   .noise = NOISE_UNIFORM,
                                   .seed = 13};
}

/* Makes TOKENS / 3 triples of ITEMS entities and of LISTS relations, the second half of which are reciprocals. tied: 1: heads are
 * rows of the context table. */
static struct example_source triples(uint32_t negatives, enum example_product product, int tied) {
    struct example_source source = lists(negatives);
    for (uint64_t i = 0; i < TOKENS; i++) ids[i] = i % 3 == 1 ? ITEMS + ids[i] % (LISTS / 2) : ids[i] % ITEMS;
    source.starts = NULL, source.sentences = TOKENS / 3, source.mode = EXAMPLE_TRIPLE, source.reciprocal = 1;
    source.pool = (struct example_pool){.on = 1, .product = product, .tied = tied};
    return source;
}

#endif
