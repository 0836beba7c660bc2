/* The planner knows counts, keys and the machine, and allocates nothing. Its estimates of what a run takes beside its
 * tables stand in one place, below; tests compare the sum with what runs take. */
#include "planner.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

/* ---- what a run takes beside its tables ---- */

enum {
    /* CPU, bytes in a stage (kernels/cpu/cpu.h): two copies of a block with its indices; of an id with its block */
    CPU_BLOCK = 2 * 32 + 8 + 8,
    CPU_OCCURRENCE = 2 * 4 + 8,
    CPU_SORT = 16,        /* an occurrence's key and its double, once for all stages */
    CPU_GRAIN = 128,      /* examples of a chunk */
    CPU_CHUNK = 32 << 10, /* what growing a chunk's arrays leaves between them */
    /* CUDA, bytes in a stage (kernels/cuda/cuda.cuh): of a block; of an occurrence: six numbers, its piece of work, its slot */
    CUDA_BLOCK = 28,
    CUDA_OCCURRENCE = 49,
    /* and of what makes batches: an occurrence while it is sorted; an example while it is measured */
    CUDA_SORT = 20,
    CUDA_EXAMPLE = 48,
    CUDA_MAKERS = 2,
    CUDA_PIECE = 64,         /* occurrences of one sum; twice as many sums as fill it may be kept */
    HOGWILD_BATCH = 131072,  /* positions of a piece: between two looks at clock and signals */
    CPU_WINDOW_BATCH = 8192, /* positions */
    CPU_ROW_BATCH = 1024,    /* lists, lines */
    CUDA_BATCH = 16384,
    SMALLEST_BATCH = 256,
};
#define CPU_BASE        (13 * MIB)  /* the program, its libraries, buffers of files */
#define CPU_WORKER      (1 * MIB)   /* a thread's stack and scratch */
#define CUDA_BASE       (320 * MIB) /* host side of the CUDA runtime */
#define CUDA_TRANSFER   (32 * MIB)  /* pinned: rows of the GPU on their way there and back */
#define GPU_RESERVE     (512 * MIB) /* of what is free, where memory.gpu_budget is auto */
#define GPU_SMALL       (16 * MIB)  /* what is too small to count */
#define GPU_STREAM_PART 4           /* the id stream lies on the GPU where it takes a quarter of the budget at most */
#define GPU_STAGE_SHARE 4           /* stages may take a quarter of the budget before train.batch is halved */

/* One NVIDIA H200 host, measured: bytes a second. */
static const double link_each_way = 55e9, device_memory = 4250e9;

/* ---- tables ---- */

struct split {
    uint64_t weights, state; /* bytes a row; state 0 where it shares the record */
    int one;
};

static struct split split_row(const struct record_layout *layout, enum place weights, enum place state) {
    struct record_layout bare = {.dim = layout->dim, .span = layout->span};
    uint64_t all = table_row_bytes(layout, weights, state), alone = table_row_bytes(&bare, weights, weights);
    if (weights == state || (!layout->slots && !layout->counted)) return (struct split){all, 0, 1};
    return (struct split){alone, all - alone, 0};
}

/* On the CPU pinned and gpu are the same plain memory. */
static enum place settle(int wanted, int cuda) {
    if (wanted == CONFIG_FILE) return PLACE_FILE;
    if (wanted == CONFIG_GPU && cuda) return PLACE_GPU;
    return PLACE_PINNED;
}

static void measure_tables(struct plan *plan, int cuda) {
    struct split target = split_row(&plan->layout, plan->target, plan->target_state);
    struct split context = split_row(&plan->layout, plan->context, plan->context_state);
    const struct {
        enum place place;
        uint64_t row, *bytes; /* bytes of a row; of all, whichever of them are hot */
    } parts[] = {{plan->target, target.weights, &plan->target_bytes},
                 {plan->target_state, target.state, &plan->target_state_bytes},
                 {plan->context, context.weights, &plan->context_bytes},
                 {plan->context_state, context.state, &plan->context_state_bytes}};
    plan->one_record_target = target.one, plan->one_record_context = context.one;
    plan->gpu_bytes = plan->hot_bytes = plan->pinned_bytes = plan->plain_bytes = plan->file_bytes = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t *sum = parts[i].place == PLACE_FILE  ? &plan->file_bytes
                        : parts[i].place == PLACE_GPU ? &plan->gpu_bytes
                        : cuda                        ? &plan->pinned_bytes
                                                      : &plan->plain_bytes;
        uint64_t hot = parts[i].place == PLACE_GPU ? 0 : plan->hot_rows;
        *parts[i].bytes = plan->rows * parts[i].row;
        *sum += (plan->rows - hot) * parts[i].row;
        plan->hot_bytes += hot * parts[i].row;
    }
}

