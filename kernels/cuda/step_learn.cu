/* step_learn: the pass `learn` of step_learn.cuh, which turns whole scores into loss and coefficients, one vector of a block
 * after the other, by a warp, or by a thread block if blocks have many contexts. Also the launch of all passes. */
#include "step_learn.cuh"

/* Waits until all threads of the group can read what each of them has written. */
template <int WIDTH> static __device__ void wait_for_group() {
    if (WIDTH > 32) __syncthreads();
    else __syncwarp();
}

/* ---- a vector's scores ---- */

/* The scores of one vector; the positives are first. Thread `tid` of the group writes coefficients tid, tid + WIDTH .. */
struct line {
    float *score, *coefficient; /* [count] */
    const uint32_t *distinct;   /* [count] numbers among the distinct rows; DRAW_NONE: the slot was left out */
    const uint32_t *ids;        /* [count] */
    const float *weights;       /* [positives] weights; NULL: every positive weighs 1 */
    const uint32_t *unchanged;  /* bit map of rows: contexts whose bit is set have no term in the loss; NULL: all contexts have */
    uint32_t count, positives, negatives; /* count: number of contexts; negatives: without slots that were left out */
    uint32_t tid;
    float scale, inverse; /* scale: factor of the gradients; inverse: 1 / temperature */

    __device__ float &score_at(uint32_t i) const {
        return score[i];
    }
    __device__ float &coefficient_at(uint32_t i) const {
        return coefficient[i];
    }
    __device__ bool is_there(uint32_t i) const {
        return distinct[i] != DRAW_NONE;
    }
    __device__ const float *positive_weights() const {
        return weights;
    }
    __device__ bool adds_loss(uint32_t i) const {
        return !row_has_bit(unchanged, ids[i]);
    }
};

/* ---- cosines ---- */

/* Replaces the squared length of each of the block's contexts by 1 / length. Each thread converts the contexts that it reads
 * later. */
template <int WIDTH>
static __device__ void invert_lengths(const struct step_view &v, const struct learn_view &l, const struct line &s,
                                      uint32_t place) {
    float *lengths = l.lengths[SIDE_CONTEXT] + place;
    uint64_t slot = l.length_slots[SIDE_CONTEXT] + place;
    for (uint32_t i = s.tid; i < s.count; i += WIDTH)
        lengths[i] = s.is_there(i) ? loss_inverse_length(take_whole(v, lengths, i, slot + i)) : 0;
}

/* Reads the vector's dot products, summed over ranks; if scores are cosines, divides them by the lengths of both rows. */
template <int WIDTH>
static __device__ void take_scores(const struct step_view &v, const struct line &s, uint64_t term, const float *lengths,
                                   float inverse_length) {
    for (uint32_t i = s.tid; i < s.count; i += WIDTH) {
        float score = s.is_there(i) ? take_whole(v, s.score, i, term + i) : 0;
        s.score[i] = lengths ? score * inverse_length * lengths[i] : score;
    }
}

/* For cosines: converts the coefficients of cosines to coefficients of dot products, and replaces each score by cosine x its
 * coefficient. Returns the vector's factor in its own gradient. */
template <int WIDTH> static __device__ float finish_cosines(const struct line &s, const float *lengths, float inverse_length) {
    float sum = 0;
    for (uint32_t i = s.tid; i < s.count; i += WIDTH) {
        float coefficient = s.coefficient[i], product = coefficient * s.score[i];
        s.score[i] = product;
        s.coefficient[i] = coefficient * inverse_length * lengths[i];
        sum += product;
    }
    return loss_own(across<WIDTH>(sum, plus()), inverse_length);
}

/* Computes each context's factor in its own gradient, from the products of all vectors. */
template <int WIDTH>
static __device__ void finish_contexts(const struct line &s, const float *products, uint32_t vectors, float *lengths) {
    for (uint32_t i = s.tid; i < s.count; i += WIDTH) {
        float sum = 0;
        for (uint32_t k = 0; k < vectors; k++) sum += products[(uint64_t)k * s.count + i];
        lengths[i] = vectors ? loss_own(sum, lengths[i]) : 0;
    }
}

