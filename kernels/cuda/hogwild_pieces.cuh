/* hogwild_pieces: shared by the kernels of windows. It finds the kept words of a piece of the corpus and the words around them,
 * changes rows that are held in registers, and draws negatives.
 *
 *   piece of GRAIN corpus positions -> kept words in shared memory (by ballot) -> a warp trains them in their order
 */
#ifndef SPTX_CUDA_HOGWILD_PIECES_CUH
#define SPTX_CUDA_HOGWILD_PIECES_CUH

#include "hogwild_words.cuh"

enum {
    WARPS = 4,  /* warps of a thread block */
    GRAIN = 64,     /* number of corpus positions of a piece */
    LAST_GRAIN = 8, /* number of positions of the last pieces of a request: small, so that all warps finish at nearly the same
                     * time */
    WIDEST = HOGWILD_WIDEST,
    ROOM = GRAIN + 2 * (WIDEST + 31)
};

/* The kept words at the positions of one piece, and the words that their windows may contain, in order. */
struct piece {
    uint32_t id[ROOM];
    uint32_t sentence[ROOM]; /* lower 32 bits of the number of the word's sentence: equal for words of the same sentence */
    uint32_t own[GRAIN];     /* for each kept word at the piece's positions: (position - the piece's first) << 8 | size of its
                              * window, plus 1 with documents; a lower byte of 0: held out */
};

/* ---- pieces ---- */

/* Examples number .. number + size - 1 of the request; the first of them is the example of corpus position `first`. */
struct stretch {
    uint64_t number, size, first;
};

/* Takes the next piece of a request. Returns false if all pieces are taken. If the order of examples is shuffled, a piece is one
 * example. */
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

/* Appends to the piece the kept words at positions at .. at + 31, as far as these are below `end`. sentence: the sentence of
 * this lane's position. Returns the new number of entries. */
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

/* Finds the kept words at positions [first, end), and, before and after them within the sentences, at least as many kept words
 * as a window has on a side. Sets *own to the number of kept words at [first, end). Returns the index of the first of these,
 * plus the number of all entries << 16. */
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
__device__ __forceinline__ void read_row(row<VEC> &r, const table_view &rows, uint32_t id, uint32_t quads, bool on,
                                         hogwild_sums &sums) {
    const char *weights = weights_of<ON_HOST>(rows, on ? id : 0);
    if (ON_HOST) sums.host_rows += on && is_on_host(rows, id);
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        uint32_t quad = i * 32 + lane_number();
        r.v[i] = read_quad_past_cache<F>(weights, quad, on && quad < quads);
    }
}

/* Adds r to a row of the table. old: the row as it was read before. key: made from the table's key and the position; seeds the
 * random bits for rounding bfloat16. */
template <class F, int VEC, bool ON_HOST>
__device__ __forceinline__ void add_to_row(const row<VEC> &r, const row<VEC> &old, const table_view &rows, uint32_t id,
                                           uint32_t quads, uint32_t key, hogwild_sums &sums) {
    char *weights = weights_of<ON_HOST>(rows, id);
    if (ON_HOST) sums.host_rows += is_on_host(rows, id);
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        uint32_t quad = i * 32 + lane_number();
        if (quad < quads)
            gain_quad<F, ON_HOST>(weights, quad, old.v[i], r.v[i], ON_HOST && is_on_host(rows, id), row_key(key, id));
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

/* Returns the negative that this lane draws for slot `slot` of an example, or DRAW_NONE. number: the example's position in the
 * corpus; middle: the word at that position. */
static __device__ __forceinline__ uint32_t draw_slot(const hogwild_job &job, uint64_t number, uint32_t middle,
                                                     uint32_t slot, bool on) {
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
    uint64_t at_once = (blocks ? blocks * WARPS : warps) * GRAIN; /* number of positions that are divided into small pieces */
    job->node_limit = (float)HOGWILD_NODE_AT_ONCE / (float)(blocks ? blocks * WARPS : warps);
    job->large_pieces = job->count > at_once ? (job->count - at_once) / GRAIN : 0;
    kernel<<<blocks ? (unsigned)blocks : 1, 32 * (unsigned)(blocks ? WARPS : warps), 0, stream>>>(*job);
    CK_LAUNCH("window_kernel");
    return 0;
}

#endif
