#include "copies.h"

#include "base/memory.h"
#include "base/report.h"
#include "kernels/hogwild.h"
#include "session.h"

#include <math.h>
#include <stdlib.h>

struct copies {
    const struct backend_ops *ops;
    unsigned count, faster; /* faster: factor of the learning rate */
    uint64_t round;                                  /* number of examples that a copy trains between two merges */
    struct backend *backends[COPIES_MOST];           /* the first is the session's */
    struct backend_table *tables[2][COPIES_MOST];    /* by enum table_side and copy; the first ones are the session's */
    struct backend_copies *merged[2];
    struct pool *pool; /* a thread for each copy, since a backend's call waits for its GPU */
    const struct hogwild_request *request;
    struct hogwild_result results[COPIES_MOST];
};

/* ---- opening ---- */

static int open_copy(struct copies *c, struct session *s, unsigned number) {
    struct backend_options options = {.threads = 1,
                                      .index = (unsigned)s->config->device_index + number,
                                      .depth = 1,
                                      .gpu_budget = s->config->memory_gpu_budget};
    return c->ops->open(&c->backends[number], &options) || c->ops->source(c->backends[number], &s->examples.source) ||
                   c->ops->table_open(c->backends[number], &s->target.spec, &c->tables[TABLE_TARGET][number]) ||
                   c->ops->table_open(c->backends[number], &s->context.spec, &c->tables[TABLE_CONTEXT][number]) ? -1 : 0;
}

/* Returns 0; 1 if the GPUs cannot address one another's memory; -1 after fail(). */
static int open_all(struct copies *c, struct session *s) {
    int result = 0;
    c->ops = s->ops;
    c->backends[0] = s->backend;
    c->tables[TABLE_TARGET][0] = s->target.store;
    c->tables[TABLE_CONTEXT][0] = s->context.store;
    for (unsigned i = 1; i < c->count && !result; i++) result = open_copy(c, s, i);
    for (int side = 0; side < 2 && !result; side++)
        result = c->ops->copies_open(c->backends, c->tables[side], c->count, &c->merged[side]);
    if (!result && !(c->pool = pool_open(c->count))) return -1;
    return result;
}

/* MERGES: fewest merges of a run. With fewer, copies would differ too much when they are merged. Examples between two merges are
 * limited by absolute numbers and by numbers for each row of the larger table: below LEAST and LEAST_A_ROW merging takes as long as
 * training; above MOST and MOST_A_ROW training gets no faster (scripts/results/gpus.md). */
enum { MERGES = 40, LEAST = 1 << 18, LEAST_A_ROW = 4, MOST = 1 << 22, MOST_A_ROW = 16 };

uint64_t copies_round_of(const struct session *s, unsigned count) {
    uint64_t rows = s->plan.rows > s->plan.items ? s->plan.rows : s->plan.items;
    uint64_t least = rows * LEAST_A_ROW > LEAST ? rows * LEAST_A_ROW : LEAST, most = rows * MOST_A_ROW > MOST ? rows * MOST_A_ROW : MOST;
    double examples = (double)example_count(&s->examples.source) * (double)s->config->train_epochs / count / MERGES;
    if (s->config->train_merge_every != COUNT_AUTO) return s->config->train_merge_every;
    if (examples < (double)least) return s->config->device_share == SHARE_COPIES ? LEAST : 0;
    return examples < (double)most ? (uint64_t)examples : most;
}

/* The highest learning rate of a copy: wiki16 trains on a GPU at 0.05, and diverges at 0.1. */
static const double RATE_MOST = 0.05;

unsigned copies_most(const struct config *config) {
    double most = floor(RATE_MOST / config->optimizer_lr + 1e-6);
    return most < 1 ? 1 : most < COPIES_MOST ? (unsigned)most : COPIES_MOST;
}

int copies_open(struct copies **out, struct session *s) {
    *out = NULL;
    if (s->config->copies < 2) return 0;
    struct copies *c = mem_zalloc(1, sizeof *c, "copies of the tables");
    if (!c) return -1;
    c->count = s->config->copies < COPIES_MOST ? s->config->copies : COPIES_MOST;
    c->faster = c->count < copies_most(s->config) ? c->count : copies_most(s->config);
    c->round = copies_round_of(s, c->count);
    int result = open_all(c, s);
    if (result) copies_close(c);
    else *out = c;
    if (result > 0) note("copies     none: the GPUs cannot address one another's memory, so one of them trains the run");
    return result < 0 ? -1 : 0;
}

void copies_close(struct copies *c) {
    if (!c) return;
    for (int side = 0; side < 2; side++) c->ops->copies_close(c->merged[side]);
    for (unsigned i = 1; i < c->count; i++) {
        for (int side = 0; side < 2; side++)
            if (c->tables[side][i]) c->ops->table_close(c->backends[i], c->tables[side][i]);
        if (c->backends[i]) c->ops->close(c->backends[i]);
    }
    pool_close(c->pool);
    free(c);
}

uint64_t copies_round(const struct copies *c) {
    return c->round * c->count;
}

/* ---- training ---- */

static int train_share(void *context, unsigned worker) {
    struct copies *c = context;
    struct hogwild_request own = *c->request;
    double slope = (own.lr_last - own.lr_first) / (double)own.count;
    uint64_t first, end;
    pool_share(own.count, worker, c->count, &first, &end);
    own.target = c->tables[TABLE_TARGET][worker];
    own.context = c->tables[TABLE_CONTEXT][worker];
    own.first += first;
    own.global_step += first;
    own.count = end - first;
    own.lr_first = c->faster * (c->request->lr_first + slope * (double)first);
    own.lr_last = c->faster * (c->request->lr_first + slope * (double)end);
    return c->ops->hogwild(c->backends[worker], &own, &c->results[worker]);
}

int copies_train(struct copies *c, const struct hogwild_request *request, struct hogwild_result *result) {
    c->request = request;
    *result = (struct hogwild_result){.done = 0};
    if (pool_run(c->pool, train_share, c)) return -1;
    for (unsigned i = 0; i < c->count; i++) {
        hogwild_add(result, &c->results[i]);
        result->done += c->results[i].done;
    }
    return c->ops->copies_merge(c->merged[TABLE_TARGET]) || c->ops->copies_merge(c->merged[TABLE_CONTEXT]) ? -1 : 0;
}