/* Bytes of one row in stores of this place, over a table's weights and state. */
static uint64_t row_in(const struct plan *plan, enum place weights, enum place state, enum place place) {
    struct split row = split_row(&plan->layout, weights, state);
    return (weights == place ? row.weights : 0) + (state == place && !row.one ? row.state : 0);
}
/* Bytes of one row that cross the link, unless it is hot. */
static uint64_t off_gpu_row(const struct plan *plan, enum place weights, enum place state) {
    return row_in(plan, weights, state, PLACE_PINNED) + row_in(plan, weights, state, PLACE_FILE);
}
/* Bytes of the GPU that one hot row takes. */
static uint64_t hot_row(const struct plan *plan) {
    return off_gpu_row(plan, plan->target, plan->target_state) + off_gpu_row(plan, plan->context, plan->context_state);
}

/* ---- what a batch touches ----
 *
 * Rows are pooled by count, sixteen pools to a doubling: within one they are alike, so the expected distinct rows
 * 1 - (1 - p)^n of 15 million rows are a thousand powers. */

enum { POOLS = 1 + 64 * 16 };
struct pools {
    double rows[POOLS], count[POOLS], kept[POOLS], drawn[POOLS]; /* sums over a pool's rows; drawn: of log-uniform */
};

static unsigned pool_of(uint64_t count) {
    if (count == 0) return 0;
    unsigned high = 63 - (unsigned)__builtin_clzll(count);
    uint64_t rest = high >= 4 ? count >> (high - 4) : count << (4 - high);
    return 1 + high * 16 + (unsigned)(rest & 15);
}

static void fill_pools(struct pools *pools, const struct vocab *vocab, const struct examples *examples, uint64_t from) {
    int by_id = examples->source.law == NEGATIVE_LOG_UNIFORM;
    memset(pools, 0, sizeof *pools);
    for (uint64_t row = from; row < vocab->size; row++) {
        unsigned at = pool_of(vocab->counts[row]);
        pools->rows[at]++;
        pools->count[at] += (double)vocab->counts[row];
        pools->kept[at] += (double)vocab->counts[row] * examples_kept(&examples->source, row);
        if (by_id && row) pools->drawn[at] += log1p(1 / (double)row) / log((double)vocab->size);
    }
}

static double total(const double *values) {
    double sum = 0;
    for (int i = 0; i < POOLS; i++) sum += values[i];
    return sum;
}

struct touches {
    double targets, positives, negatives; /* of a batch, repeats counted */
    double target_draws, positive_draws; /* those that are independent: a word is the target of all windows around it */
};

/* What the touches of a batch are drawn from. Targets and positives come from the corpus, each place once an epoch:
 * a row with count c is missed by a share s of all places with chance (1 - s)^c. Negatives come from their law. */
struct urn {
    double places; /* kept tokens of the corpus */
    double lines;  /* adjacency: its targets are the first of each line */
    double rows;
    double chance[POOLS]; /* of a row of the pool to be one negative */
};

static void unigram_chances(double *chance, const struct pools *pools, double power) {
    double sum = 0;
    for (int i = 1; i < POOLS; i++)
        if (pools->rows[i] > 0) {
            chance[i] = pow(pools->count[i] / pools->rows[i], power);
            sum += chance[i] * pools->rows[i];
        }
    for (int i = 1; i < POOLS && sum > 0; i++) chance[i] /= sum;
}

/* `all`: the pools of the whole vocabulary. */
static void fill_urn(struct urn *urn, const struct pools *all, const struct config *config,
                     const struct examples *examples) {
    const struct example_source *source = &examples->source;
    urn->places = total(all->kept);
    urn->lines = source->mode == EXAMPLE_ADJACENCY ? (double)source->sentences : 0;
    urn->rows = (double)source->rows;
    if (source->law == NEGATIVE_UNIGRAM)
        unigram_chances(urn->chance, all, config->negatives_power);
    else
        for (int i = 0; i < POOLS; i++)
            urn->chance[i] = source->law == NEGATIVE_UNIFORM ? 1 / urn->rows
                             : all->rows[i] > 0              ? all->drawn[i] / all->rows[i]
                                                             : 0;
}

/* (1 - share)^times */
static double missed(double share, double times) {
    return share >= 1 ? (times > 0 ? 0 : 1) : exp(times * log1p(-share));
}

static double corpus_missed(const struct urn *urn, const struct pools *pools, int pool, double draws) {
    return urn->places > 0 ? missed(draws / urn->places, pools->kept[pool] / pools->rows[pool]) : 1;
}

/* Lines begin with rows that no count tells: as if each row had as many of them, or some none and the others one. */
static double line_missed(const struct urn *urn, double draws) {
    double having = fmin(1, urn->lines / urn->rows), each = fmax(1, urn->lines / urn->rows);
    return 1 - having * (1 - missed(draws / urn->lines, each));
}

