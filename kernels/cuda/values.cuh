/* values: how values are stored. A field of a record is a `char *` to its beginning, which only the functions here read and write. All arithmetic is
 * float32, in registers, on four columns together (a quad). Working memory (gradients, sums, pooled vectors) is always float32, and is given as a
 * `float *`.
 *
 * A row's form is the type of its weights. A thread works on whole chunks of a row, 16 bytes of weights: one quad of float32 or two of bfloat16. The
 * state may have another type (`halves`).
 *
 *   read_chunk, write_chunk          16 stored bytes, whatever they mean; copy_chunk does both
 *   open_chunk, close_chunk          the quads of a chunk of weights; the reverse rounds (kernels/rounding.h)
 *   read_state_chunk ..              the same columns of a slot: 32 bytes if only the weights are bfloat16
 *   read_quad, write_quad            a quad of working memory
 *   read_column                      one column of weights
 *   read_quad_past_cache             a quad of a row that other warps may be changing, past the first cache
 *   add_quad, add_quad_over_link     adds a quad to a row on this GPU, or on the host, atomically
 */
#ifndef SPTX_CUDA_VALUES_CUH
#define SPTX_CUDA_VALUES_CUH

#include "cuda.cuh"
#include "older_cards.cuh"

extern "C" {
#include "kernels/examples.h"
}

enum { CHUNK_BYTES = 16 }; /* bytes that a thread reads or writes at once; the size of every field of a record is a multiple of it */

/* ---- forms of rows ---- */

/* Rows of float32. QUADS: quads in a chunk. */
struct float32_rows {
    static constexpr int QUADS = 1;
};
struct bfloat16_rows {
    static constexpr int QUADS = 2;
};

/* ---- chunks ---- */

static __device__ __forceinline__ float4 read_chunk(const char *field, uint32_t chunk) {
    return ((const float4 *)field)[chunk];
}
static __device__ __forceinline__ void write_chunk(char *field, uint32_t chunk, float4 stored) {
    ((float4 *)field)[chunk] = stored;
}
static __device__ __forceinline__ void copy_chunk(char *to, const char *from, uint32_t chunk) {
    ((uint4 *)to)[chunk] = ((const uint4 *)from)[chunk];
}

/* Copies a chunk of a row into shared memory. All lanes of the warp may read it after wait_for_copies(). */
static __device__ __forceinline__ void bring_chunk(char *to, const char *from, uint32_t chunk, uint32_t chunks) {
    if (chunk < chunks) copy_to_shared((uint4 *)to + chunk, (const uint4 *)from + chunk);
}

/* ---- two bfloat16 in a word, the first in its lower half ---- */

static __device__ __forceinline__ float lower_value(uint32_t word) {
    return __uint_as_float(word << 16);
}
static __device__ __forceinline__ float upper_value(uint32_t word) {
    return __uint_as_float(word & 0xFFFF0000u);
}
static __device__ __forceinline__ float4 values_of(uint2 words) {
    return make_float4(lower_value(words.x), upper_value(words.x), lower_value(words.y), upper_value(words.y));
}

static __device__ __forceinline__ uint32_t upper_halves(uint32_t first, uint32_t second) {
    return __byte_perm(first, second, 0x7632);
}

/* Returns 32 bits whose upper half is bfloat16_round() of x. Compares floats, since a GPU does that in one instruction. */
static __device__ __forceinline__ uint32_t round_value(float x, uint32_t random16) {
    uint32_t bits = __float_as_uint(x);
    if (fabsf(x) < __uint_as_float(BFLOAT16_LARGEST)) bits += random16;
    if (x != x) bits |= BFLOAT16_NAN;
    return bits;
}
/* Round two values; each uses 16 of the random bits in `bits`. The second function needs both values to be below the largest bfloat16. */
static __device__ __forceinline__ uint32_t round_two(float first, float second, uint32_t bits) {
    return upper_halves(round_value(first, bits & 0xFFFFu), round_value(second, bits >> 16));
}
static __device__ __forceinline__ uint32_t round_two_small(float first, float second, uint32_t bits) {
    return upper_halves(__float_as_uint(first) + (bits & 0xFFFFu), __float_as_uint(second) + (bits >> 16));
}

/* ---- the columns of a chunk ---- */

