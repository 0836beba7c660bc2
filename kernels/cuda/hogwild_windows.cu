/* hogwild_windows: lock-free training of windows of a text with sgd, as fast as the rows can be fetched.
 *
 * A position's rows are held in registers: the T words of its window, the word in the middle and the negatives are read
 * once, all dot products are computed, and each row's gradient is added to the table by one vector reduction a lane.
 *
 * Instructions of a warp for one kept position, at 128 columns, window 5 with shrink (6 words on average), 5 negatives of
 * each pair. A tile is the dot products that a warp computes at once; a position has 1.6 tiles on average.
 *
 *   36 dot products, 4 each                                                           144
 *   their sums over the lanes by transposition, 125 a tile                            200
 *     (31 shuffles for 32 sums instead of 160)
 *   coefficients                                                                       30
 *   36 pairs of gradients, 8 each                                                     288
 *   draws, 150 a tile                                                                 240
 *   37 rows: addresses, reads and adds, 5 each                                        185
 *   together                                                                  about 1,100
 *
 * An H200 issues 924 G instructions a second. At 60% of that rate they would allow 500 M kept positions a second; of
 * wiki16 with examples.subsample = 1e-4, 45% of the words are kept. But traffic inside L2 is the limit. With shared
 * negatives a position reads and adds to 12 rows, 12 KB; with negatives of each pair to 37 rows, 38 KB. L2 reads some
 * 5 TB/s and adds perhaps 2.
 *
 * Keeping the window's words in a ring across positions (FULL-W2V) would save 5 of 12 rows, but other warps would not see
 * changes of hot words for eleven positions. If rows are added to at once, a gradient is only one position's time old,
 * and a multiprocessor needs no more than a dozen positions in flight to be busy (a position takes 4,000 cycles, a
 * multiprocessor of 132 must end one every 900 for 250 M a second). Few positions in flight keep the quality: if many
 * positions change a row at once, each by a gradient of the same old row, they overshoot.
 */
#include "hogwild_positions.cuh"

