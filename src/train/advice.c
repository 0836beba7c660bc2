/* advice: finds changes that make a plan fit. Each change is tried before it is advised, or is computed from counted bytes. */
#include "planning.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { LEAST_DIM = 4 };

/* Writes plan->advice: "it needs A of WHAT and B can be had: ", followed by `format`, which says what to change. */
static void say_advice(const struct planning *p, uint64_t needed, const char *what, uint64_t available, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void say_advice(const struct planning *p, uint64_t needed, const char *what, uint64_t available, const char *format, ...) {
    char need[TEXT_BYTES], have[TEXT_BYTES], *advice = p->plan->advice;
    size_t capacity = sizeof p->plan->advice;
    size_t n = text_add(advice, capacity, 0, "it needs %s of %s and %s can be had: ", text_of_bytes(need, needed), what,
                        text_of_bytes(have, available));
    va_list args;
    va_start(args, format);
    vsnprintf(advice + n, capacity - n, format, args);
    va_end(args);
}

/* ---- the host ---- */

/* Returns the largest number of columns, in steps of LEAST_DIM, with which the tables fit; 0 if even LEAST_DIM columns do not
 * fit. `share`: memory that is available for the tables / memory that they need now. */
static uint32_t fitting_dim(const struct planning *p, double share) {
    uint32_t dim = (uint32_t)((double)p->plan->dim * share) / LEAST_DIM * LEAST_DIM;
    while (dim && !planning_fits_host(p, dim)) dim = (dim - 1 - dim / 64) / LEAST_DIM * LEAST_DIM;
    return dim;
}

void advise_host(const struct planning *p) {
    const struct plan *plan = p->plan;
    const char *files = p->gpu && p->hogwild ? "set train.update = batch and keep tables in files (memory.target = file)"
                                             : "keep tables in files (memory.target = file, memory.target_state = file; the same "
                                               "keys for context)";
    uint64_t tables = plan->pinned_bytes + plan->plain_bytes, rest = plan->host_needed - tables;
    uint64_t have = plan->host_available, left = have > rest ? have - rest : 0;
    uint32_t dim = tables && left < tables ? fitting_dim(p, (double)left / (double)tables) : 0;
    const char *halved = planning_fits_halved(p) ? "set model.precision = bfloat16, or " : "";
    char ids[TEXT_BYTES], budget[TEXT_BYTES];
    if (rest > have && rest - plan->stream_pinned <= have)
        say_advice(p, plan->host_needed, "memory", have,
                   "%s of it are the corpus ids, which the GPU reads from pinned memory; raise memory.gpu_budget to %s, or use "
                   "device.backend = cpu",
                   text_of_bytes(ids, plan->stream_pinned), text_of_bytes(budget, GPU_STREAM_PART * plan->stream_pinned));
    else if (rest > have || (!p->gpu && plan->work_bytes > have / 2))
        say_advice(p, plan->host_needed, "memory", have, "lower train.batch (it is %" PRIu64 ") or corpus.max_vocab", plan->batch);
    else if (dim)
        say_advice(p, plan->host_needed, "memory", have, "%slower model.dim to %" PRIu32 ", or %s", halved, dim, files);
    else
        say_advice(p, plan->host_needed, "memory", have, "%s%s, or lower corpus.max_vocab", halved, files);
}

/* ---- the GPU ---- */

/* Returns 1 if the plan would fit the budget without hot rows and with the given tables moved off the GPU: the targets if
 * `target` is 1, the contexts if `context` is 1. */
static int fits_off_gpu(const struct planning *p, int target, int context) {
    struct planning tried = *p;
    struct plan plan = *p->plan;
    plan.hot_rows = 0;
    if (target) plan.target = plan.target_state = PLACE_PINNED;
    if (context) plan.context = plan.context_state = PLACE_PINNED;
    tried.plan = &plan;
    struct estimate estimate = planning_estimate(&tried);
    return planning_gpu(&estimate) <= p->budget;
}

/* Returns the largest half, quarter, eighth .. of the batch with which the plan would fit the budget; 0 if it fits with none. It
 * assumes that the work memory becomes smaller in proportion. */
static uint64_t fitting_batch(const struct planning *p) {
    uint64_t work = p->estimate.work.gpu, others = p->plan->gpu_needed - work - p->plan->hot_bytes, asked = p->source.batch;
    if (others > p->budget) return 0;
    for (uint64_t batch = asked / 2; batch; batch /= 2) /* assume 1/64 more, since not all of the work memory shrinks with the
                                                         * batch */
        if ((double)work / (double)asked * (double)batch + (double)work / 64 <= (double)(p->budget - others)) return batch;
    return 0;
}

void advise_gpu(const struct planning *p) {
    const struct plan *plan = p->plan;
    uint64_t rows = planning_fitting_rows(p), batch = fitting_batch(p), need = plan->gpu_needed;
    if (fits_off_gpu(p, 0, 0))
        say_advice(p, need, "the GPU", p->budget, "lower memory.hot_rows to %" PRIu64 ", or set it to auto", rows);
    else if (fits_off_gpu(p, 1, 0))
        say_advice(p, need, "the GPU", p->budget, "set memory.target = pinned and memory.target_state = pinned");
    else if (fits_off_gpu(p, 0, 1))
        say_advice(p, need, "the GPU", p->budget, "set memory.context = pinned and memory.context_state = pinned");
    else if (batch)
        say_advice(p, need, "the GPU", p->budget, "lower train.batch to %" PRIu64, batch);
    else if (plan->gpu_bytes)
        say_advice(p, need, "the GPU", p->budget,
                   "set all four of memory.target, target_state, context and context_state to pinned, or lower train.batch");
    else
        say_advice(p, need, "the GPU", p->budget, "raise memory.gpu_budget, or lower train.batch or memory.depth");
}
