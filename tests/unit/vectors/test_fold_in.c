#include "vectors/list_scores.h"
#include "base/memory.h"
#include "kernels/examples.h"
#include "tests/unit/small_run.h"

#include <math.h>

enum { ITEMS = 37, LISTS = 3, ROWS = ITEMS + LISTS, DIM = 7 };

static float rows[2][ROWS * DIM]; /* target rows, context rows */
static char words[ROWS * 16];

struct trained {
    struct small_run run;
    struct model model;
    struct backend *backend;
    struct fold_in fold;
};

static void open_trained(struct trained *t, const char *keys) {
    char config[1024]; /* text of the config; if a key occurs twice, its last value counts */
    snprintf(config, sizeof config,
             "[corpus]\nformat = lists\n[model]\ntarget_init = word2vec\ncontext_init = word2vec\n[examples]\nmode = user\n[negatives]\ncount = 50\nlaw = uniform\n"
             "[train]\nloss = softmax\nscore = cosine\ntemperature = 0.1\nnegative_power = 1.15\nnegative_weight = 1\nmargin = 0\n%s",
             keys);
    small_run_make(&t->run, words, ROWS, DIM, rows[0], rows[1]);
    small_write(t->run.directory, "config.ini", config, strlen(config));
    int result = model_open(&t->model, t->run.directory);
    if (result) print_message("%s\n", report_sentence());
    assert_int_equal(result, 0);
}

static void open_fold(struct trained *t, unsigned threads) {
    const struct backend_ops *ops = backend_without_gpu();
    struct backend_options options = {.threads = threads, .depth = 1};
    assert_int_equal(ops->open(&t->backend, &options), 0);
    assert_int_equal(fold_in_open(&t->fold, &t->model, ops, t->backend, threads), 0);
}

static void close_fold(struct trained *t) {
    fold_in_close(&t->fold);
    backend_without_gpu()->close(t->backend);
}

static void close_trained(struct trained *t) {
    model_close(&t->model);
    small_run_remove(&t->run);
}

static int set_up(void **state) {
    for (int i = 0; i < ITEMS; i++) sprintf(words + strlen(words), "w%d\t%d\n", i, 2 * ITEMS - i);
    for (int i = 0; i < LISTS; i++) sprintf(words + strlen(words), "list:l%d\t0\n", i);
    for (int i = 0; i < ROWS * DIM; i++) {
        rows[0][i] = draw_unit(draw_at(1, DRAW_INIT_TARGET, (uint64_t)i, 0, 0).word[0]) - 0.5f;
        rows[1][i] = 3 * draw_unit(draw_at(1, DRAW_INIT_CONTEXT, (uint64_t)i, 0, 0).word[0]) - 1.2f;
    }
    memset(rows[1] + 5 * DIM, 0, DIM * sizeof(float)); /* item 5 has a context row of zeros */
    return 0;
}

/* Lists with: an item twice; one item; only the item whose row is zeros; that item and another; unknown items; no item; three items. */
static const uint64_t codes[] = {7, 3, 7, 20, 11, 5, 5, 8, ITEMS, 9, UINT64_MAX, 14, 2, 30};
static const struct {
    uint64_t first, count;
} lists[] = {{0, 4}, {4, 1}, {5, 1}, {6, 2}, {8, 4}, {0, 0}, {11, 3}};
enum { ASKED = sizeof lists / sizeof *lists };

static void solve(struct fold_in *fold, int from, int count, float out[][DIM]) {
    struct fold_list asked[ASKED];
    for (int i = 0; i < count; i++) asked[i] = (struct fold_list){codes + lists[from + i].first, lists[from + i].count, out[i]};
    assert_int_equal(fold_in_solve(fold, asked, (uint64_t)count), 0);
}

/* ---- the same in float64, written out ---- */

struct reference {
    int loss; /* enum loss_kind */
    int cosine, exclude;
    double temperature, power, weight, margin, per_negative;
};

static double unit_of(const double *in, double *out) {
    double squares = 0;
    for (int i = 0; i < DIM; i++) squares += in[i] * in[i];
    for (int i = 0; i < DIM; i++) out[i] = squares > 0 ? in[i] / sqrt(squares) : 0;
    return squares > 0;
}