namespace {

/* ---- training ---- */

/* Trains one position if each pair has negatives of its own, as in word2vec.c. TT targets, with NT negatives of each, are
 * trained at a time. */
template <class F, int VEC, int TT, int NT, bool ON_HOST>
__device__ __forceinline__ void train_pairs(const hogwild_job &job, const position &at, const uint32_t *targets,
                                            hogwild_sums &sums) {
    constexpr int WIDTH = NT + 1, LOGITS = TT * WIDTH;
    const unsigned lane = lane_number(), quads = job.quads, negatives = job.source.negatives;
    row<VEC> middle, gained = zero_row<VEC>();
    read_row<F, VEC, ON_HOST>(middle, job.context, at.middle, quads, true, sums);
    const row<VEC> middle_read = middle;
    for (uint32_t j0 = 0; j0 < at.targets; j0 += TT) {
        row<VEC> t[TT], moved[TT];
        uint32_t id[TT];
#pragma unroll
        for (int j = 0; j < TT; j++) {
            id[j] = j0 + j < at.targets ? targets[j0 + j] : DRAW_NONE;
            read_row<F, VEC, ON_HOST>(t[j], job.target, id[j], quads, id[j] != DRAW_NONE, sums);
            moved[j] = zero_row<VEC>();
        }
        row<VEC> gain = zero_row<VEC>();
        uint32_t n0 = 0;
        do { /* once, even if there are no negatives */
            uint32_t mine = lane / NT, which = n0 + lane % NT;
            uint32_t drawn = draw_slot(job, at.number, at.middle, (j0 + mine) * negatives + which,
                                       lane < TT * NT && j0 + mine < at.targets && which < negatives);
            row<VEC> n[TT][NT];
            float logits[LOGITS];
#pragma unroll
            for (int j = 0; j < TT; j++)
#pragma unroll
                for (int k = 0; k < NT; k++) {
                    uint32_t other = __shfl_sync(ALL_LANES, drawn, j * NT + k);
                    read_row<F, VEC, ON_HOST>(n[j][k], job.context, other, quads, other != DRAW_NONE, sums);
                }
#pragma unroll
            for (int j = 0; j < TT; j++) {
                logits[j * WIDTH] = dot_row(t[j], middle);
#pragma unroll
                for (int k = 0; k < NT; k++) logits[j * WIDTH + 1 + k] = dot_row(t[j], n[j][k]);
            }
            float logit = sum_over_warp(logits);
            unsigned my_target = lane / WIDTH, my_slot = lane % WIDTH;
            uint32_t my_other = __shfl_sync(ALL_LANES, drawn, (my_target * NT + my_slot - 1) & 31);
            bool alive = lane < LOGITS && j0 + my_target < at.targets && (my_slot ? my_other != DRAW_NONE : n0 == 0);
            float c = coefficient(at, sums, logit, alive, my_slot == 0);
#pragma unroll
            for (int j = 0; j < TT; j++) {
                if (id[j] == DRAW_NONE) continue;
                float positive = __shfl_sync(ALL_LANES, c, j * WIDTH);
                fma_row(moved[j], positive, middle);
                fma_row(gain, positive, t[j]);
#pragma unroll
                for (int k = 0; k < NT; k++) {
                    float negative = __shfl_sync(ALL_LANES, c, j * WIDTH + 1 + k);
                    uint32_t other = __shfl_sync(ALL_LANES, drawn, j * NT + k);
                    if (other == DRAW_NONE) continue;
                    fma_row(moved[j], negative, n[j][k]);
                    add_to_row<F, VEC, ON_HOST>(scale_row(negative, t[j]), n[j][k], job.context, other, quads, at.context_key,
                                                sums);
                }
            }
            n0 += NT;
        } while (n0 < negatives);
#pragma unroll
        for (int j = 0; j < TT; j++)
            if (id[j] != DRAW_NONE)
                add_to_row<F, VEC, ON_HOST>(moved[j], t[j], job.target, id[j], quads, at.target_key, sums);
        fma_row(middle, 1.0f, gain);
        fma_row(gained, 1.0f, gain);
    }
    add_to_row<F, VEC, ON_HOST>(gained, middle_read, job.context, at.middle, quads, at.context_key, sums);
}

/* The contexts that are trained with all words of a window: the word in the middle and the negatives or, with PATHS, the nodes
 * of the middle word's path in a tree. */
template <bool PATHS> struct window_contexts {
    const hogwild_job &job;
    const position &at;
    uint32_t negatives;

    __device__ __forceinline__ window_contexts(const hogwild_job &job, const position &at)
        : job(job), at(at), negatives(job.source.negatives) {}
    /* Returns a lane's context in a round of WIDTH contexts, or DRAW_NONE. done: number of contexts in earlier rounds. */
    template <int WIDTH> __device__ __forceinline__ uint32_t take(uint32_t done, unsigned lane) const {
        uint32_t slot = done + lane - 1;
        uint32_t drawn = draw_slot(job, at.number, at.middle, slot, lane > 0 && lane < WIDTH && slot < negatives);
        return lane == 0 && done == 0 ? at.middle : drawn;
    }
    template <int WIDTH> __device__ __forceinline__ bool next(uint32_t &done) const {
        done += WIDTH - 1; /* lane 0 has a context only in the first round */
        return done < negatives;
    }
    __device__ __forceinline__ bool is_positive(uint32_t done, unsigned slot) const {
        return done == 0 && slot == 0;
    }
};

template <> struct window_contexts<true> {
    const example_source &source;
    const struct example_path path;

    __device__ __forceinline__ window_contexts(const hogwild_job &job, const position &at)
        : source(job.source), path(example_path(&job.source, at.middle)) {}
    template <int WIDTH> __device__ __forceinline__ uint32_t take(uint32_t done, unsigned lane) const {
        bool on = lane < WIDTH && done + lane < path.count[0] + path.count[1];
        return on ? node_of(source, path, done + lane) : DRAW_NONE;
    }
    template <int WIDTH> __device__ __forceinline__ bool next(uint32_t &done) const {
        done += WIDTH;
        return done < path.count[0] + path.count[1];
    }
    __device__ __forceinline__ bool is_positive(uint32_t done, unsigned slot) const {
        return done + slot < path.count[0];
    }
};

/* Trains one position if all its pairs share their contexts. WIDTH contexts and TT targets are trained at a time. */
template <class F, int VEC, int TT, int WIDTH, bool PATHS, bool ON_HOST>
__device__ __forceinline__ void train_shared(const hogwild_job &job, const position &at, const uint32_t *targets,
                                             hogwild_sums &sums) {
    constexpr int LOGITS = TT * WIDTH;
    const unsigned lane = lane_number(), quads = job.quads;
    const window_contexts<PATHS> contexts(job, at);
    uint32_t done = 0;
    do {
        uint32_t drawn = contexts.template take<WIDTH>(done, lane);
        uint32_t other[WIDTH];
        row<VEC> c[WIDTH], gained[WIDTH];
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            other[k] = __shfl_sync(ALL_LANES, drawn, k);
            read_row<F, VEC, ON_HOST>(c[k], job.context, other[k], quads, other[k] != DRAW_NONE, sums);
            gained[k] = zero_row<VEC>();
        }
        unsigned my_target = lane / WIDTH, my_slot = lane % WIDTH;
        uint32_t my_other = __shfl_sync(ALL_LANES, drawn, my_slot);
        for (uint32_t j0 = 0; j0 < at.targets; j0 += TT) {
            row<VEC> t[TT];
            uint32_t id[TT];
            float logits[LOGITS];
#pragma unroll
            for (int j = 0; j < TT; j++) {
                id[j] = j0 + j < at.targets ? targets[j0 + j] : DRAW_NONE;
                read_row<F, VEC, ON_HOST>(t[j], job.target, id[j], quads, id[j] != DRAW_NONE, sums);
            }
#pragma unroll
            for (int j = 0; j < TT; j++)
#pragma unroll
                for (int k = 0; k < WIDTH; k++) logits[j * WIDTH + k] = dot_row(t[j], c[k]);
            float logit = sum_over_warp(logits);
            bool alive = lane < LOGITS && j0 + my_target < at.targets && my_other != DRAW_NONE;
            float factor = coefficient(at, sums, logit, alive, contexts.is_positive(done, my_slot));
#pragma unroll
            for (int j = 0; j < TT; j++) {
                if (id[j] == DRAW_NONE) continue;
                row<VEC> moved = zero_row<VEC>();
#pragma unroll
                for (int k = 0; k < WIDTH; k++) {
                    float f = __shfl_sync(ALL_LANES, factor, j * WIDTH + k);
                    fma_row(moved, f, c[k]);
                    fma_row(gained[k], f, t[j]);
                }
                add_to_row<F, VEC, ON_HOST>(moved, t[j], job.target, id[j], quads, at.target_key, sums);
            }
        }
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            if (other[k] == DRAW_NONE) continue;
            if (PATHS) gained[k] = scale_row(hogwild_node_share(job.node_limit, other[k]), gained[k]);
            add_to_row<F, VEC, ON_HOST>(gained[k], c[k], job.context, other[k], quads, at.context_key, sums);
        }
    } while (contexts.template next<WIDTH>(done));
}

