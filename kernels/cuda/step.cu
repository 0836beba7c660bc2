/* step: one exact step of a batch, in the order that kernels/cpu/step.c has.
 *
 *   dots        by block     (step_dots.cu; step_learn.cuh; step_shared.cu) old rows -> dot products, loss, coefficients; gradients
 *                            of target occurrences and, in blocks of several vectors, of contexts
 *   accumulate  by context   (step_sums.cuh) its occurrences' gradients, or coefficients x old targets; rule; in place
 *               by target    its occurrences' gradients; rule; in place. At the same time as contexts, or after
 *                            them if contexts read targets
 *
 * The work on a row with many occurrences is divided into pieces, whose sums add_partials adds. Every sum has one order,
 * whatever the stage, the depth or the place of the rows.
 *
 * If the rule bounds the norm of a row's gradient and ranks share its columns, accumulate stores the sums of rows that occur in
 * the batch more than once, and posts their squares; finish_rows collects the squares over all columns, and updates.
 */
#include "step_learn.cuh"
#include "step_sums.cuh"

#include <string.h>

/* Updates the rows whose gradients were stored: clips each gradient by its norm, for which all ranks' columns are known now, and
 * applies the optimizer's rule. One kernel serves all rules. */
template <class F, int G>
static __global__ void __launch_bounds__(CTA)
    finish_rows(const __grid_constant__ struct step_view v, const __grid_constant__ struct works works) {
    constexpr uint32_t GROUPS = CTA / G, LANES = lanes_of<G>();
    constexpr int B = F::QUADS;
    const struct work &work = works.of[blockIdx.y];
    const struct live_side &side = work.side == SIDE_TARGET ? v.target : v.context;
    uint32_t tid = threadIdx.x % G, count = *work.count, cold_first = v.counts->cold_first[work.side];
    for (uint32_t first = blockIdx.x * GROUPS; first + first_of_warp<G>() < count; first += gridDim.x * GROUPS) {
        uint32_t at = first + threadIdx.x / G, row = at < count ? at : first; /* past the last row, a group works on row `first`,
                                                                               * and writes nothing */
        uint32_t places = side.rows.distinct_starts[row + 1] - side.rows.distinct_starts[row];
        uint32_t id = side.rows.distinct_ids[row];
        bool real = at < count && places > 1 && !row_has_bit(work.frozen, id); /* squares were posted only for rows that occur
                                                                                * several times and are not frozen */
        if (G >= 32 && !real) continue;
        char *weights = live_row(side.weights, id, row, cold_first), *state = live_row(side.state, id, row, cold_first);
        const float *sum = work.row_sums + row * v.span;
        uint32_t updates = real ? read_updates(v, state) : 0;
        __syncwarp(); /* all threads have read the row's count of updates */
        uint64_t slot = real ? squares_of(side, work, row) : 0;
        float all = real && tid % LANES == 0 ? exchange_collect(v.exchange, slot, exchange_kept(v.exchange, slot)) : 0;
        all = __shfl_sync(ALL_LANES, all, 0, LANES);
        if (!real) continue;
        float share = rule_share(v.rule.constants.clip, places, all);
#pragma unroll 1
        for (uint32_t chunk = tid; chunk - tid < v.quads / F::QUADS; chunk += G * B / F::QUADS) {
            struct stored_record<F, B> record;
            float4 g[B];
            read_record<F, G, B>(record, weights, state, chunk, v);
            read_row<F, G, B>(g, sum, chunk, v.quads);
            scale_row<B>(g, share);
            change_stored<F, G, B>(record, g, weights, state, updates, chunk, v, {id, work.side});
        }
        write_updates(v, state, updates + 1, tid);
    }
}

/* ---- the result ---- */

