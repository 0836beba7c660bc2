/* Tests tables of libsptx. Uses only sptx.h and libsptx.so, as any user's program does. */
#define _GNU_SOURCE
#include "../testing.h"

#include "sptx.h"

#include <math.h>

#include <fenv.h>
#include <float.h>
#include <pthread.h>

#include "open_cpu.h"

/* Sizes of structs that programs were built with. A struct may grow only at its end; then a line with the new size and its
 * version is added here. */
_Static_assert(sizeof(struct sptx_context_options) == 48, "version 1");
_Static_assert(offsetof(struct sptx_table_options, dtype) == 216, "version 1 ended here");
_Static_assert(offsetof(struct sptx_table_options, gpu_rows) == 224, "after version 1.0");
_Static_assert(offsetof(struct sptx_table_options, check_finite) == 232, "after version 1.0, with gpu_rows");
_Static_assert(offsetof(struct sptx_table_options, l1) == 240, "after version 1.0, with check_finite");
_Static_assert(offsetof(struct sptx_table_options, shared) == 264, "after version 1.0, with ftrl");
_Static_assert(sizeof(struct sptx_table_options) == 288, "after version 1.0, with shared");
_Static_assert(sizeof(struct sptx_ids) == 24, "version 1");
_Static_assert(offsetof(struct sptx_view, dtype) == 48, "version 1 ended here");
_Static_assert(sizeof(struct sptx_view) == 56, "after version 1.0");
_Static_assert(offsetof(struct sptx_progress, line) == 72, "version 1 ended here");
_Static_assert(sizeof(struct sptx_progress) == 80, "after version 1.0");

static struct sptx_table *open_filled(struct sptx_context *context, uint64_t rows, uint32_t dim, const char *optimizer,
                                      const char *init) {
    struct sptx_table_options options;
    struct sptx_table *table;
    sptx_table_defaults(&options, sizeof options);
    options.rows = rows;
    options.dim = dim;
    options.optimizer = optimizer;
    options.lr = 0.1;
    options.init = init;
    if (sptx_table_open(context, &options, &table)) fail_msg("%s", sptx_error(context));
    return table;
}

static struct sptx_table *open_table(struct sptx_context *context, uint64_t rows, uint32_t dim, const char *optimizer) {
    return open_filled(context, rows, dim, optimizer, "uniform -1 1");
}

static struct sptx_ids narrow(const int32_t *data, uint64_t count) {
    return (struct sptx_ids){data, count, 32, SPTX_HOST};
}
static struct sptx_ids wide(const int64_t *data, uint64_t count) {
    return (struct sptx_ids){data, count, 64, SPTX_HOST};
}

/* Returns a pseudo-random row number below `below`. */
static uint32_t draw(uint32_t *state, uint32_t below) {
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*state >> 4) * below >> 28);
}

static void fetch_one(struct sptx_table *table, int32_t id, float *out) {
    struct sptx_ids ids = narrow(&id, 1);
    assert_int_equal(sptx_fetch(table, &ids, out, SPTX_HOST, NULL), SPTX_OK);
}

/* ---- opening ---- */

static void a_failed_open_says_why(void **state) {
    struct sptx_context_options options = SPTX_CONTEXT_OPTIONS;
    struct sptx_context *context;
    options.device = "gpu9";
    assert_int_equal(sptx_open(&context, &options), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "gpu9"));
    struct sptx_table_options table_options;
    struct sptx_table *table;
    sptx_table_defaults(&table_options, sizeof table_options);
    assert_int_equal(sptx_table_open(context, &table_options, &table), SPTX_USAGE);
    assert_null(table);
    sptx_close(context);
    assert_int_equal(sptx_open(NULL, &options), SPTX_USAGE);
    assert_int_equal(sptx_open(&context, NULL), SPTX_USAGE);
    sptx_close(context);
    options.size = 3;
    assert_int_equal(sptx_open(&context, &options), SPTX_USAGE);
    sptx_close(context);
    sptx_close(NULL);
}

static void wrong_options_are_named(void **state) {
    static const struct {
        uint64_t rows;
        uint32_t dim, place;
        const char *optimizer, *init, *said;
    } wrong[] = {{0, 4, 0, "sgd", "zeros", "rows = 0"},
                 {4294967295u, 4, 0, "sgd", "zeros", "rows"},
                 {9, 0, 0, "sgd", "zeros", "dim"},
                 {9, 4097, 0, "sgd", "zeros", "4097"},
                 {9, 4, 3, "sgd", "zeros", "places"},
                 {9, 4, 0, "adamm", "zeros", "adamm"},
                 {9, 4, 0, "sgd", "ones", "ones"},
                 {9, 4, 0, "sgd", NULL, "NULL"}};
    struct sptx_context *context = open_cpu(1);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sptx_table_options options;
        struct sptx_table *table;
        sptx_table_defaults(&options, sizeof options);
        options.rows = wrong[i].rows;
        options.dim = wrong[i].dim;
        options.weights = wrong[i].place;
        options.optimizer = wrong[i].optimizer;
        options.init = wrong[i].init;
        assert_int_equal(sptx_table_open(context, &options, &table), SPTX_USAGE);
        assert_null(table);
        assert_non_null(strstr(sptx_error(context), wrong[i].said));
    }
    sptx_close(context);
}

