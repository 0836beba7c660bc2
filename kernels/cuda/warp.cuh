/* warp: sums over the lanes of a warp. */
#ifndef SPTX_CUDA_WARP_CUH
#define SPTX_CUDA_WARP_CUH

#include "cuda.cuh"

constexpr unsigned ALL_LANES = 0xFFFFFFFFu;

static __device__ __forceinline__ unsigned lane_number(void) {
    return threadIdx.x & 31;
}

static __device__ __forceinline__ double warp_sum(double x) {
    for (int width = 16; width; width /= 2) x += __shfl_xor_sync(ALL_LANES, x, width);
    return x;
}

/* Sums N <= 32 values over the warp at once: lane l gets the sum of value l % M, M the power of two from N on. Each
 * round hands half of a lane's values to a partner and keeps the other half, so 32 sums cost 31 shuffles. */
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
template <int N> __device__ __forceinline__ float sum_over_warp(float (&v)[N]) {
    constexpr int M = power_from(N);
    float sum = transposed_sum<N, M>::run(v);
#pragma unroll
    for (int mask = M; mask < 32; mask *= 2) sum += __shfl_xor_sync(ALL_LANES, sum, mask);
    return sum;
}

#endif