struct result_view {
    const double *losses;
    const struct batch_counts *counts;
    int one_vector;         /* 1: one loss a block; 0: one loss a target or, with shared negatives, an example */
    uint64_t cold_bytes[2]; /* by side: bytes of the record of a cold row */
    int written;            /* 1: cold rows are copied back */
    uint64_t words;
    uint32_t shared; /* number of negatives that all examples share */
    uint32_t each;   /* number of targets of an example, if negatives are shared */
    struct step_result *to;
};

static __global__ void __launch_bounds__(1024) tell_result(struct result_view r) {
    __shared__ double sums[32];
    double sum = 0;
    uint32_t count = r.one_vector ? r.counts->blocks : r.counts->targets / r.each;
    for (uint32_t i = threadIdx.x; i < count; i += 1024) sum += r.losses[i];
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(sums[threadIdx.x]);
    if (threadIdx.x) return;
    struct step_result result;
    result.loss = sum;
    result.examples = r.shared ? count : r.counts->blocks;
    result.pairs = r.counts->pairs;
    result.terms = r.counts->terms - r.counts->empty_terms + (uint64_t)r.shared * count;
    result.words = r.words;
    result.link_bytes = 0;
    for (int side = 0; side < 2; side++) {
        uint64_t cold = r.counts->distinct[side] - r.counts->cold_first[side];
        result.link_bytes += r.cold_bytes[side] * (cold - r.counts->forwarded[side] + (r.written ? cold : 0));
    }
    *r.to = result;
    __threadfence_system();
}

/* ---- launching ---- */

struct sums {
    struct sum_kernels of;
    uint32_t group; /* number of threads that work on a row */
};

constexpr uint32_t PLAIN_HALVES = 128; /* quads of a row: bfloat16 rows that are wider use the kernels for any record, which are
                                        * a third faster */

template <class F, bool LEARNED> struct plain_sums {
    template <int G, int VEC, bool> struct family {
        static struct sums get(void) {
            if constexpr (F::QUADS > 1 && G * VEC > PLAIN_HALVES) return {};
            else return {sum_kernels_plain<F, G, VEC, LEARNED>(), G};
        }
    };
};

/* Chooses the kernels for records with the state of any rule, by the width of a row. */
template <class F, bool LEARNED> static struct sums sums_of_any(uint32_t chunks) {
    constexpr int Q = F::QUADS;
    if (chunks <= 8) return {sum_kernels_any<F, 8, Q, LEARNED>(), 8};
    if (chunks <= 16) return {sum_kernels_any<F, 16, Q, LEARNED>(), 16};
    if constexpr (Q == 1) {
        if (chunks > 64) return {sum_kernels_any<F, 32, 4, LEARNED>(), 32};
        if (chunks > 32) return {sum_kernels_any<F, 32, 2, LEARNED>(), 32};
    }
    return {sum_kernels_any<F, 32, Q, LEARNED>(), 32};
}

/* Chooses the kernels. Records without state have kernels of their own, since sums for text were 20% slower with the kernels for
 * any record. For float32 there are kernels with LEARNED and without it, since records with state were 6 to 9% slower with it.
 * For bfloat16 fewer kernels are compiled: those for any record have LEARNED. */
static struct sums sums_for(const struct record_layout *layout, bool learned) {
    uint32_t quads = record_quads(layout), chunks = quads / bfloat16_rows::QUADS;
    if (has_halves(layout)) {
        if (learned || layout->slots || quads > PLAIN_HALVES) return sums_of_any<bfloat16_rows, true>(chunks);
        return kernels_for_narrow_halves<plain_sums<bfloat16_rows, false>::family>(quads, false);
    }
    if (layout->slots) return learned ? sums_of_any<float32_rows, true>(quads) : sums_of_any<float32_rows, false>(quads);
    if (learned) return kernels_for_few<plain_sums<float32_rows, true>::family>(quads, false);
    return kernels_for_narrow<plain_sums<float32_rows, false>::family>(quads, false);
}

static struct live_part live_part_of(const struct row_set *set, int part, uint64_t offset) {
    const struct store *store = &set->table->stores[part];
    struct live_part live;
    live.resident = store->gpu + offset;
    live.slots = (char *)set->slots[part].data + offset;
    live.stride = store->stride;
    live.hot_rows = store->gpu_rows;
    return live;
}