static void options_that_cannot_work_are_named(void **state) {
    static const struct {
        double lr, momentum, beta1;
        uint32_t nesterov;
        const char *optimizer, *init, *said;
    } wrong[] = {{-1, NAN, NAN, 0, "sgd", "zeros", "sgd: lr = -1"},
                 {INFINITY, NAN, NAN, 0, "sgd", "zeros", "sgd: lr = inf"},
                 {0.1, 1.5, NAN, 0, "rmsprop", "zeros", "rmsprop: momentum = 1.5"},
                 {0.1, NAN, NAN, 1, "sgd", "zeros", "nesterov"},
                 {0.1, NAN, 1, 0, "adam", "zeros", "adam: beta1 = 1"},
                 {0.1, NAN, NAN, 0, "adam", "uniform -1e39 0", "float32"},
                 {0.1, NAN, NAN, 0, "adam", "normal 0 1e39", "float32"}};
    struct sptx_context *context = open_cpu(1);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sptx_table_options options;
        struct sptx_table *table;
        sptx_table_defaults(&options, sizeof options);
        options.rows = 5, options.dim = 4;
        options.lr = wrong[i].lr, options.momentum = wrong[i].momentum, options.beta1 = wrong[i].beta1;
        options.nesterov = wrong[i].nesterov;
        options.optimizer = wrong[i].optimizer, options.init = wrong[i].init;
        assert_int_equal(sptx_table_open(context, &options, &table), SPTX_USAGE);
        assert_non_null(strstr(sptx_error(context), wrong[i].said));
    }
    sptx_close(context);
}

/* weight_decay is refused, not ignored: without it the model would be a different one. */
static void options_that_a_rule_does_not_have_are_ignored(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table_options options;
    struct sptx_table *table;
    sptx_table_defaults(&options, sizeof options);
    options.rows = 5, options.dim = 4, options.optimizer = "sgd";
    options.beta1 = 7, options.eta_plus = 0.5, options.rho = -3, options.lr_decay = INFINITY;
    assert_int_equal(sptx_table_open(context, &options, &table), SPTX_OK);
    sptx_table_close(table);
    assert_int_equal(sptx_table_open(context, &options, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "opened into a pointer"));
    sptx_table_defaults(&options, sizeof options);
    options.rows = 5, options.dim = 4, options.weight_decay = 0.5;
    static const char *const without[] = {"sparse_adam", "rprop"};
    for (int i = 0; i < 2; i++) {
        options.optimizer = without[i];
        assert_int_equal(sptx_table_open(context, &options, &table), SPTX_USAGE);
        assert_non_null(strstr(sptx_error(context), "weight_decay = 0.5, but it has none"));
    }
    options.optimizer = "adam";
    assert_int_equal(sptx_table_open(context, &options, &table), SPTX_OK);
    assert_int_equal(sptx_table_view(table, "weights", NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "the view is NULL"));
    sptx_close(context);
}

static void a_table_larger_than_the_memory_is_refused(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table_options options;
    struct sptx_table *table;
    sptx_table_defaults(&options, sizeof options);
    options.rows = 4294967294u, options.dim = 4096;
    assert_int_equal(sptx_table_open(context, &options, &table), SPTX_FAILED);
    assert_non_null(strstr(sptx_error(context), "not enough memory"));
    assert_non_null(strstr(sptx_error(context), "are free"));
    sptx_close(context);
}

static void an_older_programs_options_are_enough(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table_options options;
    struct sptx_table *table;
    memset(&options, 0x5A, sizeof options); /* the library must not read past the older struct */
    sptx_table_defaults(&options, offsetof(struct sptx_table_options, lr));
    options.rows = 3;
    options.dim = 2;
    assert_int_equal(sptx_table_open(context, &options, &table), SPTX_OK);
    assert_float_equal(sptx_table_lr(table), 1e-3, 0); /* the default of sgd */
    sptx_close(context);
}

/* ---- the verbs ---- */

static void rows_come_in_the_order_of_their_ids(void **state) {
    enum { ROWS = 300, DIM = 7, COUNT = 5000 };
    struct sptx_context *context = open_cpu(3);
    struct sptx_table *table = open_table(context, ROWS, DIM, "none");
    float *out = malloc(COUNT * DIM * sizeof *out), *again = malloc(COUNT * DIM * sizeof *out), one[DIM];
    int32_t small[COUNT];
    int64_t large[COUNT];
    uint32_t seed = 7;
    for (int i = 0; i < COUNT; i++) large[i] = small[i] = (int32_t)draw(&seed, ROWS);
    struct sptx_ids a = narrow(small, COUNT), b = wide(large, COUNT);
    assert_int_equal(sptx_prefetch(table, &a, NULL), SPTX_OK);
    assert_int_equal(sptx_fetch(table, &a, out, SPTX_HOST, NULL), SPTX_OK);
    assert_int_equal(sptx_fetch(table, &b, again, SPTX_HOST, NULL), SPTX_OK);
    assert_memory_equal(out, again, COUNT * DIM * sizeof *out);
    for (int i = 0; i < 20; i++) {
        fetch_one(table, small[i], one);
        assert_memory_equal(out + i * DIM, one, sizeof one);
    }
    free(out);
    free(again);
    sptx_close(context);
}

