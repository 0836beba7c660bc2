/* fuzz: shared by the fuzz targets.
 *
 * A target takes any bytes and gives them to the code that reads one of the program's file formats. If the result breaks
 * a rule, the target aborts, as a sanitizer does. Each target is linked twice: with libFuzzer, which looks for bytes
 * that reach new code (make fuzz), and with replay.c, which runs the kept inputs (make check, make sanitize).
 */
#ifndef SPTX_FUZZ_H
#define SPTX_FUZZ_H

#include "tests/unit/scratch.h"

#include <stdint.h>

/* libFuzzer and replay.c call these. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Bytes of the input from which decisions are taken, bit by bit. */
struct fuzz_input {
    const uint8_t *at;
    uint64_t left;
};

static inline unsigned fuzz_byte(struct fuzz_input *input) {
    if (!input->left) return 0;
    input->left--;
    return *input->at++;
}

static inline uint64_t fuzz_number(struct fuzz_input *input) {
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) number |= (uint64_t)fuzz_byte(input) << 8 * i;
    return number;
}

/* Aborts unless the condition is true; the text says what must be true. */
#define HOLDS(condition, ...) fuzz_holds((condition) != 0, __FILE__, __LINE__, __VA_ARGS__)
__attribute__((format(printf, 4, 5))) static inline void fuzz_holds(int holds, const char *file, int line,
                                                                    const char *format, ...) {
    va_list args;
    if (holds) return;
    va_start(args, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fprintf(stderr, "; the program's sentence: '%s'\n", report_sentence());
    va_end(args);
    abort();
}

/* Checks a reader's result, 0 or -1: only with -1 there must be an error message, which is then dropped. Returns 1 for the result 0. */
static inline int fuzz_accepted(int result) {
    HOLDS(!result == !report_exit_code(), "the result is %d, the exit code %d", result, report_exit_code());
    HOLDS(!result || *report_sentence(), "a failure without a sentence");
    report_clear();
    return !result;
}

static inline void fuzz_end(void) {
    scratch_remove(NULL);
}

/* Makes a directory for this process, which is removed when it ends. */
static inline int fuzz_begin(void) {
    if (scratch_make(NULL)) return -1;
    return atexit(fuzz_end);
}

/* Returns 1 if two files contain the same bytes. */
static inline int fuzz_same_files(const char *a, const char *b) {
    uint64_t n, m;
    char *x = file_read(a, &n), *y = file_read(b, &m);
    HOLDS(x && y, "'%s' or '%s' cannot be read", a, b);
    int same = n == m && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

#endif
