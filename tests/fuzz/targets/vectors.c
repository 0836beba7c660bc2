/* vectors: takes any bytes as a file of words with vectors. Every word must be found at its row, every row must be within the
 * file, and a row must have the same numbers whether it is read whole or column by column. */
#include "rows/vectors_file.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    return fuzz_begin();
}

static void check_row(const struct vectors_file *file, uint64_t row, float *whole) {
    uint64_t length;
    const char *word = words_get(&file->words, row, &length);
    HOLDS(length > 0, "word %llu is empty", (unsigned long long)row);
    HOLDS(words_find(&file->words, words_hash(word, length), word, length) == (int64_t)row, "word %llu is not found",
          (unsigned long long)row);
    if (!fuzz_accepted(vectors_file_row(file, row, 0, file->dim, whole))) return;
    for (uint32_t column = 0; column < file->dim && column < 8; column++) {
        float one;
        HOLDS(!vectors_file_row(file, row, column, 1, &one) && !memcmp(&one, whole + column, sizeof one),
              "row %llu has another column %u by itself", (unsigned long long)row, column);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct vectors_file file;
    const char *path = scratch_file("given", bytes, length);
    if (!fuzz_accepted(vectors_file_open(&file, path, NULL))) return 0;
    HOLDS(file.rows && file.rows <= length && file.dim && file.dim <= length, "%llu rows of %u columns in %zu bytes",
          (unsigned long long)file.rows, file.dim, length);
    float *whole = malloc(file.dim * sizeof *whole);
    for (uint64_t row = 0; row < file.rows; row++) check_row(&file, row, whole);
    free(whole);
    vectors_file_close(&file);
    return 0;
}
