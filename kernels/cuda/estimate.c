/* estimate: adds up the memory that the CUDA backend will hold, from the sizes in arrays.h that its files allocate. It is plain C without a CUDA
 * header, and always compiled, so that a run can be planned for a GPU of another machine.
 *
 *   tables   stores (rows.cu)
 *   source   the id stream and what draws need (batch.cu)
 *   work     batches in flight, and what makes and steps them (batch_*, rows.cu, step.cu, step_learn.cu); the transfer buffer
 *            (rows.cu); scratch of lock-free training (hogwild.cu); values from other ranks (ranks.cu)
 */
#include "arrays.h"

#include "base/pool.h"
#include "kernels/backend.h"
#include "kernels/hogwild.h"
#include "kernels/ranks.h"

/* Bytes of host memory that the driver and its libraries use. No call returns this number in advance; it was measured on hosts with an H200. */
#define RUNTIME_BYTES ((uint64_t)298 << 20)
/* Bytes of host memory that cuBLAS needs once it is loaded (blas.cuh). */
#define BLAS_BYTES ((uint64_t)150 << 20)
/* The host needs one more byte for each 188 bytes of a table's managed memory: page table entries (8 bytes for 4 KiB) and the driver's own data. A
 * table of 16 GiB needed 87 MiB. */
#define MANAGED_BESIDE 188
/* Most bytes that are registered in addition to the caller's memory, which is extended to whole pages at both ends. */
#define REGISTER_SPARE ((uint64_t)8 << 10)

enum { SIDE_TARGET, SIDE_CONTEXT, SIDES };

/* The run whose memory is estimated, and values that several functions below need. */
struct run {
    const struct estimate_request *request;
    const struct example_source *source;
    struct table_shape shape[SIDES];
    uint64_t rows;
    struct example_sizes sizes; /* sizes of the largest batch */
    uint64_t stages, builders;
    int one_vector;             /* the value of one_vector in struct stage */
    int learned;                /* 1: steps consist of the passes of step_learn.cuh */
};

/* ---- the run ---- */

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Returns the sizes of the largest batch: upper bounds for its number of examples if there are any, otherwise the sizes that the caller has found.
 * Lock-free training makes batches only of held-out examples; they have the caller's sizes, limited by the bounds. */
static struct example_sizes largest_batch(const struct example_source *s, int hogwild) {
    struct example_sizes sizes = s->capacity, bound;
    if (!example_bound(s, s->batch, &bound)) return sizes;
    if (!hogwild) return bound;
    sizes.blocks = smaller(sizes.blocks, bound.blocks);
    sizes.targets = smaller(sizes.targets, bound.targets);
    sizes.contexts = smaller(sizes.contexts, bound.contexts);
    sizes.terms = smaller(sizes.terms, bound.terms);
    return sizes;
}

static struct run run_of(const struct estimate_request *request) {
    const struct example_source *s = request->source;
    struct run run = {.request = request, .source = s, .rows = request->target.rows};
    run.shape[SIDE_TARGET] = table_shape(&request->target, 1);
    run.shape[SIDE_CONTEXT] = table_shape(&request->context, 1);
    run.sizes = largest_batch(s, request->hogwild);
    run.stages = request->hogwild ? s->held_out != 0 : request->depth;
    run.builders = batch_builders(s, request->depth);
    /* Lock-free training has one stage. It needs a second builder only if there are exactly two builders and the depth is odd. */
    if (request->hogwild && (run.builders == request->depth || request->depth % 2 == 0)) run.builders = 1;
    run.one_vector = example_one_vector(s);
    run.learned = !loss_is_plain(&request->loss) || s->pool.on || (!request->hogwild && (request->frozen_targets || request->frozen_contexts));
    return run;
}

/* ---- tables and source ---- */

static void add_table(const struct table_shape *shape, struct memory_bytes *to) {
    for (unsigned i = 0; i < shape->stores; i++) {
        const struct store_shape *store = &shape->store[i];
        uint64_t host = store->on_host * store->stride, pages = round_up(host, PINNED_PAGE);
        to->gpu += store->on_gpu * store->stride;
        if (store->place == PLACE_FILE) {
            to->file += host;
        } else {
            to->pinned += pages;
            to->host += pages / MANAGED_BESIDE;
        }
    }
}

static void add_tables(const struct run *run, struct estimate *e) {
    for (int side = 0; side < SIDES; side++) add_table(&run->shape[side], &e->tables);
    e->tables.gpu += (uint64_t)(!!run->request->frozen_targets + !!run->request->frozen_contexts) * known_bytes(run->rows);
}

/* Adds the arrays of the source. An array that the GPU reads in host memory is counted even if it is the caller's own, since a driver that refuses
 * to register it makes a pinned copy necessary. */
