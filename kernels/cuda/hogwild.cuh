/* hogwild: shared by the lock-free kernels: reading and changing rows, words that subsampling keeps, draws, a warp's sums; pieces of the corpus
 * (GRAIN positions each), and the positions in them.
 *
 * A row is divided among a warp's lanes: lane l holds quad l (columns 4 l to 4 l + 3) and, for wider rows, every 32nd quad after it. Rows are read
 * past the first cache, since another warp may just have changed them, and are changed by atomic additions, four columns an instruction, so that no
 * update is lost when several warps change a row at once.
 *
 * A row of bfloat16 (F, values.cuh) is changed in whole steps: the value that was read plus its gain is rounded to bfloat16, and the difference is
 * added. The random bits for rounding come from a cheap hash (kernels/rounding.h), since lock-free runs need not be repeatable.
 */
#ifndef SPTX_HOGWILD_CUH
#define SPTX_HOGWILD_CUH

#include "values.cuh"

extern "C" {
#include "kernels/hogwild.h"
}

/* ---- a run of the kernels ---- */

struct hogwild_job {
    struct table_view target, context;
    struct example_source source; /* its pointers are addresses on the GPU */
    struct shuffle order;         /* shuffled order of examples; used only if the run shuffles them in each epoch */
    uint32_t quads, epoch;
    uint64_t first, count;
    uint64_t large_pieces; /* kernels of windows: number of pieces of GRAIN positions; the pieces after them are smaller (LAST_GRAIN) */
    float lr_first, lr_slope; /* for hogwild_rate() */
    float decay, eps;
    int linear, adagrad, counted; /* linear: result of hogwild_is_linear(); adagrad: 1: that is the rule; counted: 1: rows count their updates */
    int on_host;                  /* 1: some rows are in host memory */
    double lr_decay;
    uint64_t global_step;
    uint32_t target_key, context_key; /* keys of the random bits for rounding bfloat16 rows */
    int halves, state_halves;         /* halves: 1: weights are bfloat16; state_halves: 1: adagrad's sums are bfloat16 */
    struct loss_options loss;
    uint32_t loss_mask; /* made by hogwild_loss_mask() */
    float node_limit;   /* for hogwild_node_share() */
    uint32_t *scratch;  /* for the general kernel: [warps x scratch_words] */
    uint64_t scratch_words;
    uint32_t most_contexts, most_targets, most_vectors; /* upper bounds for one block */
    uint32_t most_words;                                /* upper bound of the number of targets of all blocks of one window */
    struct hogwild_totals *totals;
};

/* The counts of one warp. Each lane has its own `loss`; they are summed at the end. host_rows: how often rows crossed the link, in either
 * direction. */
struct hogwild_sums {
    unsigned long long examples, pairs, sampled_examples, sampled_pairs, sampled_terms, host_rows;
    double loss;
};

/* ---- paths in a tree ---- */

/* Returns node `i` of a path. Nodes of code 0, the positives, come before nodes of code 1. */
__device__ __forceinline__ uint32_t node_of(const struct example_source &s, const struct example_path &path, uint32_t i) {
    return portable_load32_at(s.paths.nodes, path.first[0] + i);
}

/* ---- rows ---- */

__device__ __forceinline__ bool is_on_host(const struct table_view &rows, uint32_t id) {
    return id >= rows.weights.hot_rows;
}
/* Returns the address of a row's weights. ON_HOST = false: the caller knows that all rows are on the GPU. */
template <bool ON_HOST> __device__ __forceinline__ char *weights_of(const struct table_view &rows, uint32_t id) {
    char *base = ON_HOST && is_on_host(rows, id) ? rows.weights.home : rows.weights.hot;
    return base + (uint64_t)id * (uint32_t)rows.weights.stride;
}

/* ---- changes of rows ---- */

/* Returns the key of the random bits for changing any row of one table at a position (or in an example). */
__device__ __forceinline__ uint32_t place_key(uint32_t table_key, uint64_t number) {
    return round_mix(table_key + (uint32_t)number * 0x9E3779B9u);
}

/* Returns the key for changing row `id` at the position whose key is `place`. A sum is enough: `place` is hashed already, and round_pair() hashes
 * the sum. */
__device__ __forceinline__ uint32_t row_key(uint32_t place, uint32_t id) {
    return place + id * 0xC2B2AE3Du;
}

/* Adds a gain to a quad of a row. old: the quad as it was read; for bfloat16, old + gain is rounded. */
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

