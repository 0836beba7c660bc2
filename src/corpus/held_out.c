#include "held_out.h"

#include "base/memory.h"
#include "base/report.h"
#include "kernels/draws.h"

#include <stdlib.h>

enum { STAY = 2 }; /* fewest items of a list that are left for training */

/* Returns how many items of a list are held out. */
static uint64_t count_of(uint64_t items, double share, uint32_t seed, uint64_t list) {
    double up = (double)draw_unit(draw_at(seed, DRAW_HELD_OUT, list, 1, 0).word[0]);
    uint64_t count = (uint64_t)((double)items * share + up);
    return items <= STAY ? 0 : count < items - STAY ? count : items - STAY;
}

/* Where the next trained id, the next held-out id and the next trained weight are written. weights: NULL: ids have no weights. */
struct ends {
    uint32_t *trained, *out;
    float *weights;
};

static void train(struct ends *ends, const uint32_t *ids, const float *weights, uint64_t i) {
    *ends->trained++ = ids[i];
    if (ends->weights) *ends->weights++ = weights[i];
}

static void split_list(struct ends *ends, const uint32_t *ids, const float *weights, uint64_t items, double share, uint32_t seed,
                       uint64_t list) {
    uint64_t count = count_of(items, share, seed, list);
    struct shuffle order = shuffle_make(items, draw_at(seed, DRAW_HELD_OUT, list, 1, 1));
    for (uint64_t i = 0; i < items; i++) {
        if (shuffle_at(&order, i) < count)
            *ends->out++ = ids[i];
        else
            train(ends, ids, weights, i);
    }
}

static int reserve(struct held_out *h, const struct idstream *whole) {
    static const char what[] = "the items that are held out";
    h->trained.ids = mem_alloc(whole->tokens, sizeof *h->ids, what);
    h->trained.starts = mem_zalloc(whole->sentences + 1, sizeof *h->starts, what);
    if (whole->weights && !(h->trained.weights = mem_alloc(whole->tokens, sizeof *whole->weights, what))) return -1;
    h->ids = mem_alloc(whole->tokens, sizeof *h->ids, what);
    h->starts = mem_zalloc(whole->sentences + 1, sizeof *h->starts, what);
    return h->trained.ids && h->trained.starts && h->ids && h->starts ? 0 : -1;
}

static void split(struct held_out *h, const struct idstream *whole, double share, uint32_t seed) {
    uint32_t *trained = (uint32_t *)h->trained.ids;
    uint64_t *starts = (uint64_t *)h->trained.starts;
    struct ends ends = {trained, h->ids, (float *)h->trained.weights};
    for (uint64_t list = 0; list < whole->sentences; list++) {
        const uint32_t *ids = whole->ids + whole->starts[list];
        const float *weights = whole->weights ? whole->weights + whole->starts[list] : NULL;
        uint64_t count = whole->starts[list + 1] - whole->starts[list], own = (uint64_t)h->own;
        if (own) train(&ends, ids, weights, 0);
        split_list(&ends, ids + own, weights ? weights + own : NULL, count - own, share, seed, list);
        starts[list + 1] = (uint64_t)(ends.trained - trained);
        h->starts[list + 1] = (uint64_t)(ends.out - h->ids);
    }
    h->trained.tokens = starts[whole->sentences];
}

int held_out_split(struct held_out *h, const struct idstream *whole, int own, double share, uint32_t seed) {
    *h = (struct held_out){.trained = {.sentences = whole->sentences, .checksum = whole->checksum, .weighed = whole->weighed},
                           .lists = whole->sentences,
                           .own = own};
    if (reserve(h, whole)) return -1;
    split(h, whole, share, seed);
    if (h->starts[h->lists]) return 0;
    return fail("train.held_out_items = %g holds out no item: no list is long enough to lose one and keep %d; raise it",
                share, STAY);
}

void held_out_release(struct held_out *h) {
    mem_free((uint32_t *)h->trained.ids, (uint64_t *)h->trained.starts, (float *)h->trained.weights, h->ids, h->starts);
    *h = (struct held_out){.lists = 0};
}
