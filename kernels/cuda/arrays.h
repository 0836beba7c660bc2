/* arrays: what the CUDA backend keeps in memory and how large, for both compilers: the CUDA files allocate by these sizes,
 * and estimate.c adds them up where there may be no GPU. No CUDA header is read here.
 */
#ifndef SPTX_CUDA_ARRAYS_H
#define SPTX_CUDA_ARRAYS_H

#include "kernels/backend.h"

#define PINNED_PAGE    ((uint64_t)2 << 20)  /* bytes: rows in host memory take whole huge pages */
#define TRANSFER_BYTES ((uint64_t)16 << 20) /* of one copy of table_read and table_write: hundreds of the widest records */

enum {
    GPU_ARRAY_ALIGN = 256, /* bytes: arrays that grow are rounded up to it */
    UPDATE_PIECE = 32,     /* most occurrences that one piece of an update sums */
    CORRECTIONS = 4096     /* numbers of updates whose bias corrections are kept */
};

static inline uint64_t round_up(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

/* ---- what lies in arrays ---- */

/* A piece of work of the update: sum `count` rows of the order from `first`, then update distinct row `row`, or (partial
 * != DRAW_NONE) leave the sum in that row of the partial sums. */
struct item {
    uint32_t row, first, count, partial;
};

/* What the host does not need to know to go on; written by the GPU. */
struct batch_counts {
    uint32_t distinct[2], cold_first[2], items[2], partials[2], longs[2], forwarded[2];
    uint32_t blocks, targets, contexts, terms; /* what the batch has; batch_sizes says at least as much */
    uint32_t too_long;                         /* positives of an example that is, or 0 */
    uint32_t begun;                            /* thread blocks, where they wait for other ranks: dots.cuh */
    unsigned long long pairs;
    unsigned long long empty_terms; /* terms of slots left out */
};

/* What the kernels that make examples are told of a batch. */
struct example_request {
    struct example_source source; /* pointers are the GPU's */
    struct shuffle order;         /* of the epoch's examples, where the source shuffles */
    uint64_t first, count;
    uint32_t epoch;
    int held_out;
};

/* What one example makes. */
struct need {
    uint32_t blocks, targets;
    uint64_t contexts, terms;
};

/* A batch's sizes, where the host must wait for them. */
struct counted_sizes {
    struct need total;
    uint32_t too_long;
    uint32_t repeats; /* contexts whose rows the batch repeats */
};

/* ---- bytes of arrays, each ---- */

/* Of a row set of n ids. */
struct row_set_bytes {
    uint64_t ids, distinct, distinct_ids, distinct_starts, order, items, longs; /* distinct_ids: of each copy */
};
static inline struct row_set_bytes row_set_bytes(uint64_t n) {
    struct row_set_bytes bytes;
    bytes.ids = bytes.distinct = bytes.distinct_ids = bytes.order = n * sizeof(uint32_t);
    bytes.distinct_starts = (n + 1) * sizeof(uint32_t);
    bytes.items = n * sizeof(struct item);
    bytes.longs = (n / UPDATE_PIECE + 1) * sizeof(struct item);
    return bytes;
}

/* Of the block of each id, for n ids of a side. */
static inline uint64_t block_of_bytes(uint64_t n) {
    return n * sizeof(uint32_t);
}

/* Of a batch, by its blocks. */
struct batch_bytes {
    uint64_t target_starts, context_starts, term_starts, positives, block_slot, block_example, coefficients, losses;
};
static inline struct batch_bytes batch_bytes(uint64_t blocks, uint64_t targets, uint64_t terms) {
    struct batch_bytes bytes;
    bytes.target_starts = bytes.context_starts = bytes.term_starts = (blocks + 1) * sizeof(uint32_t);
    bytes.positives = bytes.block_slot = (blocks + 1) * sizeof(uint32_t);
    bytes.block_example = (blocks + 1) * sizeof(uint64_t);
    bytes.coefficients = terms * sizeof(float);
    bytes.losses = (targets > blocks ? targets : blocks) * sizeof(double);
    return bytes;
}

/* Of the slots of up to `rows` cold rows. */
static inline uint64_t forward_bytes(uint64_t rows) {
    return rows * sizeof(uint32_t);
}
/* Of a set's ids where the host's threads move rows. */
static inline uint64_t host_ids_bytes(uint64_t occurrences) {
    return occurrences * sizeof(uint32_t);
}

/* Of a step's sums, for rows of `span` floats. */
struct sum_bytes {
    uint64_t gradients, partials, context_gradients;
};
/* Pieces of rows that have several: at most twice what they fill. */
static inline uint64_t most_partials(uint64_t occurrences) {
    return 2 * occurrences / UPDATE_PIECE + 2;
}
static inline struct sum_bytes sum_bytes(uint64_t targets, uint64_t contexts, uint64_t span, int one_vector) {
    uint64_t row = span * sizeof(float);
    struct sum_bytes bytes;
    bytes.gradients = targets * row;
    bytes.partials = (most_partials(targets) + most_partials(contexts)) * row;
    bytes.context_gradients = one_vector ? 0 : contexts * row;
    return bytes;
}

/* Of the passes of learn.cuh: a score a term; with cosines a length a place; pooled targets' vectors, one a block. */
struct learn_bytes {
    uint64_t scores, lengths, pooled;
};
static inline struct learn_bytes learn_bytes(uint64_t blocks, uint64_t places, uint64_t terms, uint64_t span, int cosines,
                                             int pooled) {
    struct learn_bytes bytes;
    bytes.scores = terms * sizeof(float);
    bytes.lengths = cosines ? places * sizeof(float) : 0;
    bytes.pooled = pooled ? blocks * span * sizeof(float) : 0;
    return bytes;
}

/* What ranks hand to one another in a step has so many slots: its terms, for norms its rows, and behind them where scores are
 * cosines the lengths of its places. */
static inline uint64_t exchange_slots(uint64_t targets, uint64_t contexts, uint64_t terms, int lengths) {
    return terms + (lengths ? 2 : 1) * (targets + contexts);
}
/* Mailboxes of `ranks` on one machine: two in turn, a word of 8 bytes for each slot and rank. */
static inline uint64_t exchange_box_bytes(uint64_t slots, uint64_t ranks) {
    return 2 * ranks * slots * sizeof(uint64_t);
}
/* Gradients of rows, summed, whose squares are on their way over the ranks. */
static inline uint64_t row_sum_bytes(uint64_t targets, uint64_t contexts, uint64_t span) {
    return (targets + contexts) * span * sizeof(float);
}

/* The corrections of a rule by a row's updates: four floats each, behind what they are for. */
#define CORRECTIONS_BYTES ((sizeof(struct rule_options) + sizeof(double) + 15) / 16 * 16 + CORRECTIONS * 4 * sizeof(float))

/* A bit a row: those that are frozen, or known. */
static inline uint64_t known_bytes(uint64_t rows) {
    return table_frozen_words(rows) * sizeof(uint32_t);
}

/* Of making batches of `examples`: what each example needs and where it begins; and what scanning it takes, at most. */
static inline uint64_t need_bytes(uint64_t examples) {
    return (examples + 1) * sizeof(struct need);
}
static inline uint64_t scan_bytes(uint64_t examples) {
    return examples / 2 + 8192;
}

/* A position of a window batch: its word, DRAW_NONE where it is dropped, and the lower half of its sentence's number. */
struct kept_word {
    uint32_t id, sentence;
};
enum { KEPT_BESIDE = 128 }; /* positions on each side of the batch that windows may reach, where few words are dropped */
static inline uint64_t kept_bytes(const struct example_source *s, uint64_t examples) {
    return s->mode == EXAMPLE_WINDOW && !s->shuffle ? (examples + 2 * KEPT_BESIDE) * sizeof(struct kept_word) : 0;
}

/* How many batches are made at the same time, each by a builder with scratch of its own. Making is a chain of short kernels, which
 * for a small batch takes longer than its step: each stage has a builder. Large batches keep the GPU busy with two, and their
 * scratch is large. */
enum { SMALL_BATCH = 1 << 18 }; /* contexts, at most */
static inline unsigned batch_builders(const struct example_source *s, unsigned depth) {
    unsigned large = depth < 2 ? depth : 2;
    int known = s->batch && (s->mode == EXAMPLE_WINDOW || s->positives || s->longest); /* how many contexts it has at most */
    return known && example_most(s).contexts <= SMALL_BATCH / s->batch ? depth : large;
}

/* Of sorting n occurrences: keys, ranks or 0, 1, 2 ..; and what sorting and ranking work in, at most: a copy of keys and
 * one of places, and a look-back of a kilobyte for each few thousand. */
static inline uint64_t sorted_bytes(uint64_t n) {
    return n * sizeof(uint32_t);
}
static inline uint64_t sort_bytes(uint64_t n) {
    return 2 * n * sizeof(uint32_t) + n / 4 + (64 << 10);
}

/* Of finding the rows that n ids of `rows` repeat: two bits a row, and by id its place, its row, and what selecting works
 * in, at most. */
struct repeats_bytes {
    uint64_t bits, places, ids, temporary;
};
static inline struct repeats_bytes repeats_bytes(uint64_t n, uint64_t rows) {
    struct repeats_bytes bytes;
    bytes.bits = 2 * ((rows + 31) / 32) * sizeof(uint32_t);
    bytes.places = bytes.ids = n * sizeof(uint32_t);
    bytes.temporary = n / 64 + 8192;
    return bytes;
}
/* Whether a batch's contexts are many and most of their rows stand once: then sorting the others alone is less work, although
 * the host must wait until it knows how many they are. Windows that have a bound are padded, so that it need not wait. */
static inline int repeats_are_few(const struct example_source *s, uint64_t contexts, uint64_t rows) {
    return s->mode != EXAMPLE_WINDOW && contexts >= (uint64_t)1 << 18 && contexts <= rows / 2;
}

/* ---- lock-free training ---- */

enum {
    HOGWILD_WIDEST = 32,          /* window that the kernel of windows has a place for */
    HOGWILD_LARGEST_ROW = 512,    /* columns that its registers hold */
    HOGWILD_CONTEXTS = 8,         /* of a block that the general kernel works on at once */
    HOGWILD_PROCESSOR_WARPS = 32, /* of the general kernel, on each of the GPU's processors */
    /* Rows of a table for each warp, at least: rows that many warps touch at once move by differences of the same old row
     * and overshoot, so small vocabularies train on few warps. */
    HOGWILD_WARP_ROWS = 48,
    HOGWILD_LEAST_WARPS = 32
};
#define HOGWILD_SCRATCH_BYTES ((uint64_t)256 << 20) /* of all warps, unless one needs more */

struct hogwild_totals {
    unsigned long long next; /* pieces taken so far */
    unsigned long long examples, pairs, sampled_examples, sampled_pairs, sampled_terms, host_rows;
    double loss;
};

/* Whether examples are windows that the kernel of windows trains in registers; `linear`: as hogwild_is_linear() says. */
static inline int hogwild_in_registers(const struct example_source *s, uint64_t span, int linear) {
    return s->mode == EXAMPLE_WINDOW && s->window <= HOGWILD_WIDEST && !s->distinct && linear && span <= HOGWILD_LARGEST_ROW;
}

/* What a warp of the general kernel works in. */
struct hogwild_scratch {
    uint64_t contexts, targets; /* of one block, at most */
    uint64_t vectors;           /* that its targets are to its contexts: as many, or one where they are pooled */
    uint64_t window_targets;    /* of all blocks of one window */
    uint64_t words;             /* 32-bit words for them, rounded up so that the next warp's gradients are aligned */
};
static inline struct hogwild_scratch hogwild_scratch(const struct example_source *s) {
    struct example_sizes most = example_most(s);
    struct hogwild_scratch scratch;
    scratch.contexts = most.contexts / most.blocks;
    scratch.targets = most.targets / most.blocks;
    scratch.vectors = example_vectors(&s->pool, (uint32_t)scratch.targets);
    scratch.window_targets = most.targets;
    uint64_t gradients = 128 * (scratch.vectors + HOGWILD_CONTEXTS), factors = scratch.vectors * scratch.contexts;
    uint64_t words = gradients + factors + scratch.targets + 2 * scratch.contexts + scratch.window_targets;
    scratch.words = round_up(words, 4);
    return scratch;
}

static inline uint64_t hogwild_wanted_warps(uint64_t rows) {
    uint64_t warps = rows / HOGWILD_WARP_ROWS;
    return warps > HOGWILD_LEAST_WARPS ? warps : HOGWILD_LEAST_WARPS;
}

/* Warps of the general kernel: as many of the wanted ones as the processors and the scratch allow, at least one.
 * processors: 0 where they are not known. */
static inline uint64_t hogwild_warps(uint64_t wanted, uint64_t processors, const struct hogwild_scratch *scratch) {
    uint64_t most = HOGWILD_SCRATCH_BYTES / (scratch->words * sizeof(uint32_t)), held = processors * HOGWILD_PROCESSOR_WARPS;
    if (processors && held < wanted) wanted = held;
    if (most < wanted) wanted = most;
    return wanted ? wanted : 1;
}

/* In estimate.c: compiled with or without CUDA. */
void cuda_estimate(const struct estimate_request *request, struct estimate *estimate);

#endif
