#include "export.h"

#include "memory.h"
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK_BYTES = 4 << 20, NUMBER_ROOM = 24 };

static const char *const format_names[] = {"word2vec-bin", "word2vec-text", "npy"};

int export_format_named(const char *name) {
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, format_names[i])) return i;
    return fail_usage("'%s' is not a format of export; wanted word2vec-bin, word2vec-text or npy", name);
}

/* Both word2vec formats end a word at the first blank; a reader that splits lines would also stop at any white space.
 */
static int check_word(const char *word, uint64_t length, uint64_t id, const char *format) {
    if (!length)
        return fail("word %" PRIu64 " of the vocabulary is empty, which %s cannot hold; export npy instead", id,
                    format);
    for (uint64_t i = 0; i < length; i++)
        if (word[i] == ' ' || (word[i] >= '\t' && word[i] <= '\r'))
            return fail("word %" PRIu64 " of the vocabulary, '%s', holds white space, which %s cannot hold; "
                        "export npy instead",
                        id, word, format);
    return 0;
}

static int check_words(const struct model *model, enum export_format format) {
    for (uint64_t id = 0; format != EXPORT_NPY && id < model->rows; id++) {
        uint64_t length;
        const char *word = vocab_word(&model->vocab, id, &length);
        if (check_word(word, length, id, format_names[format])) return -1;
    }
    return 0;
}

/* The file is replaced by a rename: that must not take away a device or a directory. */
static int check_place(const char *path) {
    struct stat about;
    if (!stat(path, &about) && !S_ISREG(about.st_mode))
        return fail("cannot export to '%s': it is there and is not a plain file", path);
    return 0;
}

/* word, blank, the numbers as they lie in memory, newline. */
static int write_binary(struct file_writer *writer, const char *word, uint64_t length, const float *row, uint32_t dim) {
    return file_write(writer, word, length) || file_write(writer, " ", 1) ||
                   file_write(writer, row, dim * sizeof *row) || file_write(writer, "\n", 1)
               ? -1
               : 0;
}

/* Nine digits bring every float32 back to the last bit. */
static int write_line(struct file_writer *writer, const char *word, uint64_t length, const float *row, uint32_t dim) {
    char number[NUMBER_ROOM];
    if (file_write(writer, word, length)) return -1;
    for (uint32_t i = 0; i < dim; i++) {
        int n = snprintf(number, sizeof number, " %.9g", (double)row[i]);
        if (file_write(writer, number, (uint64_t)n)) return -1;
    }
    return file_write(writer, "\n", 1);
}

static int write_head(const struct model *model, enum export_format format, struct file_writer *writer) {
    if (format != EXPORT_NPY) return file_print(writer, "%" PRIu64 " %u\n", model->rows, model->dim);
    struct npy npy = {.rows = model->rows, .fields = 1};
    npy.field[0] = (struct npy_field){.columns = model->dim, .kind = 'f'};
    return npy_write_header(&npy, writer);
}

static int write_rows(const struct model *model, enum export_format format, struct file_writer *writer, uint64_t first,
                      uint64_t count, const float *rows) {
    if (format == EXPORT_NPY) return file_write(writer, rows, count * model->dim * sizeof *rows);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length;
        const char *word = vocab_word(&model->vocab, first + i, &length);
        const float *row = rows + i * model->dim;
        if (format == EXPORT_WORD2VEC_BIN ? write_binary(writer, word, length, row, model->dim)
                                          : write_line(writer, word, length, row, model->dim))
            return -1;
    }
    return 0;
}

int export_write(const struct model *model, enum model_view view, enum export_format format, const char *path) {
    uint64_t chunk = CHUNK_BYTES / (model->dim * sizeof(float)) + 1;
    struct file_writer writer;
    if (check_place(path) || check_words(model, format) || file_writer_open(&writer, path)) return -1;
    float *rows = mem_alloc(chunk, model->dim * sizeof *rows, "rows to export");
    int result = rows ? write_head(model, format, &writer) : -1;
    for (uint64_t first = 0; !result && first < model->rows; first += chunk) {
        uint64_t count = model->rows - first < chunk ? model->rows - first : chunk;
        model_rows(model, view, first, count, rows);
        result = write_rows(model, format, &writer, first, count, rows);
    }
    free(rows);
    if (!result) return file_commit(&writer);
    file_abandon(&writer);
    return -1;
}