static struct live_side live_side_of(const struct stage *stage, int side) {
    const struct row_set *set = &stage->side[side];
    struct live_side live;
    live.rows = row_set_view(set);
    live.block_of = (const uint32_t *)stage->block_of[side].data;
    live.side = side;
    live.weights = live_part_of(set, 0, 0);
    live.state = live_part_of(set, set->table->shared ? 0 : 1, set->table->state_offset);
    return live;
}

static int check_tables(const struct step_request *r) {
    const struct record_layout *t = &r->target->spec.layout, *c = &r->context->spec.layout;
    struct rule_slot slots[RULE_SLOTS];
    if (t->dim != c->dim || t->span != c->span || t->slots != c->slots || t->counted != c->counted || t->by_row != c->by_row ||
        t->field[RECORD_WEIGHTS].type != c->field[RECORD_WEIGHTS].type || state_halves(t) != state_halves(c))
        return fail("the target and context tables have different records");
    if (!r->loss_only && (uint32_t)rule_slots(r->rule, slots) != t->slots)
        return fail("the rule has %d slots and the tables have %u", rule_slots(r->rule, slots), t->slots);
    if (!r->loss_only && RULE_BY_ROW(r->rule->rule) != (int)t->by_row)
        return fail("the rule and the tables differ in whether a row has one sum");
    if (t->span % 4) return fail("rows of %u floats are not whole 16 bytes", t->span);
    if (t->dim < 1 || t->dim > COLUMNS_MOST) return fail("model.dim %u is not in 1..%d", t->dim, (int)COLUMNS_MOST);
    return 0;
}

static __global__ void fill_corrections(struct rule_options rule, double lr, struct corrections *to) {
    uint32_t updates = blockIdx.x * blockDim.x + threadIdx.x;
    if (updates == 0) {
        to->rule = rule;
        to->lr = lr;
    }
    if (updates >= CORRECTIONS) return;
    struct rule_step k = rule_prepare(&rule, lr, updates);
    to->by_updates[updates] = make_float4(k.lr, k.a, k.correction, 0);
}

/* Computes the constants by a row's number of updates, if the rule or the learning rate has changed. */
static int prepare_corrections(struct backend *b, const struct rule_options *rule, double lr, cudaStream_t stream) {
    static_assert(sizeof(struct corrections) <= CORRECTIONS_BYTES, "arrays.h gives it less capacity");
    if (gpu_grow(b, &b->corrections, CORRECTIONS_BYTES, "bias corrections")) return -1;
    if (b->corrections_ready && b->corrections_lr == lr && !memcmp(&b->corrections_rule, rule, sizeof *rule)) return 0;
    fill_corrections<<<CORRECTIONS / CTA, CTA, 0, stream>>>(*rule, lr, (struct corrections *)b->corrections.data);
    CK_LAUNCH("fill_corrections");
    b->corrections_rule = *rule;
    b->corrections_lr = lr;
    b->corrections_ready = 1;
    return 0;
}

int cuda_prepare_rule(struct backend *b, const struct rule_options *rule, double lr, uint64_t updates,
                      const struct record_layout *layout, cudaStream_t stream, struct rule_view *view) {
    struct rule_slot slots[RULE_SLOTS];
    view->constants = rule_prepare(rule, lr, updates);
    view->by_row = layout->by_row;
    view->rule = view->by_row ? RULE_SGD : rule->rule;
    view->slots = view->by_row ? 0 : (uint32_t)rule_slots(rule, slots);
    view->count_at = layout->counted ? (uint32_t)record_updates(layout)->offset
                     : view->by_row  ? (uint32_t)record_slot(layout, 0)->offset
                                     : DRAW_NONE;
    for (uint32_t &slot : view->slot_at) slot = DRAW_NONE;
    for (uint32_t &slot : view->slot_number) slot = 0;
    view->halves = state_halves(layout);
    for (uint32_t i = 0; i < view->slots; i++) {
        view->slot_number[slots[i].role] = i;
        view->slot_at[slots[i].role] = (uint32_t)record_slot(layout, i)->offset;
    }
    view->corrections = NULL;
    if (!layout->counted) return 0;
    if (prepare_corrections(b, rule, lr, stream)) return -1;
    view->corrections = (const struct corrections *)b->corrections.data;
    return 0;
}

