/* portable: lets the C compiler and nvcc compile the same headers; all code that differs between host and device is here. FN marks a function for
 * both. FN_RARE marks one that is called so rarely that the host's compiler must not inline it into loops. portable_philox() is Random123's
 * function in C and cuRAND's in CUDA. */
#ifndef SPTX_PORTABLE_H
#define SPTX_PORTABLE_H

#include <math.h>
#include <stdint.h>

struct draw4 {
    uint32_t word[4];
};

#ifdef __CUDACC__
#define FN static __host__ __device__ __forceinline__
#define FN_RARE FN
#define QUALIFIERS FN /* cuRAND's functions are for host and device */
#include <curand_philox4x32_x.h>
#undef QUALIFIERS
#else
#define FN static inline __attribute__((unused, always_inline))
#define FN_RARE static __attribute__((unused, noinline, cold))
#include <Random123/philox.h>
#endif

FN struct draw4 portable_philox(uint32_t key0, uint32_t key1, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
    struct draw4 out;
#ifdef __CUDACC__
    uint4 drawn = curand_Philox4x32_10(make_uint4(c0, c1, c2, c3), make_uint2(key0, key1));
    out.word[0] = drawn.x, out.word[1] = drawn.y, out.word[2] = drawn.z, out.word[3] = drawn.w;
#else
    philox4x32_ctr_t counter = {{c0, c1, c2, c3}};
    philox4x32_key_t key = {{key0, key1}};
    philox4x32_ctr_t drawn = philox4x32_R(10, counter, key);
    for (int i = 0; i < 4; i++) out.word[i] = drawn.v[i];
#endif
    return out;
}
FN uint64_t portable_mul_high(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
    return __umul64hi(a, b);
#else
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
#endif
}
/* Returns a x b, rounded. It is never fused with an addition, so host and device get the same bits. */
FN double portable_mul(double a, double b) {
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    volatile double product = a * b;
    return product;
#endif
}
/* Return a quotient, and a root; on a GPU they may be wrong by 2 ulp. Exact ones need a dozen instructions each there, and a call if an operand is
 * (nearly) zero: with Adamax (2,829,853 x 200) the first kernel of a step took 1.42 ms with exact ones, and takes 1.15 ms now. */
FN float portable_divide(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fdividef(a, b);
#else
    return a / b;
#endif
}
FN float portable_sqrt(float x) {
#ifdef __CUDA_ARCH__
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
#else
    return sqrtf(x);
#endif
}
/* Load memory that no thread is writing at the same time. */
FN uint32_t portable_load32(const uint32_t *from) {
#ifdef __CUDA_ARCH__
    return __ldg(from);
#else
    return *from;
#endif
}
FN float portable_load_float(const float *from) {
#ifdef __CUDA_ARCH__
    return __ldg(from);
#else
    return *from;
#endif
}
FN uint64_t portable_load64(const uint64_t *from) {
#ifdef __CUDA_ARCH__
    return __ldg(from);
#else
    return *from;
#endif
}

/* Loads item `at` of an array of which only some items may be in memory. base: address that item 0 would have; a number, since C has no pointer to
 * a place outside of an array. */
FN uint32_t portable_load32_at(const uint32_t *base, uint64_t at) {
    return portable_load32((const uint32_t *)((uintptr_t)base + (uintptr_t)at * sizeof *base));
}
FN uint64_t portable_load64_at(const uint64_t *base, uint64_t at) {
    return portable_load64((const uint64_t *)((uintptr_t)base + (uintptr_t)at * sizeof *base));
}

#endif
