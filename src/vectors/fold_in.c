#include "list_scores.h"

#include "base/memory.h"
#include "config/config.h"

#include <math.h>
#include <stdlib.h>

enum {
    LENGTH_LISTS = 1024, /* number of trained lists whose rows' lengths are measured, at most */
    GRAIN = 256 /* number of items' rows that a worker reads before it asks for more */
};

int fold_in_is_for(const struct model *model) {
    return model->mode == MODE_USER && model->vocab.lists && model->own > 0 && model->negatives.count;
}

/* ---- opening ---- */

/* Returns an item's weight in the distribution of negatives; weights do not add up to 1. */
static double weight_of(const struct model *model, uint64_t item) {
    if (model->negatives.law == NOISE_UNIGRAM) return pow((double)vocab_count(&model->vocab, item), model->negatives.power);
    if (model->negatives.law == NOISE_LOG_UNIFORM) return item ? log1p(1 / (double)item) : 0;
    return 1;
}

/* Chooses `count` negatives without random numbers: places the items' weights end to end on a line, and picks the items at evenly spaced points. */
static void choose_negatives(struct fold_in *fold) {
    const struct model *model = fold->model;
    uint64_t items = model_items(model), count = fold->problem.count;
    double all = 0, reached = 0;
    uint32_t chosen = 0;
    for (uint64_t item = 0; item < items; item++) all += weight_of(model, item);
    for (uint64_t item = 0; item < items; item++) {
        reached += weight_of(model, item);
        while (chosen < count && ((double)chosen + 0.5) * all < reached * (double)count) fold->ids[chosen++] = (uint32_t)item;
    }
    fold->problem.count = chosen;
}

static double squares_of(const float *row, uint32_t dim) {
    double squares = 0;
    for (uint32_t i = 0; i < dim; i++) squares += (double)row[i] * (double)row[i];
    return squares;
}

static int read_negatives(struct fold_in *fold, float *negatives) {
    struct fold_problem *p = &fold->problem;
    double squares = 0;
    for (uint32_t i = 0; i < p->count; i++, negatives += p->dim) {
        if (model_row(fold->model, VIEW_CONTEXT, fold->ids[i], p->loss.score == SCORE_COSINE, negatives)) return -1;
        squares += squares_of(negatives, p->dim);
    }
    p->item_length = p->count ? (float)sqrt(squares / p->count) : 1;
    return 0;
}

/* Sets the length of folded rows: for dot products the root mean square length of trained lists' rows, for cosines 1. */
static int measure_length(struct fold_in *fold) {
    const struct model *model = fold->model;
    uint64_t lists = model->vocab.lists, first = model->rows - lists, asked = lists < LENGTH_LISTS ? lists : LENGTH_LISTS;
    double squares = 0;
    float row[COLUMNS_MOST];
    fold->problem.length = 1;
    if (model->loss.score == SCORE_COSINE) return 0;
    for (uint64_t i = 0; i < asked; i++) {
        if (model_row(model, VIEW_TARGET, first + i * lists / asked, 0, row)) return -1;
        squares += squares_of(row, model->dim);
    }
    if (squares > 0) fold->problem.length = (float)sqrt(squares / (double)asked);
    return 0;
}

/* Opens the solver on the caller's backend, or on the CPU if the GPU lacks memory for it. */
static int open_backend(struct fold_in *fold, const struct backend_ops *ops, struct backend *backend, unsigned threads) {
    int result = ops->fold_open(backend, &fold->problem, &fold->solver);
    fold->ops = ops;
    if (result <= 0) return result;
    struct backend_options options = {.threads = threads, .depth = 1, .gpu_budget = UINT64_MAX};
    fold->ops = backend_without_gpu();
    if (fold->ops->open(&fold->own, &options)) {
        fold->own = NULL;
        return -1;
    }
    return fold->ops->fold_open(fold->own, &fold->problem, &fold->solver);
}

int fold_in_open(struct fold_in *fold, const struct model *model, const struct backend_ops *ops, struct backend *backend,
                 unsigned threads) {
    uint64_t items = model_items(model), most = model->loss.kind == LOSS_BPR ? FOLD_NEGATIVES_BPR : FOLD_NEGATIVES;
    *fold = (struct fold_in){.model = model, .problem = {.dim = model->dim, .loss = model->loss, .exclude = model->negatives.exclude}};
    fold->problem.count = (uint32_t)(model->negatives.law == NOISE_UNIFORM && items < most ? items : most);
    fold->problem.steps = fold->problem.count <= FOLD_NEGATIVES / 2 ? 2 * FOLD_STEPS : FOLD_STEPS;
    fold->ids = mem_alloc(fold->problem.count, sizeof *fold->ids, "negatives of new lists");
    fold->places = mem_zalloc(model_items(model), sizeof *fold->places, "items of new lists");
    float *negatives = mem_aligned(fold->problem.count, model->dim * sizeof *negatives, "negatives of new lists");
    fold->pool = pool_open(threads);
    int result = fold->ids && fold->places && negatives && fold->pool ? 0 : -1;
    fold->problem.ids = fold->ids;
    fold->problem.negatives = negatives;
    if (!result) choose_negatives(fold);
    if (!result && (read_negatives(fold, negatives) || measure_length(fold))) result = -1;
    if (!result) {
        struct fold_problem *p = &fold->problem;
        float share = p->count ? (float)fold->model->negatives.count / (float)p->count : 1;
        p->per_negative = p->loss.kind == LOSS_LOGISTIC ? share : 1;
        if (p->loss.kind == LOSS_SOFTMAX) p->loss.negative_weight *= share;
        result = open_backend(fold, ops, backend, threads);
    }
    free(negatives);
    if (result) fold_in_close(fold);
    return result;
}

