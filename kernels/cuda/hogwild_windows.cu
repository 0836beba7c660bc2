/* hogwild_windows: lock-free training of windows of a text with sgd, as fast as the rows can be fetched.
 *
 *   piece of GRAIN corpus positions -> kept words in shared memory (by ballot) -> a warp trains them one after the
 * other
 *
 * A position's rows live in registers: the T words of its window, the word in the middle and the negatives are read
 * once, all dot products are taken, and what each row gains is added to the table in one vector reduction a lane.
 *
 * The budget of one kept position at 128 columns, window 5 with shrink (6 words on average), 5 negatives, in
 * instructions of a warp: 36 dot products x 4 and their sums over the lanes by transposition (31 shuffles for 32 sums
 * instead of 160) 125 x 1.6 tiles, coefficients 30, gradients 36 x 8, draws 150 a tile, addresses, reads and adds 5 a
 * row: about 1,100. An H200 issues 924 G a second, so instructions allow some 500 M kept positions a second at 60% of
 * that, and wiki16 at 1e-4 keeps 45% of its words. What decides is traffic inside L2: with shared negatives 12 rows are
 * read and added to, 12 KB a position; with negatives of each pair 37 rows and 38 KB. L2 reads some 5 TB/s and adds
 * perhaps 2.
 *
 * Pooled words (CBOW) read and add to as many rows as words with shared negatives do, for a third of the instructions.
 *
 * Keeping the window's words in a ring across positions (FULL-W2V) would save 5 of 12 rows, but holds hot words back
 * from the others for eleven positions; with rows read and added at once a difference is old by one position's time,
 * and a multiprocessor needs no more than a dozen positions in flight to be busy (a position takes 4,000 cycles, a
 * multiprocessor of 132 must end one every 900 for 250 M a second). Few in flight is what keeps the quality: rows that
 * many positions touch at once move by differences of the same old row, and overshoot.
 */
#include "windows.cuh"

#include <algorithm>

namespace {

enum {
    WARPS = 4,   /* of a block */
    GRAIN = 64,  /* positions of a piece */
    WIDEST = HOGWILD_WIDEST,
    ROOM = GRAIN + 2 * (WIDEST + 31)
};

/* Kept words around one piece, in order. */
struct piece {
    uint32_t id[ROOM];
    uint32_t sentence[ROOM];      /* low bits: equal for neighbours of one sentence */
    uint32_t own[GRAIN];          /* kept words of the piece: offset << 8 | window; window 0: no example */
    uint32_t targets[2 * WIDEST]; /* of the position at hand */
};

struct position {
    uint64_t number; /* in the corpus: what draws are counted by */
    uint32_t middle; /* its id */
    uint32_t targets;
    float rate;
    bool sampled;
};

/* ---- kept words ---- */

/* Appends the kept ones of positions [at, at + 32) below `end`; `sentence` is each lane's own. */
__device__ uint32_t append_kept(const hogwild_job &job, piece &p, uint32_t count, uint64_t at, uint64_t end,
                                uint64_t sentence, uint64_t own_first, uint32_t *own) {
    uint64_t position = at + lane_number();
    uint32_t id = position < end ? kept_id(job.source, job.epoch, sentence, position) : DRAW_NONE;
    unsigned kept = __ballot_sync(ALL_LANES, id != DRAW_NONE);
    if (id != DRAW_NONE) {
        uint32_t slot = count + lanes_below(kept);
        p.id[slot] = id;
        p.sentence[slot] = (uint32_t)sentence;
        if (own) {
            uint32_t window = example_held_out(&job.source, position) ? 0 : window_at(job.source, job.epoch, position);
            p.own[*own + lanes_below(kept)] = (uint32_t)(position - own_first) << 8 | window;
        }
    }
    if (own) *own += __popc(kept);
    return count + __popc(kept);
}

/* The kept words of positions [first, end) and at least `window` kept ones each side of them, within their sentences.
 * Returns the index of the first own one, and from bit 16 on how many entries there are; *own: how many are own. */
__device__ uint32_t fill_piece(const hogwild_job &job, piece &p, uint64_t first, uint64_t end, uint32_t *own) {
    const example_source &s = job.source;
    uint64_t sentence = sentence_of(s, first), start = __ldg(s.starts + sentence), back = first;
    uint32_t count = 0, seen = 0;
    while (back > start && seen < s.window) {
        uint64_t below = back - start < 32 ? start : back - 32, position = below + lane_number();
        bool kept = position < back && kept_id(s, job.epoch, sentence, position) != DRAW_NONE;
        seen += __popc(__ballot_sync(ALL_LANES, kept));
        back = below;
    }
    for (; back < first; back += 32) count = append_kept(job, p, count, back, first, sentence, 0, nullptr);
    uint32_t own_first = count;
    *own = 0;
    for (uint64_t at = first; at < end; at += 32) {
        uint64_t position = at + lane_number() < end ? at + lane_number() : end - 1, mine = sentence;
        while (__ldg(s.starts + mine + 1) <= position) mine++;
        __syncwarp();
        count = append_kept(job, p, count, at, end, mine, first, own);
        sentence = __shfl_sync(ALL_LANES, mine, 31);
    }
    uint64_t stop = __ldg(s.starts + sentence + 1);
    seen = 0;
    for (uint64_t at = end; at < stop && seen < s.window; at += 32) {
        uint32_t before = count;
        count = append_kept(job, p, count, at, stop, sentence, 0, nullptr);
        seen += count - before;
    }
    __syncwarp();
    return own_first | count << 16;
}

/* Lists the words of the window around entry `at` of the piece; returns how many there are. */
__device__ uint32_t list_targets(piece &p, uint32_t at, uint32_t count, uint32_t window) {
    uint32_t found = 0, sentence = p.sentence[at];
    __syncwarp();
    for (uint32_t base = 0; base < 2 * window; base += 32) {
        uint32_t i = base + lane_number(), neighbour = i < window ? at - window + i : at + 1 + i - window;
        bool there =
            i < 2 * window && neighbour < count && p.sentence[neighbour] == sentence; /* wraps below 0: too large */
        unsigned mask = __ballot_sync(ALL_LANES, there);
        if (there) p.targets[found + lanes_below(mask)] = p.id[neighbour];
        found += __popc(mask);
    }
    __syncwarp();
    return found;
}

/* ---- rows in registers ---- */

template <int VEC> struct row { float4 v[VEC]; };

template <int VEC, bool ON_HOST>
__device__ __forceinline__ void read_row(row<VEC> &r, const table_view &rows, uint32_t id, uint32_t span, bool on,
                                         hogwild_sums &sums) {
    const float *base = weights_of<ON_HOST>(rows, on ? id : 0);
    if (ON_HOST) sums.host_rows += on && is_on_host(rows, id);
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        uint32_t column = (i * 32 + lane_number()) * 4;
        r.v[i] = read4(base + column, on && column < span);
    }
}

