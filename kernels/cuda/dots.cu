/* dots: which kernels a batch's blocks take (dots.cuh and dots_windows.cuh have them), and their launch. */
#include "dots_windows.cuh"

enum {
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

int cuda_launch_dots(struct backend *b, const struct stage *stage, const struct step_view *v, uint32_t slots) {
    if (has_parts(v)) return launch_passes(b, stage, v, slots);
    struct dot_kernels k = dot_kernels_alone(v->quads, slots);
    return launch(b, stage, *v, &k);
}
