#include "fold_in.h"

#include "dot.h"
#include "base/memory.h"
#include "base/report.h"
#include "config/config.h"
#include "kernels/losses_block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_LISTS = 16, /* lists that a worker solves at a time, so that one read of a negative's row serves all of them */
    TILE_LISTS = 2, /* a tile is TILE_LISTS lists x TILE_ROWS negatives: its dot products fit into SSE's registers */
    TILE_ROWS = 4,
    LANES = 4, /* floats of a vector register */
    CHUNK_BYTES = 32 << 10, /* bytes of negatives' rows worked on at a time; they fit into a core's first-level cache */
    LENGTH_LISTS = 1024 /* most trained lists whose rows are read to find their usual length */
};

/* LANES neighbouring columns of a row; aligned only like a float. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

int fold_in_is_for(const struct model *model) {
    return model->mode == MODE_USER && model->vocab.lists && model->own > 0 && model->negatives.count;
}

/* ---- opening ---- */

/* Returns an item's weight in the distribution of negatives; weights do not add up to 1. */
static double weight_of(const struct model *model, uint64_t item) {
    if (model->negatives.law == NOISE_UNIGRAM) return pow((double)model->vocab.counts[item], model->negatives.power);
    if (model->negatives.law == NOISE_LOG_UNIFORM) return item ? log1p(1 / (double)item) : 0;
    return 1;
}

/* Chooses `count` negatives without chance: lays the items' weights end to end on a line, and picks the items at evenly spaced
 * points of it. */
static void choose_negatives(struct fold_in *fold) {
    const struct model *model = fold->model;
    uint64_t items = model_items(model);
    double all = 0, reached = 0;
    uint32_t chosen = 0;
    for (uint64_t item = 0; item < items; item++) all += weight_of(model, item);
    for (uint64_t item = 0; item < items; item++) {
        reached += weight_of(model, item);
        while (chosen < fold->count && ((double)chosen + 0.5) * all < reached * (double)fold->count) fold->ids[chosen++] = (uint32_t)item;
    }
    fold->count = chosen;
}

static double squares_of(const float *row, uint32_t dim) {
    double squares = 0;
    for (uint32_t i = 0; i < dim; i++) squares += (double)row[i] * (double)row[i];
    return squares;
}

static int read_negatives(struct fold_in *fold) {
    uint32_t dim = fold->model->dim;
    double squares = 0;
    for (uint32_t i = 0; i < fold->count; i++) {
        float *row = fold->negatives + (uint64_t)i * dim;
        if (model_row(fold->model, VIEW_CONTEXT, fold->ids[i], fold->loss.score == SCORE_COSINE, row)) return -1;
        squares += squares_of(row, dim);
    }
    fold->item_length = fold->count ? (float)sqrt(squares / fold->count) : 1;
    return 0;
}

/* Sets fold->length to the root mean square length of trained lists' rows, which new rows get too: dot products depend on it. */
static int measure_length(struct fold_in *fold) {
    const struct model *model = fold->model;
    uint64_t lists = model->vocab.lists, first = model->rows - lists, asked = lists < LENGTH_LISTS ? lists : LENGTH_LISTS;
    double squares = 0;
    float row[COLUMNS_MOST];
    fold->length = 1;
    if (fold->loss.score == SCORE_COSINE) return 0;
    for (uint64_t i = 0; i < asked; i++) {
        if (model_row(model, VIEW_TARGET, first + i * lists / asked, 0, row)) return -1;
        squares += squares_of(row, model->dim);
    }
    fold->length = squares > 0 ? (float)sqrt(squares / (double)asked) : 1;
    return 0;
}

/* Scales losses that sum over negatives: training had negatives.count of them, here there are `count`. Losses that take a mean
 * over negatives need no factor. */
static void scale_negatives(struct fold_in *fold) {
    float share = fold->count ? (float)fold->model->negatives.count / (float)fold->count : 1;
    fold->per_negative = fold->loss.kind == LOSS_LOGISTIC ? share : 1;
    if (fold->loss.kind == LOSS_SOFTMAX) fold->loss.negative_weight *= share;
}

