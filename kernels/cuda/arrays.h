/* arrays: the sizes of all arrays that the CUDA backend keeps. The CUDA files allocate arrays of these sizes; estimate.c adds
 * the sizes up, even on a machine without a GPU. So this header includes no CUDA header. */
#ifndef SPTX_CUDA_ARRAYS_H
#define SPTX_CUDA_ARRAYS_H

#include "kernels/backend.h"

#define PINNED_PAGE    ((uint64_t)2 << 20)  /* bytes of a huge page: rows in host memory occupy whole huge pages */
#define TRANSFER_BYTES ((uint64_t)16 << 20) /* bytes that table_read and table_write transfer at a time: hundreds of records even of the widest
                                             * kind */

enum {
    GPU_ARRAY_ALIGN = 256, /* the size in bytes of a growing array is rounded up to a multiple of this */
    ITEM_MOST = 32,        /* most gradients of a row that one work item of the update sums; a row with more occurrences is divided into several
                            * items */
    CORRECTIONS = 4096     /* constants of bias correction are kept for this many numbers of updates */
};

static inline uint64_t round_up(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

/* ---- elements of arrays ---- */

/* A work item of an update: sums the gradients of one distinct row, at places first .. first + count - 1 of the row set's order. If partial is
 * DRAW_NONE, it then updates distinct row `row`. Otherwise the row has several items, and this one writes its sum to row `partial` of the partial
 * sums. */
struct item {
    uint32_t row, first, count, partial;
};

/* Counts of a batch that only the GPU reads, so the host never waits for them. */
struct batch_counts {
    uint32_t distinct[2], cold_first[2], items[2], partials[2], longs[2], forwarded[2];
    uint32_t blocks, targets, contexts, terms; /* the batch's exact sizes (batch_sizes has upper bounds of them) */
    uint32_t too_long;                         /* if an example has too many positives for a block, their number; 0: every example fits */
    uint32_t begun;                            /* number of thread blocks that have started, in kernels that wait for other ranks (step_dots.cuh) */
    unsigned long long pairs;
    unsigned long long empty_terms; /* number of terms that are not computed because their slots have no row */
    unsigned long long walked;      /* number of the batch's positions that are in walks, not after their ends */
};

/* The choice of a batch's examples, which is read by the kernels that make them. */
struct example_request {
    struct example_source source; /* its pointers are addresses on the GPU */
    struct shuffle order;         /* shuffled order of the epoch's examples; used only if the source shuffles */
    uint64_t first, count;
    uint32_t epoch;
    int held_out;
};

/* The numbers of blocks, targets, contexts and terms of one example. */
struct need {
    uint32_t blocks, targets;
    uint64_t contexts, terms;
};

/* A batch's exact sizes, for which the host waits if it knows no upper bounds. */
struct counted_sizes {
    struct need total;
    uint32_t too_long;
};

/* ---- bytes of each array ---- */

/* Bytes of each array of a row set with n ids. */
struct row_set_bytes {
    uint64_t ids, distinct, distinct_ids, distinct_starts, order, items, longs; /* distinct_ids: bytes of one of its copies */
};
static inline struct row_set_bytes row_set_bytes(uint64_t n) {
    struct row_set_bytes bytes;
    bytes.ids = bytes.distinct = bytes.distinct_ids = bytes.order = n * sizeof(uint32_t);
    bytes.distinct_starts = (n + 1) * sizeof(uint32_t);
    bytes.items = n * sizeof(struct item);
    bytes.longs = (n / ITEM_MOST + 1) * sizeof(struct item);
    return bytes;
}

/* Returns the bytes of an array that contains, for each of n targets or n contexts of a batch, the number of its block. */
static inline uint64_t block_of_bytes(uint64_t n) {
    return n * sizeof(uint32_t);
}

/* Returns the bytes of an array with the weights of this number of contexts. */
static inline uint64_t weight_bytes(uint64_t contexts, int weighted) {
    return weighted ? contexts * sizeof(float) : 0;
}

/* Bytes of the arrays whose sizes depend on a batch's blocks. */
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

/* Returns the bytes of the array `forward` (cuda.cuh) for up to `rows` cold rows. */
static inline uint64_t forward_bytes(uint64_t rows) {
    return rows * sizeof(uint32_t);
}
/* Returns the bytes of a copy of a row set's ids on the host, needed if the host's threads move the rows. */
static inline uint64_t host_ids_bytes(uint64_t occurrences) {
    return occurrences * sizeof(uint32_t);
}

/* Bytes of the arrays in which a step sums gradients; each of their rows has `span` floats. */
struct sum_bytes {
    uint64_t gradients, partials, context_gradients;
};
/* Returns an upper bound of a step's number of partial sums: twice the number of full work items. Only rows with several items have partial sums. */
static inline uint64_t most_partials(uint64_t occurrences) {
    return 2 * occurrences / ITEM_MOST + 2;
}
static inline struct sum_bytes sum_bytes(uint64_t targets, uint64_t contexts, uint64_t span, int one_vector) {
    uint64_t row = span * sizeof(float);
    struct sum_bytes bytes;
    bytes.gradients = targets * row;
    bytes.partials = (most_partials(targets) + most_partials(contexts)) * row;
    bytes.context_gradients = one_vector ? 0 : contexts * row;
    return bytes;
}

/* Bytes of the arrays for step_learn.cuh: a score for each term; a length for each place if scores are cosines; a vector for each block if targets
 * are pooled. */
struct learn_bytes {
    uint64_t scores, lengths, pooled;
};
static inline struct learn_bytes learn_bytes(uint64_t blocks, uint64_t places, uint64_t terms, uint64_t span, int cosines, int pooled) {
    struct learn_bytes bytes;
    bytes.scores = terms * sizeof(float);
    bytes.lengths = cosines ? places * sizeof(float) : 0;
    bytes.pooled = pooled ? blocks * span * sizeof(float) : 0;
    return bytes;
}

/* Bytes of the arrays of step_shared.cu, by the numbers of examples and negatives: rows scaled to length 1, the score of each pair, 1 / length of
 * each row, each example's score with its positive, and, if targets are multiplied, the gradients of their products. */
/* Returns the number of floats of a row of scores. It is a multiple of 32 (128 bytes), since cuBLAS multiplies TF32 matrices several times as fast
 * if their rows are aligned. */
static inline uint64_t shared_stride(uint64_t negatives) {
    return round_up(negatives, 32);
}
struct shared_bytes {
    uint64_t rows, scores, lengths, gains;
};
static inline struct shared_bytes shared_bytes(uint64_t examples, uint64_t negatives, uint64_t span, int product) {
    struct shared_bytes bytes;
    bytes.rows = (examples + negatives) * span * sizeof(float);
    bytes.scores = examples * shared_stride(negatives) * sizeof(float);
    bytes.lengths = (4 * examples + negatives) * sizeof(float);
    bytes.gains = product ? examples * span * sizeof(float) : 0;
    return bytes;
}

/* Returns how many values ranks exchange in a step: one for each term, then one for each row (for norms), then, if scores are cosines, one for
 * each place. */
static inline uint64_t exchange_slots(uint64_t targets, uint64_t contexts, uint64_t terms, int lengths) {
    return terms + (lengths ? 2 : 1) * (targets + contexts);
}
/* Ranks sum an array in chunks of at most EXCHANGE_CHUNK values (exchange_sum_array() in ranks.cuh). Return the number of values of a chunk that one
 * rank sums, and the slots that a mailbox needs. */
enum { EXCHANGE_CHUNK = 1 << 21 };
static inline uint64_t exchange_share(uint64_t count, uint64_t ranks) {
    return (count + ranks - 1) / ranks;
}
static inline uint64_t exchange_array_slots(uint64_t count, uint64_t ranks) {
    return 2 * exchange_share(count < EXCHANGE_CHUNK ? count : EXCHANGE_CHUNK, ranks);
}
/* Returns the bytes of one rank's mailbox if `ranks` processes run on one machine: two boxes, used alternately, with 8 bytes for each slot of each
 * rank. */
static inline uint64_t exchange_box_bytes(uint64_t slots, uint64_t ranks) {
    return 2 * ranks * slots * sizeof(uint64_t);
}
/* Returns the bytes of an array that keeps each row's gradient sum until the squared norm has been summed over the ranks. */
static inline uint64_t row_sum_bytes(uint64_t targets, uint64_t contexts, uint64_t span) {
    return (targets + contexts) * span * sizeof(float);
}

/* Bytes of a rule's constants: the options from which they were computed, then four floats for each number of updates of a row. */
#define CORRECTIONS_BYTES ((sizeof(struct rule_options) + sizeof(double) + 15) / 16 * 16 + CORRECTIONS * 4 * sizeof(float))

/* Returns the bytes of a bit map with one bit a row, such as the frozen or the known rows. */
static inline uint64_t known_bytes(uint64_t rows) {
    return table_frozen_words(rows) * sizeof(uint32_t);
}

/* Returns the bytes of an array with one struct need for each of `examples` and one for their total. The next function returns an upper bound of
 * the scratch for summing them. */
static inline uint64_t need_bytes(uint64_t examples) {
    return (examples + 1) * sizeof(struct need);
}
static inline uint64_t scan_bytes(uint64_t examples) {
    return examples / 2 + 8192;
}

/* The word at one position of a batch of windows (DRAW_NONE if it is dropped), and the lower 32 bits of its sentence's number. */
struct kept_word {
    uint32_t id, sentence;
};
enum { KEPT_BESIDE = 128 }; /* number of positions before and after a batch whose words are also looked up once for all windows; windows rarely
                             * reach further */
static inline uint64_t kept_bytes(const struct example_source *s, uint64_t examples) {
    return s->mode == EXAMPLE_WINDOW && !s->shuffle ? (examples + 2 * KEPT_BESIDE) * sizeof(struct kept_word) : 0;
}

/* Bytes of the arrays for the walks that contain a given number of positions. */
struct walks_bytes {
    uint64_t ids, starts;
};
static inline struct walks_bytes walks_bytes(const struct walks *w, uint64_t positions) {
    struct walks_bytes bytes = {0, 0};
    if (!w->length) return bytes;
    bytes.ids = walks_at_most(w, positions) * w->length * sizeof(uint32_t);
    bytes.starts = (walks_at_most(w, positions) + 1) * sizeof(uint64_t);
    return bytes;
}
/* Lock-free training draws the walks of this many positions at a time: enough to fill a GPU several times. */
enum { WALKED_AT_ONCE = 1 << 25 };

/* Returns how many batches are made at the same time, each by a builder with its own streams and scratch. A batch is made by a chain of short
 * kernels, which takes longer than the step of a small batch; so with small batches each stage has its own builder. Two builders of large batches
 * already keep the GPU busy, and their scratch is large. */
enum { SMALL_BATCH = 1 << 18 }; /* a batch with at most this number of contexts is small */
static inline unsigned batch_builders(const struct example_source *s, unsigned depth) {
    unsigned large = depth < 2 ? depth : 2;
    int known = s->batch && (s->mode == EXAMPLE_WINDOW || s->positives || s->longest); /* 1: an upper bound of a batch's number of contexts is
                                                                                        * known */
    return known && example_most(s).contexts <= SMALL_BATCH / s->batch ? depth : large;
}

/* sorted_bytes: bytes of an array with one 32-bit number for each of n occurrences (sorted ids, ranks, or 0, 1, 2 ..). sort_bytes: upper bound of
 * the scratch for sorting and ranking them: a copy of the ids, a copy of the places, and a kilobyte for each few thousand occurrences. */
static inline uint64_t sorted_bytes(uint64_t n) {
    return n * sizeof(uint32_t);
}
static inline uint64_t sort_bytes(uint64_t n) {
    return 2 * n * sizeof(uint32_t) + n / 4 + (64 << 10);
}

/* ---- lock-free training ---- */

enum {
    HOGWILD_WIDEST = 32,          /* words on each side of the widest window that window_kernel can train */
    HOGWILD_LARGEST_ROW = 512,    /* most columns of a row that window_kernel can keep in registers */
    HOGWILD_CONTEXTS = 8,         /* number of a block's contexts that the general kernel trains at a time */
    HOGWILD_PROCESSOR_WARPS = 32, /* number of warps of the general kernel on each of the GPU's multiprocessors */
    /* Fewest rows of a table for each warp. If many warps change a row at once, each by a gradient of the same old row, the row changes too much;
     * so small vocabularies are trained by few warps. */
    HOGWILD_WARP_ROWS = 48,
    HOGWILD_LEAST_WARPS = 32,
    HOGWILD_TREE_WARPS = 512 /* most warps if words are predicted along paths in a tree (hogwild.h) */
};
#define HOGWILD_SCRATCH_BYTES ((uint64_t)256 << 20) /* most bytes of scratch for all warps together; exceeded only if one warp alone needs more */

struct hogwild_totals {
    unsigned long long next; /* number of spans of positions that warps have taken so far */
    unsigned long long examples, pairs, sampled_examples, sampled_pairs, sampled_terms, host_rows;
    unsigned long long walked; /* number of positions of walks, without those after a walk's end */
    double loss;
};

/* Returns 1 if the examples are windows whose rows window_kernel can keep in registers. `linear`: result of hogwild_is_linear(). */
static inline int hogwild_in_registers(const struct example_source *s, uint64_t span, int linear) {
    return s->mode == EXAMPLE_WINDOW && s->window <= HOGWILD_WIDEST && !s->distinct && linear && span <= HOGWILD_LARGEST_ROW;
}

/* Sizes of the scratch that one warp of the general kernel needs. */
struct hogwild_scratch {
    uint64_t contexts, targets; /* upper bounds for one block */
    uint64_t vectors;           /* number of vectors of a block: one for each target; 1 if targets are pooled */
    uint64_t window_targets;    /* upper bound of the number of targets of all blocks of one window */
    uint64_t words;             /* size of the scratch in 32-bit words, rounded up so that the next warp's gradients are aligned */
};
static inline struct hogwild_scratch hogwild_scratch(const struct example_source *s) {
    struct example_sizes most = example_most(s);
    struct hogwild_scratch scratch;
    scratch.contexts = most.contexts / most.blocks;
    if (example_predicts_window(s)) scratch.contexts += 2 * (uint64_t)s->window; /* memory for a window's words while the contexts that predict
                                                                                  * them are not known yet */
    scratch.targets = most.targets / most.blocks;
    scratch.vectors = example_vectors(&s->pool, (uint32_t)scratch.targets);
    scratch.window_targets = most.targets;
    uint64_t gradients = 128 * (scratch.vectors + HOGWILD_CONTEXTS), factors = scratch.vectors * scratch.contexts;
    uint64_t words = gradients + factors + scratch.targets + 2 * scratch.contexts + scratch.window_targets;
    scratch.words = round_up(words, 4);
    return scratch;
}

/* Returns how many warps should train a source: more for more words. Rows of documents are not counted, since all warps change rows of words, nor
 * are rows of n-grams, which are many and mostly rare. But a frequent n-gram occurs at more positions than any word, so with n-grams half as many
 * warps train: with all of them training nearly diverged, and half of them were as fast. */
static inline uint64_t hogwild_wanted_warps(const struct example_source *s) {
    uint64_t words = s->documents ? s->rows - s->target_only : s->rows;
    uint64_t warps = (s->subwords.starts ? s->subwords.words / 2 : words) / HOGWILD_WARP_ROWS;
    if (s->paths.starts && warps > HOGWILD_TREE_WARPS) warps = HOGWILD_TREE_WARPS;
    return warps > HOGWILD_LEAST_WARPS ? warps : HOGWILD_LEAST_WARPS;
}

/* Returns the number of warps of the general kernel: `wanted`, limited by the multiprocessors and by the scratch, but at least
 * 1. processors: number of multiprocessors; 0 if unknown. */
static inline uint64_t hogwild_warps(uint64_t wanted, uint64_t processors, const struct hogwild_scratch *scratch) {
    uint64_t most = HOGWILD_SCRATCH_BYTES / (scratch->words * sizeof(uint32_t)), held = processors * HOGWILD_PROCESSOR_WARPS;
    if (processors && held < wanted) wanted = held;
    if (most < wanted) wanted = most;
    return wanted ? wanted : 1;
}

/* defined in estimate.c, which is compiled with and without nvcc */
void cuda_estimate(const struct estimate_request *request, struct estimate *estimate);

#endif
