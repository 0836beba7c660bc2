#include "tests/unit/small_run.h"
#include "vectors/numeric.h"
#include "vectors/quantizer.h"

#include <math.h>

enum { ROWS = 300, DIM = 12 };

static struct small_run run;
static struct model model;
static float targets[ROWS * DIM];

/* Columns of falling size, mixed with their neighbours; row 7 is zeros. */
static int set_up(void **state) {
    char *words = calloc(ROWS, 16);
    size_t n = 0;
    uint32_t draw = 1;
    for (int row = 0; row < ROWS; row++) {
        n += (size_t)sprintf(words + n, "w%03d\t%d\n", row, 1000 - row);
        for (int i = 0; i < DIM; i++) {
            draw = draw * 1664525u + 1013904223u;
            targets[row * DIM + i] = row == 7 ? 0 : ((float)(draw >> 8) / (1 << 24) - 0.4f) / (float)(i + 1);
        }
        for (int i = 1; i < DIM; i++) targets[row * DIM + i] += 0.5f * targets[row * DIM + i - 1];
    }
    small_run_make(&run, words, ROWS, DIM, targets, targets);
    free(words);
    return model_open(&model, run.directory);
}

static int tear_down(void **state) {
    model_close(&model);
    small_run_remove(&run);
    return 0;
}

static void open_quantizer(struct quantizer *quantizer, enum export_type type, uint32_t columns, int one_scale, unsigned threads) {
    assert_int_equal(quantizer_open(quantizer, &model, VIEW_TARGET, ROWS, type, columns, one_scale, threads), 0);
}