static int grow_buffers(struct backend *b, const struct stage *stage, const struct step_request *request) {
    const struct batch_sizes *capacity = &stage->capacity;
    uint64_t span = request->target->spec.layout.span;
    struct sum_bytes bytes = sum_bytes(capacity->targets, capacity->contexts, span, stage->one_vector);
    int norms = b->exchange && !request->loss_only && request->rule->clip > 0;
    if (norms && gpu_grow(b, &b->row_sums, row_sum_bytes(capacity->targets, capacity->contexts, span), "a batch's sums"))
        return -1;
    return gpu_grow(b, &b->gradients, bytes.gradients, "a batch's gradients") ||
                   gpu_grow(b, &b->partials, bytes.partials, "a batch's partial sums") ||
                   gpu_grow(b, &b->context_gradients, bytes.context_gradients, "a batch's gradients")
               ? -1
               : 0;
}

static int fill_view(struct backend *b, const struct stage *stage, const struct step_request *request, struct step_view *v) {
    const struct record_layout *layout = &request->target->spec.layout;
    memset(v, 0, sizeof *v);
    v->target = live_side_of(stage, SIDE_TARGET);
    v->context = live_side_of(stage, SIDE_CONTEXT);
    if (!request->loss_only &&
        cuda_prepare_rule(b, request->rule, request->lr, request->global_step, layout, b->compute, &v->rule))
        return -1;
    v->counts = stage->counts;
    v->target_starts = (const uint32_t *)stage->target_starts.data;
    v->context_starts = (const uint32_t *)stage->context_starts.data;
    v->term_starts = (const uint32_t *)stage->term_starts.data;
    v->positives = (const uint32_t *)stage->positives.data;
    v->coefficients = (float *)stage->coefficients.data;
    v->target_gradients = (float *)b->gradients.data;
    v->context_gradients = (float *)b->context_gradients.data;
    v->losses = (double *)stage->losses.data;
    v->quads = record_quads(layout);
    v->weights_bytes = (uint32_t)record_weights_bytes(layout);
    v->state_bytes = (uint32_t)record_state_bytes(layout);
    v->dim = layout->dim;
    v->span = layout->span;
    v->halves = has_halves(layout);
    v->rounding[SIDE_TARGET] = keys_of_step(&request->target->spec.rounding, DRAW_ROUND_WEIGHTS, request->global_step);
    v->rounding[SIDE_CONTEXT] = keys_of_step(&request->context->spec.rounding, DRAW_ROUND_WEIGHTS, request->global_step);
    v->mean = request->mean;
    v->loss_only = request->loss_only;
    v->parts = 1;
    return 0;
}

/* Work on one side, or on both sides. most: an upper bound of the number of pieces of either. */
struct sides {
    struct works works;
    uint32_t count, most[2];
};

static void add_side(struct sides *to, const struct work *work, uint32_t most) {
    to->works.of[to->count] = *work;
    to->most[to->count++] = most;
}

/* Launches a kernel over the rows of one side (targets or contexts) or both, or over pieces of their work. *work->count, on the
 * GPU, is the number of rows or pieces. */
static int launch_sides(struct backend *b, sum_kernel *kernel, uint32_t group, const struct step_view *v,
                        const struct sides *sides) {
    uint32_t most = 0, widest = 16 * (uint32_t)b->processors;
    for (uint32_t i = 0; i < sides->count; i++)
        if (sides->most[i] > most) most = sides->most[i];
    if (!most) return 0;
    uint32_t grid = blocks_for(most, CTA / group);
    kernel<<<dim3(grid < widest ? grid : widest, sides->count), CTA, 0, b->compute>>>(*v, sides->works);
    CK_LAUNCH("accumulate");
    return 0;
}