static void ids_that_are_no_rows_change_nothing(void **state) {
    struct sptx_context *context = open_cpu(2);
    struct sptx_table *table = open_table(context, 10, 3, "sgd");
    float before[30], after[30], values[6] = {9, 9, 9, 9, 9, 9};
    int32_t all[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, past[2] = {1, 10}, below[2] = {1, -1};
    int64_t far[2] = {1, 1ll << 32}; /* the id would be row 0 if only its lower 32 bits were read */
    struct sptx_ids every = narrow(all, 10);
    assert_int_equal(sptx_fetch(table, &every, before, SPTX_HOST, NULL), SPTX_OK);
    struct sptx_ids wrong[] = {narrow(past, 2), narrow(below, 2), wide(far, 2), {past, 2, 16, SPTX_HOST},
                               {NULL, 2, 32, SPTX_HOST}, {all, 2, 32, 7}, {all, 2, 32, SPTX_CUDA}};
    const char *said[] = {"ids[1] = 10", "ids[1] = -1", "ids[1] = 4294967296", "16", "NULL", "7", "CPU"};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(sptx_fetch(table, &wrong[i], values, SPTX_HOST, NULL), SPTX_USAGE);
        assert_non_null(strstr(sptx_error(context), said[i]));
        assert_int_equal(sptx_store(table, &wrong[i], values, SPTX_HOST, NULL), SPTX_USAGE);
        assert_int_equal(sptx_update(table, &wrong[i], values, SPTX_HOST, NULL), SPTX_USAGE);
        assert_int_equal(sptx_prefetch(table, &wrong[i], NULL), SPTX_USAGE);
    }
    assert_int_equal(sptx_store(table, &every, NULL, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_fetch(table, NULL, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_fetch(NULL, &every, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_table_steps(table), 0);
    assert_int_equal(sptx_fetch(table, &every, after, SPTX_HOST, NULL), SPTX_OK);
    assert_memory_equal(before, after, sizeof before);
    struct sptx_ids none = narrow(NULL, 0);
    assert_int_equal(sptx_fetch(table, &none, NULL, SPTX_HOST, NULL), SPTX_OK);
    sptx_close(context);
}

/* The error message names the first of many wrong ids, though several threads look for them. */
static void the_first_wrong_id_is_named(void **state) {
    enum { WRONG = 140000, FIRST = 3, TIMES = 50 };
    struct sptx_context *context = open_cpu(4);
    struct sptx_table *table = open_table(context, 10, 3, "sgd");
    int32_t *data = calloc(WRONG, sizeof *data);
    assert_non_null(data);
    for (int i = FIRST; i < WRONG; i++) data[i] = 10 + i;
    struct sptx_ids ids = narrow(data, WRONG);
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(sptx_prefetch(table, &ids, NULL), SPTX_USAGE);
        assert_string_equal(sptx_error(context), "ids[3] = 13 is no row of a table of 10");
    }
    free(data);
    sptx_close(context);
}

static void of_ids_that_repeat_the_last_value_stays(void **state) {
    struct sptx_context *context = open_cpu(4);
    struct sptx_table *table = open_table(context, 5, 1, "none");
    int32_t data[] = {2, 4, 2, 0, 2};
    float values[] = {1, 2, 3, 4, 5}, one;
    struct sptx_ids ids = narrow(data, 5);
    assert_int_equal(sptx_store(table, &ids, values, SPTX_HOST, NULL), SPTX_OK);
    fetch_one(table, 2, &one);
    assert_true(one == 5);
    fetch_one(table, 4, &one);
    assert_true(one == 2);
    assert_int_equal(sptx_update(table, &ids, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "none"));
    sptx_close(context);
}

/* Returns adagrad's sum for a column after adding the gradient's square; by_row: its sum for the row, sums[0], after adding the mean of the
 * squares of all columns. */
static double sum_after(double *sums, const double *gradient, int column, int columns, int by_row) {
    if (!by_row) return sums[column] += gradient[column] * gradient[column];
    for (int d = 0; column == 0 && d < columns; d++) sums[0] += gradient[d] * gradient[d] / columns;
    return sums[0];
}

/* Compares several steps with the formula in double: gradients of repeated ids are summed, and each row gets one update. */
static void compare_adagrad(int by_row) {
    enum { ROWS = 40, DIM = 5, COUNT = 200, STEPS = 6 };
    struct sptx_context *context = open_cpu(2);
    struct sptx_table *table = open_table(context, ROWS, DIM, by_row ? "rowwise_adagrad" : "adagrad");
    double weights[ROWS][DIM], sums[ROWS][DIM] = {{0}};
    float got[ROWS * DIM], gradients[COUNT * DIM];
    int32_t all[ROWS], data[COUNT];
    uint32_t seed = 3;
    for (int i = 0; i < ROWS; i++) all[i] = i;
    struct sptx_ids every = narrow(all, ROWS), ids = narrow(data, COUNT);
    assert_int_equal(sptx_fetch(table, &every, got, SPTX_HOST, NULL), SPTX_OK);
    for (int i = 0; i < ROWS * DIM; i++) weights[i / DIM][i % DIM] = got[i];
    for (int step = 0; step < STEPS; step++) {
        double summed[ROWS][DIM] = {{0}};
        for (int i = 0; i < COUNT; i++) {
            data[i] = (int32_t)draw(&seed, ROWS);
            for (int d = 0; d < DIM; d++) {
                gradients[i * DIM + d] = (float)draw(&seed, 2000) / 1000 - 1;
                summed[data[i]][d] += gradients[i * DIM + d];
            }
        }
        for (int r = 0; r < ROWS; r++)
            for (int d = 0; d < DIM; d++) {
                double sum = sum_after(sums[r], summed[r], d, DIM, by_row);
                if (sum > 0) weights[r][d] -= 0.1 * summed[r][d] / (sqrt(sum) + (by_row ? 1e-8 : 1e-10));
            }
        assert_int_equal(sptx_update(table, &ids, gradients, SPTX_HOST, NULL), SPTX_OK);
    }
    assert_int_equal(sptx_table_steps(table), STEPS);
    assert_int_equal(sptx_fetch(table, &every, got, SPTX_HOST, NULL), SPTX_OK);
    for (int i = 0; i < ROWS * DIM; i++) assert_float_equal(got[i], weights[i / DIM][i % DIM], 1e-5);
    struct sptx_view view = {.size = sizeof view};
    assert_int_equal(sptx_table_view(table, "sum", &view), SPTX_OK);
    assert_int_equal(view.dim, by_row ? 1 : DIM);
    for (int r = 0; r < ROWS; r++)
        for (uint32_t d = 0; d < view.dim; d++)
            assert_float_equal(*(float *)((char *)view.data + r * view.stride + d * sizeof(float)), sums[r][d], 1e-3);
    assert_int_equal(sptx_table_view(table, "momentum", &view), SPTX_USAGE);
    sptx_close(context);
}

static void gradients_of_a_row_are_summed_and_applied_once(void **state) {
    compare_adagrad(0);
    compare_adagrad(1);
}

static void gradients_that_are_not_finite_are_refused(void **state) {
    struct sptx_context *context = open_cpu(2);
    struct sptx_table *table;
    struct sptx_table_options options;
    float gradients[6] = {1, 1, 1, 1, 1, 1}, before[2], after[2];
    const int64_t ids[] = {1, 2, 1};
    const struct sptx_ids of = {ids, 3, 64, SPTX_HOST}, one = {ids, 1, 64, SPTX_HOST};
    sptx_table_defaults(&options, sizeof options);
    options.rows = 4;
    options.dim = 2;
    options.optimizer = "adam";
    options.check_finite = 1;
    assert_int_equal(sptx_table_open(context, &options, &table), SPTX_OK);
    assert_int_equal(sptx_fetch(table, &one, before, SPTX_HOST, NULL), SPTX_OK);
    gradients[3] = HUGE_VALF;
    assert_int_equal(sptx_update(table, &of, gradients, SPTX_HOST, NULL), SPTX_USAGE);
    assert_string_equal(sptx_error(context), "gradients[1][1] is inf: the table is unchanged");
    assert_int_equal(sptx_fetch(table, &one, after, SPTX_HOST, NULL), SPTX_OK);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(sptx_table_steps(table), 0);
    gradients[3] = 1;
    assert_int_equal(sptx_update(table, &of, gradients, SPTX_HOST, NULL), SPTX_OK);
    sptx_table_close(table);
    sptx_close(context);
}

/* Tables have few rows or millions, since that decides how many digits are sorted. Repeated rows are at both ends of the table and on both sides
 * of a digit. Adagrad's first step is lr times the sign of the sum. So if not all gradients of a row were summed, it would get a visible second
 * step. */
static void ids_of_any_size_are_sorted(void **state) {
    enum { COUNT = 3000, MOST = 5000000 };
    static const uint64_t sizes[] = {1, 2048, 2049, 1 << 22, (1 << 22) + 1, MOST};
    static float summed[MOST]; /* [row] sum of its gradients */
    float gradients[COUNT], got[COUNT];
    int64_t data[COUNT];
    uint32_t seed = 11;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct sptx_context *context = open_cpu(1 + (unsigned)s % 3);
        struct sptx_table *table = open_filled(context, sizes[s], 1, "adagrad", "zeros");
        struct sptx_ids ids = wide(data, COUNT);
        assert_int_equal(sptx_table_set_lr(table, 0.25), SPTX_OK);
        for (int i = 0; i < COUNT; i++) {
            uint64_t near = i % 3 == 0 ? 0 : i % 3 == 1 ? sizes[s] : 2048;
            uint64_t row = i % 7 ? near + draw(&seed, 40) - 20 : ((uint64_t)draw(&seed, 1 << 12) << 12 | draw(&seed, 1 << 12));
            data[i] = (int64_t)(row % sizes[s]);
            gradients[i] = (float)draw(&seed, 9) - 4;
            summed[data[i]] = 0;
        }
        assert_int_equal(sptx_update(table, &ids, gradients, SPTX_HOST, NULL), SPTX_OK);
        assert_int_equal(sptx_fetch(table, &ids, got, SPTX_HOST, NULL), SPTX_OK);
        for (int i = 0; i < COUNT; i++) summed[data[i]] += gradients[i];
        for (int i = 0; i < COUNT; i++)
            assert_float_equal(got[i], 0.25 * (summed[data[i]] < 0) - 0.25 * (summed[data[i]] > 0), 1e-6);
        sptx_close(context);
    }
}

static const char *const rules[] = {"sgd",  "adagrad",     "adadelta", "rmsprop", "adam",
                                    "adamw", "sparse_adam", "adamax",   "asgd",    "rprop", "rowwise_adagrad", "ftrl", "rowwise_adam"};
enum { RULES = sizeof rules / sizeof *rules };

static char *bytes_of(const char *path, long *length) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *length = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)*length);
    assert_int_equal(fread(bytes, 1, (size_t)*length, file), *length);
    fclose(file);
    return bytes;
}

