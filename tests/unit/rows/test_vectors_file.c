/* Reads files of vectors: tells the forms apart, reads whole rows and some of their columns, and refuses damaged files
 * (tests/cli/test_grow.py has more). */
#include "rows/vectors_file.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

static struct vectors_file open_text(const char *text, enum vectors_format format) {
    struct vectors_file file;
    assert_int_equal(vectors_file_open(&file, scratch_text("given", text), NULL), 0);
    assert_int_equal(file.format, format);
    return file;
}

static void refuse(const void *bytes, uint64_t length, const char *part) {
    struct vectors_file file;
    assert_int_equal(vectors_file_open(&file, scratch_file("given", bytes, length), NULL), -1);
    if (!strstr(report_sentence(), part)) print_message("sentence: %s\nwanted: %s\n", report_sentence(), part);
    assert_non_null(strstr(report_sentence(), part));
    report_clear();
}

static void expect_row(const struct vectors_file *file, const char *word, float a, float b, float c) {
    float whole[3], part[2];
    int64_t row = words_find(&file->words, words_hash(word, strlen(word)), word, strlen(word));
    assert_true(row >= 0);
    assert_int_equal(vectors_file_row(file, (uint64_t)row, 0, 3, whole), 0);
    assert_true(whole[0] == a && whole[1] == b && whole[2] == c);
    assert_int_equal(vectors_file_row(file, (uint64_t)row, 1, 2, part), 0);
    assert_true(part[0] == b && part[1] == c);
}

static void text_with_and_without_a_first_line(void **state) {
    static const char *const texts[] = {"2 3\nthe 1 -2.5 3e-2\nof 4 5 6\n",
                                        "2 3\r\nthe 1 -2.5 3e-2\r\nof 4 5 6",
                                        "the 1 -2.5 3e-2 \nof\t4 5 6\n",
                                        "\xEF\xBB\xBF"
                                        "2 3\nthe 1 -2.5 3e-2\nof 4 5 6\n",
                                        "\xEF\xBB\xBF"
                                        "the 1 -2.5 3e-2\nof 4 5 6\n",
                                        "2 3\nthe 1 -2.5 3e-2\nof 4 5 6\n\n \n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct vectors_file file = open_text(texts[i], VECTORS_TEXT);
        assert_true(file.rows == 2 && file.dim == 3);
        expect_row(&file, "the", 1, -2.5f, 3e-2f);
        expect_row(&file, "of", 4, 5, 6);
        vectors_file_close(&file);
    }
}

/* Other programs write words of any bytes: only a blank, a TAB or a line end ends a word. */
static void words_of_other_programs_may_have_odd_bytes(void **state) {
    struct vectors_file file = open_text("2 3\nt\fhe 1 2 3\n\v 4 5 6\n", VECTORS_TEXT);
    expect_row(&file, "t\fhe", 1, 2, 3);
    expect_row(&file, "\v", 4, 5, 6);
    vectors_file_close(&file);
}

/* A binary number may contain bytes that are blanks or line ends, even as the first byte of the file. */
static void binary_with_and_without_line_ends(void **state) {
    char bytes[64];
    const float rows[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const uint32_t blanks = 0x0A200D0Au;
    for (int i = 0; i < 4; i++) {
        int ends = i % 2, column = i / 2 * 2;
        uint64_t n = (uint64_t)sprintf(bytes, "2 3\n");
        for (int row = 0; row < 2; row++) {
            n += (uint64_t)sprintf(bytes + n, "%s ", row ? "of" : "the");
            memcpy(bytes + n, rows[row], sizeof rows[row]);
            memcpy(bytes + n + 4 * column, &blanks, sizeof blanks);
            n += sizeof rows[row];
            if (ends) bytes[n++] = '\n';
        }
        struct vectors_file file;
        float want;
        memcpy(&want, &blanks, sizeof want);
        assert_int_equal(vectors_file_open(&file, scratch_file("given", bytes, n), NULL), 0);
        assert_true(file.format == VECTORS_BINARY && file.rows == 2);
        expect_row(&file, "the", column ? 1 : want, 2, column ? want : 3);
        expect_row(&file, "of", column ? 4 : want, 5, column ? want : 6);
        vectors_file_close(&file);
        refuse(bytes, n - 1 - (uint64_t)ends, "cut off");
    }
}

/* Tries the largest number of rows that fits the file's size, and one row more. */
static void counts_that_a_file_cannot_hold(void **state) {
    struct vectors_file file = open_text("2 1\na 1\nb 2", VECTORS_TEXT);
    vectors_file_close(&file);
    refuse("3 1\na 1\nb 2", 11, "3 rows of 1 columns");
    refuse("3 1\na 1\nb 2\n\n\n\n\n", 16, "row 3 of 3");
    refuse("1 1\na 1\nb 2", 11, "goes on behind its 1 rows");
    refuse("0 1\n", 4, "begins neither");
}

static void rows_that_do_not_read(void **state) {
    static const char *const rows[] = {
        "2 2\na 1.000\nb 1 2\n", "2 2\na 1 2 3\nb 1 2\n", "2 2\na 1 1e\nb 1 2\n", "2 2\na 1 --1\nb 1 2\n"};
    float out[2];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct vectors_file file = open_text(rows[i], VECTORS_TEXT);
        assert_int_equal(vectors_file_row(&file, 0, 0, 2, out), -1);
        assert_non_null(strstr(report_sentence(), "row 1 does not read as a word and 2 numbers"));
        report_clear();
        assert_int_equal(vectors_file_row(&file, 1, 0, 2, out), 0);
        vectors_file_close(&file);
    }
}

/* A NUL in the text of a number makes the number invalid; it does not end it. */
static void a_nul_is_no_end_of_a_number(void **state) {
    static const char text[] = "2 2\na 1 2\nb 1 2\0garbage\n";
    struct vectors_file file;
    float out[2];
    assert_int_equal(vectors_file_open(&file, scratch_file("given", text, sizeof text - 1), NULL), 0);
    assert_int_equal(vectors_file_row(&file, 0, 0, 2, out), 0);
    assert_int_equal(vectors_file_row(&file, 1, 0, 2, out), -1);
    assert_non_null(strstr(report_sentence(), "row 2 does not read as a word and 2 numbers, from column 2 on"));
    report_clear();
    vectors_file_close(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_with_and_without_a_first_line, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(words_of_other_programs_may_have_odd_bytes, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(binary_with_and_without_line_ends, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(counts_that_a_file_cannot_hold, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(rows_that_do_not_read, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_nul_is_no_end_of_a_number, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
