#include "export_fasttext.h"

#include "base/checks.h"
#include "base/interrupt.h"
#include "base/report.h"

#include <inttypes.h>
#include <string.h>

/* ---- what cannot be written ---- */

static int check_model(const struct export *export) {
    const struct model *model = export->model;
    if (!model->trained.model)
        return fail("'%s' holds no model of words: fasttext is written of runs with examples.mode = window and cbow",
                    model->directory);
    if (model->tree)
        return fail("'%s' was trained with train.loss = hierarchical: fasttext wants a context row for each word, and this run has rows "
                    "of a tree; export word2vec-bin, or npy with --table=target",
                    model->directory);
    if (export->view != VIEW_TARGET)
        return fail("fasttext has both tables in one file, so --table=%s cannot be chosen for it; leave it out",
                    model_view_name(export->view));
    if (model->rows > INT32_MAX)
        return fail("'%s' has %" PRIu64 " words, and fastText counts to %d", model->directory, model->rows, INT32_MAX);
    return 0;
}

static int check_word(const struct model *model, uint64_t row) {
    uint64_t length;
    const char *word = vocab_word(&model->vocab, row, &length);
    if (!memchr(word, 0, length)) return 0;
    return fail("word %" PRIu64 " of the vocabulary, '%s', holds a NUL, which fasttext cannot hold; export npy instead", row, word);
}

/* ---- before the rows ---- */

static int write_args(const struct model *model, struct file_writer *writer) {
    const int32_t head[2] = {FASTTEXT_MAGIC, FASTTEXT_VERSION};
    return file_write(writer, head, sizeof head) || file_write(writer, &model->trained, sizeof model->trained) ? -1 : 0;
}

static int write_word(const struct model *model, uint64_t row, struct file_writer *writer) {
    uint64_t length;
    const char *word = vocab_word(&model->vocab, row, &length), kind = 0;
    const int64_t count = (int64_t)vocab_count(&model->vocab, row);
    return check_word(model, row) || file_write(writer, word, length + 1) || file_write(writer, &count, sizeof count) ||
                   file_write(writer, &kind, 1) ? -1 : 0;
}

static int write_words(const struct model *model, struct file_writer *writer) {
    const int32_t words = (int32_t)model->rows, sizes[3] = {words, words, 0};
    int64_t more[2] = {0, -1};
    for (uint64_t row = 0; row < model->rows; row++) more[0] += (int64_t)vocab_count(&model->vocab, row);
    if (file_write(writer, sizes, sizeof sizes) || file_write(writer, more, sizeof more)) return -1;
    for (uint64_t row = 0; row < model->rows; row++)
        if (write_word(model, row, writer)) return -1;
    return 0;
}

/* ---- rows ---- */

static int begin_matrix(const struct model *model, uint64_t rows, struct file_writer *writer) {
    const char quantized = 0;
    const int64_t shape[2] = {(int64_t)rows, model->dim};
    return file_write(writer, &quantized, 1) || file_write(writer, shape, sizeof shape) ? -1 : 0;
}

static int fail_infinite(const struct model *model, uint32_t row) {
    if (row < model->rows)
        return fail("a row of '%.100s' in '%s' holds NaN or infinity, which no export may hold: nothing is written",
                    vocab_word(&model->vocab, row, NULL), model->directory);
    return fail("row %" PRIu32 " of '%s', which n-grams share, holds NaN or infinity, which no export may hold: nothing is written", row,
                model->directory);
}

/* Writes a row; a bucket without a row is written as zeros. */
static int write_row(const struct model *model, enum table_side side, uint32_t row, struct file_writer *writer) {
    float weights[COLUMNS_MOST] = {0};
    if (row != WORDS_ABSENT) model_weights(model, side, row, 0, model->dim, weights);
    if (!floats_finite(weights, model->dim)) return fail_infinite(model, row);
    if (row % 65536 == 0 && interrupt_asked()) return fail("stopped by a signal: '%s' is as it was", writer->path);
    return file_write(writer, weights, model->dim * sizeof *weights);
}

static int write_targets(const struct model *model, struct file_writer *writer) {
    const struct subwords *subwords = &model->vocab.subwords;
    uint64_t buckets = (uint64_t)model->trained.buckets;
    if (begin_matrix(model, model->rows + buckets, writer)) return -1;
    for (uint64_t row = 0; row < model->rows; row++)
        if (write_row(model, TABLE_TARGET, (uint32_t)row, writer)) return -1;
    for (uint64_t bucket = 0; bucket < buckets; bucket++)
        if (write_row(model, TABLE_TARGET, subwords->starts ? subwords->row_of[bucket] : WORDS_ABSENT, writer)) return -1;
    return 0;
}

static int write_contexts(const struct model *model, struct file_writer *writer) {
    if (begin_matrix(model, model->rows, writer)) return -1;
    for (uint64_t row = 0; row < model->rows; row++)
        if (write_row(model, TABLE_CONTEXT, (uint32_t)row, writer)) return -1;
    return 0;
}

int export_fasttext(const struct export *export, struct file_writer *writer) {
    const struct model *model = export->model;
    return check_model(export) || write_args(model, writer) || write_words(model, writer) ||
                   write_targets(model, writer) || write_contexts(model, writer) ? -1 : 0;
}