/* ---- frozen rows ---- */

/* Tells which pairs of a block are left out because their rows are frozen, as kernels/cpu/frozen.c does. */
struct left {
    bool vectors, contexts; /* vectors: true: some vector can change; contexts: true: some context can change */
    bool by_pairs;          /* true: a pair is kept if one of its two rows can change; false: all pairs of the block are kept */
    unsigned long long terms, pairs;
};

template <int WIDTH>
static __device__ bool some_change(const uint32_t *frozen, const uint32_t *ids, uint32_t count, uint32_t tid) {
    float change = 0;
    for (uint32_t i = tid; i < count; i += WIDTH)
        if (ids[i] != DRAW_NONE && !row_has_bit(frozen, ids[i])) change = 1;
    return across<WIDTH>(change, larger()) > 0;
}

template <int WIDTH>
static __device__ struct left left_of(const struct step_view &v, const struct learn_view &l, const struct line &s, uint32_t place,
                                      uint32_t targets) {
    struct left left = {true, true, false, 0, 0};
    if (!l.frozen[SIDE_TARGET] && !l.frozen[SIDE_CONTEXT]) return left;
    left.vectors = some_change<WIDTH>(l.frozen[SIDE_TARGET], v.target.rows.ids + place, targets, s.tid);
    left.contexts = some_change<WIDTH>(l.frozen[SIDE_CONTEXT], s.ids, s.count, s.tid);
    left.by_pairs = l.loss.kind == LOSS_LOGISTIC && !l.pool.on;
    return left;
}

/* Returns true if some pairs of a vector are kept. Marks and counts the contexts whose pairs are left out. */
template <int WIDTH>
static __device__ bool leave_out(const struct learn_view &l, struct left &left, struct line &s, uint32_t target) {
    uint32_t positives = 0, negatives = 0;
    bool some = left.vectors || left.contexts;
    if (left.by_pairs && left.vectors && !left.contexts) some = !row_has_bit(l.frozen[SIDE_TARGET], target);
    s.unchanged = left.by_pairs && !left.vectors ? l.frozen[SIDE_CONTEXT] : NULL;
    if (!some) return false;
    for (uint32_t i = s.tid; s.unchanged && i < s.count; i += WIDTH)
        if (s.is_there(i) && !row_has_bit(s.unchanged, s.ids[i])) i < s.positives ? positives++ : negatives++;
    if (s.unchanged) {
        positives = across<WIDTH>(positives, plus());
        negatives = across<WIDTH>(negatives, plus());
    } else {
        positives = s.positives, negatives = s.negatives;
    }
    left.pairs += positives;
    left.terms += positives + negatives;
    return true;
}

static __device__ void tell_left(const struct learn_view &l, const struct left &left, const struct line &s, uint32_t vectors) {
    unsigned long long pairs = (unsigned long long)vectors * s.positives;
    unsigned long long terms = pairs + (unsigned long long)vectors * s.negatives;
    if (s.tid || (!l.frozen[SIDE_TARGET] && !l.frozen[SIDE_CONTEXT])) return;
    if (terms > left.terms) atomicAdd(&l.counts->empty_terms, terms - left.terms);
    if (pairs > left.pairs) atomicAdd(&l.counts->pairs, 0ull - (pairs - left.pairs));
}

/* ---- the pass ---- */

template <int WIDTH> static __device__ uint32_t count_negatives(const struct line &s) {
    uint32_t negatives = 0;
    for (uint32_t i = s.positives + s.tid; i < s.count; i += WIDTH) negatives += s.is_there(i);
    return across<WIDTH>(negatives, plus());
}