template <int VEC, bool ON_HOST>
__device__ __forceinline__ void add_row(const row<VEC> &r, const table_view &rows, uint32_t id, uint32_t span,
                                        hogwild_sums &sums) {
    float *base = weights_of<ON_HOST>(rows, id);
    if (ON_HOST) sums.host_rows += is_on_host(rows, id);
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        uint32_t column = (i * 32 + lane_number()) * 4;
        if (column >= span) continue;
        if (ON_HOST && is_on_host(rows, id))
            add_each(base + column, r.v[i]);
        else
            add4(base + column, r.v[i]);
    }
}

template <int VEC> __device__ __forceinline__ row<VEC> zero_row(void) {
    row<VEC> r;
#pragma unroll
    for (int i = 0; i < VEC; i++) r.v[i] = make_float4(0, 0, 0, 0);
    return r;
}
template <int VEC> __device__ __forceinline__ float dot_row(const row<VEC> &a, const row<VEC> &b) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < VEC; i++) sum = dot4(a.v[i], b.v[i], sum);
    return sum;
}
template <int VEC> __device__ __forceinline__ void fma_row(row<VEC> &sum, float k, const row<VEC> &a) {
#pragma unroll
    for (int i = 0; i < VEC; i++) sum.v[i] = fma4(k, a.v[i], sum.v[i]);
}
template <int VEC> __device__ __forceinline__ row<VEC> scale_row(float k, const row<VEC> &a) {
    row<VEC> r;
#pragma unroll
    for (int i = 0; i < VEC; i++) r.v[i] = scale4(k, a.v[i]);
    return r;
}

/* ---- training ---- */

/* This lane's negative of slot `slot`, or DRAW_NONE. */
__device__ __forceinline__ uint32_t draw_slot(const hogwild_job &job, const position &at, uint32_t slot, bool on) {
    if (!on) return DRAW_NONE;
    for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
        uint32_t id = example_negative(&job.source, job.epoch, at.number, slot, attempt);
        if (id != at.middle || !job.source.exclude) return id;
    }
    return DRAW_NONE;
}

