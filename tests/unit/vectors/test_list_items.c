#include "tests/unit/opened_run.h"
#include "tests/unit/plain_options.h"
#include "vectors/list_scores.h"

static int set_up(void **state) {
    static const float rows[6] = {1, 2, 3, 4, 5, 6};
    return open_run("a\t9\nb\t8\nc\t7\n", 3, 2, rows);
}

static void list_is(const struct list_items *items, uint64_t list, uint64_t count, const uint64_t *codes) {
    assert_int_equal(items->starts[list + 1] - items->starts[list], count);
    for (uint64_t i = 0; i < count; i++) assert_int_equal(items->codes[items->starts[list] + i], codes[i]);
}
#define LIST_IS(items, list, ...)                                                                                      \
    list_is(items, list, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

/* A second line of a list continues it. An item that occurs again is stored again. A list may be empty. */
static void every_list(void **state) {
    struct corpus_options reading = plain_options(FORMAT_LISTS);
    struct names lists = {.capacity = 0}, unknown = {.capacity = 0};
    struct list_items items;
    text_is("u1 c x a\nu2\nu3\ty a y\r\nu1 a\n\n");
    assert_int_equal(list_items_read(&items, file, NULL, &reading, &model, &lists, 1, &unknown), 0);
    assert_int_equal(lists.words.size, 3);
    LIST_IS(&items, 0, 2, 3, 0, 0);
    list_is(&items, 1, 0, NULL);
    LIST_IS(&items, 2, 4, 0, 4);
    assert_int_equal(items.count, 7);
    assert_null(items.met);
    list_items_release(&items);
    names_release(&lists);
    names_release(&unknown);
    assert_int_equal(list_items_read(&items, file, NULL, &reading, &model, &lists, 1, NULL), 0); /* NULL: the caller does not tell unknown
                                                                                         * items from one another */
    LIST_IS(&items, 0, 2, 3, 0, 0);
    LIST_IS(&items, 2, 3, 0, 3);
    list_items_release(&items);
    list_items_release(&items);
    names_release(&lists);
}

static void lists_by_name(void **state) {
    struct corpus_options reading = plain_options(FORMAT_PAIRS);
    struct names lists = {.capacity = 0};
    struct list_items items;
    names_add(&lists, "u9", 2), names_add(&lists, "absent", 6), names_add(&lists, "u1", 2);
    reading.min_rating = 3;
    text_is("u1,a,5\nu2,b,5\nu9,z,3\nu1,b,2\nu9,c,4\nu1,c,3");
    assert_int_equal(list_items_read(&items, file, NULL, &reading, &model, &lists, 0, NULL), 0);
    LIST_IS(&items, 0, 3, 2);
    list_is(&items, 1, 0, NULL);
    LIST_IS(&items, 2, 0, 2);
    assert_int_equal(items.met[0] + items.met[2], 2);
    assert_int_equal(items.met[1], 0);
    assert_int_equal(lists.words.size, 3);
    list_items_release(&items);
    names_release(&lists);
}

static void refused(void **state) {
    struct corpus_options reading = plain_options(FORMAT_PAIRS);
    struct names lists = {.capacity = 0};
    struct list_items items;
    text_is("u1 a\nu2\n");
    assert_failed_with(list_items_read(&items, file, NULL, &reading, &model, &lists, 1, NULL), "line 2: 1 field with blanks between; wanted list");
    list_items_release(&items);
    text_is("SPTX-IDS and more");
    assert_failed_with(list_items_read(&items, file, NULL, &reading, &model, &lists, 0, NULL), "is an id stream");
    list_items_release(&items);
    assert_failed_with(list_items_read(&items, "/nonexistent", NULL, &reading, &model, &lists, 1, NULL), "/nonexistent");
    list_items_release(&items);
    text_is("");
    assert_int_equal(list_items_read(&items, file, NULL, &reading, &model, &lists, 1, NULL), 0);
    list_items_release(&items);
    names_release(&lists);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_list), cmocka_unit_test(lists_by_name),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("list_items", tests, set_up, tear_down);
}