/* Returns the bytes of the table's file after some updates with `threads` threads, while the caller's rounding mode is `mode`.
 * The caller frees them. */
static char *train_and_save(const char *rule, unsigned threads, int mode, const char *path, long *length) {
    enum { ROWS = 500, DIM = 9, COUNT = 3000 };
    fesetround(mode);
    struct sptx_context *context = open_cpu(threads);
    struct sptx_table *table = open_table(context, ROWS, DIM, rule);
    static float gradients[COUNT * DIM];
    static int64_t data[COUNT];
    uint32_t seed = 11;
    for (int step = 0; step < 4; step++) {
        fesetround(FE_TONEAREST);
        for (int i = 0; i < COUNT; i++) data[i] = (int64_t)draw(&seed, ROWS) * draw(&seed, ROWS) / ROWS;
        for (int i = 0; i < COUNT * DIM; i++) gradients[i] = (float)draw(&seed, 2000) / 1000 - 1;
        struct sptx_ids ids = wide(data, COUNT);
        fesetround(mode);
        assert_int_equal(sptx_update(table, &ids, gradients, SPTX_HOST, NULL), SPTX_OK);
    }
    assert_int_equal(sptx_table_save(table, path), SPTX_OK);
    sptx_close(context);
    assert_int_equal(fegetround(), mode);
    fesetround(FE_TONEAREST);
    return bytes_of(path, length);
}

