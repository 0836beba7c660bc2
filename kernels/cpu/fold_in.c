/* fold_in: the CPU's part of kernels/fold_in.h. A worker solves a block of lists together, so that it reads a negative's row once
 * for all of them. Scores and gradients are products of matrices, for which the negatives are kept in two orders of panels:
 *
 *   by_row      [padded / CPU_PANEL][dim x CPU_PANEL]       scores: panels of CPU_PANEL negatives
 *   by_column   [columns / CPU_PANEL][padded x CPU_PANEL]   gradients: panels of CPU_PANEL columns
 */
#include "cpu.h"

#include "base/memory.h"
#include "base/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_LISTS = 16,
    CHUNK = 256 /* number of negatives of one product for gradients; their part of a panel, 32 KiB, fits into a first-level cache */
};

struct backend_fold {
    struct backend *backend;
    struct fold_problem problem; /* of its arrays only `ids` is used after opening */
    uint32_t *ids;
    uint32_t padded, columns; /* padded: number of negatives; columns: number of columns; both rounded up to whole panels */
    float *by_row, *by_column;
};

static uint32_t whole_panels(uint32_t count) {
    return (count + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL;
}

static void fill_panels(struct backend_fold *fold) {
    const struct fold_problem *p = &fold->problem;
    for (uint64_t row = 0; row < p->count; row++)
        for (uint64_t i = 0; i < p->dim; i++) {
            float value = p->negatives[row * p->dim + i];
            fold->by_row[(row / CPU_PANEL * p->dim + i) * CPU_PANEL + row % CPU_PANEL] = value;
            fold->by_column[(i / CPU_PANEL * fold->padded + row) * CPU_PANEL + i % CPU_PANEL] = value;
        }
}

int cpu_fold_open(struct backend *backend, const struct fold_problem *problem, struct backend_fold **out) {
    struct backend_fold *fold = *out = mem_zalloc(1, sizeof *fold, "negatives of new lists");
    if (!fold) return -1;
    *fold = (struct backend_fold){.backend = backend, .problem = *problem};
    fold->padded = whole_panels(problem->count);
    fold->columns = whole_panels(problem->dim);
    uint64_t row_bytes = fold->padded * sizeof(float);
    fold->ids = mem_alloc(problem->count, sizeof *fold->ids, "negatives of new lists");
    fold->by_row = mem_aligned(problem->dim, row_bytes, "negatives of new lists");
    fold->by_column = mem_aligned(fold->columns, row_bytes, "negatives of new lists");
    if (!fold->ids || !fold->by_row || !fold->by_column) {
        cpu_fold_close(fold);
        *out = NULL;
        return -1;
    }
    memcpy(fold->ids, problem->ids, problem->count * sizeof *fold->ids);
    memset(fold->by_row, 0, problem->dim * row_bytes);
    memset(fold->by_column, 0, fold->columns * row_bytes);
    fill_panels(fold);
    return 0;
}

void cpu_fold_close(struct backend_fold *fold) {
    free(fold->ids);
    free(fold->by_row);
    free(fold->by_column);
    free(fold);
}

/* ---- a block of lists ---- */

/* A worker's arrays for the lists that it solves together. */
struct block {
    const struct backend_fold *fold;
    const struct fold_lists *lists;
    const struct cpu_rows *rows;
    uint64_t first;       /* number of the block's first list */
    uint32_t count;       /* number of lists in the block */
    float *scores;        /* [BLOCK_LISTS x padded] for each list: the scores of the negatives, then their coefficients */
    uint8_t *excluded;    /* [BLOCK_LISTS x padded] 1: the list leaves this negative out */
    float *directions;    /* [BLOCK_LISTS x columns] */
    float *gains;         /* [BLOCK_LISTS x columns] gradient of each list: sum of coefficient x item's row */
    float *line, *spare;  /* line: [positives + negatives] scores of one list, then coefficients; spare: scratch of twice that
                           * length */
    const float **items;  /* [positives] pointers to the rows of one list's items */
    uint64_t line_capacity, spare_capacity, items_capacity;
};

static uint32_t positives_of(const struct block *b, uint32_t list) {
    const uint64_t *start = b->lists->starts + b->first + list;
    return (uint32_t)(start[1] - start[0]);
}

/* Sets b->items to the rows of a list's items. */
static void point_at_items(struct block *b, uint32_t list) {
    const uint32_t *places = b->lists->places + b->lists->starts[b->first + list];
    for (uint32_t i = 0; i < positives_of(b, list); i++) b->items[i] = b->lists->items + (uint64_t)places[i] * b->fold->problem.dim;
}

/* Scales a direction to length 1; zeros stay zeros. */
static void make_unit(float *direction, uint32_t dim) {
    double squares = 0;
    for (uint32_t i = 0; i < dim; i++) squares += (double)direction[i] * (double)direction[i];
    float inverse = loss_inverse_length((float)squares);
    for (uint32_t i = 0; i < dim; i++) direction[i] *= inverse;
}

static int is_directed(const float *direction, uint32_t dim) {
    for (uint32_t i = 0; i < dim; i++)
        if (direction[i] != 0) return 1;
    return 0;
}

static void exclude_items(struct block *b, uint32_t list) {
    const struct fold_problem *p = &b->fold->problem;
    const uint64_t *start = b->lists->starts + b->first + list;
    uint8_t *excluded = b->excluded + (uint64_t)list * b->fold->padded;
    memset(excluded, 0, p->count);
    for (uint64_t i = start[0]; p->exclude && i < start[1]; i++) {
        uint32_t id = b->lists->item_ids[b->lists->places[i]];
        for (uint32_t at = fold_first_place(b->fold->ids, p->count, id); at < p->count && b->fold->ids[at] == id; at++) excluded[at] = 1;
    }
}

static int begin(struct block *b, uint32_t list) {
    uint32_t positives = positives_of(b, list), dim = b->fold->problem.dim;
    uint64_t line = (uint64_t)positives + b->fold->problem.count;
    float *direction = b->directions + (uint64_t)list * b->fold->columns;
    if (mem_grow(&b->line, &b->line_capacity, line, sizeof *b->line, "scores of a new list") ||
        mem_grow(&b->spare, &b->spare_capacity, 2 * line, sizeof *b->spare, "scores of a new list") ||
        mem_grow(&b->items, &b->items_capacity, (uint64_t)positives + 1, sizeof *b->items, "items of a new list"))
        return -1;
    point_at_items(b, list);
    exclude_items(b, list);
    memset(direction, 0, dim * sizeof *direction);
    for (uint32_t i = 0; i < positives; i++) b->rows->combine(direction, &(float){1}, 1, b->items + i, 1, dim);
    make_unit(direction, dim);
    return 0;
}

/* ---- a step ---- */

static void rows_of(const struct block *b, const float *from, uint64_t stride, uint64_t first, const float *rows[BLOCK_LISTS]) {
    for (uint32_t list = 0; list < b->count; list++) rows[list] = from + list * stride + first;
}

static void score_negatives(struct block *b) {
    const struct backend_fold *fold = b->fold;
    const float *directions[BLOCK_LISTS];
    uint32_t dim = fold->problem.dim;
    rows_of(b, b->directions, fold->columns, 0, directions);
    for (uint32_t first = 0; first < fold->padded; first += CPU_PANEL)
        b->rows->products(directions, b->count, fold->by_row + (uint64_t)first * dim, dim, b->scores + first, fold->padded, 0);
}

/* Adds to each list's gradient the sum of coefficient x row over the negatives. */
static void gain_from_negatives(struct block *b) {
    const struct backend_fold *fold = b->fold;
    const float *coefficients[BLOCK_LISTS];
    for (uint32_t column = 0; column < fold->columns; column += CPU_PANEL)
        for (uint32_t first = 0; first < fold->padded; first += CHUNK) {
            uint32_t left = fold->padded - first;
            rows_of(b, b->scores, fold->padded, first, coefficients);
            b->rows->products(coefficients, b->count, fold->by_column + (uint64_t)column * fold->padded + (uint64_t)first * CPU_PANEL,
                              left < CHUNK ? left : CHUNK, b->gains + column, fold->columns, 1);
        }
}

/* Replaces a list's scores of the negatives by coefficients, and sets its gradient to the positives' part. Returns the sum of
 * the absolute values of all coefficients. */
static float coefficients(struct block *b, uint32_t list) {
    const struct fold_problem *p = &b->fold->problem;
    uint32_t positives = positives_of(b, list), kept = positives;
    const uint8_t *excluded = b->excluded + (uint64_t)list * b->fold->padded;
    const float *direction = b->directions + (uint64_t)list * b->fold->columns;
    float *scores = b->scores + (uint64_t)list * b->fold->padded, *gain = b->gains + (uint64_t)list * b->fold->columns, sum = 0;
    point_at_items(b, list);
    b->rows->dots(&direction, 1, b->items, positives, p->dim, b->line, positives);
    for (uint32_t i = 0; i < p->count; i++)
        if (!excluded[i]) b->line[kept++] = scores[i];
    for (uint32_t i = 0; i < kept; i++) b->line[i] *= p->length;
    b->rows->learn(&p->loss, b->line, 1, kept, positives, NULL, 1, b->spare);
    memset(gain, 0, b->fold->columns * sizeof *gain);
    b->rows->combine(gain, b->line, 1, b->items, positives, p->dim);
    for (uint32_t i = 0; i < positives; i++) sum += fabsf(b->line[i]);
    kept = positives;
    for (uint32_t i = 0; i < p->count; i++) {
        scores[i] = excluded[i] ? 0 : p->per_negative * b->line[kept++];
        sum += fabsf(scores[i]);
    }
    return sum;
}

static void step(struct block *b) {
    const struct backend_fold *fold = b->fold;
    float sums[BLOCK_LISTS];
    score_negatives(b);
    for (uint32_t list = 0; list < b->count; list++) sums[list] = coefficients(b, list);
    gain_from_negatives(b);
    for (uint32_t list = 0; list < b->count; list++) {
        float *direction = b->directions + (uint64_t)list * fold->columns, whole = sums[list] * fold->problem.item_length;
        const float *gain = b->gains + (uint64_t)list * fold->columns;
        if (!(whole > 0) || !is_directed(direction, fold->problem.dim)) continue;
        b->rows->combine(direction, &(float){-2 / whole}, 1, &gain, 1, fold->problem.dim);
        make_unit(direction, fold->problem.dim);
    }
}

static int solve_block(struct block *b) {
    const struct fold_problem *p = &b->fold->problem;
    for (uint32_t list = 0; list < b->count; list++)
        if (begin(b, list)) return -1;
    for (uint32_t i = 0; i < p->steps; i++) step(b);
    for (uint32_t list = 0; list < b->count; list++)
        memcpy(b->lists->directions + (b->first + list) * p->dim, b->directions + (uint64_t)list * b->fold->columns,
               p->dim * sizeof(float));
    return 0;
}

/* ---- all lists ---- */

struct solving {
    const struct backend_fold *fold;
    const struct fold_lists *lists;
    uint64_t grain; /* number of lists of a block */
    _Atomic uint64_t taken;
};

static int block_init(struct block *b, const struct solving *solving) {
    const struct backend_fold *fold = solving->fold;
    *b = (struct block){.fold = fold, .lists = solving->lists, .rows = fold->backend->rows};
    b->scores = mem_aligned(BLOCK_LISTS, fold->padded * sizeof *b->scores, "scores of new lists");
    b->excluded = mem_alloc(BLOCK_LISTS, fold->padded, "negatives of new lists");
    b->directions = mem_aligned(BLOCK_LISTS, fold->columns * sizeof *b->directions, "rows of new lists");
    b->gains = mem_aligned(BLOCK_LISTS, fold->columns * sizeof *b->gains, "rows of new lists");
    return b->scores && b->excluded && b->directions && b->gains ? 0 : -1;
}

static void block_release(struct block *b) {
    free(b->scores);
    free(b->excluded);
    free(b->directions);
    free(b->gains);
    free(b->line);
    free(b->spare);
    free(b->items);
}

static int solve_some(void *context, unsigned worker) {
    struct solving *solving = context;
    struct block b;
    uint64_t end;
    (void)worker;
    int result = block_init(&b, solving);
    while (!result && pool_take(&solving->taken, solving->lists->count, solving->grain, &b.first, &end)) {
        b.count = (uint32_t)(end - b.first);
        result = solve_block(&b);
    }
    block_release(&b);
    return result;
}

int cpu_fold_solve(struct backend_fold *fold, const struct fold_lists *lists) {
    struct solving solving = {.fold = fold, .lists = lists};
    uint64_t each = lists->count / pool_threads(fold->backend->pool) + 1; /* if there are few lists, blocks are smaller, so that
                                                                           * each thread gets some lists */
    solving.grain = each < BLOCK_LISTS ? each : BLOCK_LISTS;
    return lists->count ? pool_run(fold->backend->pool, solve_some, &solving) : 0;
}