static double product(const float *a, const float *b, uint32_t dim) {
    double sum = 0;
    for (uint32_t i = 0; i < dim; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static void int8_is_within_half_a_step(void **state) {
    struct quantizer quantizer;
    int8_t code[DIM];
    open_quantizer(&quantizer, EXPORT_INT8, 0, 0, 1);
    assert_int_equal(quantizer_bytes(&quantizer), DIM);
    for (int row = 0; row < ROWS; row++) {
        int most = 0;
        quantizer_encode(&quantizer, (uint64_t)row, targets + row * DIM, code);
        for (int i = 0; i < DIM; i++) {
            assert_true(fabsf((float)code[i] * quantizer.scales[row] - targets[row * DIM + i]) <= quantizer.scales[row] * 0.5001f);
            if (abs(code[i]) > most) most = abs(code[i]);
        }
        assert_int_equal(most, row == 7 ? 0 : 127);
    }
    quantizer_close(&quantizer);
}

/* A uint8 value is the int8 value with the same scale, plus 128. */
static void bytes_of_one_scale(void **state) {
    struct quantizer with_sign, without;
    float row[DIM], same[DIM];
    int8_t a[DIM];
    uint8_t b[DIM];
    open_quantizer(&with_sign, EXPORT_INT8, 0, 1, 1);
    open_quantizer(&without, EXPORT_UINT8, 0, 0, 1);
    assert_null(with_sign.scales);
    memcpy(row, targets, sizeof row);
    assert_int_equal(quantizer_turn(&with_sign, row, 1, same), 0);
    assert_true(fabs(product(same, same, DIM) - 1) < 1e-6);
    quantizer_encode(&with_sign, 0, same, a);
    quantizer_encode(&without, 0, same, b);
    for (int i = 0; i < DIM; i++) assert_int_equal(b[i], a[i] + 128);
    quantizer_close(&with_sign);
    quantizer_close(&without);
}

static void bits_are_packed_highest_first(void **state) {
    struct quantizer quantizer;
    uint8_t code[2];
    float turned[DIM];
    open_quantizer(&quantizer, EXPORT_BINARY, 0, 0, 1);
    assert_int_equal(quantizer_bytes(&quantizer), 2);
    for (int i = 0; i < DIM; i++) turned[i] = quantizer.mean[i] + (i == 0 || i == 9 ? 0.1f : -0.1f);
    quantizer_encode(&quantizer, 0, turned, code);
    assert_int_equal(code[0], 0x80);
    assert_int_equal(code[1], 0x40);
    quantizer_close(&quantizer);
}

/* A file with all axes keeps every dot product; a file with fewer axes keeps the largest possible share of them. The rotation in the file turns the
 * model's rows into the rows of the file. */
static void axes(void **state) {
    struct quantizer all, half;
    float rows[2 * DIM], turned[2 * DIM], fewer[DIM];
    open_quantizer(&all, EXPORT_F32, DIM, 0, 1);
    open_quantizer(&half, EXPORT_F32, DIM / 2, 0, 2);
    memcpy(rows, targets, sizeof rows);
    assert_int_equal(quantizer_turn(&all, rows, 2, turned), 0);
    assert_true(fabs(product(turned, turned + DIM, DIM) - product(rows, rows + DIM, DIM)) < 1e-6);
    assert_int_equal(quantizer_turn(&half, rows, 2, fewer), 0);
    for (int i = 0; i < DIM / 2; i++) assert_true(fewer[i] == turned[i]);
    quantizer_close(&all);
    quantizer_close(&half);
}

static void threads_change_nothing(void **state) {
    for (int type = 0; type < EXPORT_TYPES; type++) {
        struct quantizer quantizer;
        struct quantizer_loss loss[2] = {{.most = ROWS}, {.most = ROWS}};
        float *rows[2];
        for (int i = 0; i < 2; i++) {
            open_quantizer(&quantizer, (enum export_type)type, 5, 0, i ? 3 : 1);
            rows[i] = quantizer_matrix(&quantizer, ROWS);
            assert_non_null(rows[i]);
            assert_int_equal(quantizer_measure(&quantizer, &loss[i]), 0);
            quantizer_close(&quantizer);
        }
        assert_memory_equal(rows[0], rows[1], ROWS * 5 * sizeof(float));
        assert_true(loss[0].recall == loss[1].recall && loss[0].searched == ROWS);
        assert_true(loss[0].recall > 0.1 && loss[0].recall <= loss[0].rescored && loss[0].rescored <= 1);
        free(rows[0]);
        free(rows[1]);
    }
}

static void whole_rows_lose_nothing(void **state) {
    static const enum export_type types[] = {EXPORT_F32, EXPORT_BF16, EXPORT_F16, EXPORT_INT8};
    for (int i = 0; i < 4; i++) {
        struct quantizer quantizer;
        struct quantizer_loss loss = {.most = 200};
        open_quantizer(&quantizer, types[i], 0, 0, 1);
        assert_int_equal(quantizer_measure(&quantizer, &loss), 0);
        assert_int_equal(loss.searched, 200);
        assert_true(loss.recall >= (i ? 0.94 : 1));
        quantizer_close(&quantizer);
    }
}

/* A file with more bits than columns loses less than one with as many bits as columns. Its axes are orthogonal within each block of columns. */
static void more_bits_than_columns(void **state) {
    double recall[2];
    for (int i = 0; i < 2; i++) {
        struct quantizer quantizer;
        struct quantizer_loss loss = {.most = ROWS};
        open_quantizer(&quantizer, EXPORT_BINARY, i ? 8 * DIM + 1 : 0, 0, 1);
        assert_int_equal(quantizer_bytes(&quantizer), i ? DIM + 1 : 2);
        assert_int_equal(quantizer_measure(&quantizer, &loss), 0);
        recall[i] = loss.recall;
        for (uint32_t a = 0; i && a < DIM; a++) {
            double sum = 0;
            for (uint32_t row = 0; row < DIM; row++)
                sum += (double)quantizer.rotation[row * quantizer.columns + a] * (double)quantizer.rotation[row * quantizer.columns];
            assert_true(fabs(sum - (a == 0)) < 1e-6);
        }
        quantizer_close(&quantizer);
    }
    assert_true(recall[1] > recall[0] + 0.1);
}

static void refused(void **state) {
    struct quantizer quantizer;
    assert_failed_with(quantizer_open(&quantizer, &model, VIEW_TARGET, ROWS, EXPORT_F32, DIM + 1, 0, 1), "more than the 12 columns");
    assert_failed_with(quantizer_open(&quantizer, &model, VIEW_TARGET, ROWS, EXPORT_BINARY, 1025, 0, 1), "at most 1024");
    quantizer_close(&quantizer);
    assert_failed_with(export_type_named("int4"), "wanted f32, bf16, f16, int8, uint8 or binary");
}

int main(void) {
#define ON_RUN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {ON_RUN(int8_is_within_half_a_step), ON_RUN(bytes_of_one_scale),
                                       ON_RUN(bits_are_packed_highest_first), ON_RUN(axes), ON_RUN(threads_change_nothing),
                                       ON_RUN(whole_rows_lose_nothing), ON_RUN(more_bits_than_columns), ON_RUN(refused)};
    return cmocka_run_group_tests_name("quantizer", tests, NULL, NULL);
}