int fold_in_open(struct fold_in *fold, const struct model *model, unsigned threads) {
    uint64_t items = model_items(model), most = model->loss.kind == LOSS_BPR ? FOLD_NEGATIVES_BPR : FOLD_NEGATIVES;
    *fold = (struct fold_in){.model = model, .loss = model->loss, .count = (uint32_t)most};
    if (model->negatives.law == NOISE_UNIFORM && items < most) fold->count = (uint32_t)items;
    fold->steps = fold->count <= FOLD_NEGATIVES / 2 ? 2 * FOLD_STEPS : FOLD_STEPS;
    fold->padded = (fold->count + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    fold->ids = mem_alloc(fold->count, sizeof *fold->ids, "negatives of new lists");
    fold->negatives = mem_aligned(fold->padded, model->dim * sizeof *fold->negatives, "negatives of new lists");
    fold->pool = pool_open(threads);
    int result = fold->ids && fold->negatives && fold->pool ? 0 : -1;
    if (!result) {
        memset(fold->negatives, 0, (uint64_t)fold->padded * model->dim * sizeof *fold->negatives);
        choose_negatives(fold);
    }
    if (!result && (read_negatives(fold) || measure_length(fold))) result = -1;
    if (result)
        fold_in_close(fold);
    else
        scale_negatives(fold);
    return result;
}

void fold_in_close(struct fold_in *fold) {
    if (fold->pool) pool_close(fold->pool);
    free(fold->ids);
    free(fold->negatives);
    *fold = (struct fold_in){.model = NULL};
}

/* ---- a block of lists ---- */

/* A worker's arrays for the lists that it solves at a time. */
struct block {
    const struct fold_in *fold;
    const struct fold_list *lists; /* [count] */
    uint32_t count, rows;   /* number of lists in the block; most lists that the arrays have room for */
    float *scores;          /* [rows x padded] each list's scores of the negatives, then their coefficients */
    uint8_t *excluded;      /* [rows x padded] 1 if this negative is an item of the list and is left out */
    float *gains;           /* [rows + 1][dim] each list's gradient: sum of coefficient x item's row; the last row is never read */
    float *line, *spare;    /* [positives + negatives] of one list: scores, then coefficients; scratch of twice that size */
    uint64_t line_capacity, spare_capacity;
    float *items;           /* rows of all lists' known items, list after list */
    uint64_t items_capacity;
    uint64_t starts[BLOCK_LISTS + 1]; /* rows of list i in `items`: starts[i] .. starts[i + 1] - 1 */
};

static float *item_of(const struct block *b, uint64_t at) {
    return b->items + at * b->fold->model->dim;
}

/* Marks each negative that is this item as excluded from the list. ids[] is sorted, so it is searched by halves. */
static void exclude(struct block *b, uint32_t list, uint64_t item) {
    const uint32_t *ids = b->fold->ids;
    uint32_t low = 0, high = b->fold->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ids[middle] < item) low = middle + 1;
        else high = middle;
    }
    for (; low < b->fold->count && ids[low] == item; low++) b->excluded[(uint64_t)list * b->fold->padded + low] = 1;
}

/* Scales a row to unit length. Returns 1, or 0 for a row of zeros, which stays zeros. */
static int make_unit(float *row, uint32_t dim) {
    float inverse = loss_inverse_length((float)squares_of(row, dim));
    for (uint32_t i = 0; i < dim; i++) row[i] *= inverse;
    return inverse > 0;
}

static void add_scaled(float *sum, const float *row, float factor, uint32_t dim) {
    for (uint32_t i = 0; i < dim; i++) sum[i] += factor * row[i];
}

/* Reads the rows of a list's known items. The list's first row is their sum, scaled to unit length. */
static int load(struct block *b, uint32_t list) {
    const struct fold_in *fold = b->fold;
    const struct fold_list *of = &b->lists[list];
    uint32_t dim = fold->model->dim;
    uint64_t end = b->starts[list];
    memset(of->row, 0, dim * sizeof *of->row);
    memset(b->excluded + (uint64_t)list * fold->padded, 0, fold->count);
    for (uint64_t i = 0; i < of->count; i++) {
        if (of->codes[i] >= model_items(fold->model)) continue;
        if (mem_grow(&b->items, &b->items_capacity, (end + 1) * dim, sizeof *b->items, "items of new lists") ||
            model_row(fold->model, VIEW_CONTEXT, of->codes[i], fold->loss.score == SCORE_COSINE, item_of(b, end)))
            return -1;
        add_scaled(of->row, item_of(b, end++), 1, dim);
        if (fold->model->negatives.exclude) exclude(b, list, of->codes[i]);
    }
    b->starts[list + 1] = end;
    make_unit(of->row, dim);
    uint64_t line = end - b->starts[list] + fold->count;
    return mem_grow(&b->line, &b->line_capacity, line, sizeof *b->line, "scores of a new list") ||
                   mem_grow(&b->spare, &b->spare_capacity, 2 * line, sizeof *b->spare, "scores of a new list")
               ? -1
               : 0;
}

/* ---- a step ---- */