static __device__ __forceinline__ void open_halves(float4 (&x)[2], float4 stored) {
    x[0] = values_of(make_uint2(__float_as_uint(stored.x), __float_as_uint(stored.y)));
    x[1] = values_of(make_uint2(__float_as_uint(stored.z), __float_as_uint(stored.w)));
}
static __device__ __forceinline__ float sum_of_sizes(float4 x) {
    return (fabsf(x.x) + fabsf(x.y)) + (fabsf(x.z) + fabsf(x.w));
}
static __device__ __noinline__ float4 close_large_halves(float4 x, float4 y, struct draw4 bits) {
    return make_float4(__uint_as_float(round_two(x.x, x.y, bits.word[0])), __uint_as_float(round_two(x.z, x.w, bits.word[1])),
                       __uint_as_float(round_two(y.x, y.y, bits.word[2])), __uint_as_float(round_two(y.z, y.w, bits.word[3])));
}
/* Rounds eight values. One sum shows whether all are finite and below the largest bfloat16, so they are not checked one by one. */
static __device__ __forceinline__ float4 close_halves(const float4 (&x)[2], struct draw4 bits) {
    if (!(sum_of_sizes(x[0]) + sum_of_sizes(x[1]) < __uint_as_float(BFLOAT16_LARGEST))) return close_large_halves(x[0], x[1], bits);
    return make_float4(__uint_as_float(round_two_small(x[0].x, x[0].y, bits.word[0])), __uint_as_float(round_two_small(x[0].z, x[0].w, bits.word[1])),
                       __uint_as_float(round_two_small(x[1].x, x[1].y, bits.word[2])),
                       __uint_as_float(round_two_small(x[1].z, x[1].w, bits.word[3])));
}

template <class F> static __device__ __forceinline__ float read_column(const char *row, uint32_t column) {
    if constexpr (F::QUADS == 1) return ((const float *)row)[column];
    else return __uint_as_float((uint32_t)((const uint16_t *)row)[column] << 16);
}

static __device__ __forceinline__ void open_chunk(float4 (&x)[1], float4 stored) {
    x[0] = stored;
}
static __device__ __forceinline__ void open_chunk(float4 (&x)[2], float4 stored) {
    open_halves(x, stored);
}

/* Keys of a step's random bits for stochastic rounding, of all fields of a table or of one row (kernels/rounding.h). */
struct rounding_keys {
    uint32_t weights, state;
    uint32_t group; /* number, in the whole row, of the first group of eight columns that this process stores */
};

/* Returns a step's keys; called on the host. purpose: that of the random bits for the weights. */
static inline struct rounding_keys keys_of_step(const struct rounding *table, enum draw_purpose purpose, uint64_t global_step) {
    struct rounding_keys keys;
    keys.weights = round_step_key(table, purpose, global_step);
    keys.state = round_step_key(table, DRAW_ROUND_STATE, global_step);
    keys.group = round_index(table, 0, 0);
    return keys;
}
static __device__ __forceinline__ struct rounding_keys keys_of_row(const struct rounding_keys &step, uint32_t row) {
    return {round_row_key(step.weights, row), round_row_key(step.state, row), step.group};
}

static __device__ __forceinline__ void store_chunk(char *weights, uint32_t chunk, const float4 (&x)[1], const struct rounding_keys &) {
    write_chunk(weights, chunk, x[0]);
}
static __device__ __forceinline__ void store_chunk(char *weights, uint32_t chunk, const float4 (&x)[2], const struct rounding_keys &row) {
    write_chunk(weights, chunk, close_halves(x, round_words(row.weights, row.group + chunk)));
}

/* ---- a slot's columns of a chunk ---- */

/* Returns where a slot stores the columns of chunk number `chunk` of weights of form F. */
template <class F> static __device__ __forceinline__ const float4 *state_at(const char *slot, uint32_t chunk, bool halves) {
    return (const float4 *)(slot + (uint64_t)chunk * (F::QUADS == 1 || halves ? CHUNK_BYTES : 2 * CHUNK_BYTES));
}

template <class F> static __device__ __forceinline__ void prefetch_state_chunk(const char *slot, uint32_t chunk, bool halves) {
    asm volatile("prefetch.L2 [%0];" ::"l"(state_at<F>(slot, chunk, halves)));
}

/* Reads a slot's values for the columns of a chunk, as stored: two chunks if the state is float32 and the weights are bfloat16. They are converted
 * later by open_state_chunk(), so that many reads can be in flight. */
static __device__ __forceinline__ void read_state_chunk(float4 (&x)[1], const char *slot, uint32_t chunk, bool) {
    x[0] = read_chunk(slot, chunk);
}
static __device__ __forceinline__ void read_state_chunk(float4 (&x)[2], const char *slot, uint32_t chunk, bool halves) {
    const float4 *from = state_at<bfloat16_rows>(slot, chunk, halves);
    x[0] = from[0];
    if (!halves) x[1] = from[1];
}
static __device__ __forceinline__ void open_state_chunk(float4 (&)[1], bool) {}
static __device__ __forceinline__ void open_state_chunk(float4 (&x)[2], bool halves) {
    if (halves) open_halves(x, x[0]);
}

static __device__ __forceinline__ void store_state_chunk(char *slot, uint32_t chunk, const float4 (&x)[1], bool, uint32_t,
                                                         const struct rounding_keys &) {
    write_chunk(slot, chunk, x[0]);
}
static __device__ __forceinline__ void store_state_chunk(char *slot, uint32_t chunk, const float4 (&x)[2], bool halves,
                                                         uint32_t number, const struct rounding_keys &row) {
    float4 *to = (float4 *)state_at<bfloat16_rows>(slot, chunk, halves);
    if (halves) {
        to[0] = close_halves(x, round_words(row.state, (row.group + chunk) | number << 16));
    } else {
        to[0] = x[0];
        to[1] = x[1];
    }
}

