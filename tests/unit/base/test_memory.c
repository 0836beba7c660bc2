#define _GNU_SOURCE
#include "base/memory.h"
#include "base/report.h"

#include <dlfcn.h>
#include "tests/testing.h"

static int fresh(void **state) {
    report_clear();
    return 0;
}

static void assert_refused(const void *block, const char *part) {
    assert_null(block);
    assert_int_equal(report_exit_code(), 1);
    assert_non_null(strstr(report_sentence(), part));
    report_clear();
}

static void products_are_checked(void **state) {
    assert_refused(mem_alloc(UINT64_MAX, 2, "a thing"), "18446744073709551615 x 2 bytes for a thing");
    assert_refused(mem_zalloc(1ull << 32, 1ull << 32, "a thing"), "more than any machine addresses");
    assert_refused(mem_aligned(1ull << 62, 2, "a thing"), "more than any machine addresses");
}

static void what_is_asked_for_is_there(void **state) {
    unsigned char *zeros = mem_zalloc(1000, 3, "zeros");
    for (int i = 0; i < 3000; i++) assert_int_equal(zeros[i], 0);
    free(zeros);
    for (uint64_t n = 0; n < 300; n += 37) {
        char *block = mem_aligned(n, 4, "rows");
        assert_int_equal((uintptr_t)block % 128, 0);
        memset(block, 1, n * 4);
        free(block);
    }
    void *none = mem_alloc(0, 8, "nothing"); /* mem_alloc() of 0 bytes does not fail */
    assert_non_null(none);
    free(none);
    char *text = mem_text("abcdef", 3, "text");
    assert_string_equal(text, "abc");
    free(text);
}

static void growing_keeps_what_is_there(void **state) {
    uint32_t *items = NULL;
    uint64_t capacity = 0, grown = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t before = capacity;
        assert_int_equal(mem_grow(&items, &capacity, i + 1, sizeof *items, "items"), 0);
        assert_true(capacity > i);
        grown += capacity != before;
        items[i] = (uint32_t)i;
    }
    assert_true(grown < 20); /* the capacity doubles, so few calls allocate */
    for (uint64_t i = 0; i < 100000; i++) assert_int_equal(items[i], i);
    uint32_t *kept = items;
    uint64_t kept_capacity = capacity;
    assert_int_equal(mem_grow(&items, &capacity, UINT64_MAX / 2, sizeof *items, "items"), -1);
    assert_ptr_equal(items, kept);
    assert_true(capacity == kept_capacity);
    assert_non_null(strstr(report_sentence(), "items"));
    free(items);
}

static void the_system_tells(void **state) {
    uint64_t before = mem_resident(), size = 64 << 20;
    char *block = mem_alloc(size, 1, "a block");
    assert_true(before > 0);
    memset(block, 1, size);
    assert_true(mem_resident() > before + size / 2);
    assert_true(mem_resident_peak() + (1 << 20) >= mem_resident()); /* the tolerance: the kernel counts some pages with delay */
    free(block);
    assert_true(mem_resident_peak() > before + size / 2);
    assert_true(mem_total() > mem_available() && mem_available() > 0);
}

/* The system gets this memory back. free() alone would keep it, because blocks after it are in use. */
static void what_is_freed_goes_back(void **state) {
    enum { BLOCKS = 1000, BYTES = 64 << 10 };
    void *blocks[BLOCKS];
    if (dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init")) {
        print_message("a sanitizer's allocator keeps what is freed\n");
        skip();
    }
    for (int i = 0; i < BLOCKS; i++) {
        assert_non_null(blocks[i] = mem_alloc(BYTES, 1, "a block"));
        memset(blocks[i], 1, BYTES);
    }
    uint64_t full = mem_resident();
    for (int i = 0; i < BLOCKS - 1; i++) free(blocks[i]);
    mem_give_back();
    assert_true(mem_resident() < full - (uint64_t)BLOCKS * BYTES / 2);
    assert_int_equal(*(char *)blocks[BLOCKS - 1], 1);
    free(blocks[BLOCKS - 1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(products_are_checked, fresh), cmocka_unit_test_setup(what_is_asked_for_is_there, fresh),
        cmocka_unit_test_setup(growing_keeps_what_is_there, fresh), cmocka_unit_test_setup(the_system_tells, fresh),
        cmocka_unit_test_setup(what_is_freed_goes_back, fresh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