/* This lane's logit (number `lane` of TT x (NT + 1), the first of each target the positive) as rate x (y - sigmoid). */
__device__ __forceinline__ float coefficient(const position &at, hogwild_sums &sums, float logit, bool alive,
                                             bool positive) {
    float y = positive ? 1.0f : 0.0f;
    if (at.sampled) {
        sums.loss += alive ? loss_of(logit, y) : 0.0f;
        sums.sampled_terms += __popc(__ballot_sync(ALL_LANES, alive));
    }
    return alive ? at.rate * coefficient_of(logit, y) : 0.0f;
}

/* One position whose pairs draw negatives of their own: as in word2vec. TT targets and NT negatives of each at a time.
 */
template <int VEC, int TT, int NT, bool ON_HOST>
__device__ __forceinline__ void train_pairs(const hogwild_job &job, const position &at, const uint32_t *targets,
                                            hogwild_sums &sums) {
    constexpr int WIDTH = NT + 1, LOGITS = TT * WIDTH;
    const unsigned lane = lane_number(), span = job.span, negatives = job.source.negatives;
    row<VEC> middle, gained = zero_row<VEC>();
    read_row<VEC, ON_HOST>(middle, job.context, at.middle, span, true, sums);
    for (uint32_t j0 = 0; j0 < at.targets; j0 += TT) {
        row<VEC> t[TT], moved[TT];
        uint32_t id[TT];
#pragma unroll
        for (int j = 0; j < TT; j++) {
            id[j] = j0 + j < at.targets ? targets[j0 + j] : DRAW_NONE;
            read_row<VEC, ON_HOST>(t[j], job.target, id[j], span, id[j] != DRAW_NONE, sums);
            moved[j] = zero_row<VEC>();
        }
        row<VEC> gain = zero_row<VEC>();
        uint32_t n0 = 0;
        do { /* once even where there are no negatives at all */
            uint32_t mine = lane / NT, which = n0 + lane % NT;
            uint32_t drawn = draw_slot(job, at, (j0 + mine) * negatives + which,
                                       lane < TT * NT && j0 + mine < at.targets && which < negatives);
            row<VEC> n[TT][NT];
            float logits[LOGITS];
#pragma unroll
            for (int j = 0; j < TT; j++)
#pragma unroll
                for (int k = 0; k < NT; k++) {
                    uint32_t other = __shfl_sync(ALL_LANES, drawn, j * NT + k);
                    read_row<VEC, ON_HOST>(n[j][k], job.context, other, span, other != DRAW_NONE, sums);
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
                    add_row<VEC, ON_HOST>(scale_row(negative, t[j]), job.context, other, span, sums);
                }
            }
            n0 += NT;
        } while (n0 < negatives);
#pragma unroll
        for (int j = 0; j < TT; j++)
            if (id[j] != DRAW_NONE) add_row<VEC, ON_HOST>(moved[j], job.target, id[j], span, sums);
        fma_row(middle, 1.0f, gain);
        fma_row(gained, 1.0f, gain);
    }
    add_row<VEC, ON_HOST>(gained, job.context, at.middle, span, sums);
}

/* One position whose pairs share their negatives. */
template <int VEC, int TT, int NT, bool ON_HOST>
__device__ __forceinline__ void train_shared(const hogwild_job &job, const position &at, const uint32_t *targets,
                                             hogwild_sums &sums) {
    constexpr int WIDTH = NT + 1, LOGITS = TT * WIDTH;
    const unsigned lane = lane_number(), span = job.span, negatives = job.source.negatives;
    uint32_t n0 = 0;
    do {
        uint32_t drawn = draw_slot(job, at, n0 + lane - 1, lane > 0 && lane < WIDTH && n0 + lane - 1 < negatives);
        if (lane == 0 && n0 == 0) drawn = at.middle;
        uint32_t other[WIDTH];
        row<VEC> c[WIDTH], gained[WIDTH];
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            other[k] = __shfl_sync(ALL_LANES, drawn, k);
            read_row<VEC, ON_HOST>(c[k], job.context, other[k], span, other[k] != DRAW_NONE, sums);
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
                read_row<VEC, ON_HOST>(t[j], job.target, id[j], span, id[j] != DRAW_NONE, sums);
            }
#pragma unroll
            for (int j = 0; j < TT; j++)
#pragma unroll
                for (int k = 0; k < WIDTH; k++) logits[j * WIDTH + k] = dot_row(t[j], c[k]);
            float logit = sum_over_warp(logits);
            bool alive = lane < LOGITS && j0 + my_target < at.targets && my_other != DRAW_NONE;
            float factor = coefficient(at, sums, logit, alive, n0 == 0 && my_slot == 0);
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
                add_row<VEC, ON_HOST>(moved, job.target, id[j], span, sums);
            }
        }
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            if (other[k] != DRAW_NONE) add_row<VEC, ON_HOST>(gained[k], job.context, other[k], span, sums);
        n0 += NT;
    } while (n0 < negatives);
}

