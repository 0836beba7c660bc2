/* hogwild_subwords: lock-free training with sgd, in registers: of windows whose words share the rows of their n-grams, and of those windows pooled to
 * one vector (CBOW) that predict nodes of a tree or contain a document's row (PV-DM).
 *
 *   position -> reads the rows of its word (or of the words around it) once, and pools them to one vector
 *            -> contexts, a few at a time: dot products with the vector, coefficients, updates; sums the vector's gradient
 *            -> adds the gradient to each of the rows
 *
 * A word of 18 rows with 6 words around it and 5 negatives reads 30 rows and adds to 30: 30 KB at 128 columns, where a window of
 * words needs 12 KB. This traffic inside L2 limits the speed, not instructions; a few warps a multiprocessor keep it busy.
 */
#include "hogwild.cuh"

namespace {

/* Number of rows, and of contexts, that are read at a time: as many as fit into a thread's registers for this width of a row. */
template <int VEC> struct tile { static constexpr int rows = 8 / VEC, contexts = 8 / VEC; };

/* A list of words, and the number of all their rows. */
struct word_list {
    const uint32_t *id;
    uint32_t count, rows;
};

__device__ __forceinline__ word_list list_of(const hogwild_job &job, const uint32_t *id, uint32_t count) {
    uint32_t rows = 0;
    for (uint32_t i = lane_number(); i < count; i += 32) rows += (uint32_t)example_rows_of(&job.source, id[i]);
    __syncwarp();
    return {id, count, add_over_warp(rows)};
}

/* Calls take(id, at) for N rows of the words at a time, in order: id[n] is row number at + n of all rows, or DRAW_NONE after a word's last row. If
 * words do not share rows, each word has one row. */
template <int N, bool PATHS, class Take> __device__ __forceinline__ void each_rows(const hogwild_job &job, const word_list &words, Take take) {
    const example_subwords &subwords = job.source.subwords;
    const bool shared = subwords.starts != nullptr;
    uint32_t at = 0;
    for (uint32_t w = 0; w < (shared ? words.count : 1); w++) {
        const uint32_t *listed = shared ? subwords.rows + portable_load64_at(subwords.starts, words.id[w]) : words.id;
        uint32_t rows = shared ? (uint32_t)example_rows_of(&job.source, words.id[w]) : words.count;
        for (uint32_t base = 0; base < rows; base += 32) {
            uint32_t own = DRAW_NONE, behind = base + lane_number();
            if (behind < rows) own = listed[behind];
            for (uint32_t k = 0; k < 32 && base + k < rows; k += N) {
                uint32_t id[N];
#pragma unroll
                for (int n = 0; n < N; n++) id[n] = __shfl_sync(ALL_LANES, own, k + n);
                take(id, at + base + k);
            }
        }
        at += rows;
    }
}

template <class F, int VEC, int N, bool ON_HOST>
__device__ __forceinline__ void read_rows(row<VEC> (&rows)[N], const hogwild_job &job, const table_view &table,
                                          const uint32_t (&id)[N], hogwild_sums &sums) {
#pragma unroll
    for (int n = 0; n < N; n++) read_row<F, VEC, ON_HOST>(rows[n], table, id[n], job.quads, id[n] != DRAW_NONE, sums);
}

/* Returns, in this lane's columns, the vector to which the words' rows are pooled. */
template <class F, int VEC, bool PATHS, bool ON_HOST>
__device__ __forceinline__ row<VEC> pool_rows(const hogwild_job &job, const word_list &words, hogwild_sums &sums) {
    constexpr int N = tile<VEC>::rows;
    const example_pool &pool = job.source.pool;
    row<VEC> vector = zero_row<VEC>();
    each_rows<N, PATHS>(job, words, [&](const uint32_t (&id)[N], uint32_t at) {
        row<VEC> rows[N];
        read_rows<F, VEC, N, ON_HOST>(rows, job, job.target, id, sums);
#pragma unroll
        for (int n = 0; n < N; n++) fma_row(vector, example_pool_weight(&pool, words.rows, at + n), rows[n]);
    });
    return vector;
}

/* Adds to each row its share of the vector's gradient. */
template <class F, int VEC, bool PATHS, bool ON_HOST>
__device__ __forceinline__ void move_rows(const hogwild_job &job, const word_list &words, const row<VEC> &moved, uint32_t key, hogwild_sums &sums) {
    constexpr int N = tile<VEC>::rows;
    const example_pool &pool = job.source.pool;
    each_rows<N, PATHS>(job, words, [&](const uint32_t (&id)[N], uint32_t at) {
        row<VEC> old[N];
        if (F::QUADS > 1) read_rows<F, VEC, N, ON_HOST>(old, job, job.target, id, sums); /* rows are read a second time, since they are not kept in
                                                                                          * registers */
#pragma unroll
        for (int n = 0; n < N; n++) {
            if (id[n] == DRAW_NONE) continue;
            const row<VEC> gained = scale_row(example_pool_share(&pool, words.rows, at + n), moved);
            add_to_row<F, VEC, ON_HOST>(gained, old[n], job.target, id[n], job.quads, key, sums);
        }
    });
}

/* Contexts that one call of train_run() trains with a vector: all contexts of a block or, with PATHS, the nodes on one predicted word's path. */
struct context_run {
    uint32_t count, positives;
    const uint32_t *words; /* without PATHS: the predicted words, which are the positives */
    struct example_path path;
};

/* Returns this lane's context of a block, or DRAW_NONE. slot: its index among positives, then negatives. */
__device__ __forceinline__ uint32_t context_of(const hogwild_job &job, const position &at, const uint32_t *positives,
                                               uint32_t positive_count, uint32_t count, uint32_t slot) {
    if (slot < positive_count) return positives[slot];
    const struct example_own own = example_own(&job.source, positives, positive_count, positives, 0);
    for (uint32_t attempt = 0; slot < count && attempt < DRAW_ATTEMPTS; attempt++) {
        uint32_t id = example_negative(&job.source, job.epoch, at.number, slot - positive_count, attempt);
        if (!example_excludes(&own, id)) return id;
    }
    return DRAW_NONE;
}

/* Returns this lane's context of a run: with PATHS from the path, otherwise by context_of(). */
template <bool PATHS>
__device__ __forceinline__ uint32_t context_in(const hogwild_job &job, const position &at, const context_run &run, uint32_t slot) {
    if constexpr (!PATHS) return context_of(job, at, run.words, run.positives, run.count, slot);
    return slot < run.count ? node_of(job.source, run.path, slot) : DRAW_NONE;
}

/* Returns run number `i` of a block that predicts `count` words. */
template <bool PATHS>
__device__ __forceinline__ context_run run_of(const hogwild_job &job, const position &at, const uint32_t *predicted, uint32_t count, uint32_t i) {
    context_run run = {};
    run.words = predicted;
    run.positives = count;
    run.count = count + (uint32_t)example_window_negatives(&job.source, at.targets);
    if constexpr (PATHS) {
        run.path = example_path(&job.source, predicted[i]);
        run.positives = run.path.count[0];
        run.count = run.path.count[0] + run.path.count[1];
    }
    return run;
}

/* Trains a run of contexts with the vector: updates the contexts, and adds the vector's gradient to `moved`. */
template <class F, int VEC, bool PATHS, bool ON_HOST>
__device__ __forceinline__ void train_run(const hogwild_job &job, const position &at, const context_run &run, const row<VEC> &vector,
                                          row<VEC> &moved, hogwild_sums &sums) {
    constexpr int N = tile<VEC>::contexts;
    for (uint32_t base = 0; base < run.count; base += 32) {
        uint32_t drawn = context_in<PATHS>(job, at, run, base + lane_number());
        __syncwarp();
        for (uint32_t k0 = 0; k0 < 32 && base + k0 < run.count; k0 += N) {
            uint32_t id[N], mine = __shfl_sync(ALL_LANES, drawn, (k0 + lane_number()) & 31);
            row<VEC> c[N];
            float logits[N];
#pragma unroll
            for (int k = 0; k < N; k++) id[k] = __shfl_sync(ALL_LANES, drawn, k0 + k);
            read_rows<F, VEC, N, ON_HOST>(c, job, job.context, id, sums);
#pragma unroll
            for (int k = 0; k < N; k++) logits[k] = dot_row(vector, c[k]);
            float logit = sum_over_warp(logits);
            bool alive = lane_number() < N && mine != DRAW_NONE;
            float factor = coefficient(at, sums, logit, alive, base + k0 + lane_number() < run.positives);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float f = __shfl_sync(ALL_LANES, factor, k);
                if (id[k] == DRAW_NONE) continue;
                fma_row(moved, f, c[k]);
                if (PATHS) f *= hogwild_node_share(job.node_limit, id[k]);
                add_to_row<F, VEC, ON_HOST>(scale_row(f, vector), c[k], job.context, id[k], job.quads, at.context_key, sums);
            }
        }
    }
}