void fold_in_close(struct fold_in *fold) {
    if (fold->solver) fold->ops->fold_close(fold->solver);
    if (fold->own) fold->ops->close(fold->own);
    if (fold->pool) pool_close(fold->pool);
    mem_free(fold->ids, fold->places);
    *fold = (struct fold_in){.model = NULL};
}

/* ---- solving ---- */

/* One call of the backend's solver: some lists, with their items. */
struct call {
    struct fold_in *fold;
    struct fold_lists lists; /* points to the arrays of this struct */
    float *items, *directions;
    uint32_t *ids, *places;
    uint64_t *starts;
    uint64_t ids_capacity, places_capacity;
    _Atomic uint64_t taken; /* number of items' rows that workers have begun to read */
};

/* Adds a list to the call. Each item that no earlier list of the call contains gets the next row. */
static int add_list(struct call *call, const struct fold_list *list) {
    struct fold_lists *lists = &call->lists;
    uint64_t end = call->starts[lists->count];
    if (mem_grow(&call->places, &call->places_capacity, end + list->count, sizeof *call->places, "items of new lists") ||
        mem_grow(&call->ids, &call->ids_capacity, lists->item_count + list->count, sizeof *call->ids, "items of new lists"))
        return -1;
    for (uint64_t i = 0; i < list->count; i++) {
        if (list->codes[i] >= model_items(call->fold->model)) continue;
        uint32_t *place = &call->fold->places[list->codes[i]];
        if (!*place) {
            call->ids[lists->item_count++] = (uint32_t)list->codes[i];
            *place = (uint32_t)lists->item_count;
        }
        call->places[end++] = *place - 1;
    }
    call->starts[++lists->count] = end;
    return 0;
}

static int read_items(void *context, unsigned worker) {
    struct call *call = context;
    const struct model *model = call->fold->model;
    uint64_t first, end;
    while (pool_take(&call->taken, call->lists.item_count, GRAIN, &first, &end))
        for (; first < end; first++)
            if (model_row(model, VIEW_CONTEXT, call->ids[first], model->loss.score == SCORE_COSINE, call->items + first * model->dim))
                return -1;
    return 0;
}

/* Solves the lists of the call, and writes the results to each list's `row`. */
static int solve(struct call *call, const struct fold_list *lists) {
    const struct fold_in *fold = call->fold;
    uint32_t dim = fold->model->dim;
    call->items = mem_aligned(call->lists.item_count, dim * sizeof *call->items, "items of new lists");
    call->directions = mem_aligned(call->lists.count, dim * sizeof *call->directions, "rows of new lists");
    if (!call->items || !call->directions || pool_run(fold->pool, read_items, call)) return -1;
    call->lists.items = call->items, call->lists.item_ids = call->ids;
    call->lists.starts = call->starts, call->lists.places = call->places;
    call->lists.directions = call->directions;
    if (fold->ops->fold_solve(fold->solver, &call->lists)) return -1;
    for (uint64_t i = 0; i < call->lists.count; i++)
        for (uint32_t j = 0; j < dim; j++) lists[i].row[j] = fold->problem.length * call->directions[i * dim + j];
    return 0;
}

/* Solves as many lists, from the first one on, as fit into one call. Returns their number, or 0 after fail(). */
static uint64_t solve_some(struct fold_in *fold, const struct fold_list *lists, uint64_t count) {
    struct call call = {.fold = fold, .starts = mem_zalloc(count + 1, sizeof *call.starts, "new lists")};
    int result = call.starts ? 0 : -1;
    while (!result && call.lists.count < count && call.lists.item_count < FOLD_ITEMS) result = add_list(&call, &lists[call.lists.count]);
    if (!result) result = solve(&call, lists);
    for (uint64_t i = 0; i < call.lists.item_count; i++) fold->places[call.ids[i]] = 0;
    mem_free(call.items, call.directions, call.ids, call.places, call.starts);
    return result ? 0 : call.lists.count;
}

int fold_in_solve(struct fold_in *fold, const struct fold_list *lists, uint64_t count) {
    for (uint64_t solved = 0, some; solved < count; solved += some) {
        some = solve_some(fold, lists + solved, count - solved);
        if (!some) return -1;
    }
    return 0;
}