/* ---- quads of rows that other warps may be changing ---- */

/* Read a quad of a row of form F, 16 bytes of float32 or 8 of bfloat16; zeros if on = false. */
template <class F> static __device__ __forceinline__ float4 read_quad_past_cache(const char *field, uint32_t quad, bool on);

/* If `on` is false, the asm writes zeros before it would read the address. The outputs need no "=&f", which older Toolkits refuse, because PTX has
 * different registers for floats, integers and addresses. */
template <> __device__ __forceinline__ float4 read_quad_past_cache<float32_rows>(const char *field, uint32_t quad, bool on) {
    float4 v;
    asm volatile("{\n .reg .pred on;\n setp.ne.s32 on, %5, 0;\n"
                 " mov.b32 %0, 0;\n mov.b32 %1, 0;\n mov.b32 %2, 0;\n mov.b32 %3, 0;\n"
                 " @on ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"((const float4 *)field + quad), "r"((int)on)
                 : "memory");
    return v;
}

template <> __device__ __forceinline__ float4 read_quad_past_cache<bfloat16_rows>(const char *field, uint32_t quad, bool on) {
    uint2 v;
    asm volatile("{\n .reg .pred on;\n setp.ne.s32 on, %3, 0;\n"
                 " mov.b32 %0, 0;\n mov.b32 %1, 0;\n"
                 " @on ld.global.cg.v2.u32 {%0, %1}, [%2];\n}"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"((const uint2 *)field + quad), "r"((int)on)
                 : "memory");
    return values_of(v);
}

/* Returns what must be added to the bfloat16 `old` so that the sum is old + gain, rounded stochastically. Adding the gain itself would round to
 * nearest, and so lose gains that are small relative to `old`. A NaN stays a NaN, since added bits could turn it into a number that no later check
 * would find. */
static __device__ __forceinline__ float whole_step(float old, float gain, uint32_t random16) {
    float sum = old + gain, now = upper_value(__float_as_uint(sum) + random16);
    return fmaf(sum, 0.0f, now - old);
}
static __device__ __forceinline__ uint2 whole_steps(float4 old, float4 gain, uint32_t first, uint32_t second) {
    return make_uint2(nearest_two(whole_step(old.x, gain.x, first & 0xFFFFu), whole_step(old.y, gain.y, first >> 16)),
                      nearest_two(whole_step(old.z, gain.z, second & 0xFFFFu), whole_step(old.w, gain.w, second >> 16)));
}
static __device__ __forceinline__ void add_halves(char *field, uint32_t quad, uint2 step) {
    add_four_halves((uint32_t *)field + 2 * quad, step);
}
static __device__ __forceinline__ void add_halves_over_link(char *field, uint32_t quad, uint2 step) {
    add_two_halves_by_comparing((uint32_t *)field + 2 * quad, step.x);
    add_two_halves_by_comparing((uint32_t *)field + 2 * quad + 1, step.y);
}

static __device__ __forceinline__ void add_quad(char *field, uint32_t quad, float4 value) {
    add_four((float *)field + 4 * quad, value);
}
static __device__ __forceinline__ void add_quad_over_link(char *field, uint32_t quad, float4 value) {
    add_each((float *)field + 4 * quad, value);
}

/* Adds `value` to one column of a field, and returns the old value. */
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

/* ==== work of a warp ====
 *
 * What the lanes of a warp compute together: sums over all lanes, or over groups of G neighbouring lanes; a binary search. */

static __device__ __forceinline__ unsigned lane_number(void) {
    return threadIdx.x & 31;
}

/* Returns the sum of x over each group of G neighbouring lanes. */
template <int G = 32> static __device__ __forceinline__ double warp_sum(double x) {
    for (int width = G / 2; width; width /= 2) x += __shfl_xor_sync(ALL_LANES, x, width);
    return x;
}

/* Returns the largest x of the lanes with the same index in their groups as this lane. */
template <int G> static __device__ __forceinline__ uint32_t most_beside(uint32_t x) {
    for (int width = G; width < 32; width *= 2) x = max(x, __shfl_xor_sync(ALL_LANES, x, width));
    return x;
}

/* Sums N <= 32 values over the warp at once: lane l gets the sum of value l % M, where M is the smallest power of two that is at least N. In each
 * round a lane sends half of its values to a partner and keeps the other half, so 32 sums need 31 shuffles. */
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
/* Sums N <= G values over each group of G neighbouring lanes, like transposed_sum over the warp. */
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

/* Returns the number of the sentence that contains a position. The lanes search together, 32 probes at a time. */
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