static void item_row(const struct reference *r, uint64_t item, double *out) {
    double row[DIM];
    for (int i = 0; i < DIM; i++) row[i] = rows[1][item * DIM + (uint64_t)i];
    if (r->cosine)
        unit_of(row, out);
    else
        memcpy(out, row, sizeof row);
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* Computes c[i], the derivative of the loss with respect to score s[i]. The scores of positives are the first ones. */
static void derivatives(const struct reference *r, const double *s, int positives, int all, double *c) {
    double sum = 0, negatives = all - positives;
    for (int i = 0; i < all; i++) c[i] = 0;
    for (int i = positives; i < all; i++) sum += exp(s[i] / r->temperature);
    for (int p = 0; p < positives; p++)
        for (int n = positives; n < all; n++) {
            double z = s[p] / r->temperature, y = s[n] / r->temperature, pulled = 0;
            if (r->loss == LOSS_SOFTMAX && r->power > 0) pulled = r->power * exp(y) / sum;
            if (r->loss == LOSS_SOFTMAX && r->power == 0) pulled = r->weight * exp(y) / (r->weight * sum + exp(z));
            if (r->loss == LOSS_BPR) pulled = sigmoid(y - z);
            if (r->loss == LOSS_LOGISTIC) pulled = r->per_negative * sigmoid(y) / positives;
            if (r->loss == LOSS_CONTRASTIVE) pulled = s[n] > r->margin ? r->weight / negatives : 0;
            c[n] += pulled;
            if (r->loss == LOSS_BPR || (r->loss == LOSS_SOFTMAX && r->power == 0)) c[p] -= pulled;
        }
    for (int p = 0; p < positives; p++) {
        if (r->loss == LOSS_LOGISTIC) c[p] = -sigmoid(-s[p] / r->temperature);
        if (r->loss == LOSS_CONTRASTIVE || r->power > 0) c[p] = -1;
    }
}

static int is_of(uint64_t item, int list) {
    for (uint64_t i = 0; i < lists[list].count; i++)
        if (codes[lists[list].first + i] == item) return 1;
    return 0;
}

/* Returns the root mean square length of the rows of items (side = 1) or of trained lists (side = 0); for lists 1, if scores are cosines. */
static double length_of(const struct reference *r, int side) {
    double squares = 0, row[DIM];
    uint64_t first = side ? 0 : ITEMS, count = side ? ITEMS : LISTS;
    for (uint64_t i = 0; i < count; i++) {
        if (side) item_row(r, i, row);
        for (int j = 0; j < DIM; j++) squares += side ? row[j] * row[j] : pow(rows[0][(first + i) * DIM + (uint64_t)j], 2);
    }
    return !side && r->cosine ? 1 : sqrt(squares / (double)count);
}

static void fold_in_the_open(const struct reference *r, int list, double *u) {
    double item[2 * ROWS][DIM], s[2 * ROWS], c[2 * ROWS], start[DIM] = {0}, length = length_of(r, 0);
    int positives = 0, all = 0;
    for (uint64_t i = 0; i < lists[list].count; i++)
        if (codes[lists[list].first + i] < ITEMS) item_row(r, codes[lists[list].first + i], item[all++]);
    positives = all;
    for (uint64_t i = 0; i < ITEMS; i++)
        if (!r->exclude || !is_of(i, list)) item_row(r, i, item[all++]);
    for (int i = 0; i < positives; i++)
        for (int j = 0; j < DIM; j++) start[j] += item[i][j];
    int directed = (int)unit_of(start, u);
    for (int step = 0; directed && step < 2 * FOLD_STEPS; step++) {
        double whole = 0, gain[DIM] = {0};
        for (int i = 0; i < all; i++) {
            s[i] = 0;
            for (int j = 0; j < DIM; j++) s[i] += length * u[j] * item[i][j];
        }
        derivatives(r, s, positives, all, c);
        for (int i = 0; i < all; i++) {
            whole += fabs(c[i]);
            for (int j = 0; j < DIM; j++) gain[j] += c[i] * item[i][j];
        }
        for (int j = 0; j < DIM; j++) u[j] -= whole > 0 ? 2 * gain[j] / (whole * length_of(r, 1)) : 0;
        unit_of(u, u);
    }
    for (int j = 0; j < DIM; j++) u[j] *= length;
}

static void against_the_definition(void **state) {
    static const struct {
        const char *keys;
        struct reference by;
    } runs[] = {
        {"", {LOSS_SOFTMAX, 1, 1, 0.1, 1.15, 1, 0, 1}},
        {"temperature = 0.3\n[negatives]\nexclude = no\n", {LOSS_SOFTMAX, 1, 0, 0.3, 1.15, 1, 0, 1}},
        {"score = dot\ntemperature = 1\nnegative_power = 0\n", {LOSS_SOFTMAX, 0, 1, 1, 0, 50.0 / ITEMS, 0, 1}},
        {"loss = bpr\nscore = dot\ntemperature = 1\n", {LOSS_BPR, 0, 1, 1, 0, 1, 0, 1}},
        {"loss = logistic\nscore = dot\ntemperature = 1\n", {LOSS_LOGISTIC, 0, 1, 1, 0, 1, 0, 50.0 / ITEMS}},
        {"loss = contrastive\ntemperature = 1\nmargin = 0.2\nnegative_weight = 20\n", {LOSS_CONTRASTIVE, 1, 1, 1, 0, 20, 0.2, 1}},
    };
    for (size_t way = 0; way < sizeof runs / sizeof *runs; way++) {
        struct trained t;
        float out[ASKED][DIM];
        open_trained(&t, runs[way].keys);
        assert_true(fold_in_is_for(&t.model));
        open_fold(&t, 2);
        solve(&t.fold, 0, ASKED, out);
        for (int list = 0; list < ASKED; list++) {
            double wanted[DIM];
            fold_in_the_open(&runs[way].by, list, wanted);
            for (int i = 0; i < DIM; i++) {
                if (fabs(out[list][i] - wanted[i]) > 2e-4)
                    print_message("run %zu, list %d, column %d: %g, wanted %g\n", way, list, i, (double)out[list][i], wanted[i]);
                assert_true(fabs(out[list][i] - wanted[i]) <= 2e-4);
            }
        }
        close_fold(&t);
        close_trained(&t);
    }
}

/* The row of a list has the same bytes whether it is computed alone or with other lists, by one thread or several, and each time
 * again. */
static void bytes_stay(void **state) {
    struct trained t;
    float first[ASKED][DIM], again[ASKED][DIM];
    open_trained(&t, "");
    for (unsigned threads = 1; threads < 6; threads += 2) {
        open_fold(&t, threads);
        if (threads == 1) solve(&t.fold, 0, ASKED, first);
        for (int times = 0; times < 2; times++) {
            solve(&t.fold, 0, ASKED, again);
            assert_memory_equal(again, first, sizeof first);
        }
        for (int list = 0; list < ASKED; list++) {
            solve(&t.fold, list, 1, again);
            assert_memory_equal(again, first[list], sizeof *first);
        }
        close_fold(&t);
    }
    close_trained(&t);
}

/* An item that a list names twice counts twice. A list without items, or only of an item whose row is zeros, has a row of zeros. */
static void what_lists_hold(void **state) {
    struct trained t;
    float out[ASKED][DIM], once[DIM];
    static const uint64_t apart[] = {7, 3, 20};
    open_trained(&t, "");
    open_fold(&t, 1);
    solve(&t.fold, 0, ASKED, out);
    assert_int_equal(fold_in_solve(&t.fold, &(struct fold_list){apart, 3, once}, 1), 0);
    assert_memory_not_equal(out[0], once, sizeof once);
    for (int i = 0; i < DIM; i++) assert_true(out[2][i] == 0 && out[5][i] == 0);
    close_fold(&t);
    close_trained(&t);
}

/* The uniform law uses each item as a negative once. The other laws use items as negatives in proportion to their weights. */
static void laws_of_negatives(void **state) {
    static const char *const keys[] = {"", "[negatives]\nlaw = unigram\npower = 1\n", "[negatives]\nlaw = log-uniform\n"};
    for (int law = 0; law < 3; law++) {
        struct trained t;
        uint64_t times[ITEMS] = {0};
        double all = 0;
        open_trained(&t, keys[law]);
        open_fold(&t, 1);
        assert_int_equal(t.fold.problem.count, law ? FOLD_NEGATIVES : ITEMS);
        for (uint32_t i = 0; i < t.fold.problem.count; i++) times[t.fold.ids[i]]++;
        for (int i = 0; i < ITEMS; i++) all += law == 1 ? 2 * ITEMS - i : law == 2 ? (i ? log1p(1.0 / i) : 0) : 1;
        for (int i = 0; i < ITEMS; i++) {
            double weight = law == 1 ? 2 * ITEMS - i : law == 2 ? (i ? log1p(1.0 / i) : 0) : 1;
            assert_true(fabs((double)times[i] - weight / all * t.fold.problem.count) <= 1);
        }
        close_fold(&t);
        close_trained(&t);
    }
}

/* Lists are not folded in if the run's lists have no rows, or if it was trained without negatives. */
static void runs_without_rows_of_lists(void **state) {
    static const char *const keys[] = {"[examples]\nown = 0\n", "[examples]\nmode = list\n", "loss = logistic\n[negatives]\ncount = 0\n"};
    for (int way = 0; way < 3; way++) {
        struct trained t;
        open_trained(&t, keys[way]);
        assert_false(fold_in_is_for(&t.model));
        close_trained(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_the_definition), cmocka_unit_test(bytes_stay), cmocka_unit_test(what_lists_hold),
        cmocka_unit_test(laws_of_negatives), cmocka_unit_test(runs_without_rows_of_lists),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