template <int WIDTH>
static __device__ struct line line_of(const struct step_view &v, const struct learn_view &l, uint32_t block) {
    struct line s;
    uint32_t first = v.context_starts[block];
    s.tid = threadIdx.x % WIDTH;
    s.count = v.context_starts[block + 1] - first;
    s.positives = v.positives[block];
    s.distinct = v.context.rows.distinct + first;
    s.ids = v.context.rows.ids + first;
    s.weights = l.weights ? l.weights + first : NULL;
    s.unchanged = NULL;
    s.scale = scale_of(v);
    s.inverse = loss_inverse_temperature(&l.loss);
    s.negatives = count_negatives<WIDTH>(s);
    return s;
}

/* Computes the loss and the coefficients of one vector: of the target at `place`, or of the pooled targets that begin there.
 * Returns the thread's part of the loss. */
template <int WIDTH>
static __device__ double learn_vector(const struct step_view &v, const struct learn_view &l, struct line &s, struct left &left,
                                      uint64_t term, uint32_t place, const float *lengths) {
    float *own = lengths ? l.lengths[SIDE_TARGET] + place : NULL;
    float inverse_length = own ? loss_inverse_length(take_whole(v, own, 0, l.length_slots[SIDE_TARGET] + place)) : 1;
    s.score = l.scores + term;
    s.coefficient = v.coefficients + term;
    bool some = leave_out<WIDTH>(l, left, s, v.target.rows.ids[place]);
    take_scores<WIDTH>(v, s, term, lengths, inverse_length);
    wait_for_group<WIDTH>();
    double loss = learn_line<WIDTH>(l.loss, s);
    if (!own) return some ? loss : 0;
    wait_for_group<WIDTH>(); /* other threads may have written the coefficients of positives */
    float factor = finish_cosines<WIDTH>(s, lengths, inverse_length);
    if (s.tid == 0) *own = factor;
    return some ? loss : 0;
}

template <int WIDTH>
static __global__ void __launch_bounds__(LEARN_CTA)
    learn_blocks(const __grid_constant__ struct step_view v, const __grid_constant__ struct learn_view l) {
    uint32_t block = blockIdx.x * (LEARN_CTA / WIDTH) + threadIdx.x / WIDTH;
    meet_without_words(v);
    if (block >= v.counts->blocks) return;
    struct line s = line_of<WIDTH>(v, l, block);
    uint32_t place = v.target_starts[block], targets = v.target_starts[block + 1] - place, first = v.context_starts[block];
    uint32_t vectors = example_vectors(&l.pool, targets);
    uint64_t terms = v.term_starts[block];
    float *lengths = l.lengths[SIDE_CONTEXT] ? l.lengths[SIDE_CONTEXT] + first : NULL;
    struct left left = left_of<WIDTH>(v, l, s, place, targets);
    double loss = 0;
    if (lengths && vectors) invert_lengths<WIDTH>(v, l, s, first);
    for (uint32_t k = 0; k < vectors; k++)
        loss += learn_vector<WIDTH>(v, l, s, left, terms + (uint64_t)k * s.count, place + k, lengths);
    s.coefficient = v.coefficients + terms;
    if (!vectors && l.one_vector) learn_nothing<WIDTH>(s); /* a pooled block without targets has no vector, but it has terms */
    if (lengths) finish_contexts<WIDTH>(s, l.scores + terms, vectors, lengths);
    tell_left(l, left, s, vectors);
    loss = across<WIDTH>(loss, plus());
    for (uint32_t k = s.tid; k < (l.one_vector ? 1 : targets); k += WIDTH)
        v.losses[(l.one_vector ? block : place) + k] = k ? 0 : loss; /* the first of a block's losses is the whole block's, the
                                                                      * others are 0 */
}

/* ---- launching ---- */

int learn_is_wanted(const struct stage *stage, const struct step_request *request) {
    int frozen = request->target->frozen || request->context->frozen;
    return !loss_is_plain(&request->loss) || stage->pool.on || (frozen && !request->loss_only);
}

