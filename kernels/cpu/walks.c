/* walks: draws several walks together, since each of their steps waits for memory that is in no cache. */
#include "cpu.h"

#include "base/memory.h"
#include "base/report.h"

enum {
    SIDE_BY_SIDE = 16, /* walks that a worker draws together, one step of each in turn */
    WALKS_AT_ONCE = 256
};

/* Draws at most SIDE_BY_SIDE walks. */
static void draw_together(const struct example_source *s, uint64_t first, uint64_t count, uint32_t epoch, uint32_t *ids) {
    struct {
        struct walk walk;
        uint32_t *ids;
    } going[SIDE_BY_SIDE];
    uint64_t left = count;
    for (uint64_t i = 0; i < count; i++) {
        going[i].walk = walk_begin(&s->walks, s->seed, first + i, epoch);
        going[i].ids = ids + i * s->walks.length;
        going[i].ids[0] = going[i].walk.at.id;
    }
    while (left)
        for (uint64_t i = 0; i < left;) {
            struct walk *walk = &going[i].walk;
            if (walk_go(&s->walks, s->seed, epoch, walk)) {
                going[i++].ids[walk->step] = walk->at.id;
            } else {
                walk_end(&s->walks, walk->step, going[i].ids);
                going[i] = going[--left];
            }
        }
}

void cpu_draw(const struct example_source *s, uint64_t first, uint64_t count, uint32_t epoch, uint32_t *ids) {
    for (uint64_t at = 0; at < count; at += SIDE_BY_SIDE)
        draw_together(s, first + at, count - at < SIDE_BY_SIDE ? count - at : SIDE_BY_SIDE, epoch, ids + at * s->walks.length);
}

/* ---- for those who ask for walks and not for examples ---- */

struct drawing {
    struct backend *backend;
    uint32_t epoch;
    uint64_t first, count;
    uint32_t *ids; /* [count x length]; NULL: the walks are not wanted */
    _Atomic uint64_t taken;
};

static int draw_some(void *context, unsigned worker) {
    struct drawing *d = context;
    const struct example_source *s = &d->backend->source;
    struct cpu_piece *piece = &d->backend->scratch[worker].piece;
    uint64_t at, end, length = s->walks.length;
    if (mem_reserve(&piece->walk, &piece->walk_capacity, WALKS_AT_ONCE * length, sizeof *piece->walk, "walks")) return -1;
    while (pool_take(&d->taken, d->count, WALKS_AT_ONCE, &at, &end))
        cpu_draw(s, d->first + at, end - at, d->epoch, d->ids ? d->ids + at * length : piece->walk);
    return 0;
}

int cpu_draw_walks(struct backend *backend, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids) {
    struct drawing d = {.backend = backend, .epoch = epoch, .first = first, .count = count, .ids = ids};
    return pool_run(backend->pool, draw_some, &d);
}
