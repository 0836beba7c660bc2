/* Checks of a file's bytes, and of the message that the program gave about a file. */
#include "tests/unit/scratch.h"

#include "tests/testing.h"

static void assert_said(const char *part, const char *path) {
    if (!strstr(report_sentence(), part) || !strstr(report_sentence(), path))
        fail_msg("wanted \"%s\" and '%s' in \"%s\"", part, path, report_sentence());
    report_clear();
}

static void assert_holds(const char *path, const char *bytes, uint64_t length) {
    uint64_t got;
    char *text = file_read(path, &got);
    assert_non_null(text);
    assert_true(got == length);
    assert_memory_equal(text, bytes, length);
    assert_int_equal(text[length], 0);
    free(text);
}