static double distinct_targets(const struct pools *pools, const struct urn *urn, struct touches touches) {
    double sum = 0;
    for (int i = 0; i < POOLS; i++) {
        if (pools->rows[i] == 0) continue;
        double none = urn->lines > 0 ? line_missed(urn, touches.target_draws)
                                     : corpus_missed(urn, pools, i, touches.target_draws);
        sum += pools->rows[i] * (1 - none);
    }
    return sum;
}
static double distinct_contexts(const struct pools *pools, const struct urn *urn, struct touches touches) {
    double sum = 0;
    for (int i = 0; i < POOLS; i++) {
        if (pools->rows[i] == 0) continue;
        double none = corpus_missed(urn, pools, i, touches.positive_draws) * missed(urn->chance[i], touches.negatives);
        sum += pools->rows[i] * (1 - none);
    }
    return sum;
}

/* ---- a batch ---- */

/* Everything that settling passes along. */
struct planning {
    struct plan *plan;
    const struct config *config;
    const struct vocab *vocab;
    const struct examples *examples;
    struct examples_expected expected;
    struct pools pools;
    struct urn urn;
    struct touches touches;
    struct example_sizes room; /* of a stage: for the largest batch */
    int bounded;               /* known before anything is drawn */
    unsigned threads;
    int cuda, hogwild;
    uint64_t budget; /* of the GPU */
};

/* Lock-free training makes batches of the examples that are held out alone, one at a time. */
static double share_made(const struct planning *p) {
    return p->hogwild ? p->config->train_held_out : 1;
}
static double stages(const struct planning *p) {
    return p->hogwild ? p->config->train_held_out > 0 : (double)p->config->memory_depth;
}

static uint64_t whole_batch(const struct planning *p) {
    return examples_batch(p->examples, p->plan->batch);
}

static int one_target(const struct planning *p) {
    return p->examples->source.mode != EXAMPLE_WINDOW || p->examples->source.per_pair;
}

/* Where the largest batch is not known it is taken for a mean one. */
static void expect_room(struct planning *p) {
    const struct example_source *source = &p->examples->source;
    double share = share_made(p), blocks = p->plan->batch_blocks * share;
    p->bounded = !p->hogwild && (p->cuda || source->mode != EXAMPLE_WINDOW) && example_bound(source, whole_batch(p), &p->room);
    if (p->bounded) return;
    p->room.blocks = (uint64_t)blocks;
    p->room.targets = (uint64_t)(p->touches.targets * share);
    p->room.contexts = (uint64_t)((p->touches.positives + p->touches.negatives) * share);
    p->room.terms = (uint64_t)(blocks * p->expected.targets * p->expected.contexts);
}

static void expect_batch(struct planning *p) {
    struct plan *plan = p->plan;
    const struct examples_expected *e = &p->expected;
    int window = p->examples->source.mode == EXAMPLE_WINDOW;
    double examples = (double)whole_batch(p);
    double positives = window ? 1 : e->pairs, words = examples * total(p->pools.kept) / total(p->pools.count);
    plan->batch_blocks = examples * e->blocks;
    plan->batch_pairs = plan->batch_blocks * e->pairs;
    p->touches.targets = plan->batch_blocks * e->targets;
    p->touches.positives = plan->batch_blocks * positives;
    p->touches.negatives = plan->batch_blocks * (e->contexts > positives ? e->contexts - positives : 0);
    p->touches.target_draws = window ? fmin(words, p->touches.targets) : p->touches.targets;
    p->touches.positive_draws = window ? fmin(words, p->touches.positives) : p->touches.positives;
    plan->batch_targets = distinct_targets(&p->pools, &p->urn, p->touches);
    plan->batch_contexts = distinct_contexts(&p->pools, &p->urn, p->touches);
    expect_room(p);
}

static void measure_room(struct planning *p) {
    if (!p->bounded && stages(p) > 0) p->room = examples_room(p->examples, p->plan->batch, share_made(p));
}

static uint64_t cpu_stage_bytes(const struct planning *p) {
    const struct example_sizes *room = &p->room;
    double targets = (double)room->targets, contexts = (double)room->contexts;
    double stage = (double)room->blocks * CPU_BLOCK + (targets + contexts) * CPU_OCCURRENCE + (double)room->terms * 4 +
                   targets * p->plan->layout.span * 4.0;
    double sort = (targets > contexts ? targets : contexts) * CPU_SORT;
    stage += (double)whole_batch(p) / CPU_GRAIN * CPU_CHUNK * share_made(p);
    return p->threads * CPU_WORKER + (uint64_t)(stage * stages(p) + sort);
}

/* Rows of a stage that are not on the GPU need slots there, as many as it names; that hot ones need none is left as room. */
static double slot_bytes(const struct planning *p) {
    const struct plan *plan = p->plan;
    double rows = (double)plan->rows;
    return fmin((double)p->room.targets, rows) * (double)off_gpu_row(plan, plan->target, plan->target_state) +
           fmin((double)p->room.contexts, rows) * (double)off_gpu_row(plan, plan->context, plan->context_state);
}