static char path[64];

static int make_path(void **state) {
    snprintf(path, sizeof path, "/tmp/sptx-library.%ld.npy", (long)getpid());
    return 0;
}
static int remove_path(void **state) {
    remove(path);
    return 0;
}

static void the_thread_count_changes_no_byte(void **state) {
    static const unsigned counts[] = {2, 5, 16};
    for (int r = 0; r < RULES; r++) {
        long length, other;
        char *one = train_and_save(rules[r], 1, FE_TONEAREST, path, &length);
        for (int i = 0; i < 3; i++) {
            char *many = train_and_save(rules[r], counts[i], FE_TONEAREST, path, &other);
            assert_int_equal(length, other);
            assert_memory_equal(one, many, (size_t)length);
            free(many);
        }
        free(one);
    }
}

/* A caller that rounds upward must get the same bytes, with one thread and with several, and must still round upward afterwards. */
static void the_callers_mode_changes_no_byte(void **state) {
    for (int r = 0; r < RULES; r++) {
        long length, other;
        char *plain = train_and_save(rules[r], 2, FE_TONEAREST, path, &length);
        for (unsigned threads = 1; threads < 4; threads += 2) {
            char *upward = train_and_save(rules[r], threads, FE_UPWARD, path, &other);
            assert_int_equal(length, other);
            assert_memory_equal(plain, upward, (size_t)length);
            free(upward);
        }
        free(plain);
    }
}

