/* hogwild_words: shared by the lock-free kernels: reading and moving rows, kept words, draws, a warp's sums.
 *
 * A row is spread over a warp: lane l holds quad l (columns 4 l to 4 l + 3) and, for wider rows, every 32nd quad after
 * it. Rows are read past the first cache, since another warp may just have changed them, and changed by atomic
 * additions, four columns an instruction, so that no update is lost however many warps change a row at once.
 *
 * A row of bfloat16 (F, values.cuh) is changed in whole steps: the value that was read plus its gain is rounded to bfloat16,
 * and the difference is added. The random bits for rounding are a cheap mix (kernels/rounding.h), since no other run has to use
 * the same bits.
 */
#ifndef SPTX_CUDA_HOGWILD_WORDS_CUH
#define SPTX_CUDA_HOGWILD_WORDS_CUH

#include "warp.cuh"

extern "C" {
#include "kernels/hogwild.h"
}

/* ---- a run of the kernels ---- */

struct hogwild_job {
    struct table_view target, context;
    struct example_source source; /* its pointers are addresses on the GPU */
    struct shuffle order;         /* the order of examples; used only if the source shuffles */
    uint32_t quads, epoch;
    uint64_t first, count;
    uint64_t large_pieces; /* for kernels of windows: number of pieces of GRAIN positions; the pieces after them are small */
    float lr_first, lr_slope; /* for hogwild_rate() */
    float decay, eps;
    int linear, adagrad, counted; /* linear: the result of hogwild_is_linear(); adagrad: 1: the rule is adagrad; counted: 1: rows
                                   * have a count of updates */
    int on_host;                  /* 1: some rows are in host memory */
    double lr_decay;
    uint64_t global_step;
    uint32_t target_key, context_key; /* seed the random bits for rounding bfloat16 rows */
    int halves, state_halves;         /* halves: 1: weights are bfloat16; state_halves: 1: adagrad's sums are bfloat16 */
    uint32_t loss_mask; /* made by hogwild_loss_mask() */
    float node_limit;   /* for hogwild_node_share() */
    uint32_t *scratch;  /* for the general kernel: [warps x scratch_words] */
    uint64_t scratch_words;
    uint32_t most_contexts, most_targets, most_vectors; /* upper bounds for one block */
    uint32_t most_words;                                /* upper bound for the targets of all blocks of one window */
    struct hogwild_totals *totals;
};

/* Counts of the work of one warp. `loss` differs from lane to lane, and is summed over the lanes at the end. host_rows: how
 * often a row crossed the link, in either direction. */
struct hogwild_sums {
    unsigned long long examples, pairs, sampled_examples, sampled_pairs, sampled_terms, host_rows;
    double loss;
};

/* ---- paths in a tree ---- */

/* Returns node `i` of a path. The nodes of code 0, which are positives, are before the nodes of code 1. */
__device__ __forceinline__ uint32_t node_of(const struct example_source &s, const struct example_path &path, uint32_t i) {
    return portable_load32_at(s.paths.nodes, path.first[0] + i);
}

/* ---- rows ---- */

__device__ __forceinline__ bool is_on_host(const struct table_view &rows, uint32_t id) {
    return id >= rows.weights.hot_rows;
}
/* Returns the address of a row's weights. ON_HOST: false: the caller knows that all rows are on the GPU. */
template <bool ON_HOST> __device__ __forceinline__ char *weights_of(const struct table_view &rows, uint32_t id) {
    char *base = ON_HOST && is_on_host(rows, id) ? rows.weights.home : rows.weights.hot;
    return base + (uint64_t)id * (uint32_t)rows.weights.stride;
}

/* ---- changes of rows ---- */

/* Returns the key for the random bits of all changes of one table's rows at a position (or in an example). */
__device__ __forceinline__ uint32_t place_key(uint32_t table_key, uint64_t number) {
    return round_mix(table_key + (uint32_t)number * 0x9E3779B9u);
}

/* Returns the key for changing row `id` at a position, whose key is `place`. The sum needs no mixing here: `place` is mixed
 * already, and round_pair() mixes the sum. */
__device__ __forceinline__ uint32_t row_key(uint32_t place, uint32_t id) {
    return place + id * 0xC2B2AE3Du;
}