/* Returns minus the coefficient of losses.h: with a learning rate of 1, each row of a pair gets this times the other row added. */
__device__ __forceinline__ float gain_of(float s, float y) { /* y - sigmoid(s) */
    return y - __fdividef(1.0f, 1.0f + __expf(-s));
}
__device__ __forceinline__ float logit_loss(float s, float y) {
    return fmaxf(s, 0.0f) + log1pf(__expf(-fabsf(s))) - y * s;
}

/* ---- kept words of a strip, by a warp ---- */

/* 32 positions of a strip, one for each lane: the lane's position, its word's id (DRAW_NONE: subsampling drops it), and a mask of the lanes whose
 * words are kept. */
struct kept_words {
    uint64_t position;
    uint32_t id;
    unsigned lanes;
};

/* Reads the words at 32 positions: with BY = 1 at positions from `at` on and below `stop`; with BY = -1 backwards from at - 1 to `stop`. Lanes may
 * be in different sentences. */
template <int BY>
__device__ __forceinline__ kept_words words_at(const struct example_source &s, uint64_t sentence, uint32_t epoch, uint64_t at, uint64_t stop) {
    kept_words words;
    bool there = BY > 0 ? at + lane_number() < stop : lane_number() < at - stop;
    words.position = BY > 0 ? at + lane_number() : at - 1 - lane_number();
    words.id = there ? strip_word_alone(&s, sentence, words.position, epoch) : DRAW_NONE;
    words.lanes = __ballot_sync(ALL_LANES, words.id != DRAW_NONE);
    return words;
}

/* ---- the kernels: they launch at most `warps` warps and return 0, or -1 after fail() ---- */

/* hogwild_windows.cu: windows of a text, with sgd. hogwild_windows_can() returns 1 if this kernel can train the job; the other function launches
 * it. */
int hogwild_windows_can(const struct hogwild_job *job);
int hogwild_windows_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream);

/* hogwild_windows.cu: windows with sgd whose target words are pooled. */
int hogwild_pooled_can(const struct hogwild_job *job);
int hogwild_pooled_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream);

/* hogwild_subwords.cu: windows with sgd whose words share rows (n-grams). To be asked before the two above, which assume that a word has one row. */
int hogwild_subwords_can(const struct hogwild_job *job);
int hogwild_subwords_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream);

/* hogwild_counts.cu: counts of pairs (LOSS_GLOVE). */
int hogwild_counts_launch(struct hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream);

/* hogwild.cu: the general kernel, for all other jobs. */
int hogwild_rows_launch(const struct hogwild_job *job, uint64_t warps, cudaStream_t stream);

/* ==== a piece of the corpus at a time ====
 *
 * Shared by the kernels of windows: finds the kept words of a piece of the corpus and the words around them, changes rows that are in registers, and
 * draws negatives.
 *
 *   piece of GRAIN corpus positions -> kept words in shared memory (by ballot) -> a warp trains them in their order
 */

enum {
    WARPS = 4,  /* warps of a thread block */
    GRAIN = 64,     /* number of corpus positions of a piece */
    LAST_GRAIN = 8, /* positions of each of the last pieces of a request: few, so that all warps finish at nearly the same time */
    WIDEST = HOGWILD_WIDEST,
    ROOM = GRAIN + 2 * (WIDEST + 31)
};

/* The kept words of one piece, and the other words that their windows may contain, in order. */
struct piece {
    uint32_t id[ROOM];
    uint32_t sentence[ROOM]; /* lower 32 bits of the number of the word's sentence, to tell sentences apart */
    uint32_t own[GRAIN];     /* for each kept word of the piece: (its position - the piece's first) << 8 | size of its window, plus 1 with
                              * documents; a lower byte of 0: held out */
};

/* ---- pieces ---- */

/* A piece as examples: number .. number + size - 1 of the request; `first` is the corpus position of example `number`. */
struct stretch {
    uint64_t number, size, first;
};

/* Assigns the next piece of a request to the warp; returns false if none is left. If examples are shuffled, a piece is one example. */
static __device__ bool take_stretch(const hogwild_job &job, stretch &s) {
    uint64_t piece = take_piece(job.totals), large = job.large_pieces, end = large * GRAIN;
    bool shuffled = job.source.shuffle, last = piece >= large;
    uint64_t grain = shuffled ? 1 : last ? LAST_GRAIN : GRAIN;
    s.number = shuffled || !last ? piece * grain : end + (piece - large) * grain;
    if (s.number >= job.count) return false;
    s.size = job.count - s.number < grain ? job.count - s.number : grain;
    s.first = shuffled ? shuffle_at(&job.order, job.first + s.number) : job.first + s.number;
    return true;
}