static uint64_t cuda_stage_bytes(const struct planning *p) {
    const struct plan *plan = p->plan;
    double blocks = (double)p->room.blocks, targets = (double)p->room.targets, contexts = (double)p->room.contexts;
    double row = plan->layout.span * 4.0;
    if (stages(p) == 0) return 0;
    double stage = blocks * CUDA_BLOCK + (targets + contexts) * CUDA_OCCURRENCE + (double)p->room.terms * 4 + targets * 8 +
                   slot_bytes(p);
    double sums = (targets + 2 * fmax(targets, contexts) / CUDA_PIECE) * row;
    if (!one_target(p)) sums += contexts * row;
    double making = (targets + contexts) * CUDA_SORT + (double)plan->batch * CUDA_EXAMPLE;
    return (uint64_t)(stage * stages(p) + sums + making * (p->config->memory_depth > 1 ? CUDA_MAKERS : 1));
}

/* Pinned copies of the slots, through which the host's threads put a batch's rows back: those of files, and those of
 * blocks of one target (kernels/cuda/rows.cu). */
static uint64_t cuda_staging_bytes(const struct planning *p) {
    return one_target(p) || p->plan->file_bytes > 0 ? (uint64_t)(slot_bytes(p) * stages(p)) : 0;
}

static uint64_t stage_bytes(const struct planning *p) {
    return p->cuda ? cuda_stage_bytes(p) : cpu_stage_bytes(p);
}

static void settle_batch(struct planning *p) {
    struct plan *plan = p->plan;
    int asked = p->config->train_batch != COUNT_AUTO, window = p->examples->source.mode == EXAMPLE_WINDOW;
    plan->batch = asked        ? p->config->train_batch
                  : p->hogwild ? HOGWILD_BATCH
                  : p->cuda    ? CUDA_BATCH
                  : window     ? CPU_WINDOW_BATCH
                               : CPU_ROW_BATCH;
    expect_batch(p);
    while (!asked && p->cuda && plan->batch > SMALLEST_BATCH && stage_bytes(p) > p->budget / GPU_STAGE_SHARE) {
        plan->batch /= 2;
        expect_batch(p);
    }
    measure_room(p);
    plan->stage_bytes = stage_bytes(p);
    if (!p->bounded) plan->room = p->room;
}

/* ---- places ---- */

static uint64_t gpu_but_stream(const struct planning *p) {
    return p->plan->gpu_bytes + p->plan->stage_bytes + p->plan->draw_bytes + GPU_SMALL;
}

/* What a GPU reads of the corpus: its ids and where sentences begin. */
static uint64_t stream_on_gpu(const struct planning *p) {
    const struct example_source *source = &p->examples->source;
    return source->tokens * sizeof *source->ids + (source->sentences + 1) * sizeof *source->starts;
}

/* Bytes of the corpus ids on the GPU; 0: they are read over the link, from pinned host memory. */
static uint64_t gpu_stream(const struct planning *p) {
    uint64_t bytes = stream_on_gpu(p);
    return bytes <= p->budget / GPU_STREAM_PART && gpu_but_stream(p) + bytes <= p->budget ? bytes : 0;
}

/* What the GPU takes whichever rows are hot. */
static uint64_t gpu_fixed(const struct planning *p) {
    return gpu_but_stream(p) + gpu_stream(p);
}

/* Before the batch is known, "auto" is the host. */
static void settle_asked_places(struct planning *p) {
    const struct config *config = p->config;
    p->plan->target = settle(config->memory_target, p->cuda);
    p->plan->target_state = settle(config->memory_target_state, p->cuda);
    p->plan->context = settle(config->memory_context, p->cuda);
    p->plan->context_state = settle(config->memory_context_state, p->cuda);
    measure_tables(p->plan, p->cuda);
}

/* "auto": on the GPU where it fits beside all that is there already. Contexts come first: a step touches more of them.
 */
static void settle_auto_places(struct planning *p) {
    const struct config *config = p->config;
    struct plan *plan = p->plan;
    const struct {
        enum place *place;
        int wanted;
    } parts[] = {{&plan->context, config->memory_context},
                 {&plan->context_state, config->memory_context_state},
                 {&plan->target, config->memory_target},
                 {&plan->target_state, config->memory_target_state}};
    for (int i = 0; i < 4 && p->cuda; i++) {
        if (parts[i].wanted != CONFIG_PLACE_AUTO) continue;
        *parts[i].place = PLACE_GPU;
        measure_tables(plan, p->cuda);
        if (gpu_fixed(p) <= p->budget) continue;
        *parts[i].place = PLACE_PINNED;
        measure_tables(plan, p->cuda);
    }
}

static void settle_hot_rows(struct planning *p) {
    struct plan *plan = p->plan;
    uint64_t row = p->cuda ? hot_row(plan) : 0, fixed = gpu_fixed(p), wanted = p->config->memory_hot_rows;
    uint64_t fitting = row && p->budget > fixed ? (p->budget - fixed) / row : 0;
    plan->hot_rows = row == 0 ? 0 : wanted == COUNT_AUTO ? fitting : wanted;
    if (plan->hot_rows > plan->rows) plan->hot_rows = plan->rows;
    measure_tables(plan, p->cuda); /* hot rows are not on the host */
}

