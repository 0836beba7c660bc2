#include "export.h"
#include "clusters.h"
#include "export_fasttext.h"

#include "base/floats.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "kernels/rounding.h"
#include "run/run_owns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 4 << 20, NUMBER_BYTES = 24, FILES = 2, NAMES_BYTES = 256, HEADER_BYTES = 512 };

/* ---- numbers ---- */

static const struct type {
    const char *name, *safetensors;
    char npy; /* kind character of the type in NumPy, as in npy.h */
    uint64_t bytes;
} types[] = {
    [EXPORT_F32] = {"f32", "F32", 'f', 4}, [EXPORT_BF16] = {"bf16", "BF16", 'h', 2}, [EXPORT_F16] = {"f16", "F16", 'e', 2}};
enum { TYPES = sizeof types / sizeof *types };

int export_type_named(const char *name) {
    for (int i = 0; i < TYPES; i++)
        if (!strcmp(name, types[i].name)) return i;
    return fail_usage("'%.100s' is not a type of export; wanted f32, bf16 or f16", name);
}

/* The largest float32 that rounds to a finite float16. */
static const float float16_most = 65519.996f;

/* Returns the nearest float16 of a value of at most float16_most; of two equally near ones, the even one. It is written by hand,
 * since compilers before GCC 12 and clang 15 have no float16. Below 2^-14 float16 has steps of 2^-24; adding 1/2 in float32
 * rounds to such a step. */
static uint16_t float16_of(float value) {
    const uint32_t smallest = 0x38800000; /* 2^-14 */
    float above_half = fabsf(value) + 0.5f;
    uint32_t bits, rounded;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&rounded, &above_half, sizeof rounded);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
    if (size < smallest) return (uint16_t)(sign | (rounded - 0x3F000000));
    return (uint16_t)(sign | ((size - (112u << 23) + 0xFFF + (size >> 13 & 1)) >> 13));
}

/* ---- the head of a file, before its rows ---- */

static int words_head(const struct export *export, struct file_writer *writer) {
    return file_print(writer, "%" PRIu64 " %u\n", export->rows, export->model->dim);
}

static int npy_head(const struct export *export, struct file_writer *writer) {
    struct npy npy = {.rows = export->rows, .fields = 1};
    npy.field[0] = (struct npy_field){.columns = export->model->dim, .kind = types[export->type].npy};
    if (export->type == EXPORT_BF16)
        snprintf(npy.field[0].name, sizeof npy.field[0].name, "weights"); /* NumPy has no bfloat16: a structured type */
    return npy_write_header(&npy, writer);
}

static int fbin_head(const struct export *export, struct file_writer *writer) {
    const uint32_t head[2] = {(uint32_t)export->rows, export->model->dim};
    return file_write(writer, head, sizeof head);
}

/* Writes the JSON's length, then the JSON, padded with blanks so that the numbers begin at a multiple of eight bytes. */
static int safetensors_head(const struct export *export, struct file_writer *writer) {
    char text[HEADER_BYTES];
    size_t n = text_add(
        text, sizeof text, 0,
        "{\"__metadata__\":{\"rows\":\"in the order of vocab.tsv\"},\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64
        ",%u],\"data_offsets\":[0,%" PRIu64 "]}}",
        model_view_name(export->view), types[export->type].safetensors, export->rows, export->model->dim,
        export->rows * export->model->dim * types[export->type].bytes);
    const uint64_t length = (n + 7) / 8 * 8;
    memset(text + n, ' ', length - n);
    return file_write(writer, &length, sizeof length) || file_write(writer, text, length) ? -1 : 0;
}

static int metadata_head(const struct export *export, struct file_writer *writer) {
    return file_print(writer, "word\tcount\n");
}

/* ---- a row ---- */

struct row {
    const char *word;
    uint64_t length, count; /* length: bytes of the word; count: the word's count in the corpus */
    const float *values;    /* [dim] */
    uint32_t dim, class;
    enum export_type type;
};

static int raw_row(struct file_writer *writer, const struct row *row) {
    return file_write(writer, row->values, row->dim * sizeof *row->values);
}

/* Writes a row in the number type that export->type asks for. */
static int typed_row(struct file_writer *writer, const struct row *row) {
    uint16_t halves[COLUMNS_MOST];
    if (row->type == EXPORT_F32) return raw_row(writer, row);
    for (uint32_t i = 0; i < row->dim; i++) {
        if (row->type == EXPORT_F16 && !(fabsf(row->values[i]) <= float16_most))
            return fail("the vector of '%.100s' holds %g, and f16 ends at 65504; --type=bf16 holds it", row->word,
                        (double)row->values[i]);
        halves[i] = row->type == EXPORT_F16 ? float16_of(row->values[i]) : bfloat16_nearest(row->values[i]);
    }
    return file_write(writer, halves, row->dim * sizeof *halves);
}

