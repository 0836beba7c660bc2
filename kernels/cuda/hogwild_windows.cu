/* hogwild_windows: lock-free training of windows of a text with sgd, as fast as the rows can be fetched.
 *
 * A position's rows are held in registers: the words of its window, the word in the middle and the negatives are read once, all dot products are
 * computed, and each lane adds its columns of a row's gradient to the table by one vector instruction.
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
 * An H200 issues 924 G instructions a second; at 60% of that rate it would train 500 M kept positions a second (of wiki16, examples.subsample = 1e-4
 * keeps 45% of the words). But traffic inside L2 is the limit. With shared negatives a position reads and adds to 12 rows, 12 KB; with negatives of
 * each pair to 37 rows, 38 KB. L2 reads some 5 TB/s and adds perhaps 2.
 *
 * Keeping a window's words in registers for the next positions (FULL-W2V) would save 5 of 12 rows, but other warps would see changes of frequent
 * words eleven positions late. When rows are changed at once, a gradient is only one position old, and a dozen positions in flight keep a
 * multiprocessor busy (a position takes 4,000 cycles; for 250 M a second each of 132 multiprocessors must finish one every 900). Few positions in
 * flight keep the quality: if many positions change a row at once, each by a gradient of the same old row, they overshoot.
 */
#include "hogwild.cuh"

namespace {

/* ---- training ---- */

/* Trains one position if each pair has its own negatives, as in word2vec.c: TT targets at a time, with NT negatives of each. */
template <class F, int VEC, int TT, int NT, bool ON_HOST>
__device__ __forceinline__ void train_pairs(const hogwild_job &job, const position &at, const uint32_t *targets, hogwild_sums &sums) {
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
                    add_to_row<F, VEC, ON_HOST>(scale_row(negative, t[j]), n[j][k], job.context, other, quads, at.context_key, sums);
                }
            }
            n0 += NT;
        } while (n0 < negatives);
#pragma unroll
        for (int j = 0; j < TT; j++)
            if (id[j] != DRAW_NONE) add_to_row<F, VEC, ON_HOST>(moved[j], t[j], job.target, id[j], quads, at.target_key, sums);
        fma_row(middle, 1.0f, gain);
        fma_row(gained, 1.0f, gain);
    }
    add_to_row<F, VEC, ON_HOST>(gained, middle_read, job.context, at.middle, quads, at.context_key, sums);
}

/* The contexts that are trained with every word of a window: the middle word and the negatives or, with PATHS, the nodes of the middle word's path
 * in a tree. */