/* Share of target touches whose row is hot. */
static double hot_hits(const struct planning *p) {
    const struct example_source *source = &p->examples->source;
    double hot = 0, all = 0;
    uint64_t stride = source->sentences / 65536 + 1;
    if (p->plan->hot_rows == 0) return 0;
    if (source->mode == EXAMPLE_ADJACENCY) {
        for (uint64_t i = 0; i < source->sentences; i += stride) {
            all++;
            hot += source->ids[source->starts[i]] < p->plan->hot_rows;
        }
        return all > 0 ? hot / all : 0;
    }
    for (uint64_t row = 0; row < p->vocab->size; row++) {
        double touched = (double)p->vocab->counts[row] * examples_kept(source, row);
        all += touched;
        if (row < p->plan->hot_rows) hot += touched;
    }
    return all > 0 ? hot / all : 0;
}

/* ---- traffic ---- */

/* Bytes that every step must move: each distinct record read and written once, each further touch reading its weights.
 */
static void measure_traffic(struct planning *p) {
    struct plan *plan = p->plan;
    double weights = 4.0 * plan->layout.span, contexts = p->touches.positives + p->touches.negatives;
    double target = (double)table_row_bytes(&plan->layout, plan->target, plan->target_state);
    double context = (double)table_row_bytes(&plan->layout, plan->context, plan->context_state);
    plan->memory_bytes = 2 * (plan->batch_targets * target + plan->batch_contexts * context) +
                         weights * fmax(0, p->touches.targets - plan->batch_targets) +
                         weights * fmax(0, contexts - plan->batch_contexts);
    plan->link_bytes = plan->floor_pairs = 0;
    if (!p->cuda) return;
    struct pools *cold = &p->pools; /* the whole vocabulary's are not needed any more */
    fill_pools(cold, p->vocab, p->examples, plan->hot_rows);
    double rows =
        distinct_targets(cold, &p->urn, p->touches) * (double)off_gpu_row(plan, plan->target, plan->target_state) +
        distinct_contexts(cold, &p->urn, p->touches) * (double)off_gpu_row(plan, plan->context, plan->context_state);
    plan->link_bytes = 2 * rows;
    double seconds = fmax(rows / link_each_way, plan->memory_bytes / device_memory);
    plan->floor_pairs = seconds > 0 ? plan->batch_pairs / seconds : 0;
}

/* ---- whether it fits ---- */

static void measure_rest(struct planning *p) {
    struct plan *plan = p->plan;
    const struct vocab *vocab = p->vocab;
    plan->vocab_bytes = vocab->size * 8 + (vocab->size + 1) * 8 + vocab->offsets[vocab->size] + vocab->slot_count * 4;
    plan->draw_bytes = (p->examples->keep ? vocab->size * sizeof *p->examples->keep : 0) +
                       (p->examples->alias ? vocab->size * sizeof *p->examples->alias : 0);
    plan->stream_bytes = 128 + plan->tokens * 4 + (plan->sentences + 1) * 8;
}

/* Of a table on its way to disk. */
static uint64_t chunk_bytes(const struct plan *plan) {
    uint64_t table = plan->rows * plan->layout.packed;
    return 2 * (table < TABLE_CHUNK ? table : TABLE_CHUNK);
}

static void sum_up(struct planning *p) {
    struct plan *plan = p->plan;
    uint64_t held = plan->vocab_bytes + plan->draw_bytes; /* there already, so not in what is available */
    plan->host_available = mem_available() + held;
    if (p->cuda) {
        plan->stream_gpu = gpu_stream(p);
        plan->stream_pinned = plan->stream_gpu ? 0 : stream_on_gpu(p);
        plan->host_needed = plan->pinned_bytes + plan->stream_pinned + held + chunk_bytes(plan) + CUDA_BASE +
                            CUDA_TRANSFER + p->threads * CPU_WORKER + cuda_staging_bytes(p);
        plan->gpu_needed = gpu_fixed(p) + plan->hot_bytes;
        plan->gpu_available = p->budget;
    } else {
        plan->host_needed = plan->plain_bytes + held + chunk_bytes(plan) + plan->stage_bytes + CPU_BASE;
        plan->gpu_needed = plan->gpu_available = 0;
    }
}

