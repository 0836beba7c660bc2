/* values: how a column is stored. A field of a record is given as a `char *` to its beginning. Only the functions here read
 * and write it, four columns at a time (a quad), which are float32 in registers. Working memory (gradients, sums, pooled vectors)
 * is always float32, and is given as a `float *`. Functions of the same names take both, so that the type of a pointer tells
 * which it is.
 *
 *   read_quad, write_quad            a quad of either
 *   read_quad_past_cache             a quad of a row that other warps may be changing, past the first cache
 *   add_quad, add_quad_over_link     adds a quad to a row without losing what other warps add; rows on this GPU, on the host
 *   copy_chunk                       16 stored bytes, whatever they mean
 */
#ifndef SPTX_CUDA_VALUES_CUH
#define SPTX_CUDA_VALUES_CUH

#include "older_cards.cuh"

enum { CHUNK_BYTES = 16 }; /* bytes that a thread moves at once; every field of a record is a whole number of them */

/* ---- stored columns ---- */

static __device__ __forceinline__ float4 read_quad(const char *field, uint32_t quad) {
    return ((const float4 *)field)[quad];
}
static __device__ __forceinline__ void write_quad(char *field, uint32_t quad, float4 value) {
    ((float4 *)field)[quad] = value;
}

/* Brings a quad of a row into shared memory, as it is stored. It is there for the whole warp after
 * wait_for_copies(). */
static __device__ __forceinline__ void bring_quad(char *to, const char *from, uint32_t quad, uint32_t quads) {
    if (quad < quads) copy_to_shared((uint4 *)to + quad, (const uint4 *)from + quad);
}

static __device__ __forceinline__ void prefetch_quad(const char *field, uint32_t quad) {
    asm volatile("prefetch.L2 [%0];" ::"l"((const float4 *)field + quad));
}

/* Returns zeros where `on` is false. Results are written before all operands are read, and yet need no mark for that
 * ("=&f"), which older Toolkits refuse: PTX keeps floats and integers in different registers. */
static __device__ __forceinline__ float4 read_quad_past_cache(const char *field, uint32_t quad, bool on) {
    float4 v;
    asm volatile("{\n .reg .pred on;\n setp.ne.s32 on, %5, 0;\n"
                 " mov.b32 %0, 0;\n mov.b32 %1, 0;\n mov.b32 %2, 0;\n mov.b32 %3, 0;\n"
                 " @on ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"((const float4 *)field + quad), "r"((int)on)
                 : "memory");
    return v;
}

static __device__ __forceinline__ void add_quad(char *field, uint32_t quad, float4 value) {
    add_four((float *)field + 4 * quad, value);
}
static __device__ __forceinline__ void add_quad_over_link(char *field, uint32_t quad, float4 value) {
    add_each((float *)field + 4 * quad, value);
}

/* Adds to one column, and returns the value before. */
static __device__ __forceinline__ float add_column(char *field, uint32_t column, float value) {
    return atomicAdd((float *)field + column, value);
}

/* ---- working memory ---- */

static __device__ __forceinline__ float4 read_quad(const float *row, uint32_t quad) {
    return ((const float4 *)row)[quad];
}
static __device__ __forceinline__ void write_quad(float *row, uint32_t quad, float4 value) {
    ((float4 *)row)[quad] = value;
}

/* ---- bytes ---- */

static __device__ __forceinline__ void copy_chunk(char *to, const char *from, uint32_t chunk) {
    ((uint4 *)to)[chunk] = ((const uint4 *)from)[chunk];
}

#endif