template <bool PATHS> struct window_contexts {
    const hogwild_job &job;
    const position &at;
    uint32_t negatives;

    __device__ __forceinline__ window_contexts(const hogwild_job &job, const position &at)
        : job(job), at(at), negatives(job.source.negatives) {}
    /* Returns a lane's context among the next WIDTH, or DRAW_NONE. done: number of contexts in earlier rounds. */
    template <int WIDTH> __device__ __forceinline__ uint32_t take(uint32_t done, unsigned lane) const {
        uint32_t slot = done + lane - 1;
        uint32_t drawn = draw_slot(job, at.number, at.middle, slot, lane > 0 && lane < WIDTH && slot < negatives);
        return lane == 0 && done == 0 ? at.middle : drawn;
    }
    template <int WIDTH> __device__ __forceinline__ bool next(uint32_t &done) const {
        done += WIDTH - 1; /* only in the first round does lane 0 have a context */
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

/* Trains one position whose pairs all share their contexts, WIDTH contexts and TT targets at a time. */
template <class F, int VEC, int TT, int WIDTH, bool PATHS, bool ON_HOST>
__device__ __forceinline__ void train_shared(const hogwild_job &job, const position &at, const uint32_t *targets, hogwild_sums &sums) {
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

/* Sizes of tiles: as large as fit into a thread's registers for this width of a row. */
template <int VEC> struct tile {
    static constexpr int targets = VEC == 1 ? 5 : VEC == 2 ? 2 : 1, negatives = VEC <= 2 ? 5 : 3;
    /* Numbers of targets and of a path's nodes that are trained at a time. With more nodes at a time, a window's words are read and changed fewer
     * times. */
    static constexpr int path_targets = VEC == 1 ? 3 : VEC == 2 ? 2 : 1, nodes = VEC == 1 ? 8 : VEC == 2 ? 6 : 4;
};

enum contexts { OF_PAIRS, OF_WINDOWS, OF_PATHS };

template <class F, int VEC, enum contexts CONTEXTS, bool ON_HOST> __global__ void __launch_bounds__(WARPS * 32) window_kernel(const hogwild_job job) {
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

/* Returns the kernel for a row's width. contexts: words and negatives, or nodes of a tree; on_host = true: some rows are on the host. */
template <class F, int VEC> window_function *kernel_of(enum contexts contexts, bool on_host) {
    constexpr bool FEW = F::QUADS > 1; /* true: fewer kernels are compiled: the kernel for rows that may be on the host also serves rows on the GPU */
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

/* ==== windows pooled to one vector ====
 *
 * Lock-free training of windows whose words are pooled to one vector (CBOW), with sgd, in registers.
 *
 *   piece of the corpus -> its first negatives, drawn together -> groups of neighbouring kept words -> for each group:
 *     read the words of its windows once, and add each word to the vectors of all windows that contain it
 *     for the contexts of all its windows: dot products, coefficients, updates
 *     update each word once, by the sum of its windows' gradients
 *
 * Traffic inside L2 limits the speed, as with shared negatives: a single window reads 6 words and 6 contexts and adds to them, 12 KB at 128 columns.
 * Two neighbouring windows have 9 words together instead of 12, which is an eighth less traffic. Longer groups would save more, but words would be
 * updated later after they were read, and a row overshoots if many positions change it by gradients of its old value.
 */

namespace {

/* Sizes that fit into a thread's registers for this width of a row. group: windows that are trained together; words: rows of words that are read
 * at a time. */
template <int VEC> struct pooled_tile {
    static constexpr int group = VEC <= 2 ? 2 : 1, words = VEC == 1 ? 8 : VEC == 2 ? 4 : 2, negatives = VEC <= 2 ? 5 : 3;
};

enum { MOST_WORDS = 2 * WIDEST + pooled_tile<1>::group };

/* The words in the windows of a group, each once, in order. */
struct words {
    uint32_t id[MOST_WORDS];
    uint32_t in[MOST_WORDS]; /* bit g: window g contains the word; bit 16 + g: the word is the first one of window g */
};

/* A group of windows that are trained together. All lanes hold the same values. */
template <int GROUP> struct group {
    uint32_t words;          /* number of different words in its windows */
    uint32_t targets[GROUP]; /* number of words of each window */
};

/* ---- draws ---- */

/* Draws the first NT negatives of each position of a piece into `drawn`, one slot for each lane. If each group of windows drew its own, it would
 * wait for them with most lanes idle. */
template <int NT>
__device__ __forceinline__ void draw_ahead(const hogwild_job &job, const piece &p, uint64_t first, uint32_t entry, uint32_t own, uint32_t *drawn) {
    for (uint32_t i = lane_number(); i < own * NT; i += 32) {
        uint32_t slot = i % NT, which = i / NT;
        drawn[i] = draw_slot(job, first + (p.own[which] >> 8), p.id[entry + which], slot, slot < job.source.negatives);
    }
    __syncwarp();
}

/* ---- words ---- */

/* Returns true if entry `at` is in the window around entry `middle`. */
__device__ __forceinline__ bool has_word(const piece &p, uint32_t middle, uint32_t window, uint32_t at) {
    uint32_t apart = at < middle ? middle - at : at - middle;
    return apart != 0 && apart <= window && p.sentence[at] == p.sentence[middle];
}

/* Lists the words in the windows around kept words i .. i + GROUP - 1 of the piece. begin: the entry of kept word 0. */
template <int GROUP>
__device__ __forceinline__ group<GROUP> list_words(const piece &p, words &w, uint32_t i, uint32_t own, uint32_t entry,
                                                   uint32_t entries, uint32_t widest) {
    group<GROUP> found = {};
    uint32_t first = entry > widest ? entry - widest : 0, stop = entry + GROUP + widest;
    if (stop > entries) stop = entries;
    __syncwarp(); /* waits until all lanes have read the words of the previous group */
    for (uint32_t base = first; base < stop; base += 32) {
        uint32_t at = base + lane_number(), in = 0;
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            bool there = i + g < own && at < stop && has_word(p, entry + g, p.own[i + g] & 255, at);
            unsigned mask = __ballot_sync(ALL_LANES, there);
            if (there) in |= 1u << g | (found.targets[g] + lanes_below(mask) == 0 ? 1u << (16 + g) : 0);
            found.targets[g] += __popc(mask);
        }
        unsigned mask = __ballot_sync(ALL_LANES, in != 0);
        uint32_t place = found.words + lanes_below(mask);
        if (in) w.id[place] = p.id[at], w.in[place] = in;
        found.words += __popc(mask);
    }
    __syncwarp();
    return found;
}

/* Pools the words of each window of a group to the window's vector. */
template <class F, int VEC, int GROUP, int TT, bool ON_HOST>
__device__ __forceinline__ void pool_words(const hogwild_job &job, const group<GROUP> &of, const words &w,
                                           row<VEC> (&vector)[GROUP], hogwild_sums &sums) {
    const example_pool &pool = job.source.pool;
    for (uint32_t j0 = 0; j0 < of.words; j0 += TT) {
        row<VEC> t[TT];
#pragma unroll
        for (int j = 0; j < TT; j++) {
            bool there = j0 + j < of.words;
            read_row<F, VEC, ON_HOST>(t[j], job.target, there ? w.id[j0 + j] : DRAW_NONE, job.quads, there, sums);
        }
#pragma unroll
        for (int j = 0; j < TT; j++) {
            uint32_t in = j0 + j < of.words ? w.in[j0 + j] : 0;
#pragma unroll
            for (int g = 0; g < GROUP; g++)
                if (in >> g & 1) fma_row(vector[g], example_pool_weight(&pool, of.targets[g], in >> (16 + g) & 1 ? 0 : 1), t[j]);
        }
    }
}

/* Adds to each word of the group the gradients of all windows' vectors to which the word belongs. */
template <class F, int VEC, int GROUP, bool ON_HOST>
__device__ __forceinline__ void move_words(const hogwild_job &job, const group<GROUP> &of, const words &w,
                                           const row<VEC> (&moved)[GROUP], uint32_t key, hogwild_sums &sums) {
    const example_pool &pool = job.source.pool;
    for (uint32_t j = 0; j < of.words; j++) {
        row<VEC> gained = zero_row<VEC>();
        uint32_t in = w.in[j];
#pragma unroll
        for (int g = 0; g < GROUP; g++)
            if (in >> g & 1) fma_row(gained, example_pool_share(&pool, of.targets[g], in >> (16 + g) & 1 ? 0 : 1), moved[g]);
        row<VEC> old = zero_row<VEC>();
        if (F::QUADS > 1) read_row<F, VEC, ON_HOST>(old, job.target, w.id[j], job.quads, true, sums); /* again, none was kept */
        add_to_row<F, VEC, ON_HOST>(gained, old, job.target, w.id[j], job.quads, key, sums);
    }
}

/* ---- training ---- */

/* The logit that a lane computes: number `lane` of the group. Each window has 1 + NT logits: of its middle word, then of its negatives. */
struct own_logit {
    uint64_t number; /* corpus position of the logit's window, on which all draws depend */
    uint32_t middle, slot;
    float rate;
    bool on, sampled; /* on: the window exists and contains words */
};

/* Keys of the random bits for rounding the bfloat16 rows that a group of windows changes. */
struct group_keys {
    uint32_t target, context;
};

/* Returns rate x (y - sigmoid(logit)), minus the coefficient, for this lane's logit. any = true: the loss of some window of the group is measured. */
__device__ __forceinline__ float coefficient(const own_logit &own, bool any, hogwild_sums &sums, float logit, bool alive, bool positive) {
    float y = positive ? 1.0f : 0.0f;
    if (any) {
        bool taken = alive && own.sampled;
        sums.loss += taken ? logit_loss(logit, y) : 0.0f;
        sums.sampled_terms += __popc(__ballot_sync(ALL_LANES, taken));
    }
    return alive ? own.rate * gain_of(logit, y) : 0.0f;
}

/* Trains a group of windows. Rows of contexts are requested first, so that they arrive together with the rows of words. drawn_ahead: the first
 * negatives of the first window, drawn by draw_ahead(). */
template <class F, int VEC, bool ON_HOST>
__device__ __forceinline__ void train_group(const hogwild_job &job, const group<pooled_tile<VEC>::group> &of, const words &w, const own_logit &own,
                                            bool any, const uint32_t *drawn_ahead, const group_keys &keys, hogwild_sums &sums) {
    constexpr int GROUP = pooled_tile<VEC>::group, NT = pooled_tile<VEC>::negatives, WIDTH = NT + 1, LOGITS = GROUP * WIDTH;
    const unsigned lane = lane_number(), quads = job.quads, negatives = job.source.negatives;
    row<VEC> vector[GROUP], moved[GROUP];
#pragma unroll
    for (int g = 0; g < GROUP; g++) vector[g] = moved[g] = zero_row<VEC>();
    uint32_t drawn = !own.on ? DRAW_NONE : own.slot == 0 ? own.middle : drawn_ahead[lane / WIDTH * NT + own.slot - 1];
    for (uint32_t n0 = 0;; n0 += NT) {
        uint32_t other[LOGITS];
        row<VEC> c[LOGITS];
        float logits[LOGITS];
#pragma unroll
        for (int k = 0; k < LOGITS; k++) {
            other[k] = __shfl_sync(ALL_LANES, drawn, k);
            read_row<F, VEC, ON_HOST>(c[k], job.context, other[k], quads, other[k] != DRAW_NONE, sums);
        }
        if (n0 == 0) pool_words<F, VEC, GROUP, pooled_tile<VEC>::words, ON_HOST>(job, of, w, vector, sums);
#pragma unroll
        for (int k = 0; k < LOGITS; k++) logits[k] = dot_row(vector[k / WIDTH], c[k]);
        float logit = sum_over_warp(logits);
        float factor = coefficient(own, any, sums, logit, drawn != DRAW_NONE, n0 == 0 && own.slot == 0);
#pragma unroll
        for (int k = 0; k < LOGITS; k++) {
            float f = __shfl_sync(ALL_LANES, factor, k);
            if (other[k] == DRAW_NONE) continue;
            fma_row(moved[k / WIDTH], f, c[k]);
            add_to_row<F, VEC, ON_HOST>(scale_row(f, vector[k / WIDTH]), c[k], job.context, other[k], quads, keys.context, sums);
        }
        if (n0 + NT >= negatives) break;
        uint32_t slot = n0 + NT + own.slot - 1;
        drawn = draw_slot(job, own.number, own.middle, slot, own.on && own.slot > 0 && slot < negatives);
    }
    move_words<F, VEC, GROUP, ON_HOST>(job, of, w, moved, keys.target, sums);
}

/* Trains kept words i .. i + GROUP - 1 of a piece as one group. The piece begins at position `number` of the request, corpus position `first`. */
template <class F, int VEC, bool ON_HOST>
__device__ __forceinline__ void train_windows(const hogwild_job &job, const piece &p, words &w, uint64_t number, uint64_t first, uint32_t i,
                                              uint32_t own, uint32_t entry, uint32_t entries, const uint32_t *drawn_ahead, hogwild_sums &sums) {
    constexpr int GROUP = pooled_tile<VEC>::group, WIDTH = pooled_tile<VEC>::negatives + 1;
    const group<GROUP> of = list_words<GROUP>(p, w, i, own, entry, entries, job.source.window);
    if (of.words == 0) return;
    uint32_t mine = lane_number() / WIDTH, targets = 0, sampled = 0;
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        if (of.targets[g] == 0) continue;
        if (mine == g) targets = of.targets[g];
        sums.examples++;
        sampled += ((number + (p.own[i + g] >> 8)) & job.loss_mask) == 0;
    }
    own_logit at = {};
    at.on = targets != 0;
    if (at.on) {
        uint32_t offset = p.own[i + mine] >> 8;
        at.number = first + offset;
        at.middle = p.id[entry + mine];
        at.slot = lane_number() % WIDTH;
        at.rate = hogwild_rate(job.lr_first, job.lr_slope, number + offset);
        at.sampled = ((number + offset) & job.loss_mask) == 0;
    }
    sums.sampled_examples += sampled;
    group_keys keys = {};
    const uint64_t place = number + (p.own[i] >> 8);
    if (F::QUADS > 1) keys = {place_key(job.target_key, place), place_key(job.context_key, place)};
    train_group<F, VEC, ON_HOST>(job, of, w, at, sampled != 0, drawn_ahead, keys, sums);
}

template <class F, int VEC, bool ON_HOST> __global__ void __launch_bounds__(WARPS * 32) pooled_kernel(const hogwild_job job) {
    constexpr int GROUP = pooled_tile<VEC>::group, NT = pooled_tile<VEC>::negatives;
    __shared__ piece pieces[WARPS];
    __shared__ words listed[WARPS];
    __shared__ uint32_t drawn[WARPS][GRAIN * NT];
    piece &p = pieces[threadIdx.x / 32];
    words &w = listed[threadIdx.x / 32];
    uint32_t *ahead = drawn[threadIdx.x / 32];
    hogwild_sums sums = {};
    stretch s;
    while (take_stretch(job, s)) {
        uint32_t own, found = fill_piece(job, p, s.first, s.first + s.size, &own), entry = found & 0xFFFF, entries = found >> 16;
        draw_ahead<NT>(job, p, s.first, entry, own, ahead);
        for (uint32_t i = 0; i < own; i += GROUP)
            train_windows<F, VEC, ON_HOST>(job, p, w, s.number, s.first, i, own, entry + i, entries, ahead + i * NT, sums);
        __syncwarp();
    }
    sums.pairs = sums.examples;
    sums.sampled_pairs = sums.sampled_examples;
    give_sums(job.totals, &sums);
}

template <class F, int VEC> window_function *kernel_of(bool on_host) {
    constexpr bool FEW = F::QUADS > 1; /* true: fewer kernels are compiled: the kernel for rows that may be on the host also serves rows on the GPU */
    return FEW || on_host ? pooled_kernel<F, VEC, true> : pooled_kernel<F, VEC, FEW>;
}
template <class F> window_function *pooled_kernel_for(uint32_t quads, bool on_host) {
    if (quads <= 32) return kernel_of<F, 1>(on_host);
    if (quads <= 64) return kernel_of<F, 2>(on_host);
    return kernel_of<F, 4>(on_host);
}

} // namespace

int hogwild_pooled_can(const struct hogwild_job *job) {
    return job->source.pool.on && !job->source.per_pair && !job->source.documents && hogwild_windows_can(job);
}

int hogwild_pooled_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream) {
    auto choose = job->halves ? pooled_kernel_for<bfloat16_rows> : pooled_kernel_for<float32_rows>;
    return launch_windows(choose(job->quads, job->on_host), job, warps, processors, stream);
}
