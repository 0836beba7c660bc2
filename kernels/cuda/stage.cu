/* stage: the life of a batch, in order. The other files of this folder carry out its steps.
 *
 * A batch lives in a stage; there are `depth` of them. Each call moves the batch to its next state, enqueues work and returns:
 *
 *           make_batch                step                  result, drain, or the
 *           set_batch                                       stage's next make_batch
 *   EMPTY -----------> BUILT --> STEPPING --> GOING_HOME -----------------------> HOME
 *                        ^                                                         |
 *                        +------------------- make_batch, set_batch ---------------+
 *
 * The work that these calls enqueue, by stream. Time runs to the right; `|` is an event that other streams wait for:
 *
 *   a builder's stream  [ids; both sides by row] [plan] |prepared         batch.cu: batch_examples.cu, batch_index.cu; rows.cu
 *   in stream             [fetch: host -> slots] |ticket of each side     rows.cu
 *   compute stream          [forward] |last_forward [step] |stepped       rows.cu; step_dots.cu, step.cu
 *   out stream                [result] [home: slots -> host] |done        step.cu; rows.cu
 *   the host's threads          [land: staging -> file]                   rows.cu
 *
 * At any time each stream works on a different batch: while batch k is stepped, batch k+1 is fetched, k+2 and later ones are made, each by its
 * builder, and k-1 is copied back. Three rules keep this exact:
 *
 *   - Batches of one table are stepped one after the other; only the other work on them overlaps.
 *   - From STEPPING to GOING_HOME a batch is in flight: its changed rows may not be in the table yet, so a newer batch
 *     of the same table copies them from its slots (rows.cu: plan, forward).
 *   - Rows of one store are copied back in the order of their batches. Rows of a file are copied to staging, and from there
 *     to the file by the host's threads ("land"), oldest batch first.
 */
#include "ranks.cuh"

/* ---- make ---- */

void cuda_stage_use(struct stage *stage, int copy) {
    stage->copy = copy;
    stage->counts = stage->both_counts + copy;
    for (struct row_set &side : stage->side) {
        side.copy = copy;
        side.counts = stage->counts;
    }
}

/* Makes the stage use the copy of distinct ids and counts that its previous batch did not use. Work that still reads this copy belongs to an older
 * batch, whose rows have been copied back. Since stages and builders are used cyclically, each copy of a stage is always filled by the same
 * builder. */
static void take_turn(struct backend *b, struct stage *stage, unsigned number) {
    cuda_stage_use(stage, stage->state == STAGE_HOME ? !stage->copy : stage->copy);
    unsigned turn = number + (b->builders_in_use < b->depth && b->depth % 2 ? (unsigned)stage->copy : 0);
    stage->builder = &b->builders[turn % b->builders_in_use];
}

static int land(struct backend *b, struct stage *stage);

int cuda_stage_begin(struct backend *b, unsigned number, struct stage **out) {
    struct stage *stage = &b->stages[number];
    if (number >= b->depth) return fail("stage %u of a backend with %u", number, b->depth);
    if (stage->state == STAGE_STEPPING) return fail("stage %u has a batch whose step failed", number);
    CK(cudaSetDevice(b->device));
    if (land(b, stage)) return -1;
    CK(cudaEventSynchronize(stage->prepared)); /* waits until a batch that was never stepped has been made */
    take_turn(b, stage, number);
    stage->state = STAGE_EMPTY;
    *out = stage;
    return 0;
}

int cuda_stage_built(struct stage *stage) {
    INVARIANT(stage->state == STAGE_EMPTY);
    CK(cudaEventRecord(stage->prepared, stage->builder->stream));
    stage->state = STAGE_BUILT;
    return 0;
}

/* ---- step ---- */

static int holds(const struct stage *stage, const struct backend_table *table) {
    return stage->side[SIDE_TARGET].table == table || stage->side[SIDE_CONTEXT].table == table;
}

/* Waits for older batches which have one of these two tables on the other side (as targets instead of contexts), until their rows have landed.
 * Only between equal sides are rows forwarded, and copied back in order. */
static int wait_turn(struct backend *b, const struct stage *stage, const struct step_request *request) {
    if (request->target->cache || request->context->cache) return fail("rows of a table with a cache (gpu_rows) are not trained in batches");
    if (request->target == request->context) return fail("targets and contexts of a batch are to be rows of two tables");
    for (unsigned i = 0; i < b->depth; i++) {
        struct stage *s = &b->stages[i];
        if (s == stage || !cuda_in_flight(s) || (!holds(s, request->target) && !holds(s, request->context))) continue;
        if (s->state != STAGE_GOING_HOME) return fail("stage %u has a batch of the same tables whose step failed", i);
        int crossed = s->side[SIDE_CONTEXT].table == request->target || s->side[SIDE_TARGET].table == request->context;
        if (crossed && land(b, s)) return -1;
    }
    return 0;
}

static int has_cold(const struct stage *stage) {
    return cuda_has_cold(stage->side[SIDE_TARGET].table) || cuda_has_cold(stage->side[SIDE_CONTEXT].table);
}