/* The first NT negatives of each position of a piece, a slot a lane, into `drawn`: what a position would wait for twice, and
 * with most lanes idle, is drawn for six at once. */
template <int NT>
__device__ __forceinline__ void draw_ahead(const hogwild_job &job, const piece &p, uint64_t first, uint32_t entry,
                                           uint32_t own, uint32_t *drawn) {
    for (uint32_t i = lane_number(); i < own * NT; i += 32) {
        uint32_t slot = i % NT;
        position at = {};
        at.number = first + (p.own[i / NT] >> 8);
        at.middle = p.id[entry + i / NT];
        drawn[i] = draw_slot(job, at, slot, slot < job.source.negatives);
    }
    __syncwarp();
}

/* The weighted sum of a window's words, TT of them at a time. */
template <int VEC, int TT, bool ON_HOST>
__device__ __forceinline__ row<VEC> pool_words(const hogwild_job &job, const position &at, const uint32_t *targets,
                                               hogwild_sums &sums) {
    const example_pool &pool = job.source.pool;
    const float first = example_pool_weight(&pool, at.targets, 0), others = example_pool_weight(&pool, at.targets, 1);
    row<VEC> vector = zero_row<VEC>();
    for (uint32_t j0 = 0; j0 < at.targets; j0 += TT) {
        row<VEC> t[TT];
#pragma unroll
        for (int j = 0; j < TT; j++) {
            bool there = j0 + j < at.targets;
            read_row<VEC, ON_HOST>(t[j], job.target, there ? targets[j0 + j] : DRAW_NONE, job.span, there, sums);
        }
#pragma unroll
        for (int j = 0; j < TT; j++) fma_row(vector, j0 + j ? others : first, t[j]);
    }
    return vector;
}

/* One position whose words make one vector: it meets the word in the middle and the negatives, the first NT of which are
 * drawn already, and what it gains goes to all words. The contexts' rows are asked for first, so that they come together
 * with the words'. */
template <int VEC, int TT, int NT, bool ON_HOST>
__device__ __forceinline__ void train_pooled(const hogwild_job &job, const position &at, const uint32_t *targets,
                                             const uint32_t *first_drawn, hogwild_sums &sums) {
    constexpr int WIDTH = NT + 1;
    const unsigned lane = lane_number(), span = job.span, negatives = job.source.negatives;
    row<VEC> vector = zero_row<VEC>(), moved = zero_row<VEC>();
    uint32_t n0 = 0, drawn = lane == 0 ? at.middle : lane < WIDTH ? first_drawn[lane - 1] : DRAW_NONE;
    do {
        if (n0) drawn = draw_slot(job, at, n0 + lane - 1, lane > 0 && lane < WIDTH && n0 + lane - 1 < negatives);
        uint32_t other[WIDTH];
        row<VEC> c[WIDTH];
        float logits[WIDTH];
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            other[k] = __shfl_sync(ALL_LANES, drawn, k);
            read_row<VEC, ON_HOST>(c[k], job.context, other[k], span, other[k] != DRAW_NONE, sums);
        }
        if (n0 == 0) vector = pool_words<VEC, TT, ON_HOST>(job, at, targets, sums);
#pragma unroll
        for (int k = 0; k < WIDTH; k++) logits[k] = dot_row(vector, c[k]);
        float logit = sum_over_warp(logits);
        bool alive = lane < WIDTH && drawn != DRAW_NONE;
        float factor = coefficient(at, sums, logit, alive, n0 == 0 && lane == 0);
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            float f = __shfl_sync(ALL_LANES, factor, k);
            if (other[k] == DRAW_NONE) continue;
            fma_row(moved, f, c[k]);
            add_row<VEC, ON_HOST>(scale_row(f, vector), job.context, other[k], span, sums);
        }
        n0 += NT;
    } while (n0 < negatives);
    const example_pool &pool = job.source.pool;
    const float first = example_pool_share(&pool, at.targets, 0), others = example_pool_share(&pool, at.targets, 1);
    for (uint32_t j = 0; j < at.targets; j++)
        add_row<VEC, ON_HOST>(scale_row(j ? others : first, moved), job.target, targets[j], span, sums);
}

/* Tiles by the width of a row: what fits a thread's registers. pooled: words that are only added up. */
template <int VEC> struct tile {
    static constexpr int targets = VEC == 1 ? 5 : VEC == 2 ? 2 : 1, pooled = 2 * targets, negatives = VEC <= 2 ? 5 : 3;
};

