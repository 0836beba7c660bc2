/* Tests which columns each rank has, and how records are split among ranks. tests/cli/test_ranks.py tests several ranks under
 * mpirun. */
#include "tests/testing.h"

#include "kernels/ranks.h"
#include "kernels/record.h"

/* Columns are shared out in groups of four, or of eight if they are bfloat16. */
static struct record_layout layout_of(uint32_t dim, uint32_t grain, int complex) {
    const struct rule_options rule = {.rule = RULE_SGD, .precision = grain == 8 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32};
    struct record_layout whole = record_layout_make(&rule, dim);
    assert_int_equal(record_grain(&whole), grain);
    whole.complex = complex != 0;
    return whole;
}

/* Checks that every column has one rank. Of complex numbers each rank has both parts, the real ones first. */
static void check_columns(uint32_t dim, uint32_t grain, unsigned count, int complex) {
    const struct record_layout whole = layout_of(dim, grain, complex);
    uint32_t end = 0, all = complex ? dim / 2 : dim, group = complex && count > 1 ? grain / 2 : grain, groups = (all + group - 1) / group;
    for (unsigned r = 0; r < count; r++) {
        struct columns own = record_columns(&whole, count, r), first = record_run(own, 0), second = record_run(own, first.count);
        assert_true(own.count >= 1 && own.count <= record_columns(&whole, count, 0).count);
        assert_int_equal(first.count + second.count, own.count);
        assert_int_equal(record_run(own, own.count).count, 0);
        assert_int_equal(first.first, end);
        if (complex && count > 1) {
            assert_int_equal(second.first, end + dim / 2);
            assert_int_equal(second.count, first.count);
            struct columns within = record_run(own, first.count + 1);
            if (within.count) assert_int_equal(within.first, second.first + 1);
        }
        end += complex ? own.count / 2 : own.count;
        if (groups >= count && end < all) assert_int_equal(end % group, 0);
    }
    assert_int_equal(end, all);
}

static void columns_are_shared_out_whole(void **state) {
    for (uint32_t dim = 1; dim <= 130; dim++)
        for (unsigned count = 1; count <= dim && count <= 40; count++)
            for (uint32_t grain = 4; grain <= 8; grain += 4) {
                check_columns(dim, grain, count, 0);
                if (dim % 2 == 0 && count <= dim / 2) check_columns(dim, grain, count, 1);
            }
}

static void fifty_over_three(void **state) {
    const struct columns wanted[] = {{0, 20, 0}, {20, 16, 0}, {36, 14, 0}}, complex[] = {{0, 20, 25}, {10, 16, 25}, {18, 14, 25}};
    for (unsigned r = 0; r < 3; r++) {
        const struct record_layout reals = layout_of(50, 4, 0), numbers = layout_of(50, 4, 1);
        struct columns own = record_columns(&reals, 3, r), of_numbers = record_columns(&numbers, 3, r);
        assert_memory_equal(&own, &wanted[r], sizeof own);
        assert_memory_equal(&of_numbers, &complex[r], sizeof own);
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
static void check_records(const struct rule_options *rule, uint32_t dim, unsigned count, int complex) {
    enum { ROWS = 3 };
    struct record_layout whole = record_layout_make(rule, dim);
    whole.complex = complex != 0;
    uint64_t words = ROWS * whole.packed / 4;
    uint32_t *from = malloc(words * 4), *to = calloc(words, 4), *own = malloc(words * 4);
    for (uint64_t i = 0; i < words; i++) from[i] = 0x3f800000u + (uint32_t)i;
    for (unsigned r = 0; r < count; r++) {
        struct columns columns = record_columns(&whole, count, r);
        struct record_layout part = record_layout_make(rule, columns.count);
        record_split(&whole, &part, columns, ROWS, from, own);
        for (uint32_t at = 0; at < columns.count; at++) assert_int_equal(own[at], from[record_run(columns, at).first]);
        if (whole.counted || whole.by_row) assert_int_equal(own[part.packed / 4 - 1], from[whole.packed / 4 - 1]);
        record_join(&whole, &part, columns, ROWS, to, own);
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
            check_records(&rules[i], 50, count, 0);
            check_records(&rules[i], 50, count, 1);
            check_records(&rules[i], 7, count, 0);
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
