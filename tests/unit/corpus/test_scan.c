#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>

#include "corpus/scan.h"
#include "tests/unit/scratch.h"

#include <cmocka.h>

enum { LONGEST = 300 };

/* Checks that scanning by bit masks gives the same tokens as scanning byte by byte, whatever follows the block in memory. */
static void tokens_agree(const char *bytes, uint64_t length, uint64_t skip) {
    struct corpus_block block = {.bytes = (char *)bytes, .length = length, .skip = skip, .line = 1};
    struct corpus_cursor cursor;
    struct scan scan;
    const char *words[2];
    uint64_t lengths[2];
    int kind;
    corpus_cursor_start(&cursor, &block);
    scan_start(&scan, &block);
    do {
        kind = corpus_token(&cursor, "", &words[0], &lengths[0]);
        assert_int_equal(scan_next(&scan, &words[1], &lengths[1]), kind);
        assert_int_equal(scan.line, cursor.line);
        if (kind != TOKEN_WORD) continue;
        assert_ptr_equal(words[1], words[0]);
        assert_int_equal(lengths[1], lengths[0]);
    } while (kind != TOKEN_END);
}

static void masks_find_the_tokens_that_bytes_have(void **state) {
    static const char kinds[] = "a \n\t\r\v\fbc\0\x08\x0E\x1F\x21\x80\xA0\xFF";
    char bytes[LONGEST + CORPUS_PADDING];
    for (uint64_t length = 0; length < LONGEST; length++)
        for (int round = 0; round < 20; round++) {
            uint32_t many = round % 4 == 0 ? 3 : (uint32_t)sizeof kinds;
            for (uint64_t i = 0; i < length + CORPUS_PADDING; i++)
                bytes[i] = scratch_random(2 + (uint32_t)round) ? 'w' : kinds[scratch_random(many)];
            tokens_agree(bytes, length, length ? scratch_random((uint32_t)length) % 4 : 0);
        }
}

static void every_byte_is_white_or_not(void **state) {
    char bytes[256];
    for (int i = 0; i < 256; i++) bytes[i] = (char)i;
    for (int i = 0; i < 256; i++) {
        assert_int_equal(scan_white(bytes + i / SCAN_BYTES * SCAN_BYTES, SCAN_BYTES) >> i % SCAN_BYTES & 1, token_is_white((char)i));
        assert_int_equal(scan_byte(bytes + i / SCAN_BYTES * SCAN_BYTES, SCAN_BYTES, (char)i), (uint64_t)1 << i % SCAN_BYTES);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_find_the_tokens_that_bytes_have),
        cmocka_unit_test(every_byte_is_white_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