static struct sides side_of(struct backend *b, const struct stage *stage, const struct step_view *v, const struct learn_view *l,
                            int side) {
    const struct batch_sizes *sizes = &stage->sizes, *capacity = &stage->capacity;
    int behind = side == SIDE_CONTEXT, norms = has_parts(v) && v->rule.constants.clip > 0;
    struct sides alone;
    struct work work;
    memset(&alone, 0, sizeof alone);
    memset(&work, 0, sizeof work);
    work.items = (behind ? &v->context : &v->target)->rows.items;
    work.count = &stage->counts->items[side];
    work.buffer = behind ? v->context_gradients : v->target_gradients;
    work.side = side;
    work.partials = (float *)b->partials.data + (behind ? most_partials(capacity->targets) * v->span : 0);
    work.row_sums = norms ? (float *)b->row_sums.data + (behind ? capacity->targets * v->span : 0) : NULL;
    work.squares_slot = capacity->terms + (behind ? capacity->targets : 0);
    work.frozen = l->frozen[side];
    if (behind && stage->one_vector) { /* contexts are sums of coefficient x target: SUM_TARGETS */
        work.pooled = l->pooled;
        work.own = l->lengths[SIDE_CONTEXT];
    }
    add_side(&alone, &work, behind ? sizes->contexts : sizes->targets);
    return alone;
}

/* Returns the work on a side's rows that have several pieces: adding the pieces' sums. */
static struct work longs_of(const struct stage *stage, const struct step_view *v, const struct work *pieces) {
    struct work work = *pieces;
    work.items = (pieces->side == SIDE_TARGET ? &v->target : &v->context)->rows.longs;
    work.count = &stage->counts->longs[pieces->side];
    return work;
}

/* Launches the work on pieces, then the work on rows that have several pieces. */
static int launch_sums(struct backend *b, const struct stage *stage, const struct sums *k, const struct step_view *v,
                       const struct sides *pieces, enum sum_of of) {
    struct sides longs;
    memset(&longs, 0, sizeof longs);
    for (uint32_t i = 0; i < pieces->count; i++) {
        struct work work = longs_of(stage, v, &pieces->works.of[i]);
        if (pieces->most[i] > UPDATE_PIECE) add_side(&longs, &work, pieces->most[i] / UPDATE_PIECE + 1);
    }
    uint32_t threads = k->group < 32 ? 32 : k->group; /* number of threads that work on a row of several pieces */
    if (launch_sides(b, k->of.accumulate[of], k->group, v, pieces)) return -1;
    return launch_sides(b, k->of.add_partials, threads, v, &longs);
}

template <class F> static sum_kernel *finish_of(uint32_t group) {
    return group == 8 ? finish_rows<F, 8> : group == 16 ? finish_rows<F, 16> : finish_rows<F, 32>;
}

/* Sums over ranks the squares of all rows that were posted, and updates these rows. */
static int finish(struct backend *b, const struct stage *stage, const struct step_view *v, struct sides sides) {
    uint64_t first = stage->capacity.terms, squares = (uint64_t)stage->capacity.targets + stage->sizes.contexts;
    if (!exchange_is_near(b->exchange) && exchange_sum(b, first, squares)) return -1;
    for (uint32_t i = 0; i < sides.count; i++) sides.works.of[i].count = &stage->counts->distinct[sides.works.of[i].side];
    uint32_t chunks = v->halves ? v->quads / bfloat16_rows::QUADS : v->quads, group = chunks <= 8 ? 8 : chunks <= 16 ? 16 : 32;
    return launch_sides(b, v->halves ? finish_of<bfloat16_rows>(group) : finish_of<float32_rows>(group), group, v, &sides);
}

