/* hogwild_counts: trains counts of pairs (GloVe, LOSS_GLOVE) lock-free, by adagrad, for rows of float32.
 *
 * A warp trains a sentence: a target and the contexts after it, with their counts. The target's weights and sums are held in registers while one
 * context after the other is trained, as on the CPU (kernels/cpu/rows.c: fit). Changes are added to a context's row at once, and to the target's
 * row at the end of the sentence; both atomically, so that no other warp's change is lost. */
#include "hogwild.cuh"

namespace {

/* Reads a row's sums of squared gradients. */
template <int VEC> __device__ __forceinline__ void read_sums(row<VEC> &r, const table_view &rows, uint32_t id, uint32_t quads) {
    const char *state = table_slot(rows, id);
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        uint32_t quad = i * 32 + lane_number();
        r.v[i] = read_quad_past_cache<float32_rows>(state, quad, quad < quads);
    }
}

/* Adds changes to a row's weights and sums. */
template <int VEC, bool ON_HOST>
__device__ __forceinline__ void add_changes(const hogwild_job &job, const table_view &rows, uint32_t id, const row<VEC> &move,
                                            const row<VEC> &squares, hogwild_sums &sums) {
    char *weights = weights_of<ON_HOST>(rows, id), *state = table_slot(rows, id);
    bool far = ON_HOST && is_on_host(rows, id), state_far = ON_HOST && id >= rows.state.hot_rows;
    sums.host_rows += far + state_far;
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        uint32_t quad = i * 32 + lane_number();
        if (quad >= job.quads) continue;
        gain_quad<float32_rows, ON_HOST>(weights, quad, move.v[i], move.v[i], far, 0);
        if (state_far) add_quad_over_link(state, quad, squares.v[i]);
        else add_quad(state, quad, squares.v[i]);
    }
}

/* Adds the gradient's square to a sum, and returns the step. */
__device__ __forceinline__ float step_of(const hogwild_job &job, float rate, float gradient, float &sum) {
    sum = fmaf(gradient, gradient, sum);
    return -rule_adagrad_move(rate, job.eps, gradient, sum);
}
__device__ __forceinline__ float4 steps_of(const hogwild_job &job, float rate, float c, const float4 &other, float4 &sum) {
    return make_float4(step_of(job, rate, c * other.x, sum.x), step_of(job, rate, c * other.y, sum.y), step_of(job, rate, c * other.z, sum.z),
                       step_of(job, rate, c * other.w, sum.w));
}

__device__ __forceinline__ float4 squares_of(float c, const float4 &a) {
    return make_float4(c * a.x * (c * a.x), c * a.y * (c * a.y), c * a.z * (c * a.z), c * a.w * (c * a.w));
}

template <int VEC> __device__ __forceinline__ row<VEC> difference(const row<VEC> &now, const row<VEC> &before) {
    row<VEC> r = now;
    fma_row(r, -1.0f, before);
    return r;
}

/* Trains a target with one context. log_x: logarithm of the pair's count; share: the pair's weight in the loss, loss_share(). */
template <int VEC, bool ON_HOST>
__device__ __forceinline__ void fit_pair(const hogwild_job &job, uint32_t context, float log_x, float share, float rate, row<VEC> &own,
                                         row<VEC> &own_sum, bool sampled, hogwild_sums &sums) {
    row<VEC> other, other_sum, other_move, squares;
    read_row<float32_rows, VEC, ON_HOST>(other, job.context, context, job.quads, true, sums);
    read_sums(other_sum, job.context, context, job.quads);
    float dot = dot_row(own, other), loss;
    for (int mask = 16; mask; mask >>= 1) dot += __shfl_xor_sync(ALL_LANES, dot, mask);
    float c = loss_fit(dot, log_x, share, &loss);
    if (sampled && lane_number() == 0) sums.loss += (double)loss;
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        other_move.v[i] = steps_of(job, rate, c, own.v[i], other_sum.v[i]);
        squares.v[i] = squares_of(c, own.v[i]);
        float4 move = steps_of(job, rate, c, other.v[i], own_sum.v[i]);
        own.v[i] = fma4(1.0f, move, own.v[i]);
    }
    add_changes<VEC, ON_HOST>(job, job.context, context, other_move, squares, sums);
}

template <int VEC, bool ON_HOST> __global__ void __launch_bounds__(WARPS * 32) fit_kernel(const hogwild_job job) {
    const struct example_source &s = job.source;
    hogwild_sums sums = {};
    for (;;) {
        uint64_t number = take_piece(job.totals);
        if (number >= job.count) break;
        uint64_t example = s.shuffle ? shuffle_at(&job.order, job.first + number) : job.first + number;
        if (example_held_out(&s, example)) continue;
        uint64_t start = portable_load64(s.starts + example), end = portable_load64(s.starts + example + 1);
        uint32_t target = portable_load32(s.ids + start), count = (uint32_t)(end - start - 1);
        float rate = hogwild_rate(job.lr_first, job.lr_slope, number);
        bool sampled = (number & job.loss_mask) == 0;
        if (!count) continue;
        row<VEC> own, own_sum;
        read_row<float32_rows, VEC, ON_HOST>(own, job.target, target, job.quads, true, sums);
        read_sums(own_sum, job.target, target, job.quads);
        const row<VEC> own_before = own, sum_before = own_sum;
        for (uint32_t base = 0; base < count; base += 32) {
            uint32_t mine = base + lane_number();
            uint64_t at = start + 1 + (mine < count ? mine : 0);
            uint32_t id = portable_load32(s.ids + at);
            float log_x = loss_log(portable_load_float(s.weights + at)), share = loss_share(&job.loss, log_x);
            for (uint32_t k = 0; k < 32 && base + k < count; k++)
                fit_pair<VEC, ON_HOST>(job, __shfl_sync(ALL_LANES, id, k), __shfl_sync(ALL_LANES, log_x, k), __shfl_sync(ALL_LANES, share, k),
                                       rate, own, own_sum, sampled, sums);
        }
        add_changes<VEC, ON_HOST>(job, job.target, target, difference(own, own_before), difference(own_sum, sum_before), sums);
        sums.examples++, sums.pairs += count;
        if (sampled) sums.sampled_examples++, sums.sampled_pairs += count, sums.sampled_terms += count;
    }
    give_sums(job.totals, &sums);
}

template <int VEC> window_function *kernel_of(const hogwild_job *job) {
    return job->on_host ? fit_kernel<VEC, true> : fit_kernel<VEC, false>;
}

} // namespace

int hogwild_counts_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream) {
    window_function *kernel = job->quads <= 32 ? kernel_of<1>(job) : job->quads <= 64 ? kernel_of<2>(job) : kernel_of<4>(job);
    int resident;
    INVARIANT(job->quads <= HOGWILD_FIT_COLUMNS / 4 && job->adagrad && !job->halves && !job->state_halves);
    CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, WARPS * 32, 0));
    uint64_t most = (uint64_t)processors * (unsigned)resident, blocks = warps / WARPS < most ? warps / WARPS : most;
    kernel<<<blocks ? (unsigned)blocks : 1, 32 * (unsigned)(blocks ? WARPS : warps), 0, stream>>>(*job);
    CK_LAUNCH("fit_kernel");
    return 0;
}