static void what_is_saved_is_loaded(void **state) {
    struct sptx_context *context = open_cpu(2);
    struct sptx_table *from = open_table(context, 50, 6, "adamax"), *to = open_table(context, 50, 6, "adamax");
    struct sptx_table *other = open_table(context, 51, 6, "adamax"), *plain = open_table(context, 50, 6, "sgd");
    int32_t data[] = {3, 3, 49};
    float gradients[18], a[18], b[18];
    struct sptx_ids ids = narrow(data, 3);
    for (int i = 0; i < 18; i++) gradients[i] = (float)i;
    assert_int_equal(sptx_update(from, &ids, gradients, SPTX_HOST, NULL), SPTX_OK);
    assert_int_equal(sptx_table_save(from, path), SPTX_OK);
    assert_int_equal(sptx_table_load(to, path), SPTX_OK);
    for (int step = 0; step < 2; step++) { /* both tables must have the same state, too */
        assert_int_equal(sptx_update(from, &ids, gradients, SPTX_HOST, NULL), SPTX_OK);
        assert_int_equal(sptx_update(to, &ids, gradients, SPTX_HOST, NULL), SPTX_OK);
    }
    assert_int_equal(sptx_fetch(from, &ids, a, SPTX_HOST, NULL), SPTX_OK);
    assert_int_equal(sptx_fetch(to, &ids, b, SPTX_HOST, NULL), SPTX_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(sptx_table_load(other, path), SPTX_FAILED);
    assert_non_null(strstr(sptx_error(context), "51"));
    assert_int_equal(sptx_table_load(plain, path), SPTX_FAILED);
    assert_int_equal(sptx_table_load(to, "/nowhere/at/all.npy"), SPTX_FAILED);
    assert_int_equal(sptx_table_save(to, "/nowhere/at/all.npy"), SPTX_FAILED);
    assert_int_equal(sptx_table_save(to, ""), SPTX_USAGE);
    sptx_close(context);
}

static void a_save_goes_on_while_rows_change(void **state) {
    struct sptx_context *context = open_cpu(2);
    struct sptx_table *table = open_table(context, 50000, 9, "adam");
    struct sptx_saving *saving, *second;
    long lengths[2];
    assert_int_equal(sptx_table_save(table, path), SPTX_OK);
    char *before = bytes_of(path, &lengths[0]);
    assert_int_equal(sptx_table_save_begin(table, path, 1 << 16, &saving), SPTX_OK);
    if (sptx_table_save_begin(table, path, 0, &second) == SPTX_OK) sptx_saving_close(second); /* the first may be done already */
    else assert_non_null(strstr(sptx_error(context), "is being written by an earlier save"));
    for (int64_t at = 49999; at >= 0; at -= 7) {
        float ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        struct sptx_ids ids = wide(&at, 1);
        assert_int_equal(sptx_update(table, &ids, ones, SPTX_HOST, NULL), SPTX_OK);
    }
    assert_int_equal(sptx_saving_wait(saving), SPTX_OK);
    assert_int_equal(sptx_saving_done(saving), 1);
    assert_string_equal(sptx_saving_error(saving), "");
    char *after = bytes_of(path, &lengths[1]);
    assert_int_equal(lengths[0], lengths[1]);
    assert_memory_equal(before, after, (size_t)lengths[0]);
    free(before);
    free(after);
    sptx_close(context); /* before the handle */
    assert_int_equal(sptx_saving_done(saving), 1);
    sptx_saving_close(saving);
}

static void a_save_that_cannot_be_made_says_why(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table *table = open_table(context, 10, 2, "sgd");
    struct sptx_saving *saving;
    assert_int_equal(sptx_table_save_begin(table, "", 0, &saving), SPTX_USAGE);
    assert_null(saving);
    assert_int_equal(sptx_table_save_begin(table, "a.npy", 0, NULL), SPTX_USAGE);
    assert_int_equal(sptx_table_save_begin(NULL, "a.npy", 0, &saving), SPTX_USAGE);
    assert_int_equal(sptx_table_save_begin(table, "/nowhere/at/all.npy", 0, &saving), SPTX_OK);
    assert_int_equal(sptx_saving_wait(saving), SPTX_FAILED);
    assert_non_null(strstr(sptx_saving_error(saving), "/nowhere/at/all.npy"));
    sptx_saving_close(saving);
    sptx_saving_close(NULL);
    assert_int_equal(sptx_saving_done(NULL), 1);
    sptx_close(context);
}

static void optimizers_and_their_options_have_names(void **state) {
    char said[256] = "";
    for (uint32_t i = 0; sptx_optimizer(i); i++) strcat(strcat(said, sptx_optimizer(i)), " ");
    assert_string_equal(said, "sgd adagrad adadelta rmsprop adam adamw sparse_adam adamax asgd rprop rowwise_adagrad ftrl rowwise_adam none ");
    assert_null(sptx_optimizer(UINT32_MAX));
    *said = 0;
    for (uint32_t i = 0; sptx_optimizer_option("rprop", i); i++)
        strcat(strcat(said, sptx_optimizer_option("rprop", i)), " ");
    assert_string_equal(said, "eta_minus eta_plus step_min step_max ");
    assert_null(sptx_optimizer_option("none", 0));
    assert_null(sptx_optimizer_option("sgdd", 0));
    assert_null(sptx_optimizer_option(NULL, 0));
}

static void a_view_is_the_rows_themselves(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table *table = open_table(context, 4, 3, "adam");
    struct sptx_view view = {.size = sizeof view};
    float one[3];
    assert_int_equal(sptx_table_view(table, "weights", &view), SPTX_OK);
    assert_int_equal(view.rows, 4);
    assert_int_equal(view.first, 0);
    assert_int_equal(view.dim, 3);
    assert_int_equal(view.stride % 32, 0);
    float *row = (float *)((char *)view.data + 2 * view.stride);
    fetch_one(table, 2, one);
    assert_memory_equal(row, one, sizeof one);
    row[1] = 42;
    fetch_one(table, 2, one);
    assert_true(one[1] == 42);
    assert_string_equal(sptx_table_field(table, 0), "weights");
    assert_string_equal(sptx_table_field(table, 1), "exp_avg");
    assert_string_equal(sptx_table_field(table, 2), "exp_avg_sq");
    assert_null(sptx_table_field(table, 3));
    sptx_close(context);
}

static void a_rate_can_be_set(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table *table = open_table(context, 2, 1, "sgd");
    int32_t id = 1;
    float before, after, gradient = 1;
    struct sptx_ids ids = narrow(&id, 1);
    fetch_one(table, 1, &before);
    assert_int_equal(sptx_table_set_lr(table, 0.5), SPTX_OK);
    assert_int_equal(sptx_update(table, &ids, &gradient, SPTX_HOST, NULL), SPTX_OK);
    fetch_one(table, 1, &after);
    assert_float_equal(before - after, 0.5, 1e-6);
    assert_int_equal(sptx_table_set_lr(table, NAN), SPTX_USAGE);
    assert_int_equal(sptx_table_set_lr(table, -1), SPTX_USAGE);
    assert_float_equal(sptx_table_lr(table), 0.5, 0);
    sptx_close(context);
}

static void steps_do_not_wrap(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table *table = open_table(context, 2, 1, "adam");
    assert_int_equal(sptx_table_set_steps(table, INT64_MAX), SPTX_OK);
    assert_int_equal(sptx_table_set_steps(table, (uint64_t)INT64_MAX + 1), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "steps = 9223372036854775808 is more than 9223372036854775807"));
    assert_int_equal(sptx_table_set_steps(table, UINT64_MAX), SPTX_USAGE);
    assert_int_equal(sptx_table_steps(table), INT64_MAX);
    sptx_close(context);
}

