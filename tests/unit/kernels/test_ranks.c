/* Tests which columns each rank has, and how records are split among ranks. tests/cli/test_ranks.py tests several ranks under
 * mpirun. */
#include "tests/testing.h"

#include "kernels/ranks.h"
#include "kernels/record.h"

static void check_columns(uint32_t dim, uint32_t grain, unsigned count) {
    uint32_t end = 0, groups = (dim + grain - 1) / grain;
    for (unsigned r = 0; r < count; r++) {
        struct columns own = ranks_columns(dim, grain, count, r);
        assert_int_equal(own.first, end);
        assert_true(own.count >= 1 && own.count <= ranks_columns(dim, grain, count, 0).count);
        end += own.count;
        if (groups >= count && end < dim) assert_int_equal(end % grain, 0);
    }
    assert_int_equal(end, dim);
}

static void columns_are_shared_out_whole(void **state) {
    for (uint32_t dim = 1; dim <= 130; dim++)
        for (unsigned count = 1; count <= dim && count <= 40; count++) {
            check_columns(dim, 4, count);
            check_columns(dim, 8, count);
        }
}

static void fifty_over_three(void **state) {
    const struct columns wanted[] = {{0, 20}, {20, 16}, {36, 14}};
    for (unsigned r = 0; r < 3; r++) {
        struct columns own = ranks_columns(50, 4, 3, r);
        assert_int_equal(own.first, wanted[r].first);
        assert_int_equal(own.count, wanted[r].count);
    }
}

static void a_process_alone_is_the_first_of_one(void **state) {
    struct ranks alone = {.count = 1, .local = 1};
    float values[2] = {1, 2};
    assert_int_equal(ranks_count(NULL), 1);
    assert_true(ranks_first(NULL) && ranks_first(&alone));
    assert_int_equal(ranks_agree(NULL, 0), 0);
    assert_int_equal(ranks_agree(&alone, -1), -1);
    assert_int_equal(ranks_any(NULL, 5), 5);
    assert_int_equal(ranks_sum(&alone, values, 2), 0);
    assert_true(values[0] == 1 && values[1] == 2);
}

/* Splits records into the parts of all ranks and joins the parts again: the records must be the same, whatever fields they have. */
static void check_records(const struct rule_options *rule, uint32_t dim, unsigned count) {
    enum { ROWS = 3 };
    struct record_layout whole = record_layout_make(rule, dim);
    uint64_t words = ROWS * whole.packed / 4;
    uint32_t *from = malloc(words * 4), *to = calloc(words, 4), *own = malloc(words * 4);
    for (uint64_t i = 0; i < words; i++) from[i] = 0x3f800000u + (uint32_t)i;
    for (unsigned r = 0; r < count; r++) {
        struct columns columns = ranks_columns(dim, record_grain(&whole), count, r);
        struct record_layout part = record_layout_make(rule, columns.count);
        record_split(&whole, &part, columns.first, ROWS, from, own);
        assert_int_equal(own[0], from[columns.first]);
        if (whole.counted || whole.by_row) assert_int_equal(own[part.packed / 4 - 1], from[whole.packed / 4 - 1]);
        record_join(&whole, &part, columns.first, ROWS, to, own);
    }
    assert_memory_equal(from, to, words * 4);
    free(from);
    free(to);
    free(own);
}

static void parts_make_whole_records(void **state) {
    const struct rule_options rules[] = {
        {.rule = RULE_SGD}, {.rule = RULE_ADAM, .amsgrad = 1, .count_rows = 1}, {.rule = RULE_ADAGRAD}, {.rule = RULE_ROWWISE_ADAGRAD},
        {.rule = RULE_ROWWISE_ADAM, .count_rows = 1}, {.rule = RULE_ROWWISE_ADAM}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (unsigned count = 1; count <= 5; count++) {
            check_records(&rules[i], 50, count);
            check_records(&rules[i], 7, count);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_shared_out_whole),
        cmocka_unit_test(fifty_over_three),
        cmocka_unit_test(a_process_alone_is_the_first_of_one),
        cmocka_unit_test(parts_make_whole_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
