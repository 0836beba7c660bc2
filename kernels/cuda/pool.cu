/* pool: of learn.cuh, what pooled targets take before and after the other passes: a warp a block. */
#include "learn.cuh"

/* A block's vector: the weighted sum of its rows, in their order. */
static __global__ void __launch_bounds__(CTA)
    pool_blocks(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    uint32_t block = (blockIdx.x * CTA + threadIdx.x) / 32, cold_first = v.counts->cold_first[SIDE_TARGET];
    if (block >= v.counts->blocks) return;
    uint32_t first = v.target_starts[block], targets = v.target_starts[block + 1] - first;
    float4 *out = (float4 *)(l.pooled + (uint64_t)block * v.span);
    for (uint32_t q = threadIdx.x & 31; q < v.quads; q += 32) {
        float4 sum[1] = {make_float4(0, 0, 0, 0)};
        for (uint32_t t = 0; t < targets; t++) {
            uint32_t id = v.target.rows.ids[first + t], distinct = v.target.rows.distinct[first + t] & ~SINGLE_BIT;
            float4 row[1] = {((const float4 *)live_row(v.target.weights, id, distinct, cold_first))[q]};
            add_row<1>(sum, example_pool_weight(&l.pool, targets, t), row);
        }
        out[q] = sum[0];
    }
}

/* The vector's gradient, at its block's first target, goes to the places of all. */
static __global__ void __launch_bounds__(CTA)
    share_blocks(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    uint32_t block = (blockIdx.x * CTA + threadIdx.x) / 32;
    if (block >= v.counts->blocks) return;
    uint32_t first = v.target_starts[block], targets = v.target_starts[block + 1] - first;
    if (!targets) return;
    for (uint32_t q = threadIdx.x & 31; q < v.quads; q += 32) {
        float4 *gradient = (float4 *)(v.target_gradients + (uint64_t)first * v.span) + q, whole = *gradient;
        for (uint32_t t = 0; t < targets; t++) {
            float4 part[1] = {whole};
            if (!l.pool.whole) scale_row<1>(part, example_pool_weight(&l.pool, targets, t));
            gradient[(uint64_t)t * v.quads] = part[0];
        }
    }
}

int pool_launch(struct backend *b, uint32_t blocks, const struct step_view *v, const struct learn_view *l) {
    pool_blocks<<<blocks_for((uint64_t)blocks * 32, CTA), CTA, 0, b->compute>>>(*v, *l);
    CK_LAUNCH("pool_blocks");
    return 0;
}

int pool_share(struct backend *b, uint32_t blocks, const struct step_view *v, const struct learn_view *l) {
    share_blocks<<<blocks_for((uint64_t)blocks * 32, CTA), CTA, 0, b->compute>>>(*v, *l);
    CK_LAUNCH("share_blocks");
    return 0;
}