static void memory_that_is_not_aligned_is_refused(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table *table = open_table(context, 4, 2, "sgd");
    int64_t room[4] = {0};
    float values[6] = {0}, before[2], after[2];
    void *odd = (char *)room + 4, *odder = (char *)room + 2, *floats = (char *)values + 1;
    struct sptx_ids narrow_ids = {odder, 2, 32, SPTX_HOST}, wide_ids = {odd, 2, 64, SPTX_HOST}, good = {odd, 2, 32, SPTX_HOST};
    fetch_one(table, 0, before);
    assert_int_equal(sptx_fetch(table, &narrow_ids, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "no multiple of their 4 bytes"));
    assert_int_equal(sptx_update(table, &wide_ids, values, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_prefetch(table, &wide_ids, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "no multiple of their 8 bytes"));
    assert_int_equal(sptx_store(table, &good, floats, SPTX_HOST, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "values lie at"));
    assert_int_equal(sptx_fetch(table, &good, values, SPTX_HOST, NULL), SPTX_OK);
    fetch_one(table, 0, after);
    assert_memory_equal(before, after, sizeof before);
    sptx_close(context);
}

/* ---- several at once ---- */

static void *use_a_context(void *argument) {
    const char *unknown = argument;
    for (int round = 0; round < 30; round++) {
        struct sptx_context_options options = {sizeof options, "cpu", 2, 0, 0, NULL, NULL};
        struct sptx_context *context;
        struct sptx_table_options table_options;
        struct sptx_table *table;
        int32_t id = 0;
        float values[8];
        struct sptx_ids ids = {&id, 1, 32, SPTX_HOST};
        if (sptx_open(&context, &options)) return "a context did not open";
        sptx_table_defaults(&table_options, sizeof table_options);
        table_options.rows = 100, table_options.dim = 8, table_options.optimizer = unknown;
        if (sptx_table_open(context, &table_options, &table) != SPTX_USAGE) return "an optimizer that is none was taken";
        if (!strstr(sptx_error(context), unknown)) return "another context's sentence";
        table_options.optimizer = "adam";
        if (sptx_table_open(context, &table_options, &table) || sptx_fetch(table, &ids, values, SPTX_HOST, NULL))
            return "a table did not open";
        sptx_close(context);
    }
    return NULL;
}

static void contexts_do_not_meet(void **state) {
    static char *names[] = {"aaa", "bbbb", "ccccc"};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_a_context, names[i]), 0);
    for (int i = 0; i < 3; i++) {
        void *said;
        pthread_join(threads[i], &said);
        if (said) fail_msg("%s", (char *)said);
    }
}

/* ---- bfloat16 ---- */

static struct sptx_table *open_halves(struct sptx_context *context, uint32_t state_dtype) {
    struct sptx_table_options options;
    struct sptx_table *table;
    sptx_table_defaults(&options, sizeof options);
    assert_int_equal(options.dtype, SPTX_FLOAT32);
    options.rows = 10, options.dim = 9, options.optimizer = "adagrad", options.lr = 0.1;
    options.dtype = SPTX_BFLOAT16, options.state_dtype = state_dtype;
    if (sptx_table_open(context, &options, &table)) fail_msg("%s", sptx_error(context));
    return table;
}

/* A fetch returns the values in the view. Small changes are not lost: 1 + 1/1024 is an eighth of the way from 1 to the next bfloat16, so about an
 * eighth of 4,000 stores of it must be rounded up. */
static void a_table_of_bfloat16(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table *table = open_halves(context, SPTX_AS_WEIGHTS), *mixed = open_halves(context, SPTX_FLOAT32);
    struct sptx_view view = {.size = sizeof view};
    float values[9], out[9], up = 0;
    assert_int_equal(sptx_table_view(table, "sum", &view), SPTX_OK);
    assert_int_equal(view.dtype, SPTX_BFLOAT16);
    assert_int_equal(sptx_table_view(mixed, "sum", &view), SPTX_OK);
    assert_int_equal(view.dtype, SPTX_FLOAT32);
    assert_int_equal(sptx_table_view(table, "weights", &view), SPTX_OK);
    assert_int_equal(view.dtype, SPTX_BFLOAT16);
    int32_t id = 3;
    struct sptx_ids ids = narrow(&id, 1);
    for (int i = 0; i < 9; i++) values[i] = 1 + 1.0f / 1024;
    for (int call = 0; call < 4000; call++) {
        assert_int_equal(sptx_store(table, &ids, values, SPTX_HOST, NULL), SPTX_OK);
        assert_int_equal(sptx_fetch(table, &ids, out, SPTX_HOST, NULL), SPTX_OK);
        for (int i = 0; i < 9; i++) up += out[i] > 1;
        for (int i = 0; i < 9; i++) assert_true(out[i] == 1 || out[i] == 1 + 1.0f / 128);
    }
    assert_float_equal(up / 36000, 0.125, 0.0055); /* within three standard deviations */
    const uint16_t *kept = (const uint16_t *)(const void *)((const char *)view.data + 3 * view.stride);
    for (int i = 0; i < 9; i++) assert_int_equal(kept[i], out[i] > 1 ? 0x3F81 : 0x3F80);
    sptx_close(context);
}

