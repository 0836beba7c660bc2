#include "tests/unit/opened_run.h"
#include "vectors/names.h"

static int set_up(void **state) {
    static const float rows[6] = {1, 2, 3, 4, 5, 6};
    return open_run("a\t9\nb\t8\nc\t7\n", 3, 2, rows);
}

static int read_text(struct titles *titles, const char *text) {
    text_is(text);
    return titles_read(titles, &model, file);
}

/* A byte order mark, line ends of any kind and columns after the title are not part of ids or titles. If an id occurs twice, its first title
 * counts. Unknown ids and empty lines are ignored. */
static void reads_lines_of_id_and_title(void **state) {
    struct titles titles;
    assert_int_equal(read_text(&titles, "\xEF\xBB\xBF"
                                        "a\tOne, the first\r\nother\tNobody\n\nc\tTwo\tcolumns\rc\tLater\nb\t"),
                     0);
    assert_string_equal(titles_of(&titles, 0), "One, the first");
    assert_string_equal(titles_of(&titles, 1), "");
    assert_string_equal(titles_of(&titles, 2), "Two");
    assert_int_equal(titles_find(&titles, &model, "Two"), 2);
    assert_int_equal(titles_find(&titles, &model, "Nobody"), -1);
    titles_release(&titles);
    titles_release(&titles);
    assert_string_equal(titles_of(&titles, 2), ""); /* no file was read, so no row has a title */
    assert_int_equal(titles_find(&titles, &model, "Two"), -1);
}

static void refuses(void **state) {
    struct titles titles;
    assert_failed_with(read_text(&titles, "a\tOne\n\nb Two\n"), "line 3: one field; wanted an id and a title");
    titles_release(&titles);
    assert_failed_with(titles_read(&titles, &model, "/nonexistent"), "/nonexistent");
    titles_release(&titles);
    assert_int_equal(read_text(&titles, ""), 0); /* the file is empty, so no row has a title */
    assert_string_equal(titles_of(&titles, 0), "");
    titles_release(&titles);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_lines_of_id_and_title, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("titles", tests, NULL, NULL);
}
