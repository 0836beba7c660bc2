/* step_learn: the first half of a step for every loss except the logistic one of dot products, for pooled targets, and with frozen
 * rows. It makes these passes over the blocks, all from old rows (the plain loss needs one pass: step_dots.cu):
 *
 *   pool    step_learn_pool.cu    a block's vector, if targets are pooled: the weighted sum of its rows
 *   score   step_learn_score.cu   dot products of vectors and contexts; with cosines the squares of both. With several
 *                      ranks these are parts, which the exchange sums
 *   learn   step_learn.cu   from a block's scores: its loss, the coefficients of dot products and, with cosines, each place's
 *                      factor of its own row (kernels/losses.h)
 *   gain    step_learn_gain.cu    blocks of one vector: its gradient; contexts that occur once in the batch are updated
 *           step_learn_score.cu   blocks of several vectors: their gradients and those of each context's place
 *   share   step_learn_pool.cu    a pooled vector's gradient is distributed to its rows' places
 *
 * A vector is a target's row, or the pooled vector of a block. Every sum has one order, whatever the stage, the depth or the place
 * of the rows. A pair of frozen rows changes nothing: the pairs that kernels/cpu/frozen.c leaves out of a batch are left out of the
 * loss and the counts here.
 */
#ifndef SPTX_CUDA_STEP_LEARN_CUH
#define SPTX_CUDA_STEP_LEARN_CUH

#include "step_dots.cuh"
#include "step_learn_line.cuh"

enum { LEARN_CTA = 256 }; /* number of threads of a thread block; it is CTA for rows that more than a warp works on */

struct learn_view {
    struct loss_options loss;
    struct example_pool pool;
    float *scores;              /* [terms] first dot products; learn replaces them by scores, then, if scores are cosines, by
                                 * coefficient x cosine */
    float *lengths[2];          /* by side, [places]: first squares of the rows, then 1 / length, then the row's factor in its
                                 * own gradient. A pooled vector uses the place of its block's first target. NULL: scores are not
                                 * cosines */
    float *pooled;              /* [blocks x span] pooled vectors, span floats each; NULL: a block's vectors are its target rows */
    const float *weights;       /* [contexts] weights of positives; NULL: every positive weighs 1 */
    const uint32_t *frozen[2];  /* by side: bit map of the frozen rows; NULL: no row is frozen */
    struct batch_counts *counts;
    uint64_t length_slots[2];   /* by side: slot of the exchange for place 0; place p uses the slot p further on */
    int one_vector;             /* 1: every block has one vector */
};

/* ---- by kernels ---- */

/* Writes this rank's partial sum: posts it to a slot of the exchange; a single rank stores it at to[at]. */
static __device__ __forceinline__ void give_part(const struct step_view &v, float *to, uint64_t at, uint64_t slot, float part) {
    if (v.exchange.ranks > 1) {
        exchange_post(v.exchange, slot, part);
        exchange_keep(v.exchange, slot, part);
    } else {
        to[at] = part;
    }
}
static __device__ __forceinline__ float take_whole(const struct step_view &v, const float *from, uint64_t at, uint64_t slot) {
    return v.exchange.ranks > 1 ? exchange_collect(v.exchange, slot, exchange_kept(v.exchange, slot)) : from[at];
}

/* Reads a block's vector: a target row, or the pooled vector (zeros if the block has no targets). occurrence: the target, or the
 * first pooled target. */
template <class F, int G, int VEC>
static __device__ __forceinline__ void read_vector(const struct step_view &v, const struct learn_view &l, uint32_t block,
                                                   uint32_t occurrence, float4 (&x)[VEC]) {
    if (l.pooled) read_row<F, G, VEC>(x, l.pooled + (uint64_t)block * v.span, threadIdx.x % G, v.quads);
    else read_target<F, G, VEC>(v, occurrence, x);
}

/* threads: number of threads of a thread block; width: number of threads that work together as a group; count: number of groups
 * in a thread block. */
template <int G> struct learn_groups {
    static constexpr int threads = G > 32 ? (int)CTA : (int)LEARN_CTA, width = G < 32 ? 32 : G, count = threads / width;
};

/* A group's share of a block. v.parts groups share the block's contexts; this one is number `part`. */
struct block_share {
    uint32_t block, part, group;
    uint32_t start, end;   /* all contexts of the block: start .. end - 1 */
    uint32_t first, last;  /* contexts of this group: first .. last - 1 */
    uint32_t target, targets;
};
template <int G> static __device__ __forceinline__ bool take_share(const struct step_view &v, struct block_share &s) {
    constexpr uint32_t WIDTH = learn_groups<G>::width, GROUPS = learn_groups<G>::count;
    s.group = threadIdx.x / WIDTH;
    s.block = (blockIdx.x * GROUPS + s.group) / v.parts;
    s.part = s.group % v.parts;
    if (s.block >= v.counts->blocks) return false; /* groups that share a block all return false, or none does */
    s.start = v.context_starts[s.block], s.end = v.context_starts[s.block + 1];
    uint32_t each = (s.end - s.start + v.parts - 1) / v.parts, first = s.start + s.part * each;
    s.first = first < s.end ? first : s.end;
    s.last = s.first + each < s.end ? s.first + each : s.end;
    s.target = v.target_starts[s.block];
    s.targets = v.target_starts[s.block + 1] - s.target;
    return true;
}

/* ---- by the host ---- */

/* Returns the weights of a batch's positives, if the loss of this step uses them; NULL: every positive weighs 1. */
static inline const float *weights_of(const struct stage *stage, const struct step_request *request) {
    return stage->weighted && request->loss.weighted ? (const float *)stage->weights.data : NULL;
}

typedef void learn_kernel(const struct step_view, const struct learn_view);
struct learn_launch_of {
    learn_kernel *kernel;
    uint32_t threads, groups; /* threads: of a thread block; groups: in a thread block */
};

/* step_learn_score.cu, step_learn_gain.cu */
struct learn_launch_of learn_score(const struct step_view *view);
struct learn_launch_of learn_gain_many(const struct step_view *view);
struct learn_launch_of learn_gain_one(const struct step_view *view);
/* step_learn_pool.cu: enqueue the passes `pool` and `share`. blocks: upper bound of the number of blocks. */
int pool_launch(struct backend *backend, uint32_t blocks, const struct step_view *view, const struct learn_view *learn);
int pool_share(struct backend *backend, uint32_t blocks, const struct step_view *view, const struct learn_view *learn);

/* Returns 1 if a step needs the passes of this file. */
int learn_is_wanted(const struct stage *stage, const struct step_request *request);
/* step_shared.cu: enqueues the first half of a step with shared negatives, which replaces the passes of this file. Sets those
 * fields of *learn that the second half needs. */
int shared_launch(struct backend *backend, const struct stage *stage, const struct step_request *request,
                  const struct step_view *view, struct learn_view *learn);
/* Enqueues all passes on the compute stream. Sets *learn; the second half of the step needs it. */
int learn_launch(struct backend *backend, const struct stage *stage, const struct step_request *request,
                 const struct step_view *view, struct learn_view *learn);

#endif
