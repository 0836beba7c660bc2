/* older_cards: instructions that only newer cards have, each with a substitute for older ones. The kernels are compiled for compute capability 7.5 (a
 * T4) and later; no other file of this folder distinguishes cards. One of the instructions also needs a newer Toolkit than the oldest that compiles
 * these files, 11.8.
 *
 *   instruction                       since                  otherwise
 *   16 bytes past registers           8.0                    a load and a store
 *   a warp's sum of integers          8.0                    five rounds of shuffles
 *   atomic add of four floats         9.0, by Toolkit 12.1   four adds of one
 *   atomic add of four bfloat16       9.0, by Toolkit 12.1   two adds of two
 *   atomic add of two bfloat16        9.0                    compare and swap, repeated until it succeeds
 *
 * Files named step*.cu and by_id*.cu use none of them, except step_dots_ranks.cu, which copies past registers. So the Makefile
 * compiles each of these files to one PTX for 7.5 to 9.0, and step_dots_ranks.cu to another one for 8.0 and 9.0.
 */
#ifndef SPTX_CUDA_OLDER_CARDS_CUH
#define SPTX_CUDA_OLDER_CARDS_CUH

#include <cuda_runtime.h>
#include <nv/target>
#include <stdint.h>

#include "kernels/portable.h"

extern "C" {
#include "kernels/rounding.h"
}

constexpr unsigned ALL_LANES = 0xFFFFFFFFu;

/* Copies 16 bytes into shared memory. All lanes of the warp may read them after wait_for_copies(). */
static __device__ __forceinline__ void copy_to_shared(uint4 *to, const uint4 *from) {
    NV_IF_TARGET(NV_PROVIDES_SM_80,
                 (asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from)
                               : "memory");),
                 (*to = *from;))
}

static __device__ __forceinline__ void wait_for_copies(void) {
    NV_IF_TARGET(NV_PROVIDES_SM_80, (asm volatile("cp.async.wait_all;" ::: "memory");))
    __syncwarp();
}

/* Returns to all lanes the sum of x over the warp. All lanes must call it. */
static __device__ __forceinline__ uint32_t add_over_warp(uint32_t x) {
    NV_IF_TARGET(NV_PROVIDES_SM_80, (return __reduce_add_sync(ALL_LANES, x);),
                 (for (int width = 16; width; width /= 2) x += __shfl_xor_sync(ALL_LANES, x, width); return x;))
}

static __device__ __forceinline__ void add_each(float *p, float4 v) {
    atomicAdd(p, v.x);
    atomicAdd(p + 1, v.y);
    atomicAdd(p + 2, v.z);
    atomicAdd(p + 3, v.w);
}

constexpr bool TOOLKIT_ADDS_FOUR = CUDART_VERSION >= 12010;

/* Adds v to four floats in this GPU's memory, atomically; for host memory there is add_each(). */
static __device__ __forceinline__ void add_four(float *p, float4 v) {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (if constexpr (TOOLKIT_ADDS_FOUR) asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.x),
                                                                "f"(v.y), "f"(v.z), "f"(v.w)
                                                                : "memory");
                  else add_each(p, v);),
                 (add_each(p, v);))
}

/* Rounds two floats to the nearest bfloat16. Returns both in 32 bits, `first` in the lower half. */
static __device__ __forceinline__ uint32_t nearest_two(float first, float second) {
    uint32_t word;
    NV_IF_TARGET(NV_PROVIDES_SM_80, (asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));),
                 (word = bfloat16_nearest(first) | (uint32_t)bfloat16_nearest(second) << 16;))
    return word;
}

/* Adds to two bfloat16 in 32 bits, rounding to nearest, with the same result as the instruction of newer cards. Not inlined, since many kernels
 * use it. */
static __device__ __noinline__ void add_two_halves_by_comparing(uint32_t *p, uint32_t step) {
    uint32_t seen = *(volatile uint32_t *)p, found;
    do {
        found = seen;
        float first = __uint_as_float(found << 16) + __uint_as_float(step << 16);
        float second = __uint_as_float(found & 0xFFFF0000u) + __uint_as_float(step & 0xFFFF0000u);
        seen = atomicCAS(p, found, nearest_two(first, second));
    } while (seen != found);
}

static __device__ __forceinline__ void add_two_halves(uint32_t *p, uint32_t step) {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (asm volatile("red.relaxed.gpu.global.add.noftz.bf16x2 [%0], %1;" ::"l"(p), "r"(step) : "memory");),
                 (add_two_halves_by_comparing(p, step);))
}

static __device__ __forceinline__ void add_each_two(uint32_t *p, uint2 step) {
    add_two_halves(p, step.x);
    add_two_halves(p + 1, step.y);
}

/* Adds to four bfloat16 in this GPU's memory, atomically. step: the four summands. */
static __device__ __forceinline__ void add_four_halves(uint32_t *p, uint2 step) {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (if constexpr (TOOLKIT_ADDS_FOUR) asm volatile(
                      "red.relaxed.gpu.global.add.noftz.v2.bf16x2 [%0], {%1, %2};" ::"l"(p), "r"(step.x), "r"(step.y)
                      : "memory");
                  else add_each_two(p, step);),
                 (add_each_two(p, step);))
}

#endif
