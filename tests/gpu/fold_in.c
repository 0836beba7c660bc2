/* Rows of lists that were not in training. Both backends must find the same rows, except for rounding: for each loss, with and
 * without the lists' items among the negatives; for lists that are empty or long, that name an item twice, or whose only item
 * has a row of zeros; and for more lists than a chunk. On the GPU a list's bytes must be the same when it is solved again and
 * when it is solved alone. If a GPU lacks the memory, it must say so. */
#include "common.h"

struct folding {
    struct fold_problem problem;
    struct fold_lists lists;
    float *items;
    uint32_t *ids, *item_ids, *places;
    uint64_t *starts;
};

struct fold_case {
    uint64_t items, lists;
    uint32_t negatives, dim;
    struct loss_options loss;
    int exclude;
};

static void make_rows(float *rows, uint64_t count, uint32_t dim, int cosine) {
    for (uint64_t row = 0; row < count; row++) {
        double squares = 0;
        for (uint32_t i = 0; i < dim; i++) {
            float *at = rows + row * dim + i;
            *at = row == 3 ? 0 : random_float() + 0.1f;
            squares += (double)*at * (double)*at;
        }
        for (uint32_t i = 0; cosine && squares > 0 && i < dim; i++) rows[row * dim + i] /= (float)sqrt(squares);
    }
}

/* Chooses evenly spaced items as negatives. If there are more negatives than items, some items are chosen several times. */
static void make_problem(struct folding *f, const struct fold_case *of) {
    float *negatives = need((uint64_t)of->negatives * of->dim * 4);
    f->ids = need(of->negatives * 4);
    for (uint32_t i = 0; i < of->negatives; i++) {
        f->ids[i] = (uint32_t)(i * of->items / of->negatives);
        memcpy(negatives + (uint64_t)i * of->dim, f->items + (uint64_t)f->ids[i] * of->dim, of->dim * 4);
    }
    f->problem = (struct fold_problem){.negatives = negatives,
                                       .ids = f->ids,
                                       .count = of->negatives,
                                       .dim = of->dim,
                                       .steps = 4,
                                       .loss = of->loss,
                                       .exclude = of->exclude,
                                       .per_negative = of->loss.kind == LOSS_LOGISTIC ? 0.5f : 1,
                                       .length = of->loss.score == SCORE_COSINE ? 1 : 2.5f,
                                       .item_length = 1};
}

/* Makes the lists: list 0 is empty, list 1 has only the item whose row is zeros, list 2 has an item twice, list 4 has a few
 * hundred items. */
static void make_lists(struct folding *f, const struct fold_case *of) {
    uint64_t at = 0;
    f->starts = need((of->lists + 1) * 8);
    f->places = need((of->lists * 16 + 400) * 4);
    f->item_ids = need(of->items * 4);
    for (uint64_t i = 0; i < of->items; i++) f->item_ids[i] = (uint32_t)i;
    for (uint64_t list = 0; list < of->lists; list++) {
        uint64_t count = list < 3 ? list : list == 4 ? 400 : 1 + random_bits() % 16;
        f->starts[list] = at;
        for (uint64_t i = 0; i < count; i++)
            f->places[at++] = list == 1 ? 3 % (uint32_t)of->items : list == 2 ? 0 : (uint32_t)(random_bits() % of->items);
    }
    f->starts[of->lists] = at;
    f->lists = (struct fold_lists){f->items, f->item_ids, of->items, f->starts, f->places, of->lists, NULL};
}

static struct folding folding_make(const struct fold_case *of) {
    struct folding f = {.items = need(of->items * of->dim * 4)};
    make_rows(f.items, of->items, of->dim, of->loss.score == SCORE_COSINE);
    make_problem(&f, of);
    make_lists(&f, of);
    return f;
}

static void folding_free(struct folding *f) {
    free((void *)f->problem.negatives);
    free(f->items);
    free(f->ids);
    free(f->item_ids);
    free(f->places);
    free(f->starts);
}

/* Solves lists first .. first + count - 1 in one call, into directions [count x dim]. Returns the sum of the calls' results. */
static int solve(const struct backend_ops *ops, uint64_t budget, const struct folding *f, uint64_t first, uint64_t count,
                 float *directions) {
    struct backend *backend = NULL;
    struct backend_fold *fold = NULL;
    struct backend_options options = {.threads = 2, .depth = 1, .gpu_budget = budget};
    struct fold_lists lists = f->lists;
    lists.starts += first, lists.count = count, lists.directions = directions;
    int result = ops->open(&backend, &options) ? -1 : ops->fold_open(backend, &f->problem, &fold);
    if (!result) result = ops->fold_solve(fold, &lists);
    if (fold) ops->fold_close(fold);
    if (backend) ops->close(backend);
    return result;
}

static void compare_folds(const struct fold_case *of, int number) {
    struct folding f = folding_make(of);
    uint64_t bytes = of->lists * of->dim * 4;
    float *cpu = need(bytes), *gpu = need(bytes), *again = need(bytes);
    /* The margin of a contrastive loss is a step: a score near it may be past it on one backend alone. */
    double most = 0, near = of->loss.kind == LOSS_CONTRASTIVE ? 2e-2 : 5e-4;
    int results = solve(&backend_cpu, UINT64_MAX, &f, 0, of->lists, cpu) || solve(&backend_cuda, UINT64_MAX, &f, 0, of->lists, gpu);
    for (uint64_t i = 0; i < of->lists * of->dim; i++) most = fmax(most, fabs((double)cpu[i] - (double)gpu[i]));
    CHECK(!results && most < near, "fold-in %d: %.3g apart", number, most);
    results = solve(&backend_cuda, UINT64_MAX, &f, 0, of->lists, again);
    CHECK(!results && !memcmp(gpu, again, bytes), "fold-in %d: other bytes the second time", number);
    for (uint64_t list = 0; list < of->lists && list < 6; list++) {
        results = solve(&backend_cuda, UINT64_MAX, &f, list, 1, again);
        CHECK(!results && !memcmp(gpu + list * of->dim, again, of->dim * 4), "fold-in %d: list %d has other bytes alone", number,
              (int)list);
    }
    results = solve(&backend_cuda, (uint64_t)48 << 20, &f, 0, of->lists, again);
    CHECK(results == 1, "fold-in %d: without memory it returned %d", number, results);
    folding_free(&f);
    free(cpu);
    free(gpu);
    free(again);
}

void test_fold_in(void) {
    const struct loss_options bsl = {LOSS_SOFTMAX, SCORE_COSINE, .temperature = 0.1f, .negative_weight = 1, .negative_power = 1.15f};
    const struct loss_options softmax = {LOSS_SOFTMAX, SCORE_DOT, .temperature = 1, .negative_weight = 2};
    const struct loss_options bpr = {LOSS_BPR, SCORE_DOT, .temperature = 1, .negative_weight = 1};
    const struct loss_options logistic = {LOSS_LOGISTIC, SCORE_DOT, .temperature = 1, .negative_weight = 1};
    const struct loss_options contrastive = {LOSS_CONTRASTIVE, SCORE_COSINE, .temperature = 1, .margin = 0.2f, .negative_weight = 20};
    const struct fold_case cases[] = {
        {5, 6, 5, 1, bsl, 1},          {37, 7, 37, 7, softmax, 1},       {1000, 300, 700, 31, bpr, 0},
        {1000, 300, 1024, 33, logistic, 1}, {3000, 50, 8192, 128, contrastive, 1}, {20000, 2500, 8192, 256, bsl, 1},
        {20000, 1025, 8192, 256, bsl, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) compare_folds(&cases[i], (int)i);
}