static void advise_host(struct planning *p) {
    struct plan *plan = p->plan;
    char need[TEXT_ROOM], have[TEXT_ROOM];
    uint64_t tables = plan->pinned_bytes + plan->plain_bytes, rest = plan->host_needed - tables;
    uint64_t room = plan->host_available > rest ? plan->host_available - rest : 0;
    uint64_t dim = tables ? (uint64_t)((double)plan->dim * ((double)room / (double)tables)) / 4 * 4 : 0;
    int n = snprintf(plan->advice, sizeof plan->advice,
                     "it needs %s of memory and %s can be had: ", text_of_bytes(need, plan->host_needed),
                     text_of_bytes(have, plan->host_available));
    char *at = plan->advice + n;
    size_t left = sizeof plan->advice - (size_t)n;
    if (rest > plan->host_available && rest - plan->stream_pinned <= plan->host_available)
        snprintf(at, left,
                 "%s of it are the corpus ids, which the GPU reads from pinned memory; raise memory.gpu_budget to %s, or "
                 "use device.backend = cpu",
                 text_of_bytes(have, plan->stream_pinned), text_of_bytes(need, GPU_STREAM_PART * plan->stream_pinned));
    else if (rest > plan->host_available || plan->stage_bytes > plan->host_available / 2)
        snprintf(at, left, "lower train.batch (it is %" PRIu64 ") or corpus.max_vocab", plan->batch);
    else if (dim >= 4)
        snprintf(at, left,
                 "lower model.dim to %" PRIu64 ", or keep tables in files (memory.target = file, "
                 "memory.target_state = file; the same keys for context)",
                 dim);
    else
        snprintf(at, left,
                 "keep tables in files (memory.target = file, memory.target_state = file; the same keys for "
                 "context), or lower corpus.max_vocab");
}

/* Bytes of the context table on the GPU. */
static uint64_t contexts_on_gpu(const struct plan *plan) {
    return plan->rows * row_in(plan, plan->context, plan->context_state, PLACE_GPU);
}
static uint64_t targets_on_gpu(const struct plan *plan) {
    return plan->rows * row_in(plan, plan->target, plan->target_state, PLACE_GPU);
}

static void advise_gpu(struct planning *p) {
    struct plan *plan = p->plan;
    char need[TEXT_ROOM], have[TEXT_ROOM];
    uint64_t fixed = gpu_fixed(p), over = fixed > p->budget ? fixed - p->budget : 0;
    uint64_t others = gpu_but_stream(p) - plan->stage_bytes, asked = whole_batch(p), batch = asked;
    int n = snprintf(plan->advice, sizeof plan->advice,
                     "it needs %s of the GPU and %s can be had: ", text_of_bytes(need, plan->gpu_needed),
                     text_of_bytes(have, p->budget));
    char *at = plan->advice + n;
    size_t left = sizeof plan->advice - (size_t)n;
    uint64_t stages_room = p->budget > others ? p->budget - others : 0;
    while (batch > SMALLEST_BATCH && plan->stage_bytes / asked * batch > stages_room) batch /= 2;
    if (over == 0)
        snprintf(at, left, "lower memory.hot_rows to %" PRIu64 ", or set it to auto",
                 (p->budget - fixed) / hot_row(plan));
    else if (targets_on_gpu(plan) >= over)
        snprintf(at, left, "set memory.target = pinned and memory.target_state = pinned");
    else if (contexts_on_gpu(plan) >= over)
        snprintf(at, left, "set memory.context = pinned and memory.context_state = pinned");
    else if (stages_room > 0 && batch < asked)
        snprintf(at, left, "lower train.batch to %" PRIu64, batch);
    else if (plan->gpu_bytes)
        snprintf(
            at, left,
            "set all four of memory.target, target_state, context and context_state to pinned, or lower train.batch");
    else
        snprintf(at, left, "raise memory.gpu_budget, or lower train.batch or memory.depth");
}

static void judge(struct planning *p) {
    struct plan *plan = p->plan;
    plan->fits_host = plan->host_needed <= plan->host_available;
    plan->fits_gpu = plan->gpu_needed <= plan->gpu_available;
    plan->fits = plan->fits_host && plan->fits_gpu;
    if (!plan->fits_host)
        advise_host(p);
    else if (!plan->fits_gpu)
        advise_gpu(p);
}

/* ---- all ---- */

static uint64_t gpu_budget(const struct config *config, const struct backend_info *machine) {
    uint64_t room = machine->gpu_free > GPU_RESERVE ? machine->gpu_free - GPU_RESERVE : 0;
    if (config->memory_gpu_budget == COUNT_AUTO) return room;
    return config->memory_gpu_budget < machine->gpu_free ? config->memory_gpu_budget : machine->gpu_free;
}

static void make(struct planning *p) {
    struct plan *plan = p->plan;
    struct rule_options rule = tables_rule(p->config);
    plan->rows = p->vocab->size;
    plan->tokens = p->examples->source.tokens;
    plan->sentences = p->examples->source.sentences;
    plan->dim = (uint32_t)p->config->model_dim;
    plan->layout = table_layout(&rule, plan->dim);
    p->expected = examples_expect(p->examples);
    fill_pools(&p->pools, p->vocab, p->examples, 0);
    fill_urn(&p->urn, &p->pools, p->config, p->examples);
    measure_rest(p);
    settle_asked_places(p);
    settle_batch(p);
    settle_auto_places(p);
    settle_hot_rows(p);
    plan->hot_hits = hot_hits(p);
    sum_up(p);
    judge(p);
    measure_traffic(p);
}

