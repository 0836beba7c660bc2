/* dots: which kernels a batch's blocks take (dots.cuh has them), and their launch. */
#include "dots.cuh"

/* Thread blocks: all of them, or where they wait for other ranks those that are resident at once. */
static int grid_for(struct backend *b, dot_kernel *kernel, uint32_t threads, uint32_t wanted, int waits, uint32_t *grid) {
    int resident = 0;
    *grid = wanted;
    if (!waits) return 0;
    CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, (int)threads, 0));
    uint32_t most = (uint32_t)resident * (uint32_t)b->processors;
    if (wanted > most) *grid = most;
    return 0;
}

static int launch(struct backend *b, const struct stage *stage, struct step_view v, const struct dot_kernels *k, int waits) {
    const struct batch_sizes *sizes = &stage->sizes;
    dot_kernel *kernel = k->many;
    uint32_t threads = CTA, wanted = blocks_for((uint64_t)sizes->blocks * k->many_threads, CTA), grid;
    if (stage->one_target) {
        int share = sizes->contexts / 32 >= sizes->blocks; /* contexts enough for several groups */
        int wide = share && k->wide && sizes->blocks <= WIDE_BLOCKS;
        kernel = wide ? k->wide : k->one;
        threads = wide ? (uint32_t)WIDE_CTA : CTA;
        uint32_t groups = threads / k->one_threads;
        if (share) v.parts = groups;
        wanted = share ? sizes->blocks : blocks_for(sizes->blocks, groups);
    }
    if (grid_for(b, kernel, threads, wanted, waits, &grid)) return -1;
    kernel<<<grid, threads, 0, b->compute>>>(v);
    CK_LAUNCH("dots");
    return 0;
}

int cuda_launch_dots(struct backend *b, const struct stage *stage, const struct step_view *v, uint32_t slots) {
    if (!has_parts(v)) {
        struct dot_kernels k = dot_kernels_of<DOTS_ALONE>(v->quads, slots);
        return launch(b, stage, *v, &k, 0);
    }
    if (exchange_is_near(b->exchange)) {
        struct dot_kernels k = dot_kernels_near(v->quads, slots);
        return launch(b, stage, *v, &k, 1);
    }
    struct dot_kernels post = dot_kernels_post(v->quads), collect = dot_kernels_collect(v->quads, slots);
    return launch(b, stage, *v, &post, 0) || exchange_sum(b, 0, stage->sizes.terms) || launch(b, stage, *v, &collect, 0) ? -1
                                                                                                                        : 0;
}