/* Adds a gain to a quad of a row. old: the quad as it was read before; a bfloat16 row rounds old + gain. */
template <class F, bool ON_HOST>
__device__ __forceinline__ void gain_quad(char *weights, uint32_t quad, float4 old, float4 gain, bool on_host, uint32_t key) {
    if constexpr (F::QUADS == 1) {
        if (ON_HOST && on_host) add_quad_over_link(weights, quad, gain);
        else add_quad(weights, quad, gain);
    } else {
        uint32_t bits = round_pair(key, quad);
        uint2 step = whole_steps(old, gain, bits, round_more(bits, ROUND_SECOND));
        if (ON_HOST && on_host) add_halves_over_link(weights, quad, step);
        else add_halves(weights, quad, step);
    }
}

/* ---- a warp ---- */

__device__ __forceinline__ unsigned lanes_below(unsigned mask) {
    return __popc(mask & ((1u << lane_number()) - 1));
}

__device__ __forceinline__ unsigned long long take_piece(struct hogwild_totals *totals) {
    unsigned long long piece = 0;
    if (lane_number() == 0) piece = atomicAdd(&totals->next, 1ull);
    return __shfl_sync(ALL_LANES, piece, 0);
}

__device__ __forceinline__ void give_sums(struct hogwild_totals *totals, struct hogwild_sums *sums) {
    for (int mask = 16; mask; mask >>= 1) sums->loss += __shfl_xor_sync(ALL_LANES, sums->loss, mask);
    if (lane_number()) return;
    atomicAdd(&totals->examples, sums->examples);
    atomicAdd(&totals->pairs, sums->pairs);
    atomicAdd(&totals->sampled_examples, sums->sampled_examples);
    atomicAdd(&totals->sampled_pairs, sums->sampled_pairs);
    atomicAdd(&totals->sampled_terms, sums->sampled_terms);
    if (sums->host_rows) atomicAdd(&totals->host_rows, sums->host_rows);
    atomicAdd(&totals->loss, sums->loss);
}

/* ---- the loss of one logit ---- */

/* Returns minus the coefficient of sgns.h: the factor, for a learning rate of 1, with which each row of a pair is added to the
 * other. */
__device__ __forceinline__ float gain_of(float s, float y) { /* y - sigmoid(s) */
    return y - __fdividef(1.0f, 1.0f + __expf(-s));
}
__device__ __forceinline__ float logit_loss(float s, float y) {
    return fmaxf(s, 0.0f) + log1pf(__expf(-fabsf(s))) - y * s;
}

/* ---- kept words of a strip, by a warp ---- */

/* 32 positions of a strip, one for each lane: this lane's position; its word's id, or DRAW_NONE if it is not kept; and a mask of
 * the lanes whose words are kept. */
struct kept_words {
    uint64_t position;
    uint32_t id;
    unsigned lanes;
};

/* Reads the words at 32 positions. BY = 1: at positions from `at` on that are below `stop`; BY = -1: backwards from at - 1 to
 * `stop`. Each lane may have another sentence. */
template <int BY>
__device__ __forceinline__ kept_words words_at(const struct example_source &s, uint64_t sentence, uint32_t epoch, uint64_t at,
                                               uint64_t stop) {
    kept_words words;
    bool there = BY > 0 ? at + lane_number() < stop : lane_number() < at - stop;
    words.position = BY > 0 ? at + lane_number() : at - 1 - lane_number();
    words.id = there ? strip_word_alone(&s, sentence, words.position, epoch) : DRAW_NONE;
    words.lanes = __ballot_sync(ALL_LANES, words.id != DRAW_NONE);
    return words;
}

/* ---- the kernels: they launch at most `warps` warps and return 0, or -1 after fail() ---- */

/* hogwild_windows.cu: windows of a text, with sgd. hogwild_windows_can() returns 1 if this kernel can do the job; the second
 * function launches it. */
int hogwild_windows_can(const struct hogwild_job *job);
int hogwild_windows_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream);

/* hogwild_pooled.cu: windows with sgd whose target words are pooled. */
int hogwild_pooled_can(const struct hogwild_job *job);
int hogwild_pooled_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream);

/* hogwild_subwords.cu: windows with sgd whose words share rows (n-grams). It must be asked before the two above, since they
 * assume one row a word. */
int hogwild_subwords_can(const struct hogwild_job *job);
int hogwild_subwords_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream);

/* hogwild_rows.cu: the general kernel, for all other jobs. */
int hogwild_rows_launch(const struct hogwild_job *job, uint64_t warps, cudaStream_t stream);

#endif
