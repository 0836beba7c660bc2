/* dots: which kernels a batch's blocks take (dots.cuh and dots_windows.cuh have them), and their launch. */
#include "dots_windows.cuh"

enum {
    LONGEST_RUN = 8,     /* blocks that a group of dots_held.cuh works on: each run's first has to be waited for */
    SHARED_BLOCKS = 8192 /* up to so many blocks of one target, groups of a thread block share the contexts of each */
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

/* Parts, then what their sums lead to. */
static int launch_passes(struct backend *b, const struct stage *stage, const struct step_view *v, uint32_t slots) {
    struct dot_kernels post = dot_kernels_post(v->quads), collect = dot_kernels_collect(v->quads, slots);
    if (launch(b, stage, *v, &post)) return -1;
    if (!exchange_is_near(b->exchange) && exchange_sum(b, 0, stage->sizes.terms)) return -1;
    return launch(b, stage, *v, &collect);
}

/* Thread blocks with runs of blocks: some begin while others end, as long as there are many. */
static int launch_runs(struct backend *b, dot_kernel *kernel, const struct held_kernels *k, uint32_t wanted, struct step_view v) {
    uint32_t turns = wanted / (2 * (uint32_t)(b->processors * k->resident));
    v.run = turns < 1 ? 1 : turns > LONGEST_RUN ? (uint32_t)LONGEST_RUN : turns;
    kernel<<<blocks_for(wanted, v.run), k->threads, 0, b->compute>>>(v);
    CK_LAUNCH("dots");
    return 0;
}

/* The same in one, where ranks reach each other; in two, the same sums in the same order. */
static int launch_held(struct backend *b, const struct stage *stage, struct step_view v, const struct held_kernels *k) {
    const struct batch_sizes *sizes = &stage->sizes;
    uint32_t warps = (uint32_t)k->threads / 32;
    v.parts = sizes->contexts / k->rows >= sizes->blocks ? warps : 1;
    uint32_t wanted = blocks_for(sizes->blocks, warps / v.parts);
    if (exchange_is_near(b->exchange)) return launch_runs(b, k->near, k, wanted, v);
    if (launch_runs(b, k->post, k, wanted, v) || exchange_sum(b, 0, sizes->terms)) return -1;
    return launch_runs(b, k->collect, k, wanted, v);
}

static int launch_with_ranks(struct backend *b, const struct stage *stage, const struct step_view *v, uint32_t slots) {
    struct held_kernels held = dot_kernels_held(v->quads, slots);
    if (stage->one_target && held.near) return launch_held(b, stage, *v, &held);
    return launch_passes(b, stage, v, slots);
}

int cuda_launch_dots(struct backend *b, const struct stage *stage, const struct step_view *v, uint32_t slots) {
    if (has_parts(v)) return launch_with_ranks(b, stage, v, slots);
    struct dot_kernels k = dot_kernels_alone(v->quads, slots);
    return launch(b, stage, *v, &k);
}