static int sized_row(struct file_writer *writer, const struct row *row) {
    return file_write(writer, &row->dim, sizeof row->dim) || raw_row(writer, row) ? -1 : 0;
}

static int word_raw_row(struct file_writer *writer, const struct row *row) {
    return file_write(writer, row->word, row->length) || file_write(writer, " ", 1) || raw_row(writer, row) ||
                   file_write(writer, "\n", 1) ? -1 : 0;
}

/* Prints nine digits, from which every float32 can be read back exactly. */
static int print_values(struct file_writer *writer, const struct row *row, char separator) {
    char number[NUMBER_BYTES];
    for (uint32_t i = 0; i < row->dim; i++) {
        int n = snprintf(number, sizeof number, "%.9g%c", (double)row->values[i], i + 1 < row->dim ? separator : '\n');
        if (file_write(writer, number, (uint64_t)n)) return -1;
    }
    return 0;
}

static int word_text_row(struct file_writer *writer, const struct row *row) {
    return file_write(writer, row->word, row->length) || file_write(writer, " ", 1) || print_values(writer, row, ' ') ? -1 : 0;
}

static int word_class_row(struct file_writer *writer, const struct row *row) {
    return file_write(writer, row->word, row->length) || file_print(writer, " %u\n", row->class) ? -1 : 0;
}

static int tsv_row(struct file_writer *writer, const struct row *row) {
    return print_values(writer, row, '\t');
}

static int metadata_row(struct file_writer *writer, const struct row *row) {
    return file_write(writer, row->word, row->length) || file_print(writer, "\t%" PRIu64 "\n", row->count) ? -1 : 0;
}

/* ---- the formats ---- */

/* One of the files that a format writes. */
struct part {
    const char *suffix; /* appended to the path of --out; NULL: the format has no such file */
    int (*head)(const struct export *export, struct file_writer *writer); /* writes the bytes before the rows; NULL: there are
                                                                           * none */
    int (*row)(struct file_writer *writer, const struct row *row); /* writes one row; NULL: the file has no rows */
};

/* Bytes that a word must not contain, and their name in error messages. */
struct refused {
    const char *bytes, *called;
};
/* For formats whose readers end a word at the first blank; readers that split a line into fields stop at other white space, too. */
static const struct refused white_space = {" \t\n\v\f\r", "white space"};
static const struct refused cell_ends = {"\t\n\r", "a TAB or a line end"};

static const struct format {
    const char *name;
    const struct refused *refused; /* bytes that words must not contain; NULL: the format does not write words */
    struct part parts[FILES];
} formats[] = {
    [EXPORT_WORD2VEC_BIN] = {"word2vec-bin", &white_space, {{"", words_head, word_raw_row}}},
    [EXPORT_WORD2VEC_TEXT] = {"word2vec-text", &white_space, {{"", words_head, word_text_row}}},
    [EXPORT_GLOVE_TEXT] = {"glove-text", &white_space, {{"", NULL, word_text_row}}},
    [EXPORT_NPY] = {"npy", NULL, {{"", npy_head, typed_row}}},
    [EXPORT_FVECS] = {"fvecs", NULL, {{"", NULL, sized_row}}},
    [EXPORT_FBIN] = {"fbin", NULL, {{"", fbin_head, typed_row}}},
    [EXPORT_SAFETENSORS] = {"safetensors", NULL, {{"", safetensors_head, typed_row}}},
    [EXPORT_PROJECTOR] = {"projector", &cell_ends, {{"", NULL, tsv_row}, {".metadata.tsv", metadata_head, metadata_row}}},
    [EXPORT_CLASSES] = {"classes", &white_space, {{"", NULL, word_class_row}}},
    [EXPORT_FASTTEXT] = {"fasttext", NULL, {{"", export_fasttext, NULL}}},
};
enum { FORMATS = sizeof formats / sizeof *formats };

int export_format_named(const char *name) {
    char names[NAMES_BYTES];
    size_t n = 0;
    for (int i = 0; i < FORMATS; i++) {
        if (!strcmp(name, formats[i].name)) return i;
        const char *joint = i + 1 < FORMATS ? ", " : " or ";
        n = text_add(names, sizeof names, n, "%s%s", i ? joint : "", formats[i].name);
    }
    return fail_usage("'%.100s' is not a format of export; wanted %s", name, names);
}

static int check_word(const struct format *format, const char *word, uint64_t length, uint64_t id) {
    if (!length)
        return fail("word %" PRIu64 " of the vocabulary is empty, which %s cannot hold; export npy instead", id, format->name);
    for (uint64_t i = 0; i < length; i++)
        if (word[i] && strchr(format->refused->bytes, word[i]))
            return fail("word %" PRIu64 " of the vocabulary, '%s', holds %s, which %s cannot hold; export npy instead",
                        id, word, format->refused->called, format->name);
    return 0;
}

