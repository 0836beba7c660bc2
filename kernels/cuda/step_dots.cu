/* step_dots: chooses and launches the kernels for a batch's blocks. The kernels are in step_dots.cuh and, for several ranks, in
 * step_dots_ranks.cu. This file compiles those for a single rank, which has all columns. */
#include "step_dots.cuh"

struct dot_kernels dot_kernels_alone(const struct step_view *v) {
    bool state = v->rule.slots > 0;
    struct dot_kernels kernels = dot_kernels_of<DOTS_ALONE>(v->halves, v->quads, state);
    if (!v->halves) kernels.wide = kernels_for_few<of_mode<float32_rows, DOTS_ALONE>::wide>(v->quads, state);
    return kernels;
}

enum {
    RESIDENT = 4,        /* roughly how many thread blocks of step_dots_ranks.cu fit on a multiprocessor */
    LONGEST_RUN = 4,     /* most consecutive blocks on which a group of step_dots_ranks.cu works: it waits for the first block of each run */
    SHARED_BLOCKS = 8192 /* up to this number of blocks of one target in a batch, groups of a thread block share a block's contexts */
};

static int launch(struct backend *b, const struct stage *stage, struct step_view v, const struct dot_kernels *k) {
    const struct batch_sizes *sizes = &stage->sizes;
    dot_kernel *kernel = k->many;
    uint32_t threads = CTA, grid = blocks_for((uint64_t)sizes->blocks * k->many_threads, CTA);
    if (stage->one_target) {
        int share = sizes->blocks <= SHARED_BLOCKS && sizes->contexts / 32 >= sizes->blocks;
        int wide = share && k->wide && sizes->blocks <= WIDE_BLOCKS;
        kernel = wide ? k->wide : k->one;
        threads = wide ? (uint32_t)WIDE_CTA : CTA;
        if (share) v.parts = threads / k->one_threads;
        grid = share ? sizes->blocks : blocks_for(sizes->blocks, threads / k->one_threads);
    }
    kernel<<<grid, threads, 0, b->compute>>>(v);
    CK_LAUNCH("dots");
    return 0;
}

/* ---- with other ranks ---- */

/* Returns the most bytes of rows that a thread block can hold in shared memory, of which older cards have less than HELD_BYTES. */
static uint32_t held_bytes(const struct backend *b) {
    return b->shared_most < HELD_BYTES ? b->shared_most : (uint32_t)HELD_BYTES;
}

/* Returns how many rows a warp holds at a time: its share of a block's contexts if they fit into shared memory; otherwise it needs several rounds
 * of equal size. */
static uint32_t rows_of_a_warp(const struct backend *b, uint32_t contexts, uint32_t parts, uint32_t bytes) {
    uint32_t share = blocks_for(contexts, parts), fit = held_bytes(b) / (HELD_WARPS * bytes);
    if (fit > HELD_MOST) fit = HELD_MOST;
    return blocks_for(share, blocks_for(share, fit));
}

/* Launches thread blocks that each work on a run of consecutive blocks. Runs are so short that some thread blocks start while others end. */
static int launch_runs(struct backend *b, dot_kernel *kernel, uint32_t wanted, struct step_view v) {
    uint32_t turns = wanted / (2 * RESIDENT * (uint32_t)b->processors);
    uint32_t bytes = HELD_WARPS * v.held * v.weights_bytes;
    v.run = turns < 1 ? 1 : turns > LONGEST_RUN ? (uint32_t)LONGEST_RUN : turns;
    CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)held_bytes(b)));
    kernel<<<blocks_for(wanted, v.run), HELD_THREADS, bytes, b->compute>>>(v);
    CK_LAUNCH("dots");
    return 0;
}

/* Launches one kernel that posts and collects, if ranks can address each other's memory; otherwise two kernels, which add in the same order. */
static int launch_held(struct backend *b, const struct stage *stage, struct step_view v, const struct held_kernels *k) {
    const struct batch_sizes *sizes = &stage->sizes;
    uint32_t contexts = blocks_for(sizes->contexts, sizes->blocks); /* average number of contexts of a block */
    if (!contexts) contexts = 1;
    v.parts = contexts >= HELD_SHARED_FROM ? HELD_WARPS : 1;
    v.held = rows_of_a_warp(b, contexts, v.parts, v.weights_bytes);
    INVARIANT(v.held && v.held <= HELD_MOST && HELD_WARPS * v.held * v.weights_bytes <= held_bytes(b)); /* a lane looks up one row */
    uint32_t wanted = blocks_for(sizes->blocks, HELD_WARPS / v.parts);
    if (exchange_is_near(b->exchange)) return launch_runs(b, k->near, wanted, v);
    if (launch_runs(b, k->post, wanted, v) || exchange_sum(b, 0, sizes->terms)) return -1;
    return launch_runs(b, k->collect, wanted, v);
}

int cuda_launch_dots(struct backend *b, const struct stage *stage, const struct step_view *v) {
    if (!has_parts(v)) {
        struct dot_kernels k = dot_kernels_alone(v);
        return launch(b, stage, *v, &k);
    }
    struct held_kernels held = dot_kernels_held(v);
    struct dot_kernels near = dot_kernels_near(v);
    if (stage->one_target && held.near) return launch_held(b, stage, *v, &held);
    if (!stage->one_target && near.many && exchange_is_near(b->exchange)) return launch(b, stage, *v, &near);
    /* the first kernel posts partial dot products, the second uses their sums over ranks */
    struct dot_kernels post = dot_kernels_post(v), collect = dot_kernels_collect(v);
    if (launch(b, stage, *v, &post)) return -1;
    if (!exchange_is_near(b->exchange) && exchange_sum(b, 0, stage->sizes.terms)) return -1;
    return launch(b, stage, *v, &collect);
}
