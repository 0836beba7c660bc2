/* fasttext: takes any bytes as a model file of fastText. If the file is accepted, every word must be found, its rows must be its
 * own row and the rows of its n-grams, and all rows of both tables must be within the file. */
#include "rows/vectors_file.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    return fuzz_begin();
}

/* Reads the first and the last bytes of a table. If the file is too short for the table, this causes a bus error. */
static void touch(const struct fasttext_file *file, uint64_t at, uint64_t rows, const char *called) {
    uint64_t bytes = rows * (uint64_t)file->args.dim * sizeof(float);
    HOLDS(at <= file->map.size && bytes <= file->map.size - at, "the %s passes the file's end", called);
    float first, last;
    memcpy(&first, file->map.data + at, sizeof first);
    memcpy(&last, file->map.data + at + bytes - sizeof last, sizeof last);
}

static void check_word(const struct vocab *vocab, uint64_t id, uint32_t **rows, uint64_t *capacity) {
    const struct subwords *subwords = &vocab->subwords;
    uint64_t length;
    const char *word = vocab_word(vocab, id, &length);
    HOLDS(vocab_find(vocab, word, length) == (int64_t)id, "word %llu is not found", (unsigned long long)id);
    if (!subwords->starts) return;
    int64_t count = subwords_of(subwords, word, length, rows, capacity);
    const uint32_t *own = subwords->row + subwords->starts[id];
    HOLDS(count >= 0 && (uint64_t)count + 1 == subwords->starts[id + 1] - subwords->starts[id], "word %llu has %lld n-grams",
          (unsigned long long)id, (long long)count);
    HOLDS(own[0] == id, "word %llu begins with row %u", (unsigned long long)id, own[0]);
    for (int64_t i = 0; i < count; i++)
        HOLDS(own[1 + i] == (*rows)[i] && own[1 + i] >= vocab->size && own[1 + i] < vocab->size + subwords->rows,
              "word %llu has row %u, and then %u", (unsigned long long)id, own[1 + i], (*rows)[i]);
}

static void check_model(const struct fasttext_file *file, const struct vocab *vocab) {
    uint32_t *rows = NULL;
    uint64_t capacity = 0;
    HOLDS(file->words && file->words == vocab->size && file->rows == vocab->size + (uint64_t)file->args.buckets,
          "%llu words, %llu rows", (unsigned long long)vocab->size, (unsigned long long)file->rows);
    HOLDS(!vocab->subwords.starts || vocab->subwords.rows == (uint64_t)file->args.buckets, "%llu rows of n-grams",
          (unsigned long long)vocab->subwords.rows);
    touch(file, file->input, file->rows, "input");
    touch(file, file->output, file->words, "output");
    for (uint64_t id = 0; id < vocab->size; id++) check_word(vocab, id, &rows, &capacity);
    free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct fasttext_file file;
    struct vocab vocab = {.size = 0};
    const char *path = scratch_file("given", bytes, length);
    int is = fasttext_file_is(path);
    HOLDS(is >= 0, "it cannot be looked at");
    int accepted = fuzz_accepted(fasttext_file_open(&file, &vocab, path));
    HOLDS(is || !accepted, "it does not begin as a model, and is one");
    if (accepted) {
        check_model(&file, &vocab);
        fasttext_file_close(&file);
    }
    vocab_release(&vocab);
    return 0;
}