static uint32_t chunk_of(const struct fold_in *fold) {
    uint32_t tiles = CHUNK_BYTES / (TILE_ROWS * fold->model->dim * (uint32_t)sizeof(float));
    return (tiles ? tiles : 1) * TILE_ROWS;
}

/* Computes the dot products of two lists' rows with four rows of negatives, so that one load serves several products. Columns past
 * the last multiple of LANES are added one by one. */
static void products(const float *const lists[TILE_LISTS], const float *rows, uint32_t dim, float out[TILE_LISTS][TILE_ROWS]) {
    lanes sum[TILE_LISTS][TILE_ROWS] = {{{0}}};
    uint32_t whole = dim / LANES * LANES;
    for (uint32_t i = 0; i < whole; i += LANES)
        for (int row = 0; row < TILE_ROWS; row++)
            for (int list = 0; list < TILE_LISTS; list++)
                sum[list][row] += *(const lanes *)(lists[list] + i) * *(const lanes *)(rows + (uint64_t)row * dim + i);
    for (int list = 0; list < TILE_LISTS; list++)
        for (int row = 0; row < TILE_ROWS; row++) {
            lanes of = sum[list][row];
            out[list][row] = (of[0] + of[1]) + (of[2] + of[3]);
            for (uint32_t i = whole; i < dim; i++) out[list][row] += lists[list][i] * rows[(uint64_t)row * dim + i];
        }
}

/* For each list: sums[list] += c[list][k] x rows[k], over the four rows k. */
static void combine(float *const sums[TILE_LISTS], const float *rows, uint32_t dim, const float *const c[TILE_LISTS]) {
    uint32_t whole = dim / LANES * LANES;
    for (uint32_t i = 0; i < whole; i += LANES) {
        lanes row[TILE_ROWS];
        for (int k = 0; k < TILE_ROWS; k++) row[k] = *(const lanes *)(rows + (uint64_t)k * dim + i);
        for (int list = 0; list < TILE_LISTS; list++)
            *(lanes *)(sums[list] + i) += (c[list][0] * row[0] + c[list][1] * row[1]) + (c[list][2] * row[2] + c[list][3] * row[3]);
    }
    for (int list = 0; list < TILE_LISTS; list++)
        for (uint32_t i = whole; i < dim; i++)
            for (int k = 0; k < TILE_ROWS; k++) sums[list][i] += c[list][k] * rows[(uint64_t)k * dim + i];
}

/* Scores negatives [first, end) for each list. If the number of lists is odd, the last list fills both places of its tile. */
static void score_chunk(struct block *b, uint32_t first, uint32_t end) {
    const struct fold_in *fold = b->fold;
    uint32_t dim = fold->model->dim;
    float found[TILE_LISTS][TILE_ROWS];
    for (uint32_t at = 0; at < b->count; at += TILE_LISTS) {
        uint32_t other = at + 1 < b->count ? at + 1 : at;
        const float *rows[TILE_LISTS] = {b->lists[at].row, b->lists[other].row};
        float *scores[TILE_LISTS] = {b->scores + (uint64_t)at * fold->padded, b->scores + (uint64_t)other * fold->padded};
        for (uint32_t i = first; i < end; i += TILE_ROWS) {
            products(rows, fold->negatives + (uint64_t)i * dim, dim, found);
            for (int k = 0; k < TILE_LISTS * TILE_ROWS; k++)
                scores[k / TILE_ROWS][i + (uint32_t)k % TILE_ROWS] = fold->length * found[k / TILE_ROWS][k % TILE_ROWS];
        }
    }
}

/* Adds coefficient x row, for negatives [first, end), to each list's gradient in `gains`. */
static void sum_chunk(struct block *b, uint32_t first, uint32_t end) {
    const struct fold_in *fold = b->fold;
    uint32_t dim = fold->model->dim;
    for (uint32_t at = 0; at < b->count; at += TILE_LISTS) {
        uint32_t other = at + 1 < b->count ? at + 1 : b->rows; /* a sum that nothing reads */
        float *sums[TILE_LISTS] = {b->gains + (uint64_t)at * dim, b->gains + (uint64_t)other * dim};
        for (uint32_t i = first; i < end; i += TILE_ROWS) {
            const float *c[TILE_LISTS] = {b->scores + (uint64_t)at * fold->padded + i, b->scores + (uint64_t)other * fold->padded + i};
            if (other == b->rows) c[1] = c[0];
            combine(sums, fold->negatives + (uint64_t)i * dim, dim, c);
        }
    }
}

static void over_chunks(struct block *b, void (*work)(struct block *, uint32_t, uint32_t)) {
    uint32_t chunk = chunk_of(b->fold), count = b->fold->padded;
    for (uint32_t first = 0; first < count; first += chunk) work(b, first, count - first < chunk ? count : first + chunk);
}