/* Sizes of tiles, by the width of a row, chosen to fit into a thread's registers. */
template <int VEC> struct tile {
    static constexpr int targets = VEC == 1 ? 5 : VEC == 2 ? 2 : 1, negatives = VEC <= 2 ? 5 : 3;
    /* Numbers of targets and of a path's nodes that are trained at a time. More nodes at a time mean that the window's words are
     * read and changed fewer times. */
    static constexpr int path_targets = VEC == 1 ? 3 : VEC == 2 ? 2 : 1, nodes = VEC == 1 ? 8 : VEC == 2 ? 6 : 4;
};

enum contexts { OF_PAIRS, OF_WINDOWS, OF_PATHS };

template <class F, int VEC, enum contexts CONTEXTS, bool ON_HOST>
__global__ void __launch_bounds__(WARPS * 32) window_kernel(const hogwild_job job) {
    __shared__ windows pieces[WARPS];
    windows &p = pieces[threadIdx.x / 32];
    constexpr int TT = tile<VEC>::targets, NT = tile<VEC>::negatives;
    constexpr bool PAIRS = CONTEXTS == OF_PAIRS;
    hogwild_sums sums = {};
    each_position<F>(job, p, [&](const position &at) {
        sums.examples += PAIRS ? at.targets : 1;
        sums.pairs += at.targets;
        if (at.sampled) sums.sampled_examples += PAIRS ? at.targets : 1, sums.sampled_pairs += at.targets;
        if constexpr (CONTEXTS == OF_PAIRS)
            train_pairs<F, VEC, TT, NT, ON_HOST>(job, at, p.targets, sums);
        else if constexpr (CONTEXTS == OF_WINDOWS)
            train_shared<F, VEC, TT, NT + 1, false, ON_HOST>(job, at, p.targets, sums);
        else
            train_shared<F, VEC, tile<VEC>::path_targets, tile<VEC>::nodes, true, ON_HOST>(job, at, p.targets, sums);
    });
    give_sums(job.totals, &sums);
}

/* ---- the launch ---- */

/* Returns the kernel for a row's width. contexts: words and negatives, or nodes of a tree; on_host: true: some rows are on the
 * host. */
template <class F, int VEC> window_function *kernel_of(enum contexts contexts, bool on_host) {
    constexpr bool FEW = F::QUADS > 1; /* true: compiles fewer kernels: rows on the GPU use the kernel for rows that may be on
                                        * the host */
    if (contexts == OF_PATHS) return FEW || on_host ? window_kernel<F, VEC, OF_PATHS, true> : window_kernel<F, VEC, OF_PATHS, FEW>;
    if (contexts == OF_PAIRS) return FEW || on_host ? window_kernel<F, VEC, OF_PAIRS, true> : window_kernel<F, VEC, OF_PAIRS, FEW>;
    return on_host ? window_kernel<F, VEC, OF_WINDOWS, true> : window_kernel<F, VEC, OF_WINDOWS, false>;
}
template <class F> window_function *kernel_for(uint32_t quads, enum contexts contexts, bool on_host) {
    if (quads <= 32) return kernel_of<F, 1>(contexts, on_host);
    if (quads <= 64) return kernel_of<F, 2>(contexts, on_host);
    return kernel_of<F, 4>(contexts, on_host);
}

} // namespace

int hogwild_windows_can(const struct hogwild_job *job) {
    return hogwild_in_registers(&job->source, 4 * job->quads, job->linear);
}

int hogwild_windows_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream) {
    auto choose = job->halves ? kernel_for<bfloat16_rows> : kernel_for<float32_rows>;
    enum contexts contexts = job->source.paths.starts ? OF_PATHS : job->source.per_pair ? OF_PAIRS : OF_WINDOWS;
    return launch_windows(choose(job->quads, contexts, job->on_host), job, warps, processors, stream);
}