static void add_source(const struct run *run, struct estimate *e) {
    const struct example_source *s = run->source;
    uint64_t stream = example_stream_bytes(s);
    uint64_t arrays = s->weights ? 3 : 2;
    if (s->stream_on_host)
        e->source.pinned += round_up(stream + arrays * REGISTER_SPARE, PINNED_PAGE) + (arrays - 1) * PINNED_PAGE;
    else
        e->source.gpu += stream;
    if (s->walks.length) e->source.gpu += (s->walks.nodes + 1) * sizeof *s->walks.starts;
    if (s->walks.begins) e->source.gpu += s->walks.begun * sizeof *s->walks.begins;
    if (s->keep) e->source.gpu += s->rows * sizeof *s->keep;
    if (s->alias) e->source.gpu += s->rows * sizeof *s->alias;
    if (s->known) e->source.gpu += known_bytes(s->rows);
    if (s->subwords.starts) e->source.gpu += (s->subwords.words + 1) * sizeof *s->subwords.starts + s->subwords.listed * sizeof *s->subwords.rows;
    if (s->paths.starts) e->source.gpu += (2 * s->paths.words + 1) * sizeof *s->paths.starts + s->paths.listed * sizeof *s->paths.nodes;
}

/* ---- batches ---- */

/* Returns how many bytes a growing array allocates when `bytes` are needed. */
static uint64_t array(uint64_t bytes) {
    return round_up(bytes, GPU_ARRAY_ALIGN);
}

static uint64_t side_arrays(uint64_t n) {
    struct row_set_bytes b = row_set_bytes(n);
    return array(b.ids) + array(block_of_bytes(n)) + array(b.distinct) + 2 * array(b.distinct_ids) +
           array(b.distinct_starts) + array(b.order) + array(b.items) + array(b.longs);
}

static uint64_t stage_arrays(const struct example_sizes *n, int weighted) {
    struct batch_bytes b = batch_bytes(n->blocks, n->targets, n->terms);
    return array(b.target_starts) + array(b.context_starts) + array(b.term_starts) + array(b.positives) +
           array(b.block_slot) + array(b.block_example) + array(b.coefficients) + array(b.losses) +
           array(weight_bytes(n->contexts, weighted)) + side_arrays(n->targets) + side_arrays(n->contexts);
}

static int is_cold(const struct store_shape *store) {
    return store->place != PLACE_GPU && store->on_host;
}

static uint64_t walk_arrays(const struct example_source *s, uint64_t positions) {
    struct walks_bytes b = walks_bytes(&s->walks, positions);
    return s->walks.length ? array(b.ids) + array(b.starts) : 0;
}

static uint64_t builder_arrays(const struct example_source *s, const struct example_sizes *n) {
    uint64_t bytes = walk_arrays(s, s->batch) + 2 * array(need_bytes(s->batch)) + array(scan_bytes(s->batch)) + array(kept_bytes(s, s->batch));
    const uint64_t sides[SIDES] = {n->targets, n->contexts};
    bytes += array(sorted_bytes(sides[0] > sides[1] ? sides[0] : sides[1]));
    for (int side = 0; side < SIDES; side++)
        if (sides[side]) bytes += 2 * array(sorted_bytes(sides[side])) + array(sort_bytes(sides[side]));
    return bytes;
}

/* Returns the bytes of a step with shared negatives. */
static struct shared_bytes bytes_of_shared(const struct run *run) {
    const struct example_pool *pool = &run->source->pool;
    uint64_t shared = example_batch_negatives(run->source), relations = example_batch_relations(run->source), targets = run->sizes.targets;
    uint64_t examples = targets ? (targets - relations) / example_shared_targets(pool) : 0;
    return shared_bytes(examples, shared > relations ? shared : relations, run->request->target.layout.span, pool->product != PRODUCT_NONE);
}

/* Returns the bytes needed only with several ranks: the mailbox for exchanged values and, if squared norms are summed over ranks, one gradient sum
 * for each row, kept until the norms have arrived. 0 for one rank. */
static uint64_t exchange_arrays(const struct run *run) {
    const struct example_sizes *n = &run->sizes;
    const struct estimate_request *request = run->request;
    int norms = request->rule->clip > 0, shared = example_batch_negatives(run->source) > 0;
    if (request->ranks < 2) return 0;
    uint64_t slots = shared && !norms ? 0 : exchange_slots(n->targets, n->contexts, n->terms, request->loss.score == SCORE_COSINE);
    uint64_t sums = norms ? row_sum_bytes(n->targets, n->contexts, request->target.layout.span) : 0;
    struct shared_bytes bytes = bytes_of_shared(run);
    uint64_t values = (bytes.scores > bytes.lengths ? bytes.scores : bytes.lengths) / sizeof(float);
    if (shared && slots < exchange_array_slots(values, request->ranks)) slots = exchange_array_slots(values, request->ranks);
    return array(exchange_box_bytes(slots, request->ranks)) + array(sums);
}

