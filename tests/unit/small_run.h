/* small_run: a finished run in a fresh directory, for tests of code that reads one. Its words and two tables come from
 * memory; checkpoint_write() writes them, over a backend that can only read rows. */
#ifndef SPTX_SMALL_RUN_H
#define SPTX_SMALL_RUN_H

#include "run/checkpoint.h"
#include "base/file.h"
#include "base/report.h"
#include "corpus/vocab.h"
#include "tests/fresh_directory.h"

#include "tests/testing.h"

struct small_run {
    char directory[256];
    char *checkpoint; /* DIRECTORY/checkpoint-7 */
};

/* The values that this backend stores: weights, followed by adagrad's sum, which is 0.5 everywhere. A reader of weights must not
 * read the sum. */
struct small_store {
    const float *rows;
    uint32_t dim;
};

static int small_read(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count,
                      void *packed) {
    const struct small_store *store = (const struct small_store *)(const void *)table;
    float *out = packed;
    for (uint64_t row = first; row < first + count; row++, out += 2 * store->dim) {
        memcpy(out, store->rows + row * store->dim, store->dim * sizeof *out);
        for (uint32_t i = 0; i < store->dim; i++) out[store->dim + i] = 0.5f;
    }
    return 0;
}

static const struct backend_ops small_ops = {.name = "small", .table_read = small_read};

static struct table small_table(struct small_store *store, const char *name, uint64_t rows) {
    struct table table = {.ops = &small_ops, .store = (struct backend_table *)(void *)store};
    table.rule = (struct rule_options){.rule = RULE_ADAGRAD};
    table.spec = (struct table_spec){.name = name, .rows = rows};
    table.spec.layout = table.whole = record_layout_make(&table.rule, store->dim);
    return table;
}

static char *small_path(const char *directory, const char *name) {
    char *path = file_join(directory, name);
    assert_non_null(path);
    return path;
}

static void small_write(const char *directory, const char *name, const void *bytes, uint64_t length) {
    char *path = small_path(directory, name);
    assert_int_equal(file_replace(path, bytes, length), 0);
    free(path);
}

/* Makes the run. `vocabulary`: the bytes of vocab.tsv. The tables have rows x dim floats each. */
__attribute__((unused)) static void small_run_make(struct small_run *run, const char *vocabulary, uint64_t rows,
                                                   uint32_t dim, const float *target, const float *context) {
    struct small_store stores[2] = {{target, dim}, {context, dim}};
    struct table tables[2] = {small_table(&stores[0], "target", rows), small_table(&stores[1], "context", rows)};
    struct vocab vocab = {.size = 0};
    assert_int_equal(fresh_directory(run->directory, sizeof run->directory, "test"), 0);
    small_write(run->directory, "vocab.tsv", vocabulary, strlen(vocabulary));
    char *path = small_path(run->directory, "vocab.tsv");
    assert_int_equal(vocab_read(&vocab, path), 0);
    struct checkpoint what = {&tables[0], &tables[1], {.step = 7, .finished = 1}, {.vocab = vocab_fingerprint(&vocab)}, NULL};
    assert_int_equal(checkpoint_write(run->directory, &what, 2), 0);
    run->checkpoint = small_path(run->directory, "checkpoint-7");
    vocab_release(&vocab);
    free(path);
}

__attribute__((unused)) static void small_run_remove(struct small_run *run) {
    directory_remove_tree(run->directory);
    free(run->checkpoint);
    report_clear();
}

/* Checks that the last call failed and that its message contains `part`. Clears the message. */
__attribute__((unused)) static void assert_failed_with(int result, const char *part) {
    assert_int_equal(result, -1);
    if (!strstr(report_sentence(), part)) print_message("sentence: %s\nwanted: %s\n", report_sentence(), part);
    assert_non_null(strstr(report_sentence(), part));
    report_clear();
}

#endif