static int fill_learn(struct backend *b, const struct stage *stage, const struct step_request *request, struct learn_view *l) {
    const struct batch_sizes *capacity = &stage->capacity;
    uint64_t targets = capacity->targets, contexts = capacity->contexts, span = request->target->spec.layout.span;
    int cosines = request->loss.score == SCORE_COSINE;
    struct learn_bytes bytes = learn_bytes(capacity->blocks, targets + contexts, capacity->terms, span, cosines, stage->pool.on);
    if (gpu_grow(b, &b->scores, bytes.scores, "a batch's scores") ||
        gpu_grow(b, &b->lengths, bytes.lengths, "a batch's lengths") ||
        gpu_grow(b, &b->pooled, bytes.pooled, "a batch's pooled targets"))
        return -1;
    l->loss = request->loss;
    l->pool = stage->pool;
    l->scores = (float *)b->scores.data;
    l->lengths[SIDE_TARGET] = cosines ? (float *)b->lengths.data : NULL;
    l->lengths[SIDE_CONTEXT] = cosines ? (float *)b->lengths.data + targets : NULL;
    l->length_slots[SIDE_TARGET] = exchange_slots(targets, contexts, capacity->terms, 0);
    l->length_slots[SIDE_CONTEXT] = l->length_slots[SIDE_TARGET] + targets;
    l->weights = weights_of(stage, request);
    l->pooled = stage->pool.on ? (float *)b->pooled.data : NULL;
    l->frozen[SIDE_TARGET] = request->loss_only ? NULL : request->target->frozen;
    l->frozen[SIDE_CONTEXT] = request->loss_only ? NULL : request->context->frozen;
    l->counts = stage->counts;
    l->one_vector = stage->one_vector;
    return 0;
}

/* Launches a pass. If blocks have enough contexts, several groups of threads share a block. */
static int launch(struct backend *b, const struct stage *stage, struct step_view v, const struct learn_view *l,
                  const struct learn_launch_of *k, const char *name) {
    const struct batch_sizes *sizes = &stage->sizes;
    int share = sizes->contexts / 32 >= sizes->blocks;
    v.parts = share ? k->groups : 1;
    k->kernel<<<blocks_for((uint64_t)sizes->blocks * v.parts, k->groups), k->threads, 0, b->compute>>>(v, *l);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? 0 : cuda_failed(error, name);
}

static int sum_parts(struct backend *b, const struct stage *stage, const struct step_view *v, const struct learn_view *l) {
    uint64_t lengths = stage->capacity.targets + (uint64_t)stage->sizes.contexts;
    if (!has_parts(v) || exchange_is_near(b->exchange)) return 0;
    if (exchange_sum(b, 0, stage->sizes.terms)) return -1;
    return l->lengths[SIDE_TARGET] ? exchange_sum(b, l->length_slots[SIDE_TARGET], lengths) : 0;
}

static int launch_learn(struct backend *b, const struct stage *stage, const struct step_view *v, const struct learn_view *l) {
    uint32_t blocks = stage->sizes.blocks;
    if (stage->sizes.contexts / LEARN_CTA >= blocks) learn_blocks<LEARN_CTA><<<blocks, LEARN_CTA, 0, b->compute>>>(*v, *l);
    else learn_blocks<32><<<blocks_for((uint64_t)blocks * 32, LEARN_CTA), LEARN_CTA, 0, b->compute>>>(*v, *l);
    CK_LAUNCH("learn_blocks");
    return 0;
}

int learn_launch(struct backend *b, const struct stage *stage, const struct step_request *request, const struct step_view *v,
                 struct learn_view *l) {
    uint32_t blocks = stage->sizes.blocks;
    struct learn_launch_of score = learn_score(v);
    struct learn_launch_of gain = stage->one_vector ? learn_gain_one(v) : learn_gain_many(v);
    if (fill_learn(b, stage, request, l) || (l->pooled && pool_launch(b, blocks, v, l)) ||
        launch(b, stage, *v, l, &score, "score") || sum_parts(b, stage, v, l) || launch_learn(b, stage, v, l))
        return -1;
    if (request->loss_only) return 0;
    if (launch(b, stage, *v, l, &gain, "gain")) return -1;
    return l->pooled ? pool_share(b, blocks, v, l) : 0;
}