/* ---- kept words ---- */

/* Appends to the piece the kept words at positions at .. at + 31 that are below `end`. sentence: the sentence of this lane's position. Returns the
 * new number of entries. */
static __device__ uint32_t append_kept(const hogwild_job &job, piece &p, uint32_t count, uint64_t at, uint64_t end,
                                       uint64_t sentence, uint64_t own_first, uint32_t *own) {
    const kept_words kept = words_at<1>(job.source, sentence, job.epoch, at, end);
    if (kept.id != DRAW_NONE) {
        uint32_t slot = count + lanes_below(kept.lanes);
        p.id[slot] = kept.id;
        p.sentence[slot] = (uint32_t)sentence;
        if (own) {
            bool held_out = example_held_out(&job.source, kept.position);
            uint32_t window = held_out ? 0 : strip_window(&job.source, kept.position, job.epoch) + job.source.documents;
            p.own[*own + lanes_below(kept.lanes)] = (uint32_t)(kept.position - own_first) << 8 | window;
        }
    }
    if (own) *own += __popc(kept.lanes);
    return count + __popc(kept.lanes);
}

/* Finds the kept words at positions first .. end - 1 and, within their sentences, as many kept words before and after as a window may contain on a
 * side. *own: number of the former. Returns the index of the first of them, plus the number of all entries << 16. */
static __device__ uint32_t fill_piece(const hogwild_job &job, piece &p, uint64_t first, uint64_t end, uint32_t *own) {
    const example_source &s = job.source;
    uint64_t sentence = sentence_of(s, first), start = __ldg(s.starts + sentence), back = first;
    uint32_t count = 0, seen = 0;
    while (back > start && seen < s.window) {
        seen += __popc(words_at<-1>(s, sentence, job.epoch, back, start).lanes);
        back = back - start < 32 ? start : back - 32;
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

/* ---- rows in registers ---- */

template <int VEC> struct row { float4 v[VEC]; };

template <class F, int VEC, bool ON_HOST>
__device__ __forceinline__ void read_row(row<VEC> &r, const table_view &rows, uint32_t id, uint32_t quads, bool on, hogwild_sums &sums) {
    const char *weights = weights_of<ON_HOST>(rows, on ? id : 0);
    if (ON_HOST) sums.host_rows += on && is_on_host(rows, id);
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        uint32_t quad = i * 32 + lane_number();
        r.v[i] = read_quad_past_cache<F>(weights, quad, on && quad < quads);
    }
}

/* Adds r to a row of the table. old: the row as it was read. key: of the table and position; seeds the random bits for rounding bfloat16. */
template <class F, int VEC, bool ON_HOST>
__device__ __forceinline__ void add_to_row(const row<VEC> &r, const row<VEC> &old, const table_view &rows, uint32_t id,
                                           uint32_t quads, uint32_t key, hogwild_sums &sums) {
    char *weights = weights_of<ON_HOST>(rows, id);
    if (ON_HOST) sums.host_rows += is_on_host(rows, id);
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        uint32_t quad = i * 32 + lane_number();
        if (quad < quads) gain_quad<F, ON_HOST>(weights, quad, old.v[i], r.v[i], ON_HOST && is_on_host(rows, id), row_key(key, id));
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

/* ---- negatives ---- */

/* Returns the negative that this lane draws for slot `slot` of an example, or DRAW_NONE. number: corpus position of the example; middle: word at
 * that position. */
static __device__ __forceinline__ uint32_t draw_slot(const hogwild_job &job, uint64_t number, uint32_t middle, uint32_t slot, bool on) {
    if (!on) return DRAW_NONE;
    for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
        uint32_t id = example_negative(&job.source, job.epoch, number, slot, attempt);
        if (id != middle || !job.source.exclude) return id;
    }
    return DRAW_NONE;
}

/* ---- launches ---- */

typedef void window_function(const hogwild_job job);

static inline int launch_windows(window_function *kernel, hogwild_job *job, uint64_t warps, int processors, cudaStream_t stream) {
    int resident;
    CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, WARPS * 32, 0));
    uint64_t most = (uint64_t)processors * (unsigned)resident, blocks = warps / WARPS < most ? warps / WARPS : most;
    uint64_t at_once = (blocks ? blocks * WARPS : warps) * GRAIN; /* positions at the end of the request that are divided into small pieces */
    job->node_limit = (float)HOGWILD_NODE_AT_ONCE / (float)(blocks ? blocks * WARPS : warps);
    job->large_pieces = job->count > at_once ? (job->count - at_once) / GRAIN : 0;
    kernel<<<blocks ? (unsigned)blocks : 1, 32 * (unsigned)(blocks ? WARPS : warps), 0, stream>>>(*job);
    CK_LAUNCH("window_kernel");
    return 0;
}

