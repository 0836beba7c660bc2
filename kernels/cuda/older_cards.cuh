/* older_cards: instructions that not every card has, each with what older cards do in its place. The kernels are
 * compiled for compute capability 7.5 (a T4) and later; nothing else in this folder asks which card it is compiled for.
 * One of the instructions also wants a newer Toolkit than the oldest that compiles these files, 11.8.
 *
 *   instruction                       since                  otherwise
 *   16 bytes past registers           8.0                    a load and a store
 *   a warp's sum of integers          8.0                    five rounds of shuffles
 *   atomic add of four floats         9.0, by Toolkit 12.1   four adds of one
 *
 * Files named step*.cu and by_id*.cu do not add four floats: the Makefile has 9.0 run what they are for 8.0.
 */
#ifndef SPTX_CUDA_OLDER_CARDS_CUH
#define SPTX_CUDA_OLDER_CARDS_CUH

#include <cuda_runtime.h>
#include <nv/target>
#include <stdint.h>

constexpr unsigned ALL_LANES = 0xFFFFFFFFu;

/* Copies 16 bytes into shared memory. They are there for the whole warp after wait_for_copies(). */
static __device__ __forceinline__ void copy_to_shared(uint4 *to, const uint4 *from) {
    NV_IF_TARGET(NV_PROVIDES_SM_80, (asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                                                      (uint32_t)__cvta_generic_to_shared(to)),
                                                  "l"(from)
                                                  : "memory");),
                 (*to = *from;))
}

static __device__ __forceinline__ void wait_for_copies(void) {
    NV_IF_TARGET(NV_PROVIDES_SM_80, (asm volatile("cp.async.wait_all;" ::: "memory");))
    __syncwarp();
}

/* Returns the sum of all lanes' numbers, to all of them. All lanes call it. */
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

/* Adds to four numbers on this GPU without losing what other warps add. Memory of the host takes add_each(). */
static __device__ __forceinline__ void add_four(float *p, float4 v) {
    NV_IF_TARGET(NV_PROVIDES_SM_90,
                 (if constexpr (TOOLKIT_ADDS_FOUR) asm volatile(
                      "red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.x), "f"(v.y),
                      "f"(v.z), "f"(v.w)
                      : "memory");
                  else add_each(p, v);),
                 (add_each(p, v);))
}

#endif