static int fetch(struct backend *b, struct stage *stage) {
    if (!has_cold(stage)) return 0;
    CK(cudaStreamWaitEvent(b->in, stage->prepared, 0));
    /* The newest step may still be reading these slots, to forward rows of the stage's previous batch. */
    CK(cudaStreamWaitEvent(b->in, b->last_forward, 0));
    for (int side = 0; side < 2; side++)
        if (cuda_rows_fetch(b, stage, side)) return -1;
    return 0;
}

/* Finds the batch's cold rows, and copies them to the stage's slots. */
static int gather(struct backend *b, struct stage *stage) {
    for (int side = 0; side < 2; side++)
        if (cuda_rows_plan(b, stage, side)) return -1;
    CK(cudaEventRecord(stage->prepared, stage->builder->stream));
    return fetch(b, stage);
}

static int forward(struct backend *b, struct stage *stage) {
    CK(cudaStreamWaitEvent(b->compute, stage->prepared, 0));
    if (!has_cold(stage)) return 0;
    for (int side = 0; side < 2; side++)
        if (cuda_rows_forward(b, stage, side)) return -1;
    CK(cudaEventRecord(b->last_forward, b->compute));
    return 0;
}

/* Enqueues the step itself: the rows' new values, and the batch's result. */
static int train(struct backend *b, struct stage *stage, const struct step_request *request) {
    if (forward(b, stage)) return -1;
    for (int side = 0; side < 2; side++)
        if (cuda_snapshot_keep_batch(b, stage, side)) return -1;
    if (cuda_launch_step(b, stage, request)) return -1;
    CK(cudaEventRecord(stage->stepped, b->compute));
    CK(cudaStreamWaitEvent(b->out, stage->stepped, 0));
    return cuda_launch_result(b, stage, request);
}

/* Copies changed rows from the slots back to the tables. */
static int scatter(struct backend *b, struct stage *stage) {
    for (int side = 0; side < 2; side++)
        if (cuda_rows_home(b, stage, side)) return -1;
    CK(cudaEventRecord(stage->done, b->out));
    return 0;
}

/* Stores in the stage how its batch will be stepped, before work of the step is enqueued. */
static void begin(struct backend *b, struct stage *stage, const struct step_request *request) {
    INVARIANT(stage->state == STAGE_BUILT && request->target != request->context);
    stage->side[SIDE_TARGET].table = request->target;
    stage->side[SIDE_CONTEXT].table = request->context;
    stage->loss_only = request->loss_only;
    stage->sequence = ++b->sequence;
    stage->state = STAGE_STEPPING;
}

int cuda_step(struct backend *b, unsigned number, const struct step_request *request) {
    struct stage *stage = &b->stages[number];
    if (number >= b->depth || stage->state != STAGE_BUILT) return fail("stage %u has no batch that can be stepped", number);
    CK(cudaSetDevice(b->device));
    if (wait_turn(b, stage, request)) return -1;
    begin(b, stage, request);
    if (gather(b, stage) || train(b, stage, request) || scatter(b, stage)) return -1;
    stage->state = STAGE_GOING_HOME;
    return 0;
}

/* ---- the end of a batch ---- */

static struct stage *oldest_going_home(struct backend *b) {
    struct stage *oldest = NULL;
    for (unsigned i = 0; i < b->depth; i++) {
        struct stage *s = &b->stages[i];
        if (s->state == STAGE_GOING_HOME && (!oldest || s->sequence < oldest->sequence)) oldest = s;
    }
    return oldest;
}

/* Waits until the stage's rows are in the tables again. Older batches are completed first: of a row that is in two batches, the newer value must
 * be written last. */
static int land(struct backend *b, struct stage *stage) {
    while (stage->state == STAGE_GOING_HOME) {
        struct stage *oldest = oldest_going_home(b);
        INVARIANT(oldest && oldest->sequence <= stage->sequence); /* at the latest the stage itself */
        if (exchange_await(b, oldest->done)) return -1; /* recorded after all GPU work of this batch, whose step waited for all earlier work */
        for (int side = 0; side < 2; side++)
            if (row_set_land(b, &oldest->side[side])) return -1;
        oldest->state = STAGE_HOME;
    }
    return 0;
}

int cuda_result(struct backend *b, unsigned number, struct step_result *result) {
    struct stage *stage = &b->stages[number];
    if (number >= b->depth || (stage->state != STAGE_GOING_HOME && stage->state != STAGE_HOME))
        return fail("stage %u has no batch that was stepped", number);
    CK(cudaSetDevice(b->device));
    if (land(b, stage)) return -1;
    *result = *stage->result;
    return 0;
}

int cuda_drain(struct backend *b) {
    CK(cudaSetDevice(b->device));
    for (unsigned i = 0; i < b->depth; i++)
        if (land(b, &b->stages[i])) return -1;
    for (struct batch_builder &builder : b->builders)
        if (builder.stream) CK(cudaStreamSynchronize(builder.stream));
    CK(cudaStreamSynchronize(b->in));
    CK(cudaStreamSynchronize(b->compute));
    CK(cudaStreamSynchronize(b->out));
    return 0;
}