static int check_words(const struct export *export, const struct format *format) {
    for (uint64_t id = 0; format->refused && id < export->rows; id++) {
        uint64_t length;
        const char *word = vocab_word(&export->model->vocab, id, &length);
        if (check_word(format, word, length, id)) return -1;
    }
    return 0;
}

/* Fails if the format cannot have the number type: only formats that write rows by typed_row() can have others than f32. */
static int check_type(const struct export *export, const struct format *format) {
    if (export->type == EXPORT_F32 || format->parts[0].row == typed_row) return 0;
    return fail_usage("%s holds float32 alone; --type=%s is for npy, fbin and safetensors", format->name, types[export->type].name);
}

/* ---- writing ---- */

/* Opens one file of a format. If it is the format's only file, the path may be a pipe. */
static int open_part(struct file_writer *writer, const struct part *part, const char *path, int files) {
    uint64_t capacity = strlen(path) + strlen(part->suffix) + 1;
    char *name = mem_alloc(capacity, 1, "a path");
    int result = -1;
    if (name) {
        snprintf(name, capacity, "%s%s", path, part->suffix);
        if (!run_owns_refuse(name, "--out"))
            result = files == 1 ? file_writer_open_given(writer, name) : file_writer_open(writer, name);
    }
    free(name);
    return result;
}

static int write_rows(const struct export *export, const struct part *parts, int files, struct file_writer *writers,
                      uint64_t first, uint64_t count, const float *values, const uint32_t *classes) {
    const struct model *model = export->model;
    for (uint64_t id = first; id < first + count; id++, values += model->dim) {
        struct row row = {.count = model->vocab.counts[id], .values = values, .dim = model->dim, .type = export->type};
        row.class = classes ? classes[id] : 0;
        row.word = vocab_word(&model->vocab, id, &row.length);
        if (!floats_finite(values, model->dim))
            return fail("the vector of '%.100s' in '%s' holds NaN or infinity, which no export may hold: nothing is written", row.word,
                        model->directory);
        for (int i = 0; i < files; i++)
            if (parts[i].row(writers + i, &row)) return -1;
    }
    return 0;
}

/* Returns the class of each row, for the caller to free; NULL after fail(). */
static uint32_t *find_classes(const struct export *export) {
    float *unit = model_matrix(export->model, export->view, export->rows, 1);
    uint32_t found, *classes = unit ? mem_alloc(export->rows, sizeof *classes, "classes") : NULL;
    struct pool *pool = classes ? pool_open(export->threads) : NULL;
    struct clusters_request request = {.rows = unit, .count = export->rows, .dim = export->model->dim, .most = export->classes,
                                       .tries = 1, .rounds = 10, .pool = pool};
    if (!pool || clusters_find(classes, &found, &request)) {
        free(classes);
        classes = NULL;
    }
    if (pool) pool_close(pool);
    free(unit);
    return classes;
}

static int write_parts(const struct export *export, const struct part *parts, int files, struct file_writer *writers,
                       const uint32_t *classes) {
    const struct model *model = export->model;
    uint64_t chunk = CHUNK_BYTES / (model->dim * sizeof(float)) + 1;
    float *values = mem_alloc(chunk, model->dim * sizeof *values, "rows to export");
    int result = values ? 0 : -1;
    for (int i = 0; !result && i < files; i++)
        if (parts[i].head) result = parts[i].head(export, writers + i);
    for (uint64_t first = 0; !result && parts[0].row && first < export->rows; first += chunk) {
        uint64_t count = export->rows - first < chunk ? export->rows - first : chunk;
        if (interrupt_asked()) result = fail("stopped by a signal: '%s' is as it was", writers->path);
        if (!result) model_rows(model, export->view, first, count, values);
        if (!result) result = write_rows(export, parts, files, writers, first, count, values, classes);
    }
    free(values);
    return result;
}

int export_write(const struct export *export, enum export_format format, const char *path) {
    const struct part *parts = formats[format].parts;
    struct file_writer writers[FILES];
    int files = 0, opened = 0;
    while (files < FILES && parts[files].suffix) files++;
    int result = check_type(export, &formats[format]) || check_words(export, &formats[format]) ? -1 : 0;
    while (!result && opened < files && !(result = open_part(&writers[opened], &parts[opened], path, files))) opened++;
    uint32_t *classes = !result && format == EXPORT_CLASSES ? find_classes(export) : NULL;
    if (!result && format == EXPORT_CLASSES && !classes) result = -1;
    if (!result) result = write_parts(export, parts, files, writers, classes);
    free(classes);
    /* The file of --out is renamed last, so that the format's other file exists whenever it does. */
    while (!result && opened) result = file_commit(&writers[--opened]);
    while (opened) file_abandon(&writers[--opened]);
    return result;
}