/* Replaces a list's scores of the negatives by their coefficients, and sets its gradient in `gains` to the part of the positives.
 * Returns the sum of the absolute values of all coefficients. */
static float coefficients(struct block *b, uint32_t list) {
    const struct fold_in *fold = b->fold;
    uint32_t dim = fold->model->dim, positives = (uint32_t)(b->starts[list + 1] - b->starts[list]), kept = positives;
    const uint8_t *excluded = b->excluded + (uint64_t)list * fold->padded;
    float *scores = b->scores + (uint64_t)list * fold->padded, *gain = b->gains + (uint64_t)list * dim, sum = 0;
    for (uint32_t i = 0; i < positives; i++)
        b->line[i] = fold->length * dot(b->lists[list].row, item_of(b, b->starts[list] + i), dim);
    for (uint32_t i = 0; i < fold->count; i++)
        if (!excluded[i]) b->line[kept++] = scores[i];
    learn(&fold->loss, b->line, 1, kept, positives, NULL, 1, b->spare);
    memset(gain, 0, dim * sizeof *gain);
    for (uint32_t i = 0; i < positives; i++) {
        add_scaled(gain, item_of(b, b->starts[list] + i), b->line[i], dim);
        sum += fabsf(b->line[i]);
    }
    kept = positives;
    for (uint32_t i = 0; i < fold->count; i++) {
        scores[i] = excluded[i] ? 0 : fold->per_negative * b->line[kept++];
        sum += fabsf(scores[i]);
    }
    for (uint32_t i = fold->count; i < fold->padded; i++) scores[i] = 0;
    return sum;
}

static void step(struct block *b) {
    float sums[BLOCK_LISTS];
    uint32_t dim = b->fold->model->dim;
    over_chunks(b, score_chunk);
    for (uint32_t list = 0; list < b->count; list++) sums[list] = coefficients(b, list);
    over_chunks(b, sum_chunk);
    for (uint32_t list = 0; list < b->count; list++) {
        float *row = b->lists[list].row, whole = sums[list] * b->fold->item_length;
        if (!(whole > 0) || !(squares_of(row, dim) > 0)) continue;
        add_scaled(row, b->gains + (uint64_t)list * dim, -2 / whole, dim);
        make_unit(row, dim);
    }
}

static int solve_block(struct block *b) {
    uint32_t dim = b->fold->model->dim;
    for (uint32_t list = 0; list < b->count; list++)
        if (load(b, list)) return -1;
    for (uint32_t i = 0; i < b->fold->steps; i++) step(b);
    for (uint32_t list = 0; list < b->count; list++)
        for (uint32_t i = 0; i < dim; i++) b->lists[list].row[i] *= b->fold->length;
    return 0;
}

/* ---- all lists ---- */

struct solving {
    const struct fold_in *fold;
    const struct fold_list *lists;
    uint64_t count, grain;
    _Atomic uint64_t taken;
};

static int block_init(struct block *b, const struct solving *solving) {
    uint64_t rows = solving->grain, negatives = solving->fold->padded, dim = solving->fold->model->dim;
    *b = (struct block){.fold = solving->fold, .rows = (uint32_t)rows};
    b->scores = mem_zalloc(rows * negatives, sizeof *b->scores, "scores of new lists");
    b->excluded = mem_alloc(rows * negatives, 1, "negatives of new lists");
    b->gains = mem_zalloc((rows + 1) * dim, sizeof *b->gains, "rows of new lists");
    return b->scores && b->excluded && b->gains ? 0 : -1;
}

static void block_release(struct block *b) {
    free(b->scores);
    free(b->excluded);
    free(b->gains);
    free(b->line);
    free(b->spare);
    free(b->items);
}

static int solve_some(void *context, unsigned worker) {
    struct solving *solving = context;
    struct block b;
    uint64_t first, end;
    (void)worker;
    int result = block_init(&b, solving);
    while (!result && pool_take(&solving->taken, solving->count, solving->grain, &first, &end)) {
        b.lists = solving->lists + first;
        b.count = (uint32_t)(end - first);
        result = solve_block(&b);
    }
    block_release(&b);
    return result;
}

int fold_in_solve(struct fold_in *fold, const struct fold_list *lists, uint64_t count) {
    struct solving solving = {.fold = fold, .lists = lists, .count = count};
    uint64_t each = count / pool_threads(fold->pool) + 1; /* smaller blocks for few lists, so that every thread gets some */
    solving.grain = each < BLOCK_LISTS ? each : BLOCK_LISTS;
    return count ? pool_run(fold->pool, solve_some, &solving) : 0;
}