static uint64_t sum_arrays(const struct run *run) {
    const struct example_sizes *n = &run->sizes;
    const struct record_layout *layout = &run->request->target.layout;
    struct sum_bytes b = sum_bytes(n->targets, n->contexts, layout->span, run->one_vector);
    uint64_t corrections = layout->counted && !run->request->hogwild ? array(CORRECTIONS_BYTES) : 0;
    return array(b.gradients) + array(b.partials) + array(b.context_gradients) + corrections;
}

static uint64_t learn_arrays(const struct run *run) {
    const struct example_sizes *n = &run->sizes;
    uint64_t span = run->request->target.layout.span;
    struct shared_bytes of_shared = bytes_of_shared(run);
    if (example_batch_negatives(run->source))
        return array(of_shared.rows) + array(of_shared.scores) + array(of_shared.lengths) + array(of_shared.gains);
    int cosines = run->request->loss.score == SCORE_COSINE;
    if (!run->learned) return 0;
    struct learn_bytes b = learn_bytes(n->blocks, n->targets + n->contexts, n->terms, span, cosines, run->source->pool.on);
    return array(b.scores) + array(b.lengths) + array(b.pooled);
}

/* ---- rows that are not on the GPU ---- */

/* Adds to one stage the slots for the cold rows of a batch and, if the host's threads move rows, the memory that they read and write. */
static void add_cold(const struct run *run, int side, uint64_t named, struct memory_bytes *stage) {
    const struct table_shape *shape = &run->shape[side];
    uint64_t most = 0;
    int host_moves = 0;
    for (unsigned i = 0; i < shape->stores; i++) {
        const struct store_shape *store = &shape->store[i];
        if (!is_cold(store)) continue;
        most = smaller(named, store->on_host);
        stage->gpu += array(most * store->stride);
        if (store->place != PLACE_FILE) continue;
        stage->pinned += most * store->stride;
        host_moves = 1;
    }
    stage->gpu += array(forward_bytes(most));
    if (host_moves) stage->pinned += host_ids_bytes(named) + sizeof(struct batch_counts);
}

static void add_batches(const struct run *run, struct estimate *e) {
    struct memory_bytes stage = {.gpu = stage_arrays(&run->sizes, run->source->weights != NULL)};
    add_cold(run, SIDE_TARGET, run->sizes.targets, &stage);
    add_cold(run, SIDE_CONTEXT, run->sizes.contexts, &stage);
    uint64_t builder = builder_arrays(run->source, &run->sizes);
    e->work.gpu += run->stages * stage.gpu + run->builders * builder + sum_arrays(run) + learn_arrays(run) + exchange_arrays(run);
    e->work.pinned += run->stages * stage.pinned;
}

/* ---- lock-free training ---- */

static void add_hogwild(const struct run *run, struct estimate *e) {
    const struct estimate_request *request = run->request;
    e->fixed.gpu += sizeof(struct hogwild_totals);
    e->fixed.pinned += sizeof(struct hogwild_totals);
    e->work.gpu += walk_arrays(run->source, smaller(run->source->tokens, WALKED_AT_ONCE));
    if (hogwild_in_registers(run->source, request->target.layout.span, hogwild_is_linear(request->rule))) return;
    struct hogwild_scratch scratch = hogwild_scratch(run->source);
    uint64_t warps = hogwild_warps(hogwild_wanted_warps(run->source), request->processors, &scratch);
    e->work.gpu += array(warps * scratch.words * sizeof(uint32_t));
}

/* ---- all ---- */

/* Adds one buffer for each store, by which rows on the GPU are copied to the host and back. */
static void add_transfer(const struct run *run, struct estimate *e) {
    for (unsigned i = 0; i < 2; i++) {
        int used = 0;
        for (int side = 0; side < SIDES; side++) used |= i < run->shape[side].stores && run->shape[side].store[i].on_gpu;
        if (used) e->work.pinned += TRANSFER_BYTES;
    }
}

static void add_fixed(const struct run *run, struct estimate *e) {
    uint64_t depth = run->request->depth;
    e->fixed.gpu += depth * (2 * sizeof(struct batch_counts) + sizeof(struct example_request));
    e->fixed.pinned += depth * (sizeof(struct example_request) + sizeof(struct step_result)) + sizeof(struct counted_sizes);
    e->fixed.host += RUNTIME_BYTES + run->request->threads * POOL_THREAD_BYTES;
    if (example_batch_negatives(run->source)) e->fixed.host += BLAS_BYTES;
}

void cuda_estimate(const struct estimate_request *request, struct estimate *estimate) {
    struct run run = run_of(request);
    *estimate = (struct estimate){.fixed.gpu = 0};
    add_tables(&run, estimate);
    add_source(&run, estimate);
    if (run.stages) add_batches(&run, estimate);
    if (request->hogwild) add_hogwild(&run, estimate);
    add_transfer(&run, estimate);
    add_fixed(&run, estimate);
}
