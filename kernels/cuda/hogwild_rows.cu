/* hogwild_rows: the lock-free way for everything that the fast kernel of cuda_hogwild leaves out: lists and
 * adjacency, adagrad, weight decay, distinct negatives, wide windows, rows of more than 512 columns.
 *
 *   a warp takes an example -> its rows' ids into scratch -> each target in turn against all contexts of the block
 *
 * Rows are read where they are needed, twice a block: for the logits and for the gradients. The order of draws and what
 * is left out are those of the CPU's.
 */
#include "windows.cuh"

namespace {

enum { WARPS = 4 };

struct block {
    uint32_t *targets, *contexts; /* scratch */
    float *factors;               /* [contexts] */
    uint32_t t, positives, c;
    uint64_t example; /* its own number: what draws are counted by */
    uint32_t slot;    /* of its first negative */
    float rate;
    bool sampled;
};

__device__ bool among(uint32_t id, const uint32_t *ids, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

/* ---- negatives ---- */

__device__ bool excluded(const hogwild_job &job, const block &b, uint32_t id) {
    if (!job.source.exclude) return false;
    return among(id, b.contexts, b.positives) || (job.source.mode != EXAMPLE_WINDOW && id == b.targets[0]);
}

/* A slot a lane; those that stay empty are left out. */
__device__ void add_negatives(const hogwild_job &job, block &b, uint32_t count) {
    for (uint32_t base = 0; base < count; base += 32) {
        uint32_t i = base + lane_number(), id = DRAW_NONE;
        for (uint32_t attempt = 0; i < count && attempt < DRAW_ATTEMPTS && id == DRAW_NONE; attempt++) {
            id = negative_at(job.source, job.epoch, b.example, b.slot + i, attempt);
            if (excluded(job, b, id)) id = DRAW_NONE;
        }
        __syncwarp();
        unsigned mask = __ballot_sync(ALL_LANES, id != DRAW_NONE);
        if (id != DRAW_NONE) b.contexts[b.c + lanes_below(mask)] = id;
        b.c += __popc(mask);
        __syncwarp();
    }
}

/* An attempt a lane, slot after slot: each must differ from the ones before it. */
__device__ void add_distinct_negatives(const hogwild_job &job, block &b, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t base = 0; base < DRAW_ATTEMPTS; base += 32) {
            uint32_t id = negative_at(job.source, job.epoch, b.example, b.slot + i, base + lane_number());
            bool good = !excluded(job, b, id) && !among(id, b.contexts + b.positives, b.c - b.positives);
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

/* ---- rows ---- */

/* Adds to one column of a row what its gradient asks for; adagrad's sum takes part in the same exchange. */
__device__ float move_of(const hogwild_job &job, float *state, float rate, float gradient, float weight) {
    gradient = fmaf(job.decay, weight, gradient);
    if (!job.adagrad) return -rate * gradient;
    float square = gradient * gradient, sum = atomicAdd(state, square) + square;
    return -rate * gradient / (sqrtf(sum) + job.eps);
}

__device__ void move_columns(const hogwild_job &job, const table_view &rows, uint32_t id, uint32_t column, float rate,
                             float4 gradient, float4 weight) {
    float *state = job.adagrad ? table_state(rows, id) + column : nullptr,
          *weights = weights_of<true>(rows, id) + column;
    float4 move;
    move.x = move_of(job, state, rate, gradient.x, weight.x);
    move.y = move_of(job, state + 1, rate, gradient.y, weight.y);
    move.z = move_of(job, state + 2, rate, gradient.z, weight.z);
    move.w = move_of(job, state + 3, rate, gradient.w, weight.w);
    if (is_far(rows, id))
        add_each(weights, move);
    else
        add4(weights, move);
}

/* How often a row crosses the link while a target meets it: two reads and one way back, adagrad's sum there and back.
 */
__device__ uint32_t crossings(const hogwild_job &job, const table_view &rows, uint32_t id) {
    return 3 * is_far(rows, id) + (job.adagrad ? 2 * (id >= rows.state.hot_rows) : 0);
}

/* ---- training ---- */

/* sigmoid - y of one target with every context of the block, into b.factors. */
__device__ void make_factors(const hogwild_job &job, block &b, uint32_t target, hogwild_sums &sums) {
    const float *t = weights_of<true>(job.target, target);
    sums.far_rows += crossings(job, job.target, target);
    for (uint32_t k = 0; k < b.c; k++) {
        const float *c = weights_of<true>(job.context, b.contexts[k]);
        sums.far_rows += crossings(job, job.context, b.contexts[k]);
        float sum = 0, y = k < b.positives ? 1.0f : 0.0f;
        for (uint32_t column = lane_number() * 4; column < job.span; column += 128)
            sum = dot4(read4(t + column, true), read4(c + column, true), sum);
        for (int mask = 16; mask; mask >>= 1) sum += __shfl_xor_sync(ALL_LANES, sum, mask);
        if (lane_number() == 0) {
            b.factors[k] = -coefficient_of(sum, y);
            if (b.sampled) sums.loss += loss_of(sum, y);
        }
    }
    __syncwarp();
}

__device__ void train_target(const hogwild_job &job, block &b, uint32_t target, hogwild_sums &sums) {
    make_factors(job, b, target, sums);
    for (uint32_t column = lane_number() * 4; column < job.span; column += 128) {
        float4 t = read4(weights_of<true>(job.target, target) + column, true), gradient = make_float4(0, 0, 0, 0);
        for (uint32_t k = 0; k < b.c; k++) {
            float4 c = read4(weights_of<true>(job.context, b.contexts[k]) + column, true);
            gradient = fma4(b.factors[k], c, gradient);
            move_columns(job, job.context, b.contexts[k], column, b.rate, scale4(b.factors[k], t), c);
        }
        move_columns(job, job.target, target, column, b.rate, gradient, t);
    }
    __syncwarp();
}

/* The block whose targets and positives are listed: its negatives, then all its pairs. */
__device__ void train_block(const hogwild_job &job, block &b, const uint32_t *targets, uint32_t negatives,
                            hogwild_sums &sums) {
    b.c = b.positives;
    if (job.source.distinct)
        add_distinct_negatives(job, b, negatives);
    else
        add_negatives(job, b, negatives);
    for (uint32_t i = 0; i < b.t; i++) train_target(job, b, targets[i], sums);
    uint64_t pairs = (uint64_t)b.t * b.positives;
    sums.examples++;
    sums.pairs += pairs;
    if (b.sampled) {
        sums.sampled_examples++;
        sums.sampled_pairs += pairs;
        sums.sampled_terms += (uint64_t)b.t * b.c;
    }
}

/* ---- windows ---- */

/* Kept words from `at` down to `stop`, the nearest last at targets[wanted - 1]; returns how many. */
__device__ uint32_t words_before(const hogwild_job &job, uint32_t *targets, uint64_t sentence, uint64_t at,
                                 uint64_t stop, uint32_t wanted) {
    uint32_t found = 0;
    while (at > stop && found < wanted) {
        bool there = lane_number() < at - stop;
        uint64_t position = at - 1 - lane_number();
        uint32_t id = there ? kept_id(job.source, job.epoch, sentence, position) : DRAW_NONE;
        unsigned mask = __ballot_sync(ALL_LANES, id != DRAW_NONE);
        uint32_t rank = found + lanes_below(mask);
        if (id != DRAW_NONE && rank < wanted) targets[wanted - 1 - rank] = id;
        found += __popc(mask);
        at = at - stop < 32 ? stop : at - 32;
    }
    return found < wanted ? found : wanted;
}

__device__ uint32_t words_after(const hogwild_job &job, uint32_t *targets, uint64_t sentence, uint64_t at,
                                uint64_t stop, uint32_t wanted) {
    uint32_t found = 0;
    for (; at < stop && found < wanted; at += 32) {
        uint64_t position = at + lane_number();
        uint32_t id = position < stop ? kept_id(job.source, job.epoch, sentence, position) : DRAW_NONE;
        unsigned mask = __ballot_sync(ALL_LANES, id != DRAW_NONE);
        uint32_t rank = found + lanes_below(mask);
        if (id != DRAW_NONE && rank < wanted) targets[rank] = id;
        found += __popc(mask);
    }
    return found < wanted ? found : wanted;
}

__device__ void train_window(const hogwild_job &job, block &b, hogwild_sums &sums) {
    const example_source &s = job.source;
    uint64_t sentence = sentence_of(s, b.example), start = s.starts[sentence], stop = s.starts[sentence + 1];
    uint32_t middle = kept_id(s, job.epoch, sentence, b.example);
    if (middle == DRAW_NONE) return;
    uint32_t window = window_at(s, job.epoch, b.example);
    uint32_t before = words_before(job, b.targets, sentence, b.example, start, window);
    uint32_t after = words_after(job, b.targets + window, sentence, b.example + 1, stop, window);
    uint32_t *targets = b.targets + window - before, count = before + after;
    if (lane_number() == 0) b.contexts[0] = middle;
    __syncwarp();
    b.positives = 1;
    b.t = s.per_pair ? 1 : count;
    for (uint32_t i = 0; i < count; i += b.t, b.slot += s.negatives)
        train_block(job, b, targets + i, s.negatives, sums);
}

/* ---- lists and adjacency ---- */

__device__ void add_positives(const hogwild_job &job, block &b, const uint32_t *items, uint64_t others, uint64_t target,
                              uint32_t wanted, bool replacement) {
    const example_source &s = job.source;
    for (uint32_t j = 0; j < wanted; j++) {
        struct draw4 drawn = draw_at(s.seed, DRAW_POSITIVE, b.example, job.epoch, j / 2);
        uint64_t bits = j & 1 ? draw_pair(drawn, 1) : draw_pair(drawn, 0), last = others - wanted + j;
        uint64_t place = draw_below(bits, replacement ? others : last + 1);
        bool taken = false;
        for (uint32_t i = lane_number(); i < j && !replacement; i += 32) taken |= b.contexts[i] == (uint32_t)place;
        if (__any_sync(ALL_LANES, taken)) place = last;
        if (lane_number() == 0) b.contexts[j] = (uint32_t)place;
        __syncwarp();
    }
    for (uint32_t j = lane_number(); j < wanted; j += 32) {
        uint64_t place = b.contexts[j];
        b.contexts[j] = items[place + (place >= target)];
    }
}

__device__ void train_list(const hogwild_job &job, block &b, hogwild_sums &sums) {
    const example_source &s = job.source;
    bool by_position = s.mode == EXAMPLE_LIST && s.targets_all;
    uint64_t list = by_position ? sentence_of(s, b.example) : b.example, start = s.starts[list];
    uint64_t count = s.starts[list + 1] - start, others = count - 1, target = 0;
    if (count < 2) return;
    if (by_position)
        target = b.example - start;
    else if (s.mode == EXAMPLE_LIST)
        target = draw_below(draw_pair(draw_at(s.seed, DRAW_TARGET, b.example, job.epoch, 0), 0), count);
    uint64_t wanted = s.positives ? s.positives : others;
    bool too_short = others < wanted;
    if (too_short && !s.short_repeat) return;
    const uint32_t *items = s.ids + start;
    if (lane_number() == 0) b.targets[0] = items[target];
    if (s.positives)
        add_positives(job, b, items, others, target, (uint32_t)wanted, s.replacement || too_short);
    else
        for (uint64_t i = lane_number(); i < others; i += 32) b.contexts[i] = items[i + (i >= target)];
    __syncwarp();
    b.t = 1;
    b.positives = (uint32_t)wanted;
    train_block(job, b, b.targets, s.per_pair ? (uint32_t)wanted * s.negatives : s.negatives, sums);
}

/* ---- all ---- */

__global__ void __launch_bounds__(WARPS * 32) rows_kernel(const hogwild_job job) {
    uint32_t *scratch = job.scratch + (blockIdx.x * (uint64_t)WARPS + threadIdx.x / 32) * job.scratch_words;
    hogwild_sums sums = {};
    for (;;) {
        uint64_t number = take_piece(job.totals);
        if (number >= job.count) break;
        block b = {};
        b.contexts = scratch;
        b.factors = (float *)(scratch + job.most_contexts);
        b.targets = scratch + 2 * (uint64_t)job.most_contexts;
        b.example = job.source.shuffle ? shuffle_at(&job.order, job.first + number) : job.first + number;
        b.rate = fmaf(job.lr_slope, (float)number, job.lr_first);
        b.sampled = (number & job.sample_mask) == 0;
        if (example_held_out(&job.source, b.example)) continue;
        if (job.source.mode == EXAMPLE_WINDOW)
            train_window(job, b, sums);
        else
            train_list(job, b, sums);
        __syncwarp();
    }
    give_sums(job.totals, &sums);
}

} // namespace

void hogwild_rows_launch(const struct hogwild_job *job, uint64_t warps, cudaStream_t stream) {
    rows_kernel<<<(unsigned)(warps < WARPS ? 1 : warps / WARPS), WARPS * 32, 0, stream>>>(*job);
}
