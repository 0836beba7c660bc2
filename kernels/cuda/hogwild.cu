/* hogwild: lock-free training on the GPU, as one call. It chooses one of five kernels for a request, and collects the result.
 *
 *   hogwild_windows.cu    windows of a text with sgd, in registers; skip-gram, and CBOW, whose words are pooled to one vector
 *   hogwild_subwords.cu   windows of a text with sgd, whose words share the rows of their n-grams
 *   hogwild_counts.cu     counts of pairs (GloVe) with adagrad
 *   this file             everything else, by the general kernel; also merges the tables that several GPUs train
 *
 * The host waits for the result. In which order a kernel changes rows is not defined (kernels/hogwild.h).
 */
#include "hogwild.cuh"

#include <stdlib.h>

/* ==== the general kernel ====
 *
 * Lock-free training of everything that the other kernels cannot do: lists and adjacency,
 * adagrad, weight decay, distinct negatives, wide windows, rows of more than 512 columns.
 *
 *   each warp: the next example -> ids of its rows in scratch -> its blocks, one after the other:
 *     dot products    of every target with every context, CONTEXTS at a time; their coefficients are stored in scratch
 *     column by column, four a lane: the targets' gradients, from old contexts; then the contexts' gradients
 *                     and updates; then updates of the targets
 *
 * The vector of pooled targets is not stored but computed again, column by column, wherever it is needed: so the targets' rows are read once for each
 * CONTEXTS contexts, and once for their update.
 *
 * A lane works on the same columns of all rows, so that it need not wait for other lanes. Each row of a block is read twice. Negatives are drawn in
 * the CPU's order, and the same draws are rejected.
 */

