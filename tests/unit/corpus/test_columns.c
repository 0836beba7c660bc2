#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>

#include "corpus/columns.h"
#include "tests/unit/scratch.h"

#include <cmocka.h>

static void lines_are_equal(const struct table_line *a, const struct table_line *b) {
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->open, b->open);
    assert_int_equal(a->quoted, b->quoted);
    for (uint64_t i = 0; i < a->count; i++) {
        assert_int_equal(a->length[i], b->length[i]);
        assert_memory_equal(a->word[i], b->word[i], a->length[i]);
    }
}

/* Splits lines of up to 90 bytes. Bit masks split a short line if enough bytes follow it in memory; the result must not depend on that. */
static void lines_are_split_alike_with_and_without_masks(void **state) {
    static const char *const separators[] = {" ", ",", "\t", ";", "::"};
    char bytes[300], copy[300];
    for (int round = 0; round < 200000; round++) {
        struct columns_form form = COLUMNS_PLAIN;
        struct table_line split, wanted;
        const char *separator = separators[round % 5];
        char kinds[] = {*separator, *separator, 'a', 'b', '7', '"', ' ', '\r', '{'};
        uint64_t length = scratch_random(90), used = scratch_random(2) ? 5 : sizeof kinds;
        strcpy(form.separator, separator);
        form.quotes = (uint8_t)scratch_random(3);
        form.braces = scratch_random(8) == 0;
        for (uint64_t i = 0; i < sizeof bytes; i++) bytes[i] = kinds[scratch_random((uint32_t)used)];
        bytes[length] = '\n';
        if (length && scratch_random(4) == 0) bytes[length - 1] = '\r';
        memcpy(copy, bytes, sizeof bytes);
        struct corpus_cursor cursor = {bytes, bytes + (round % 2 ? sizeof bytes : length + 1), 5};
        assert_int_equal(columns_next(&cursor, &form, &split), 1);
        assert_ptr_equal(cursor.at, bytes + length + 1);
        assert_int_equal(cursor.line, 6);
        columns_part(&wanted, copy, copy + length, &form, 0);
        lines_are_equal(&split, &wanted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_are_split_alike_with_and_without_masks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
