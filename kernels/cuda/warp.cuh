/* warp: work that the lanes of a warp do together: sums over all lanes, or over groups of G neighbouring lanes; a binary search. */
#ifndef SPTX_CUDA_WARP_CUH
#define SPTX_CUDA_WARP_CUH

#include "cuda.cuh"
#include "values.cuh"

extern "C" {
#include "kernels/examples.h"
}

static __device__ __forceinline__ unsigned lane_number(void) {
    return threadIdx.x & 31;
}

/* Returns the sum over each group of G neighbouring lanes. */
template <int G = 32> static __device__ __forceinline__ double warp_sum(double x) {
    for (int width = G / 2; width; width /= 2) x += __shfl_xor_sync(ALL_LANES, x, width);
    return x;
}

/* Returns the largest x among the lanes that have the same place in their groups as this lane has in its group. */
template <int G> static __device__ __forceinline__ uint32_t most_beside(uint32_t x) {
    for (int width = G; width < 32; width *= 2) x = max(x, __shfl_xor_sync(ALL_LANES, x, width));
    return x;
}

/* Sums N <= 32 values over the warp at once: lane l gets the sum of value l % M, where M is the smallest power of two that is at
 * least N. In each round a lane gives half of its values to a partner and keeps the other half, so 32 sums cost 31 shuffles. */
template <int N, int M> struct transposed_sum {
    static __device__ __forceinline__ float run(float (&v)[N]) {
        if constexpr (M == 1) {
            return v[0];
        } else {
            constexpr int half = M / 2, kept = N < half ? N : half;
            bool upper = lane_number() & half;
            float next[kept];
#pragma unroll
            for (int i = 0; i < kept; i++) {
                float low = v[i], high = i + half < N ? v[i + half < N ? i + half : 0] : v[i];
                next[i] = (upper ? high : low) + __shfl_xor_sync(ALL_LANES, upper ? low : high, half);
            }
            return transposed_sum<kept, half>::run(next);
        }
    }
};
__host__ __device__ constexpr int power_from(int n) {
    int m = 1;
    while (m < n) m *= 2;
    return m;
}
/* Sums N <= G values over each group of G neighbouring lanes, as transposed_sum does over the warp. */
template <int G, int N> __device__ __forceinline__ float sum_over_group(float (&v)[N]) {
    constexpr int M = power_from(N);
    float sum = transposed_sum<N, M>::run(v);
#pragma unroll
    for (int mask = M; mask < G; mask *= 2) sum += __shfl_xor_sync(ALL_LANES, sum, mask);
    return sum;
}
template <int N> __device__ __forceinline__ float sum_over_warp(float (&v)[N]) {
    return sum_over_group<32>(v);
}

/* Sums any number of values over each group: lane l of a group gets the sums of values l, l + G, l + 2 G .. */
template <int G, int N, int S> __device__ __forceinline__ void sum_over_lanes(float (&v)[N], float (&sums)[S]) {
    static_assert(S == (N + G - 1) / G, "a sum for each value");
    constexpr int whole = N / G;
#pragma unroll
    for (int s = 0; s < whole; s++) {
        float part[G];
#pragma unroll
        for (int i = 0; i < G; i++) part[i] = v[s * G + i];
        sums[s] = sum_over_group<G>(part);
    }
    if constexpr (whole < S) {
        float rest[N - whole * G];
#pragma unroll
        for (int i = 0; i < N - whole * G; i++) rest[i] = v[whole * G + i];
        sums[whole] = sum_over_group<G>(rest);
    }
}

/* ---- four columns ---- */

static __device__ __forceinline__ float dot4(float4 a, float4 b, float sum) {
    return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}
static __device__ __forceinline__ float4 scale4(float k, float4 a) {
    return make_float4(k * a.x, k * a.y, k * a.z, k * a.w);
}
static __device__ __forceinline__ float4 fma4(float k, float4 a, float4 sum) {
    return make_float4(fmaf(k, a.x, sum.x), fmaf(k, a.y, sum.y), fmaf(k, a.z, sum.z), fmaf(k, a.w, sum.w));
}

/* ---- the corpus ---- */

/* Returns the number of the sentence that contains a position. All lanes search together, with 32 probes a round. */
static __device__ __forceinline__ uint64_t sentence_of(const struct example_source &s, uint64_t position) {
    uint64_t low = s.first_sentence, high = s.sentences;
    while (high - low > 1) {
        uint64_t step = (high - low + 31) / 32, probe = low + lane_number() * step;
        unsigned below = __ballot_sync(ALL_LANES, probe < high && __ldg(s.starts + probe) <= position);
        low += (__popc(below) - 1) * step;
        high = low + step < high ? low + step : high;
    }
    return low;
}

#endif