/* Trains one position, which predicts `count` words. */
template <class F, int VEC, bool PATHS, bool ON_HOST>
__device__ __forceinline__ void train_shared(const hogwild_job &job, const position &at, const word_list &words,
                                             const uint32_t *predicted, uint32_t count, hogwild_sums &sums) {
    const row<VEC> vector = pool_rows<F, VEC, PATHS, ON_HOST>(job, words, sums);
    row<VEC> moved = zero_row<VEC>();
    for (uint32_t i = 0; i < (PATHS ? count : 1); i++)
        train_run<F, VEC, PATHS, ON_HOST>(job, at, run_of<PATHS>(job, at, predicted, count, i), vector, moved, sums);
    move_rows<F, VEC, PATHS, ON_HOST>(job, words, moved, at.target_key, sums);
}

template <class F, int VEC, bool PATHS, bool ON_HOST> __global__ void __launch_bounds__(WARPS * 32) subwords_kernel(const hogwild_job job) {
    __shared__ windows pieces[WARPS];
    __shared__ uint32_t middles[WARPS];
    windows &p = pieces[threadIdx.x / 32];
    uint32_t *middle = &middles[threadIdx.x / 32];
    const bool by_window = job.source.subwords.by_window || !job.source.subwords.starts;
    hogwild_sums sums = {};
    each_position<F>(job, p, [&](const position &at) {
        if (lane_number() == 0) *middle = at.middle;
        __syncwarp();
        const word_list words = by_window ? list_of(job, p.targets, at.targets) : list_of(job, middle, 1);
        uint32_t predicted = by_window ? 1 : at.targets;
        sums.examples++;
        sums.pairs += predicted;
        if (at.sampled) sums.sampled_examples++, sums.sampled_pairs += predicted;
        train_shared<F, VEC, PATHS, ON_HOST>(job, at, words, by_window ? middle : p.targets, predicted, sums);
        __syncwarp();
    });
    give_sums(job.totals, &sums);
}