/* What the words of a window are to the contexts. */
enum way {
    PAIRS,  /* each a target with negatives of its own */
    SHARED, /* each a target; their negatives are the same */
    POOLED  /* one target: their weighted sum */
};

template <int VEC, way WAY, bool ON_HOST>
__global__ void __launch_bounds__(WARPS * 32) window_kernel(const hogwild_job job) {
    constexpr int TT = tile<VEC>::targets, NT = tile<VEC>::negatives, AHEAD = WAY == POOLED ? GRAIN * NT : 1;
    __shared__ piece pieces[WARPS];
    __shared__ uint32_t drawn[WARPS][AHEAD];
    piece &p = pieces[threadIdx.x / 32];
    uint32_t *ahead = drawn[threadIdx.x / 32];
    const uint64_t grain = job.source.shuffle ? 1 : GRAIN, count = (job.count + grain - 1) / grain;
    hogwild_sums sums = {};
    for (;;) {
        uint64_t number = take_piece(job.totals) * grain;
        if (number >= job.count || count == 0) break;
        uint64_t example = job.first + number, size = job.count - number < grain ? job.count - number : grain;
        uint64_t first = job.source.shuffle ? shuffle_at(&job.order, example) : example;
        uint32_t own, found = fill_piece(job, p, first, first + size, &own), entry = found & 0xFFFF,
                      entries = found >> 16;
        if constexpr (WAY == POOLED) draw_ahead<NT>(job, p, first, entry, own, ahead);
        for (uint32_t i = 0; i < own; i++, entry++) {
            uint32_t offset = p.own[i] >> 8, window = p.own[i] & 255;
            position at;
            at.number = first + offset;
            at.middle = p.id[entry];
            at.targets = list_targets(p, entry, entries, window);
            at.rate = hogwild_rate(job.lr_first, job.lr_slope, number + offset);
            at.sampled = ((number + offset) & job.loss_mask) == 0;
            if (at.targets == 0) continue;
            uint32_t blocks = WAY == PAIRS ? at.targets : 1, pairs = WAY == POOLED ? 1 : at.targets;
            sums.examples += blocks;
            sums.pairs += pairs;
            if (at.sampled) sums.sampled_examples += blocks, sums.sampled_pairs += pairs;
            if constexpr (WAY == PAIRS)
                train_pairs<VEC, TT, NT, ON_HOST>(job, at, p.targets, sums);
            else if constexpr (WAY == SHARED)
                train_shared<VEC, TT, NT, ON_HOST>(job, at, p.targets, sums);
            else
                train_pooled<VEC, tile<VEC>::pooled, NT, ON_HOST>(job, at, p.targets, ahead + i * NT, sums);
        }
        __syncwarp();
    }
    give_sums(job.totals, &sums);
}

/* ---- the launch ---- */

/* Kernels by row width, by what a window's words are, and whether rows may lie on the host. */
typedef void window_function(const hogwild_job job);
template <int VEC, way WAY> window_function *kernel_of(bool on_host) {
    return on_host ? window_kernel<VEC, WAY, true> : window_kernel<VEC, WAY, false>;
}
template <int VEC> window_function *kernel_by(way way, bool on_host) {
    return way == PAIRS    ? kernel_of<VEC, PAIRS>(on_host)
           : way == SHARED ? kernel_of<VEC, SHARED>(on_host)
                           : kernel_of<VEC, POOLED>(on_host);
}
window_function *kernel_for(uint32_t span, way way, bool on_host) {
    if (span <= 128) return kernel_by<1>(way, on_host);
    if (span <= 256) return kernel_by<2>(way, on_host);
    return kernel_by<4>(way, on_host);
}

/* Blocks of one word each are that word's vector, pooled or not. */
way way_of(const example_source &source) {
    return source.per_pair ? PAIRS : source.pool.on ? POOLED : SHARED;
}

} // namespace

int hogwild_windows_can(const struct hogwild_job *job) {
    return hogwild_in_registers(&job->source, job->span, job->linear);
}

int hogwild_windows_launch(const struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream) {
    window_function *kernel = kernel_for(job->span, way_of(job->source), job->on_host);
    int resident;
    CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, WARPS * 32, 0));
    uint64_t blocks = std::min<uint64_t>((uint64_t)processors * (unsigned)resident, warps / WARPS);
    kernel<<<blocks ? (unsigned)blocks : 1, 32 * (unsigned)(blocks ? WARPS : warps), 0, stream>>>(*job);
    CK_LAUNCH("window_kernel");
    return 0;
}