/* ==== one position after the other ====
 *
 * For kernels that train one position at a time: the words around it, its learning rate, and the keys for its random bits. */

struct windows : piece {
    uint32_t targets[2 * WIDEST + 1]; /* target rows of the current position: the words around it and, with documents, its document's row at the
                                       * end */
};

struct position {
    uint64_t number; /* position in the corpus, on which all draws depend */
    uint32_t middle; /* the id of the word at the position */
    uint32_t targets;
    float rate;
    uint32_t target_key, context_key; /* keys of the random bits for rounding bfloat16 rows */
    bool sampled;
};

/* Lists in p.targets the words of the window around entry `at` of the piece; returns their number. */
static __device__ uint32_t list_targets(windows &p, uint32_t at, uint32_t count, uint32_t window) {
    uint32_t found = 0, sentence = p.sentence[at];
    __syncwarp();
    for (uint32_t base = 0; base < 2 * window; base += 32) {
        uint32_t i = base + lane_number(), neighbour = i < window ? at - window + i : at + 1 + i - window;
        bool there = i < 2 * window && neighbour < count && p.sentence[neighbour] == sentence; /* an index below 0 wraps to a large number, and so
                                                                                                * is not below `count` */
        unsigned mask = __ballot_sync(ALL_LANES, there);
        if (there) p.targets[found + lanes_below(mask)] = p.id[neighbour];
        found += __popc(mask);
    }
    __syncwarp();
    return found;
}

/* Lists in p.targets the target rows of the example at the piece's entry `at`; returns their number. own: index of the entry in piece.own. */
static __device__ uint32_t list_example(const example_source &s, windows &p, uint32_t at, uint32_t count, uint32_t own) {
    uint32_t window = own & 255;
    if (!s.documents || !window) return list_targets(p, at, count, window);
    uint32_t words = list_targets(p, at, count, window - 1);
    if (lane_number() == 0) p.targets[words] = example_document(&s, p.sentence[at]);
    __syncwarp();
    return words + 1;
}

/* Returns rate x (y - sigmoid(logit)), minus the coefficient, for this lane's logit. */
static __device__ __forceinline__ float coefficient(const position &at, hogwild_sums &sums, float logit, bool alive, bool positive) {
    float y = positive ? 1.0f : 0.0f;
    if (at.sampled) {
        sums.loss += alive ? logit_loss(logit, y) : 0.0f;
        sums.sampled_terms += __popc(__ballot_sync(ALL_LANES, alive));
    }
    return alive ? at.rate * gain_of(logit, y) : 0.0f;
}

/* Calls train() for each of this warp's positions whose window contains words; these are in p.targets then. */
template <class F, class Train> __device__ __forceinline__ void each_position(const hogwild_job &job, windows &p, Train train) {
    stretch s;
    while (take_stretch(job, s)) {
        uint32_t own, found = fill_piece(job, p, s.first, s.first + s.size, &own), entry = found & 0xFFFF, entries = found >> 16;
        for (uint32_t i = 0; i < own; i++, entry++) {
            uint32_t offset = p.own[i] >> 8;
            position at;
            at.number = s.first + offset;
            at.middle = p.id[entry];
            at.targets = list_example(job.source, p, entry, entries, p.own[i]);
            at.rate = hogwild_rate(job.lr_first, job.lr_slope, s.number + offset);
            at.target_key = F::QUADS > 1 ? place_key(job.target_key, s.number + offset) : 0;
            at.context_key = F::QUADS > 1 ? place_key(job.context_key, s.number + offset) : 0;
            at.sampled = ((s.number + offset) & job.loss_mask) == 0;
            if (at.targets != 0) train(at);
        }
        __syncwarp();
    }
}

#endif