/* Enqueues the second half of a step: sums each row's gradient, and updates the row. If blocks have one vector, contexts read
 * the old targets, so contexts are updated first; otherwise both sides are updated at once. The squares of both sides are posted
 * before any are collected. */
static int launch_rows(struct backend *b, const struct stage *stage, const struct sums *k, const struct step_view *v,
                       const struct learn_view *l) {
    struct sides contexts = side_of(b, stage, v, l, SIDE_CONTEXT), targets = side_of(b, stage, v, l, SIDE_TARGET);
    struct sides both = contexts;
    add_side(&both, &targets.works.of[0], targets.most[0]);
    if (!stage->one_vector) {
        if (launch_sums(b, stage, k, v, &both, SUM_BUFFER)) return -1;
    } else {
        if (launch_sums(b, stage, k, v, &contexts, SUM_TARGETS) || launch_sums(b, stage, k, v, &targets, SUM_BUFFER)) return -1;
    }
    return both.works.of[0].row_sums ? finish(b, stage, v, both) : 0;
}

static int begin_exchange(struct backend *b, const struct stage *stage, const struct step_request *request,
                          struct exchange_view *view) {
    const struct batch_sizes *capacity = &stage->capacity;
    int lengths = request->loss.score == SCORE_COSINE;
    if (request->apart) return 0;
    return exchange_begin(b, exchange_slots(capacity->targets, capacity->contexts, capacity->terms, lengths), view);
}

/* Enqueues the first half of a step, from old rows. learned: 1: by the passes of step_learn.cuh; 0: by the kernels of
 * step_dots.cu. With shared negatives, as matrix products. */
static int launch_blocks(struct backend *b, const struct stage *stage, const struct step_request *request, int learned,
                         const struct step_view *v, struct learn_view *l) {
    if (stage->shared.count) return shared_launch(b, stage, request, v, l);
    return learned ? learn_launch(b, stage, request, v, l) : cuda_launch_dots(b, stage, v);
}

int cuda_launch_step(struct backend *b, struct stage *stage, const struct step_request *request) {
    const struct batch_sizes *sizes = &stage->sizes;
    const struct record_layout *layout = &request->target->spec.layout;
    int learned = learn_is_wanted(stage, request);
    struct sums k = sums_for(layout, learned);
    struct step_view v;
    struct learn_view l;
    memset(&l, 0, sizeof l);
    if (check_tables(request)) return -1;
    if (layout->by_row && stage->early_singles) return fail("the batch was made before the tables were opened");
    if (!sizes->blocks) return 0;
    if (grow_buffers(b, stage, request) || fill_view(b, stage, request, &v) ||
        begin_exchange(b, stage, request, &v.exchange) || launch_blocks(b, stage, request, learned, &v, &l))
        return -1;
    return request->loss_only ? 0 : launch_rows(b, stage, &k, &v, &l);
}

static uint64_t cold_bytes(const struct backend_table *table) {
    uint64_t bytes = 0;
    for (int i = 0; i < table->parts; i++)
        if (cuda_is_cold(&table->stores[i])) bytes += table->stores[i].stride;
    return bytes;
}

int cuda_launch_result(struct backend *b, struct stage *stage, const struct step_request *request) {
    struct result_view r;
    memset(&r, 0, sizeof r);
    r.losses = (const double *)stage->losses.data;
    r.counts = stage->counts;
    r.one_vector = stage->one_vector;
    r.cold_bytes[SIDE_TARGET] = cold_bytes(request->target);
    r.cold_bytes[SIDE_CONTEXT] = cold_bytes(request->context);
    r.written = !request->loss_only;
    r.words = stage->words;
    r.shared = stage->shared.count;
    r.each = r.shared ? example_shared_targets(&stage->pool) : 1;
    r.to = stage->result;
    tell_result<<<1, 1024, 0, b->out>>>(r);
    CK_LAUNCH("tell_result");
    return 0;
}