int planner_make(struct plan *plan, const struct config *config, const struct vocab *vocab,
                 const struct examples *examples, const struct backend_info *machine, int cuda) {
    *plan = (struct plan){0};
    struct planning *p = mem_zalloc(1, sizeof *p, "the plan");
    if (!p) return -1;
    p->plan = plan;
    p->config = config;
    p->vocab = vocab;
    p->examples = examples;
    p->threads = machine->threads ? machine->threads : 1;
    p->cuda = cuda;
    p->hogwild = config->train_update == UPDATE_HOGWILD;
    p->budget = cuda ? gpu_budget(config, machine) : 0;
    make(p);
    free(p);
    return 0;
}

/* ---- printing ---- */

static void line(int to_stdout, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void line(int to_stdout, const char *name, const char *format, ...) {
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (to_stdout)
        printf("%-16s %s\n", name, text);
    else
        note("%-16s %s", name, text);
}

static const char *place_name(const struct plan *plan, enum place place) {
    if (place == PLACE_FILE) return "in a file";
    if (place == PLACE_GPU) return "on the GPU";
    return plan->gpu_available ? "pinned on the host" : "in memory";
}

static void print_part(const struct plan *plan, int to_stdout, const char *name, enum place place, uint64_t bytes,
                       int shared) {
    char text[TEXT_ROOM];
    if (bytes)
        line(to_stdout, name, "%10s  %s", text_of_bytes(text, bytes), place_name(plan, place));
    else if (shared && (plan->layout.slots || plan->layout.counted))
        line(to_stdout, name, "%10s  in the same records", "");
    else
        line(to_stdout, name, "%10s", "none");
}

static void print_bytes(int to_stdout, const char *name, uint64_t bytes, const char *remark) {
    char text[TEXT_ROOM];
    line(to_stdout, name, "%10s%s%s", text_of_bytes(text, bytes), *remark ? "  " : "", remark);
}

static int cold_targets(const struct plan *plan) {
    return plan->gpu_available && plan->hot_rows < plan->rows &&
           off_gpu_row(plan, plan->target, plan->target_state) > 0;
}

static void print_step(const struct plan *plan, const struct config *config, int to_stdout) {
    char a[TEXT_ROOM], b[TEXT_ROOM], c[TEXT_ROOM], d[TEXT_ROOM];
    const char *unit = config->examples_mode == MODE_WINDOW ? "positions"
                       : config->examples_mode == MODE_LIST && config->examples_targets == TARGETS_ALL
                           ? "list positions"
                       : config->examples_mode == MODE_LIST ? "lists"
                                                            : "lines";
    if (config->train_update == UPDATE_HOGWILD) {
        line(to_stdout, "a step", "lock-free, in pieces of %s %s", text_of_count(a, plan->batch), unit);
        if (cold_targets(plan))
            line(to_stdout, "  over the link",
                 "%.1f%% of target touches, one by one; for text, train.update = batch with train.batch = 65536 and "
                 "optimizer.clip = 30 moves a row once a batch and is no worse",
                 100 * (1 - plan->hot_hits));
        return;
    }
    line(to_stdout, "a step", "%s %s: %s examples, %s pairs", text_of_count(a, plan->batch), unit,
         text_of_count(b, (uint64_t)(plan->batch_blocks + 0.5)), text_of_count(c, (uint64_t)(plan->batch_pairs + 0.5)));
    line(to_stdout, "  distinct rows", "%s targets, %s contexts",
         text_of_count(a, (uint64_t)(plan->batch_targets + 0.5)),
         text_of_count(b, (uint64_t)(plan->batch_contexts + 0.5)));
    line(to_stdout, "  traffic", "%s of memory%s%s%s", text_of_bytes(a, (uint64_t)plan->memory_bytes),
         plan->gpu_available ? ", " : "", plan->gpu_available ? text_of_bytes(b, (uint64_t)plan->link_bytes) : "",
         plan->gpu_available ? " over the link, both ways" : "");
    if (plan->floor_pairs > 0)
        line(to_stdout, "  at most", "%s pairs/s, where %s is full", text_of_rate(d, plan->floor_pairs),
             plan->link_bytes / 2 / link_each_way > plan->memory_bytes / device_memory ? "the link"
                                                                                       : "the GPU's memory");
}

void planner_print(const struct plan *plan, const struct config *config, int to_stdout) {
    char a[TEXT_ROOM], b[TEXT_ROOM], c[TEXT_ROOM];
    line(to_stdout, "corpus", "%s tokens, %s %s", text_of_count(a, plan->tokens), text_of_count(b, plan->sentences),
         config->examples_mode == MODE_WINDOW ? "sentences"
         : config->examples_mode == MODE_LIST ? "lists"
                                              : "lines");
    line(to_stdout, "rows", "%s x %" PRIu32 " float32, %" PRIu32 " %s of optimizer state%s",
         text_of_count(a, plan->rows), plan->dim, plan->layout.slots, plan->layout.slots == 1 ? "array" : "arrays",
         plan->layout.counted ? " and a count" : "");
    print_part(plan, to_stdout, "target", plan->target, plan->target_bytes, 0);
    print_part(plan, to_stdout, "target_state", plan->target_state, plan->target_state_bytes, plan->one_record_target);
    print_part(plan, to_stdout, "context", plan->context, plan->context_bytes, 0);
    print_part(plan, to_stdout, "context_state", plan->context_state, plan->context_state_bytes,
               plan->one_record_context);
    print_bytes(to_stdout, "vocabulary", plan->vocab_bytes, "");
    if (plan->draw_bytes) print_bytes(to_stdout, "draw tables", plan->draw_bytes, "negatives and subsampling");
    print_bytes(to_stdout, "work", plan->stage_bytes, "batches in flight and threads' scratch");
    print_bytes(to_stdout, "corpus ids", plan->stream_bytes,
                plan->stream_pinned ? "a mapped file, pinned: the GPU reads it over the link"
                                    : "a mapped file, given back where memory is short");
    if (plan->gpu_available) {
        line(to_stdout, "hot rows", "%s of %s, %s on the GPU instead of the host: %.1f%% of target touches",
             text_of_count(a, plan->hot_rows), text_of_count(b, plan->rows), text_of_bytes(c, plan->hot_bytes),
             100 * plan->hot_hits);
        line(to_stdout, "GPU needed", "%10s  of %s", text_of_bytes(a, plan->gpu_needed),
             text_of_bytes(b, plan->gpu_available));
    }
    line(to_stdout, "memory needed", "%10s  of %s", text_of_bytes(a, plan->host_needed),
         text_of_bytes(b, plan->host_available));
    print_bytes(to_stdout, "resident", plan->host_needed - plan->stream_pinned + plan->stream_bytes, "with the corpus ids in memory");
    if (plan->file_bytes) print_bytes(to_stdout, "files needed", plan->file_bytes, "");
    print_step(plan, config, to_stdout);
    line(to_stdout, "fits", "%s%s", plan->fits ? "yes" : "no: ", plan->advice);
}

/* ---- for machines ---- */

static void json_part(const struct plan *plan, const char *name, enum place place, uint64_t bytes) {
    const char *at = place == PLACE_FILE   ? "file"
                     : place == PLACE_GPU  ? "gpu"
                     : plan->gpu_available ? "pinned"
                                           : "memory";
    printf(", \"%s_place\": \"%s\", \"%s_bytes\": %" PRIu64, name, at, name, bytes);
}

void planner_print_json(const struct plan *plan) {
    static const char *const truth[] = {"false", "true"};
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"tokens", plan->tokens},
                  {"sentences", plan->sentences},
                  {"optimizer_arrays", plan->layout.slots},
                  {"counted", plan->layout.counted},
                  {"table_gpu_bytes", plan->gpu_bytes},
                  {"table_hot_bytes", plan->hot_bytes},
                  {"table_pinned_bytes", plan->pinned_bytes},
                  {"table_memory_bytes", plan->plain_bytes},
                  {"table_file_bytes", plan->file_bytes},
                  {"work_bytes", plan->stage_bytes},
                  {"vocabulary_bytes", plan->vocab_bytes},
                  {"draw_bytes", plan->draw_bytes},
                  {"stream_bytes", plan->stream_bytes},
                  {"stream_pinned_bytes", plan->stream_pinned},
                  {"host_needed", plan->host_needed},
                  {"host_available", plan->host_available},
                  {"gpu_needed", plan->gpu_needed},
                  {"gpu_available", plan->gpu_available},
                  {"hot_rows", plan->hot_rows},
                  {"batch", plan->batch}};
    printf("{\"rows\": %" PRIu64 ", \"dim\": %" PRIu32, plan->rows, plan->dim);
    json_part(plan, "target", plan->target, plan->target_bytes);
    json_part(plan, "target_state", plan->target_state, plan->target_state_bytes);
    json_part(plan, "context", plan->context, plan->context_bytes);
    json_part(plan, "context_state", plan->context_state, plan->context_state_bytes);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        printf(", \"%s\": %" PRIu64, counts[i].name, counts[i].value);
    printf(", \"hot_hits\": %.6g, \"batch_examples\": %.6g, \"batch_pairs\": %.6g, \"batch_targets\": %.6g, "
           "\"batch_contexts\": %.6g, \"link_bytes\": %.6g, \"memory_bytes\": %.6g, \"floor_pairs\": %.6g",
           plan->hot_hits, plan->batch_blocks, plan->batch_pairs, plan->batch_targets, plan->batch_contexts,
           plan->link_bytes, plan->memory_bytes, plan->floor_pairs);
    printf(", \"fits_host\": %s, \"fits_gpu\": %s, \"fits\": %s, \"advice\": \"%s\"}\n", truth[plan->fits_host],
           truth[plan->fits_gpu], truth[plan->fits], plan->advice);
}
