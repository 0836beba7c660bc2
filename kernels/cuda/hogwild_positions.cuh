/* hogwild_positions: for kernels that train one position after the other: the words around a position, its learning rate, and
 * the keys for its random bits. */
#ifndef SPTX_CUDA_HOGWILD_POSITIONS_CUH
#define SPTX_CUDA_HOGWILD_POSITIONS_CUH

#include "hogwild_pieces.cuh"

struct windows : piece {
    uint32_t targets[2 * WIDEST + 1]; /* target rows of the current position: the words around it and, with documents, its
                                       * document's row at the end */
};

struct position {
    uint64_t number; /* the position in the corpus, which determines what is drawn */
    uint32_t middle; /* the id of the word at the position */
    uint32_t targets;
    float rate;
    uint32_t target_key, context_key; /* seed the random bits for rounding bfloat16 rows */
    bool sampled;
};

/* Lists the words of the window around entry `at` of the piece in p.targets; returns how many there are. */
static __device__ uint32_t list_targets(windows &p, uint32_t at, uint32_t count, uint32_t window) {
    uint32_t found = 0, sentence = p.sentence[at];
    __syncwarp();
    for (uint32_t base = 0; base < 2 * window; base += 32) {
        uint32_t i = base + lane_number(), neighbour = i < window ? at - window + i : at + 1 + i - window;
        bool there =
            i < 2 * window && neighbour < count && p.sentence[neighbour] == sentence; /* below 0 it wraps to a large number */
        unsigned mask = __ballot_sync(ALL_LANES, there);
        if (there) p.targets[found + lanes_below(mask)] = p.id[neighbour];
        found += __popc(mask);
    }
    __syncwarp();
    return found;
}

/* Lists in p.targets the target rows of the example of the piece's entry `at`; returns how many there are. own: the entry's
 * number in piece.own. */
static __device__ uint32_t list_example(const example_source &s, windows &p, uint32_t at, uint32_t count, uint32_t own) {
    uint32_t window = own & 255;
    if (!s.documents || !window) return list_targets(p, at, count, window);
    uint32_t words = list_targets(p, at, count, window - 1);
    if (lane_number() == 0) p.targets[words] = example_document(&s, p.sentence[at]);
    __syncwarp();
    return words + 1;
}

/* Returns rate x (y - sigmoid(logit)) for this lane's logit. */
static __device__ __forceinline__ float coefficient(const position &at, hogwild_sums &sums, float logit, bool alive,
                                                    bool positive) {
    float y = positive ? 1.0f : 0.0f;
    if (at.sampled) {
        sums.loss += alive ? logit_loss(logit, y) : 0.0f;
        sums.sampled_terms += __popc(__ballot_sync(ALL_LANES, alive));
    }
    return alive ? at.rate * gain_of(logit, y) : 0.0f;
}

/* Calls train() for each position of the request that this warp takes and whose window contains words; p.targets then has these
 * words. */
template <class F, class Train>
__device__ __forceinline__ void each_position(const hogwild_job &job, windows &p, Train train) {
    stretch s;
    while (take_stretch(job, s)) {
        uint32_t own, found = fill_piece(job, p, s.first, s.first + s.size, &own), entry = found & 0xFFFF,
                      entries = found >> 16;
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