template <class F, int VEC> window_function *kernel_of(bool paths, bool on_host) {
    constexpr bool FEW = F::QUADS > 1 && VEC > 1; /* true: fewer kernels are compiled: the kernel for rows that may be on the host also serves rows
                                                   * on the GPU */
    if (paths) return subwords_kernel<F, VEC, true, true>;
    return FEW || on_host ? subwords_kernel<F, VEC, false, true> : subwords_kernel<F, VEC, false, FEW>;
}
template <class F> window_function *kernel_for(uint32_t quads, bool paths, bool on_host) {
    if (quads <= 32) return kernel_of<F, 1>(paths, on_host);
    if (quads <= 64) return kernel_of<F, 2>(paths, on_host);
    return kernel_of<F, 4>(paths, on_host);
}

} // namespace

int hogwild_subwords_can(const struct hogwild_job *job) {
    const example_source &s = job->source;
    return (s.subwords.starts || (s.pool.on && (s.paths.starts || s.documents))) && hogwild_windows_can(job);
}

int hogwild_subwords_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream) {
    auto choose = job->halves ? kernel_for<bfloat16_rows> : kernel_for<float32_rows>;
    return launch_windows(choose(job->quads, job->source.paths.starts != nullptr, job->on_host), job, warps, processors, stream);
}