static void a_view_of_an_older_program_has_no_bfloat16(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table *halves = open_halves(context, SPTX_FLOAT32), *floats = open_table(context, 10, 9, "sgd");
    struct sptx_view view = {.size = offsetof(struct sptx_view, dtype), .dtype = 77};
    assert_int_equal(sptx_table_view(floats, "weights", &view), SPTX_OK);
    assert_int_equal(view.dim, 9);
    assert_int_equal(view.dtype, 77);
    assert_int_equal(sptx_table_view(halves, "weights", &view), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "bfloat16"));
    assert_int_equal(sptx_table_view(halves, "sum", &view), SPTX_OK);
    sptx_close(context);
}

static void n_grams_that_cannot_be_are_refused(void **state) {
    static const int64_t tokens[] = {3, 1, 4, 1, 5, 9};
    static const uint32_t orders[] = {2, 3}, none[] = {2, 0}, longest[] = {1, SPTX_NGRAM_MOST + 1};
    const struct sptx_ngram_law law = {sizeof law, 1, 100, 2, 4, orders};
    const struct sptx_ids six = wide(tokens, 6);
    struct sptx_context *context = open_cpu(2);
    struct sptx_ngram_law wrong[6];
    int64_t rows[6 * 8];
    (void)state;
    assert_int_equal(sptx_ngrams(context, &law, &six, 2, 1, rows, NULL), SPTX_OK);
    for (int i = 0; i < 2 * 2 * 8; i++) assert_true(rows[i] >= i % 8 * 100 && rows[i] < i % 8 * 100 + 100);
    for (int i = 0; i < 6; i++) wrong[i] = law;
    wrong[0].orders = 33;
    wrong[1].heads = UINT32_MAX;
    wrong[2].order = none;
    wrong[3].order = longest;
    wrong[4].part_rows = (uint64_t)SPTX_ROWS_MOST + 1;
    wrong[5].size = 4;
    for (int i = 0; i < 6; i++) assert_int_equal(sptx_ngrams(context, &wrong[i], &six, 2, 1, rows, NULL), SPTX_USAGE);
    assert_int_equal(sptx_ngrams(context, &law, &six, 4, 0, rows, NULL), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "6 tokens are not 4 sequences of the same length"));
    assert_int_equal(sptx_ngrams(context, &law, &six, 2, 4, rows, NULL), SPTX_USAGE);
    assert_int_equal(sptx_ngrams(context, &law, &six, 0, 0, rows, NULL), SPTX_USAGE);
    assert_int_equal(sptx_ngrams(context, &law, &(struct sptx_ids){NULL, 0, 32, SPTX_HOST}, 0, 0, NULL, NULL), SPTX_OK);
    sptx_close(context);
}

static void what_is_no_dtype(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table_options options;
    struct sptx_table *table;
    sptx_table_defaults(&options, sizeof options);
    options.rows = options.dim = 1;
    options.dtype = SPTX_AS_WEIGHTS;
    assert_int_equal(sptx_table_open(context, &options, &table), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "dtype is"));
    options.dtype = options.state_dtype = SPTX_INT8;
    assert_int_equal(sptx_table_open(context, &options, &table), SPTX_USAGE);
    assert_non_null(strstr(sptx_error(context), "state_dtype is"));
    sptx_close(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_open_says_why),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(options_that_cannot_work_are_named),
        cmocka_unit_test(options_that_a_rule_does_not_have_are_ignored),
        cmocka_unit_test(a_table_larger_than_the_memory_is_refused),
        cmocka_unit_test(an_older_programs_options_are_enough),
        cmocka_unit_test(rows_come_in_the_order_of_their_ids),
        cmocka_unit_test(ids_that_are_no_rows_change_nothing),
        cmocka_unit_test(the_first_wrong_id_is_named),
        cmocka_unit_test(of_ids_that_repeat_the_last_value_stays),
        cmocka_unit_test(gradients_of_a_row_are_summed_and_applied_once),
        cmocka_unit_test(gradients_that_are_not_finite_are_refused),
        cmocka_unit_test(ids_of_any_size_are_sorted),
        cmocka_unit_test_setup_teardown(the_thread_count_changes_no_byte, make_path, remove_path),
        cmocka_unit_test_setup_teardown(the_callers_mode_changes_no_byte, make_path, remove_path),
        cmocka_unit_test_setup_teardown(what_is_saved_is_loaded, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_save_goes_on_while_rows_change, make_path, remove_path),
        cmocka_unit_test(a_save_that_cannot_be_made_says_why),
        cmocka_unit_test(optimizers_and_their_options_have_names),
        cmocka_unit_test(a_view_is_the_rows_themselves),
        cmocka_unit_test(a_rate_can_be_set),
        cmocka_unit_test(steps_do_not_wrap),
        cmocka_unit_test(memory_that_is_not_aligned_is_refused),
        cmocka_unit_test(contexts_do_not_meet),
        cmocka_unit_test(a_table_of_bfloat16),
        cmocka_unit_test(a_view_of_an_older_program_has_no_bfloat16),
        cmocka_unit_test(what_is_no_dtype),
        cmocka_unit_test(n_grams_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