namespace {

enum {
    CONTEXTS = HOGWILD_CONTEXTS,
    TARGETS = 4 /* targets that are trained at a time; 1 if blocks have one target */
};

/* A block of an example; its arrays are in the warp's scratch. */
struct block {
    float4 *gradients;                   /* [(t + CONTEXTS) x 32] gradients of the current quads, one for each lane, which only that lane reads and
                                          * writes. Not used for pools */
    float *factors;                      /* coefficients: [t x c]; for pooled targets [c] */
    float *rates;                        /* [c + t] learning rates of contexts, then of targets; used only if rows count their updates */
    uint32_t *targets, *contexts;        /* ids of rows; targets[] contains those of all blocks of a window */
    uint32_t t, positives, c, negatives; /* t: number of targets; c: number of contexts, the first `positives` of which are positive; negatives:
                                          * number of slots for negatives */
    uint32_t listed;                     /* number of contexts before the negatives: the positives or, with paths, all nodes */
    uint32_t predicted;                  /* number of words or items that the block predicts: the number of positives, except with paths */
    uint64_t example;                    /* number of the block's example; all draws depend on it */
    uint32_t slot;                       /* slot of the block's first negative */
    float rate;
    uint32_t target_key, context_key; /* keys of the random bits for rounding bfloat16 rows */
    bool sampled;
};

/* ---- negatives ---- */

__device__ struct example_own own_of(const hogwild_job &job, const block &b) {
    return example_own(&job.source, b.contexts, b.positives, b.targets, b.t);
}

/* Draws a block's negatives, one slot for each lane. A slot for which no draw is allowed stays empty. */
__device__ void add_negatives(const hogwild_job &job, block &b) {
    const struct example_own own = own_of(job, b);
    for (uint32_t base = 0; base < b.negatives; base += 32) {
        uint32_t i = base + lane_number(), id = DRAW_NONE;
        for (uint32_t attempt = 0; i < b.negatives && attempt < DRAW_ATTEMPTS && id == DRAW_NONE; attempt++) {
            id = example_negative(&job.source, job.epoch, b.example, b.slot + i, attempt);
            if (example_excludes(&own, id)) id = DRAW_NONE;
        }
        __syncwarp();
        unsigned mask = __ballot_sync(ALL_LANES, id != DRAW_NONE);
        if (id != DRAW_NONE) b.contexts[b.c + lanes_below(mask)] = id;
        b.c += __popc(mask);
        __syncwarp();
    }
}

/* Draws a block's distinct negatives, slot after slot; for each slot every lane makes one attempt. A negative must differ from all earlier ones. */
__device__ void add_distinct_negatives(const hogwild_job &job, block &b) {
    const struct example_own own = own_of(job, b);
    for (uint32_t i = 0; i < b.negatives; i++) {
        for (uint32_t base = 0; base < DRAW_ATTEMPTS; base += 32) {
            uint32_t id = example_negative(&job.source, job.epoch, b.example, b.slot + i, base + lane_number());
            bool good = !example_excludes(&own, id) && !example_among(id, b.contexts + b.positives, b.c - b.positives);
            unsigned mask = __ballot_sync(ALL_LANES, good);
            if (!mask) continue;
            uint32_t chosen = __shfl_sync(ALL_LANES, id, __ffs(mask) - 1);
            if (lane_number() == 0) b.contexts[b.c] = chosen;
            b.c++;
            __syncwarp();
            break;
        }
    }
}

/* ---- updates ---- */

__device__ float move_of(const hogwild_job &job, char *state, uint32_t column, float rate, float gradient) {
    if (!job.adagrad) return -rate * gradient;
    float square = gradient * gradient, sum = add_column(state, column, square) + square;
    return -rule_adagrad_move(rate, job.eps, gradient, sum);
}

__device__ float4 move_quad_of(const hogwild_job &job, char *state, uint32_t quad, float rate, float4 gradient) {
    float4 move;
    move.x = move_of(job, state, 4 * quad, rate, gradient.x);
    move.y = move_of(job, state, 4 * quad + 1, rate, gradient.y);
    move.z = move_of(job, state, 4 * quad + 2, rate, gradient.z);
    move.w = move_of(job, state, 4 * quad + 3, rate, gradient.w);
    return move;
}

/* Does the same as move_quad_of() if adagrad's sums are bfloat16, which are changed in whole steps (hogwild.cuh). */
__device__ float4 move_quad_of_halves(const hogwild_job &job, char *state, uint32_t quad, float rate, float4 gradient, bool on_host, uint32_t key) {
    float4 sum = read_quad_past_cache<bfloat16_rows>(state, quad, true);
    float4 square = make_float4(gradient.x * gradient.x, gradient.y * gradient.y, gradient.z * gradient.z, gradient.w * gradient.w);
    gain_quad<bfloat16_rows, true>(state, quad, sum, square, on_host, round_mix(key));
    return make_float4(
        -rule_adagrad_move(rate, job.eps, gradient.x, sum.x + square.x), -rule_adagrad_move(rate, job.eps, gradient.y, sum.y + square.y),
        -rule_adagrad_move(rate, job.eps, gradient.z, sum.z + square.z), -rule_adagrad_move(rate, job.eps, gradient.w, sum.w + square.w));
}

/* Updates a quad of a row. With adagrad, one atomic operation adds to the sums and returns their old values. key: seeds the random bits for
 * rounding bfloat16 at this place. */
template <class F>
__device__ void move_quad(const hogwild_job &job, const table_view &rows, uint32_t id, uint32_t quad, float rate, float4 gradient, uint32_t key) {
    char *state = job.adagrad ? table_slot(rows, id) : nullptr, *weights = weights_of<true>(rows, id);
    float4 old = make_float4(0, 0, 0, 0), move;
    if (F::QUADS > 1) key = row_key(key, id);
    if (F::QUADS > 1 || job.decay != 0) old = read_quad_past_cache<F>(weights, quad, true);
    if (job.decay != 0) gradient = fma4(job.decay, old, gradient);
    if (F::QUADS > 1 && job.state_halves)
        move = move_quad_of_halves(job, state, quad, rate, gradient, id >= rows.state.hot_rows, key);
    else
        move = move_quad_of(job, state, quad, rate, gradient);
    gain_quad<F, true>(weights, quad, old, move, is_on_host(rows, id), key);
}

/* Returns the learning rate of place i: contexts have the first places, then targets. */
__device__ float rate_of(const hogwild_job &job, const block &b, uint32_t i) {
    return job.counted ? b.rates[i] : b.rate;
}

/* Returns the learning rate of a context. With sgd, a tree's node has a share of the learning rate (hogwild_node_share). */
__device__ float context_rate(const hogwild_job &job, const block &b, uint32_t k) {
    bool share = job.source.paths.starts && !job.adagrad;
    return rate_of(job, b, k) * (share ? hogwild_node_share(job.node_limit, b.contexts[k]) : 1.0f);
}

__device__ uint32_t parts_of(uint32_t count, uint32_t size) {
    return (count + size - 1) / size;
}

/* Returns how often a row on the host crosses the link for one place: it is read `reads` times and written once. With adagrad, its sum crosses in
 * both directions, too. */
__device__ uint32_t crossings(const hogwild_job &job, const table_view &rows, uint32_t id, uint32_t reads) {
    uint32_t state = job.adagrad && id >= rows.state.hot_rows ? 2 : 0;
    return state + (is_on_host(rows, id) ? reads + 1 + (job.decay != 0) : 0);
}

/* Counts an update of this lane's row if `on` is true; returns the number of earlier updates. If several lanes have the same row, they count in
 * the order of lanes. */
__device__ uint32_t count_update(const table_view &rows, uint32_t id, bool is_target, bool on) {
    unsigned long long row = on ? (unsigned long long)is_target << 32 | id : ~0ull;
    unsigned same = __match_any_sync(ALL_LANES, row);
    int leader = __ffs(same) - 1;
    uint32_t updates = 0;
    if (on && (int)lane_number() == leader) updates = atomicAdd(table_updates(rows, id), (uint32_t)__popc(same));
    return __shfl_sync(ALL_LANES, updates, leader) + lanes_below(same);
}

/* Counts an update of each place's row, and counts the rows that cross the link. */
template <bool POOLED> __device__ void count_places(const hogwild_job &job, const block &b, hogwild_sums &sums) {
    uint32_t crossed = 0, parts = parts_of(b.c, CONTEXTS);
    uint32_t of_context = POOLED ? 2 : b.t + parts_of(b.t, b.t == 1 ? 1 : TARGETS), of_target = POOLED ? parts + 1 : 2 * parts;
    if (!job.counted && !job.on_host) return;
    for (uint32_t base = 0; base < b.c + b.t; base += 32) {
        uint32_t i = base + lane_number();
        bool on = i < b.c + b.t, is_target = i >= b.c;
        const table_view &rows = is_target ? job.target : job.context;
        uint32_t id = !on ? DRAW_NONE : is_target ? b.targets[i - b.c] : b.contexts[i];
        if (on) crossed += crossings(job, rows, id, is_target ? of_target : of_context);
        if (!job.counted) continue;
        uint32_t updates = count_update(rows, id, is_target, on);
        if (on) b.rates[i] = (float)rule_decayed(b.rate, job.lr_decay, updates);
    }
    sums.host_rows += add_over_warp(crossed);
    __syncwarp();
}

/* ---- training ---- */

/* Returns a quad of the vector of the block's pooled targets. */
template <class F> __device__ float4 pool_quad(const hogwild_job &job, const block &b, uint32_t quad) {
    float4 sum = make_float4(0, 0, 0, 0);
    for (uint32_t i = 0; i < b.t; i++) {
        float weight = example_pool_weight(&job.source.pool, b.t, i);
        sum = fma4(weight, read_quad_past_cache<F>(weights_of<true>(job.target, b.targets[i]), quad, true), sum);
    }
    return sum;
}

/* Computes the dot products of all contexts of the block with one target, or with the pooled vector, and the coefficients from these. */
template <class F, bool POOLED> __device__ void make_factors(const hogwild_job &job, const block &b, uint32_t target, hogwild_sums &sums) {
    const char *row = weights_of<true>(job.target, b.targets[target]);
    float *factors = b.factors + (uint64_t)target * b.c;
    for (uint32_t first = 0; first < b.c; first += CONTEXTS) {
        const char *contexts[CONTEXTS];
        float dots[CONTEXTS];
#pragma unroll
        for (int k = 0; k < CONTEXTS; k++) {
            contexts[k] = weights_of<true>(job.context, b.contexts[first + k < b.c ? first + k : first]);
            dots[k] = 0;
        }
        for (uint32_t quad = lane_number(); quad < job.quads; quad += 32) {
            float4 own = POOLED ? pool_quad<F>(job, b, quad) : read_quad_past_cache<F>(row, quad, true);
#pragma unroll
            for (int k = 0; k < CONTEXTS; k++) dots[k] = dot4(own, read_quad_past_cache<F>(contexts[k], quad, first + k < b.c), dots[k]);
        }
        __syncwarp();
        float dot = sum_over_warp(dots);
        uint32_t mine = first + lane_number();
        if (lane_number() >= CONTEXTS || mine >= b.c) continue;
        float y = mine < b.positives ? 1.0f : 0.0f;
        factors[mine] = -gain_of(dot, y);
        if (b.sampled) sums.loss += logit_loss(dot, y);
    }
}

/* Computes one quad of the gradient of every target, for N targets at a time. */
template <class F, int N> __device__ void sum_targets(const hogwild_job &job, const block &b, uint32_t quad) {
    for (uint32_t first = 0; first < b.t; first += N) {
        float4 gradient[N];
#pragma unroll
        for (int i = 0; i < N; i++) gradient[i] = make_float4(0, 0, 0, 0);
        for (uint32_t k = 0; k < b.c; k++) {
            float4 row = read_quad_past_cache<F>(weights_of<true>(job.context, b.contexts[k]), quad, true);
#pragma unroll
            for (int i = 0; i < N; i++)
                if (first + i < b.t) gradient[i] = fma4(b.factors[(uint64_t)(first + i) * b.c + k], row, gradient[i]);
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            if (first + i < b.t) b.gradients[(first + i) * 32 + lane_number()] = gradient[i];
    }
}

/* Computes one quad of every context's gradient, and updates that quad of the context. */
template <class F> __device__ void move_contexts(const hogwild_job &job, const block &b, uint32_t quad) {
    for (uint32_t first = 0; first < b.c; first += CONTEXTS) {
        float4 gradient[CONTEXTS];
#pragma unroll
        for (int k = 0; k < CONTEXTS; k++) gradient[k] = make_float4(0, 0, 0, 0);
        for (uint32_t i = 0; i < b.t; i++) {
            float4 row = read_quad_past_cache<F>(weights_of<true>(job.target, b.targets[i]), quad, true);
#pragma unroll
            for (int k = 0; k < CONTEXTS; k++)
                if (first + k < b.c) gradient[k] = fma4(b.factors[(uint64_t)i * b.c + first + k], row, gradient[k]);
        }
#pragma unroll
        for (int k = 0; k < CONTEXTS; k++) b.gradients[(b.t + k) * 32 + lane_number()] = gradient[k];
#pragma unroll 1
        for (uint32_t k = first; k < b.c && k < first + CONTEXTS; k++)
            move_quad<F>(job, job.context, b.contexts[k], quad, context_rate(job, b, k),
                         b.gradients[(b.t + k - first) * 32 + lane_number()], b.context_key + k);
    }
}

/* Trains one quad of all rows of a block whose targets are not pooled. */
template <class F> __device__ void move_targets(const hogwild_job &job, const block &b, uint32_t quad) {
    if (b.t == 1)
        sum_targets<F, 1>(job, b, quad);
    else
        sum_targets<F, TARGETS>(job, b, quad);
    move_contexts<F>(job, b, quad);
#pragma unroll 1
    for (uint32_t i = 0; i < b.t; i++)
        move_quad<F>(job, job.target, b.targets[i], quad, rate_of(job, b, b.c + i), b.gradients[i * 32 + lane_number()], b.target_key + i);
}

/* Trains one quad of all rows of a block whose targets are pooled. */
template <class F> __device__ void move_pooled(const hogwild_job &job, const block &b, uint32_t quad) {
    float4 vector = pool_quad<F>(job, b, quad), gradient = make_float4(0, 0, 0, 0);
    for (uint32_t k = 0; k < b.c; k++)
        gradient = fma4(b.factors[k], read_quad_past_cache<F>(weights_of<true>(job.context, b.contexts[k]), quad, true), gradient);
#pragma unroll 1
    for (uint32_t k = 0; k < b.c; k++)
        move_quad<F>(job, job.context, b.contexts[k], quad, context_rate(job, b, k), scale4(b.factors[k], vector), b.context_key + k);
#pragma unroll 1
    for (uint32_t i = 0; i < b.t; i++)
        move_quad<F>(job, job.target, b.targets[i], quad, rate_of(job, b, b.c + i),
                     scale4(example_pool_share(&job.source.pool, b.t, i), gradient), b.target_key + i);
}

template <class F, bool POOLED> __device__ void move_rows(const hogwild_job &job, const block &b) {
    for (uint32_t quad = lane_number(); quad < job.quads; quad += 32)
        if constexpr (POOLED)
            move_pooled<F>(job, b, quad);
        else
            move_targets<F>(job, b, quad);
    __syncwarp();
}

/* Trains a block whose targets and positives are listed already: draws its negatives, then updates all its rows. */
template <class F, bool POOLED> __device__ void train_block(const hogwild_job &job, block &b, hogwild_sums &sums) {
    b.c = b.listed;
    if (job.source.distinct)
        add_distinct_negatives(job, b);
    else
        add_negatives(job, b);
    const uint32_t vectors = POOLED ? 1 : b.t;
    for (uint32_t i = 0; i < vectors; i++) make_factors<F, POOLED>(job, b, i, sums);
    count_places<POOLED>(job, b, sums);
    __syncwarp();
    move_rows<F, POOLED>(job, b);
    uint64_t pairs = (uint64_t)vectors * b.predicted;
    sums.examples++;
    sums.pairs += pairs;
    if (b.sampled) {
        sums.sampled_examples++;
        sums.sampled_pairs += pairs;
        sums.sampled_terms += (uint64_t)vectors * b.c;
    }
}

/* ---- windows ---- */

/* Lists up to `wanted` kept words of a window at positions from `at` to `stop`, after its middle (BY = 1) or before it (BY = -1), in the order of
 * the text. With BY = -1 the nearest word is written to targets[wanted - 1]. Returns how many words it lists. */
template <int BY>
__device__ uint32_t list_side(const hogwild_job &job, uint32_t *targets, uint64_t sentence, uint64_t at, uint64_t stop, uint32_t wanted) {
    uint32_t found = 0;
    while (at != stop && found < wanted) {
        const kept_words kept = words_at<BY>(job.source, sentence, job.epoch, at, stop);
        uint32_t rank = found + lanes_below(kept.lanes);
        if (kept.id != DRAW_NONE && rank < wanted) targets[BY < 0 ? wanted - 1 - rank : rank] = kept.id;
        found += __popc(kept.lanes);
        uint64_t left = BY < 0 ? at - stop : stop - at;
        at = left < 32 ? stop : BY < 0 ? at - 32 : at + 32;
    }
    return found < wanted ? found : wanted;
}

/* Lists the kept words of a window in the order of the text. The words before the middle word end at words[window - 1]; the words after it begin
 * at words[window]. Returns their number; *first: index in words[] of the first one. */
__device__ uint32_t list_words(const hogwild_job &job, const block &b, const struct strip &strip, uint64_t sentence,
                               uint32_t *words, uint32_t *first) {
    uint32_t window = strip_window(&job.source, b.example, job.epoch);
    uint32_t before = list_side<-1>(job, words, sentence, b.example, strip.start, window);
    uint32_t after = list_side<1>(job, words + window, sentence, b.example + 1, strip.end, window);
    *first = window - before;
    __syncwarp();
    return before + after;
}

/* Lists the rows of a word as targets, from index `at` on; returns their number. */
__device__ uint32_t list_rows_of(const hogwild_job &job, const block &b, uint32_t word, uint32_t at) {
    const struct example_subwords &subwords = job.source.subwords;
    uint64_t from = portable_load64_at(subwords.starts, word);
    uint32_t count = (uint32_t)example_rows_of(&job.source, word);
    for (uint32_t i = lane_number(); i < count; i += 32) b.targets[at + i] = portable_load32_at(subwords.rows, from + i);
    __syncwarp();
    return count;
}

/* Stores the contexts that predict words[count] in the block: the words themselves, or the nodes of their paths. */
__device__ void list_predicted(const hogwild_job &job, block &b, const uint32_t *words, uint32_t count) {
    const example_source &s = job.source;
    b.predicted = b.positives = b.listed = count;
    if (!s.paths.starts) {
        for (uint32_t i = lane_number(); i < count; i += 32) b.contexts[i] = words[i];
        __syncwarp();
        return;
    }
    b.listed = 0;
    for (int code = 0; code < 2; code++) {
        for (uint32_t w = 0; w < count; w++) {
            const struct example_path path = example_path(&s, words[w]);
            for (uint32_t i = lane_number(); i < path.count[code]; i += 32)
                b.contexts[b.listed + i] = portable_load32_at(s.paths.nodes, path.first[code] + i);
            b.listed += path.count[code];
        }
        if (!code) b.positives = b.listed;
    }
    __syncwarp();
}

/* Lists the targets of a window if each word has one row: the words around the middle and, with documents, the document's row.
 * Also lists the block's contexts before the negatives. Returns the number of targets. */
__device__ uint32_t list_plain(const hogwild_job &job, block &b, const struct strip &strip, uint64_t sentence, uint32_t middle) {
    const example_source &s = job.source;
    uint32_t first, count = list_words(job, b, strip, sentence, b.targets, &first);
    list_predicted(job, b, &middle, 1);
    if (s.documents && lane_number() == 0) b.targets[first + count] = example_document(&s, sentence);
    __syncwarp();
    count += s.documents;
    b.targets += first;
    b.t = s.per_pair ? 1 : count;
    b.negatives = s.negatives;
    return count;
}

/* Does the same as list_plain() if words share rows. The window's words are first written to the end of the memory for targets; rows of earlier
 * words do not overwrite them, since each word has memory for the most rows that any word has. If the targets are the rows of the middle word, the
 * window's words are written to the end of the memory for contexts. */
__device__ uint32_t list_shared(const hogwild_job &job, block &b, const struct strip &strip, uint64_t sentence, uint32_t middle) {
    const example_source &s = job.source;
    int by_window = s.subwords.by_window;
    uint32_t *words = by_window ? b.targets + job.most_words - 2 * s.window : b.contexts + job.most_contexts - 2 * s.window, first;
    uint32_t count = list_words(job, b, strip, sentence, words, &first);
    b.t = 0;
    if (!count) return 0;
    for (uint32_t i = 0; i < count && by_window; i++) b.t += list_rows_of(job, b, words[first + i], b.t);
    if (!by_window) b.t = list_rows_of(job, b, middle, 0);
    list_predicted(job, b, by_window ? &middle : words + first, by_window ? 1 : count);
    b.negatives = (uint32_t)example_window_negatives(&s, count);
    return b.t;
}

__device__ uint32_t list_window(const hogwild_job &job, block &b) {
    const example_source &s = job.source;
    uint64_t sentence = sentence_of(s, b.example);
    const struct strip strip = strip_of(&s, sentence, job.epoch);
    struct strip_draws draws = strip_draws();
    uint32_t middle = strip_word(&s, &strip, b.example, job.epoch, &draws);
    if (middle == DRAW_NONE) return 0;
    return s.subwords.starts ? list_shared(job, b, strip, sentence, middle) : list_plain(job, b, strip, sentence, middle);
}

/* ---- lists and adjacency ---- */

/* Draws the block's positives one after the other. Since positives differ, all lanes compare a new one with those drawn before. */
__device__ void add_positives(const hogwild_job &job, block &b, const struct example_row &row) {
    const example_source &s = job.source;
    for (uint32_t j = 0; j < b.positives; j++) {
        struct draw4 drawn = draw_at(s.seed, DRAW_POSITIVE, b.example, job.epoch, j / 2);
        uint64_t place = example_positive_place(&row, draw_half(drawn, j), j);
        bool taken = false;
        for (uint32_t i = lane_number(); i < j && !row.replacement; i += 32) taken |= b.contexts[i] == (uint32_t)place;
        if (__any_sync(ALL_LANES, taken)) place = example_positive_last(&row, j);
        if (lane_number() == 0) b.contexts[j] = (uint32_t)place;
        __syncwarp();
    }
    for (uint32_t j = lane_number(); j < b.positives; j += 32) b.contexts[j] = example_other(&s, &row, b.contexts[j]);
}

/* Lists the targets and positives of a list or line that is split into positives and a pool. */
__device__ void add_split(const hogwild_job &job, block &b, const struct example_row &row) {
    const struct shuffle order = example_split(&job.source, &row, b.example, job.epoch);
    for (uint32_t i = lane_number(); i < b.t; i += 32) b.targets[i] = example_split_target(&job.source, &row, &order, i);
    for (uint32_t j = lane_number(); j < b.positives; j += 32) example_put_positive(&job.source, &row, shuffle_at(&order, j), j, b.contexts, NULL);
}

/* Lists the targets and positives of a list or an adjacency line. Returns the number of targets; 0: no example is made of the line. */
__device__ uint32_t list_row(const hogwild_job &job, block &b) {
    const example_source &s = job.source;
    uint64_t number = example_is_position(&s) ? sentence_of(s, b.example) : b.example;
    struct example_row row = example_row(&s, number, b.example, job.epoch);
    if (!row.wanted) return 0;
    b.t = (uint32_t)row.targets;
    b.positives = b.listed = b.predicted = (uint32_t)row.wanted;
    b.negatives = (uint32_t)row.negatives;
    if (lane_number() == 0 && !row.split) b.targets[0] = portable_load32(s.ids + row.start + row.target);
    if (row.split)
        add_split(job, b, row);
    else if (s.positives)
        add_positives(job, b, row);
    else
        for (uint32_t i = lane_number(); i < b.positives; i += 32) b.contexts[i] = example_other(&s, &row, i);
    __syncwarp();
    return b.t;
}

/* ---- all ---- */

template <class F, bool POOLED> __global__ void __launch_bounds__(WARPS * 32) rows_kernel(const hogwild_job job) {
    uint32_t *scratch = job.scratch + (blockIdx.x * (uint64_t)WARPS + threadIdx.x / 32) * job.scratch_words;
    hogwild_sums sums = {};
    for (;;) {
        uint64_t number = take_piece(job.totals);
        if (number >= job.count) break;
        block b = {};
        b.gradients = (float4 *)scratch;
        b.factors = (float *)(b.gradients + 32 * ((uint64_t)job.most_vectors + CONTEXTS));
        b.rates = b.factors + (uint64_t)job.most_vectors * job.most_contexts;
        b.contexts = (uint32_t *)(b.rates + job.most_contexts + job.most_targets);
        b.targets = b.contexts + job.most_contexts;
        b.example = job.source.shuffle ? shuffle_at(&job.order, job.first + number) : job.first + number;
        b.rate = hogwild_rate(job.lr_first, job.lr_slope, number);
        if (job.adagrad && !job.counted) b.rate = (float)rule_decayed(b.rate, job.lr_decay, job.global_step + number);
        if (F::QUADS > 1) b.target_key = place_key(job.target_key, number), b.context_key = place_key(job.context_key, number);
        b.sampled = (number & job.loss_mask) == 0;
        if (example_held_out(&job.source, b.example)) continue;
        uint32_t targets = job.source.mode == EXAMPLE_WINDOW ? list_window(job, b) : list_row(job, b);
        __syncwarp();
        for (uint32_t i = 0; i < targets; i += b.t, b.targets += b.t, b.slot += b.negatives) train_block<F, POOLED>(job, b, sums);
    }
    give_sums(job.totals, &sums);
}

template <class F> auto kernel_of(const hogwild_job *job) {
    return job->source.pool.on ? rows_kernel<F, true> : rows_kernel<F, false>;
}

} // namespace

int hogwild_rows_launch(const struct hogwild_job *job, uint64_t warps, cudaStream_t stream) {
    uint64_t blocks = warps / WARPS;
    void (*kernel)(const hogwild_job) = job->halves ? kernel_of<bfloat16_rows>(job) : kernel_of<float32_rows>(job);
    kernel<<<blocks ? (unsigned)blocks : 1, 32 * (unsigned)(blocks ? WARPS : warps), 0, stream>>>(*job);
    CK_LAUNCH("rows_kernel");
    return 0;
}

/* ==== merging copies of a table ====
 *
 * Merges the tables that several GPUs train lock-free (kernels/hogwild.h). Each GPU merges a share of the rows: it reads them from the memory of all
 * GPUs, over NVLink or PCIe, and writes the merged rows to all. So each copy of a row crosses the link once in each direction.
 */

/* The share of rows, in all copies of a table, that one GPU merges. */
struct share {
    char *rows[COPIES_MOST]; /* address of row 0 in each copy */
    uint64_t stride, first, end;
    float4 *base; /* [end - first][quads] the rows as they were after the last merge */
    uint32_t quads;
    unsigned count;
};

struct backend_copies {
    struct backend *backends[COPIES_MOST];
    struct share shares[COPIES_MOST];
    unsigned count;
    bool halves;
};

namespace {

enum { THREADS = 256 };

template <bool HALVES> __device__ float4 read_values(const char *row, uint32_t quad) {
    return HALVES ? values_of(((const uint2 *)row)[quad]) : ((const float4 *)row)[quad];
}
template <bool HALVES> __device__ void write_values(char *row, uint32_t quad, const float *x) {
    if (HALVES) {
        uint32_t first = bfloat16_nearest(x[0]) | (uint32_t)bfloat16_nearest(x[1]) << 16;
        ((uint2 *)row)[quad] = make_uint2(first, bfloat16_nearest(x[2]) | (uint32_t)bfloat16_nearest(x[3]) << 16);
    } else {
        ((float4 *)row)[quad] = make_float4(x[0], x[1], x[2], x[3]);
    }
}

/* Merges four columns of a row in each thread. With `begin`, copies the first table's rows to the others instead. */
template <bool HALVES> __global__ void __launch_bounds__(THREADS) merge_rows(const __grid_constant__ struct share s, bool begin) {
    uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x, offset = (s.first + at / s.quads) * s.stride;
    uint32_t quad = (uint32_t)(at % s.quads);
    if (at >= (s.end - s.first) * s.quads) return;
    alignas(16) float rows[COPIES_MOST * COPIES_GROUP], base[COPIES_GROUP];
    if (begin) {
        *(float4 *)base = read_values<HALVES>(s.rows[0] + offset, quad);
    } else {
        for (unsigned r = 0; r < s.count; r++) *(float4 *)(rows + r * COPIES_GROUP) = read_values<HALVES>(s.rows[r] + offset, quad);
        *(float4 *)base = s.base[at];
        copies_merge_group(base, rows, s.count);
    }
    for (unsigned r = 0; r < s.count; r++) write_values<HALVES>(s.rows[r] + offset, quad, base);
    s.base[at] = HALVES ? read_values<HALVES>(s.rows[0] + offset, quad) : *(float4 *)base;
}

int merge(struct backend_copies *c, bool begin) {
    for (unsigned g = 0; g < c->count; g++) {
        const struct share &s = c->shares[g];
        uint64_t threads = (s.end - s.first) * s.quads;
        if (!threads) continue;
        CK(cudaSetDevice(c->backends[g]->device));
        (c->halves ? merge_rows<true> : merge_rows<false>)<<<blocks_for(threads, THREADS), THREADS, 0, c->backends[g]->compute>>>(s, begin);
        CK_LAUNCH("merge_rows");
    }
    for (unsigned g = 0; g < c->count; g++) {
        CK(cudaSetDevice(c->backends[g]->device));
        CK(cudaStreamSynchronize(c->backends[g]->compute));
    }
    return 0;
}

/* Lets each GPU read and write the memory of the others. Returns 1 if the machine cannot do that. */
int connect(struct backend *const *backends, unsigned count) {
    for (unsigned a = 0; a < count; a++)
        for (unsigned b = 0; b < count; b++) {
            int can = 1;
            if (backends[a]->device == backends[b]->device) continue;
            CK(cudaDeviceCanAccessPeer(&can, backends[a]->device, backends[b]->device));
            if (!can) return 1;
            CK(cudaSetDevice(backends[a]->device));
            cudaError_t error = cudaDeviceEnablePeerAccess(backends[b]->device, 0);
            if (error == cudaErrorPeerAccessAlreadyEnabled) cudaGetLastError();
            else if (error != cudaSuccess) return cuda_failed(error, "cudaDeviceEnablePeerAccess");
        }
    return 0;
}

int open_shares(struct backend_copies *c, struct backend_table *const *tables) {
    const struct table_spec *spec = &tables[0]->spec;
    uint64_t rows = table_row_count(spec);
    for (unsigned g = 0; g < c->count; g++) {
        struct share *s = &c->shares[g];
        s->count = c->count;
        s->quads = tables[0]->view.quads;
        s->stride = tables[0]->view.weights.stride;
        s->first = spec->first_row + rows * g / c->count;
        s->end = spec->first_row + rows * (g + 1) / c->count;
        for (unsigned r = 0; r < c->count; r++) s->rows[r] = tables[r]->view.weights.hot;
        CK(cudaSetDevice(c->backends[g]->device));
        if (gpu_take(c->backends[g], (void **)&s->base, (s->end - s->first) * s->quads * sizeof *s->base, "copies of a table")) return -1;
    }
    return 0;
}

} // namespace

int cuda_copies_open(struct backend *const *backends, struct backend_table *const *tables, unsigned count, struct backend_copies **out) {
    *out = NULL;
    for (unsigned r = 0; r < count; r++)
        if (tables[r]->view.weights.hot_rows < tables[r]->view.rows) return 1;
    int cannot = connect(backends, count);
    if (cannot) return cannot;
    struct backend_copies *c = (struct backend_copies *)mem_zalloc(1, sizeof *c, "copies of a table");
    *out = c;
    if (!c) return -1;
    c->count = count;
    c->halves = has_halves(&tables[0]->spec.layout);
    for (unsigned r = 0; r < count; r++) {
        c->backends[r] = backends[r];
        if (cuda_drain(backends[r])) return -1;
    }
    return open_shares(c, tables) || merge(c, true) ? -1 : 0;
}

int cuda_copies_merge(struct backend_copies *copies) {
    return merge(copies, false);
}

void cuda_copies_close(struct backend_copies *c) {
    for (unsigned g = 0; c && g < c->count; g++) {
        struct share *s = &c->shares[g];
        if (!s->base) continue;
        cudaSetDevice(c->backends[g]->device);
        gpu_give(c->backends[g], s->base, (s->end - s->first) * s->quads * sizeof *s->base);
    }
    free(c);
}

namespace {

struct hogwild_memory {
    hogwild_totals *totals; /* mapped pinned memory: the kernel's result, which the host reads after the kernel */
    hogwild_totals *device_totals;
    gpu_array scratch;
    drawn_walks walks; /* the walks of the current part of a request, if the corpus is a graph */
};

/* Returns which of a table's weights and state have rows in a file, as bits of hogwild_part: `weights` is the number of the bit for its weights;
 * the next bit is for its state. */
unsigned parts_in_file(const backend_table *t, unsigned weights) {
    const part_view *parts[2] = {&t->view.weights, &t->view.state};
    unsigned bits = 0;
    for (unsigned i = 0; i < (t->view.slots ? 2u : 1u); i++)
        if (!parts[i]->home && parts[i]->hot_rows < t->view.rows) bits |= 1u << (weights + i);
    return bits;
}

int check_request(const hogwild_request *r) {
    char why[HOGWILD_WHY];
    hogwild_asked asked = {};
    asked.rule = *r->rule;
    asked.loss = r->loss;
    asked.columns = r->target->spec.layout.dim;
    asked.halves = (int)r->target->spec.layout.halves;
    asked.gpu = 1;
    asked.frozen = r->target->frozen || r->context->frozen;
    asked.in_file = parts_in_file(r->target, HOGWILD_TARGET) | parts_in_file(r->context, HOGWILD_CONTEXT);
    return hogwild_refuses(&asked, why) ? fail("%s", why) : 0;
}

int open_memory(backend *backend, hogwild_memory **out) {
    if (!backend->hogwild) {
        hogwild_memory *m = (hogwild_memory *)mem_zalloc(1, sizeof *m, "lock-free training");
        if (!m) return -1;
        backend->hogwild = m;
        if (buffer_take(backend, (void **)&m->totals, sizeof *m->totals) ||
            gpu_take(backend, (void **)&m->device_totals, sizeof *m->device_totals, "lock-free training"))
            return -1;
    }
    *out = (hogwild_memory *)backend->hogwild;
    return 0;
}

/* Computes how much scratch the general kernel needs, and lowers *warps to as many warps as the scratch is enough for. */
int size_scratch(backend *backend, hogwild_memory *m, hogwild_job *job, uint64_t *warps) {
    const example_source &s = backend->source.host;
    struct hogwild_scratch scratch = hogwild_scratch(&s);
    struct example_row row = {};
    row.count = s.longest;
    example_row_sizes(&s, &row);
    if (s.mode == EXAMPLE_WINDOW) row.wanted = 1, row.negatives = s.negatives;
    if (example_check_row(&row)) return -1;
    job->most_contexts = (uint32_t)scratch.contexts;
    job->most_words = (uint32_t)scratch.window_targets;
    job->most_targets = (uint32_t)scratch.targets;
    job->most_vectors = (uint32_t)scratch.vectors;
    job->scratch_words = scratch.words;
    *warps = hogwild_warps(*warps, (uint64_t)backend->processors, &scratch);
    if (gpu_grow(backend, &m->scratch, *warps * job->scratch_words * sizeof(uint32_t), "lock-free training")) return -1;
    job->scratch = (uint32_t *)m->scratch.data;
    return 0;
}

/* Returns true if some rows of a table are in host memory. with_state = 1: looks at the state, too. */
bool is_partly_on_host(const table_view &t, int with_state) {
    return t.weights.hot_rows < t.rows || (with_state && t.state.hot_rows < t.rows);
}

/* Computes the keys of the random bits for rounding, which differ from one part of a request to the next. */
void make_keys(const hogwild_request *r, hogwild_job *job) {
    job->target_key = round_step_key(&r->target->spec.rounding, DRAW_ROUND_WEIGHTS, job->global_step);
    job->context_key = round_step_key(&r->context->spec.rounding, DRAW_ROUND_WEIGHTS, job->global_step);
}

void make_job(const backend *backend, const hogwild_request *r, const hogwild_memory *m, hogwild_job *job) {
    *job = {};
    job->target = r->target->view;
    job->context = r->context->view;
    job->source = backend->source.view;
    if (job->source.shuffle) job->order = example_order(&job->source, r->epoch);
    job->quads = job->target.quads;
    job->epoch = r->epoch;
    job->first = r->first;
    job->count = r->count;
    job->lr_first = (float)r->lr_first;
    job->lr_slope = hogwild_slope(r);
    job->decay = (float)r->rule->weight_decay;
    job->eps = (float)r->rule->eps;
    job->linear = hogwild_is_linear(r->rule);
    job->adagrad = r->rule->rule == RULE_ADAGRAD;
    job->counted = job->adagrad && job->target.counted;
    job->on_host = is_partly_on_host(job->target, job->adagrad) || is_partly_on_host(job->context, job->adagrad);
    job->lr_decay = r->rule->lr_decay;
    job->global_step = r->global_step;
    job->halves = has_halves(&r->target->spec.layout);
    job->state_halves = state_halves(&r->target->spec.layout);
    make_keys(r, job);
    job->loss = r->loss;
    job->loss_mask = hogwild_loss_mask(r->count);
    job->totals = m->device_totals;
}

int launch(backend *backend, hogwild_memory *m, const hogwild_request *r, hogwild_job *job) {
    uint64_t warps = r->workers ? r->workers : hogwild_wanted_warps(&job->source);
    if (job->loss.kind == LOSS_GLOVE) return hogwild_counts_launch(job, warps, backend->processors, backend->compute);
    if (hogwild_subwords_can(job)) return hogwild_subwords_launch(job, warps, backend->processors, backend->compute);
    if (hogwild_pooled_can(job)) return hogwild_pooled_launch(job, warps, backend->processors, backend->compute);
    if (hogwild_windows_can(job)) return hogwild_windows_launch(job, warps, backend->processors, backend->compute);
    if (size_scratch(backend, m, job, &warps)) return -1;
    job->node_limit = (float)HOGWILD_NODE_AT_ONCE / (float)warps;
    return hogwild_rows_launch(job, warps, backend->compute);
}

/* Trains a request on a graph in parts, and draws each part's walks just before. */
int launch_walks(backend *backend, hogwild_memory *m, const hogwild_request *r, const hogwild_job *whole) {
    if (cuda_walks_grow(backend, &m->walks, r->count < WALKED_AT_ONCE ? r->count : WALKED_AT_ONCE)) return -1;
    for (uint64_t done = 0; done < r->count; done += WALKED_AT_ONCE) {
        hogwild_job job = *whole;
        job.first += done;
        job.count = r->count - done < WALKED_AT_ONCE ? r->count - done : WALKED_AT_ONCE;
        job.lr_first = hogwild_rate(whole->lr_first, whole->lr_slope, done);
        job.global_step += done;
        make_keys(r, &job);
        job.source = cuda_walks_source(backend, &m->walks, job.first, job.count);
        CK(cudaMemsetAsync(&m->device_totals->next, 0, sizeof m->device_totals->next, backend->compute));
        if (cuda_walks_draw_part(&job.source, job.epoch, job.first, job.count, &m->device_totals->walked, backend->compute) ||
            launch(backend, m, r, &job)) return -1;
    }
    return 0;
}

} // namespace

int cuda_hogwild(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result) {
    hogwild_memory *m = NULL;
    hogwild_job job;
    *result = {};
    if (request->count == 0) return 0;
    CK(cudaSetDevice(backend->device));
    if (check_request(request) || cuda_drain(backend) || open_memory(backend, &m)) return -1;
    cuda_snapshot_await(request->target);
    cuda_snapshot_await(request->context);
    make_job(backend, request, m, &job);
    CK(cudaMemsetAsync(m->device_totals, 0, sizeof *m->device_totals, backend->compute));
    if (job.source.walks.length ? launch_walks(backend, m, request, &job) : launch(backend, m, request, &job)) return -1;
    CK(cudaMemcpyAsync(m->totals, m->device_totals, sizeof *m->totals, cudaMemcpyDeviceToHost, backend->compute));
    CK(cudaStreamSynchronize(backend->compute));
    result->done = request->count;
    result->words = job.source.walks.length ? m->totals->walked : backend->source.host.mode == EXAMPLE_WINDOW ? request->count : 0;
    result->examples = m->totals->examples;
    result->pairs = m->totals->pairs;
    result->loss = m->totals->loss;
    result->sampled_examples = m->totals->sampled_examples;
    result->sampled_pairs = m->totals->sampled_pairs;
    result->sampled_terms = m->totals->sampled_terms;
    result->link_bytes = m->totals->host_rows * record_weights_bytes(&request->target->spec.layout);
    return 0;
}

void cuda_hogwild_close(struct backend *backend) {
    hogwild_memory *m = (hogwild_memory *)backend->hogwild;
    if (!m) return;
    gpu_drop(backend, &m->scratch);
    cuda_walks_drop(backend, &m->walks);
    if (m->device_totals) gpu_give(backend, m->device_totals, sizeof *m->device_totals);
    buffer_give(backend, m->totals, sizeof *m->totals);
    free(m);
    backend->hogwild = NULL;
}
