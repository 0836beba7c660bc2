/* step_learn_pool: the passes `pool` and `share` of step_learn.cuh, for pooled targets. A warp works on a block. */
#include "step_learn.cuh"

enum { AT_ONCE = 8 }; /* number of rows in flight: a window has about ten rows, a list a hundred */

/* Computes a block's vector: the weighted sum of its rows, in order. Each lane finds the address of one row of 32. */
template <class F>
static __global__ void __launch_bounds__(CTA)
    pool_blocks(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    uint32_t block = (blockIdx.x * CTA + threadIdx.x) / 32, cold_first = v.counts->cold_first[SIDE_TARGET];
    if (block >= v.counts->blocks) return;
    uint32_t first = v.target_starts[block], targets = v.target_starts[block + 1] - first, lane = threadIdx.x & 31;
    float own = example_pool_weight(&l.pool, targets, 0), other = example_pool_weight(&l.pool, targets, 1);
    float *out = l.pooled + (uint64_t)block * v.span;
    for (uint32_t chunk = lane; chunk - lane < v.quads / F::QUADS; chunk += 32) { /* all lanes stay in the loop, since they
                                                                                   * exchange values */
        float4 sum[F::QUADS];
        clear_row<F::QUADS>(sum);
        for (uint32_t base = 0; base < targets; base += 32) {
            uint32_t count = targets - base < 32 ? targets - base : 32, at = first + base + (lane < count ? lane : 0);
            uint32_t distinct = v.target.rows.distinct[at] & ~SINGLE_BIT;
            auto found = (unsigned long long)(uintptr_t)live_row(v.target.weights, v.target.rows.ids[at], distinct, cold_first);
            for (uint32_t t = 0; t < count; t += AT_ONCE) {
                struct stored_row<F, F::QUADS> stored[AT_ONCE];
#pragma unroll
                for (uint32_t u = 0; u < AT_ONCE; u++) {
                    auto weights = (const char *)(uintptr_t)__shfl_sync(ALL_LANES, found, (int)(t + u < count ? t + u : t));
                    read_stored<F, 32, F::QUADS>(stored[u], weights, chunk, v.quads);
                }
#pragma unroll
                for (uint32_t u = 0; u < AT_ONCE; u++) {
                    float4 row[F::QUADS];
                    open_row<F, F::QUADS>(row, stored[u]);
                    if (t + u < count) add_row<F::QUADS>(sum, base + t + u ? other : own, row);
                }
            }
        }
        write_row<F, 32, F::QUADS>(sum, out, chunk, v.quads);
    }
}

/* Distributes the gradient of a block's vector, which is stored in the place of the block's first target, to all its targets. */
static __global__ void __launch_bounds__(CTA)
    share_blocks(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    uint32_t block = (blockIdx.x * CTA + threadIdx.x) / 32;
    if (block >= v.counts->blocks) return;
    uint32_t first = v.target_starts[block], targets = v.target_starts[block + 1] - first;
    if (!targets) return;
    for (uint32_t q = threadIdx.x & 31; q < v.quads; q += 32) {
        float *gradient = v.target_gradients + (uint64_t)first * v.span;
        float4 whole = read_quad(gradient, q);
        for (uint32_t t = 0; t < targets; t++) {
            float4 part[1] = {whole};
            if (!l.pool.whole) scale_row<1>(part, example_pool_share(&l.pool, targets, t));
            write_quad(gradient + t * v.span, q, part[0]);
        }
    }
}

int pool_launch(struct backend *b, uint32_t blocks, const struct step_view *v, const struct learn_view *l) {
    learn_kernel *kernel = v->halves ? pool_blocks<bfloat16_rows> : pool_blocks<float32_rows>;
    kernel<<<blocks_for((uint64_t)blocks * 32, CTA), CTA, 0, b->compute>>>(*v, *l);
    CK_LAUNCH("pool_blocks");
    return 0;
}

int pool_share(struct backend *b, uint32_t blocks, const struct step_view *v, const struct learn_view *l) {
    share_blocks<<<blocks_for((uint64_t)blocks * 32, CTA), CTA, 0, b->compute>>>(*v, *l);
    CK_LAUNCH("share_blocks");
    return 0;
}
