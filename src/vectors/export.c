#include "export.h"
#include "numeric.h"

#include "base/checks.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "run/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 4 << 20, NUMBER_BYTES = 24, FILES = 2, SIDES = 3, NAMES_BYTES = 256, HEADER_BYTES = 1024 };

/* The largest float32 that float16 does not round to infinity. */
static const float float16_most = 65519.996f;

/* An export in progress. */
struct export_job {
    struct export export;
    struct quantizer quantizer;
};

/* An array that decodes quantized rows. */
struct side {
    const char *suffix, *name; /* suffix of the array's file; name of its tensor in safetensors */
    const float *values;       /* [rows x columns] */
    uint64_t rows;
    uint32_t columns;
};

/* Stores which arrays are needed to decode this export's rows; returns their number. */
static int sides_of(const struct quantizer *quantizer, struct side sides[SIDES]) {
    int count = 0;
    if (quantizer->rotation)
        sides[count++] = (struct side){".rotation.npy", "rotation", quantizer->rotation, quantizer->model->dim, quantizer->columns};
    if (quantizer->mean) sides[count++] = (struct side){".mean.npy", "mean", quantizer->mean, 1, quantizer->columns};
    if (quantizer->scales) sides[count++] = (struct side){".scales.npy", "scales", quantizer->scales, quantizer->rows, 1};
    return count;
}

/* Returns how many numbers a row has in the file; of binary rows, how many bytes. */
static uint32_t width_of(const struct quantizer *quantizer) {
    return quantizer->type == EXPORT_BINARY ? (uint32_t)quantizer_bytes(quantizer) : quantizer->columns;
}

/* ---- the head of a file, before its rows ---- */

static int words_head(const struct export_job *job, struct file_writer *writer) {
    return file_print(writer, "%" PRIu64 " %u\n", job->export.rows, job->quantizer.columns);
}

static int npy_head(const struct export_job *job, struct file_writer *writer) {
    struct npy npy = {.rows = job->export.rows, .fields = 1};
    npy.field[0] = (struct npy_field){.columns = width_of(&job->quantizer), .kind = export_types[job->export.type].npy};
    if (job->export.type == EXPORT_BF16)
        snprintf(npy.field[0].name, sizeof npy.field[0].name, "weights"); /* NumPy has no bfloat16: a structured type */
    return npy_write_header(&npy, writer);
}

static int fbin_head(const struct export_job *job, struct file_writer *writer) {
    const uint32_t head[2] = {(uint32_t)job->export.rows, width_of(&job->quantizer)};
    return file_write(writer, head, sizeof head);
}

/* Appends a tensor's entry to the JSON header. Its data begins at byte `from`; *from is moved to the end of the data. */
static size_t add_tensor(char *text, size_t n, const char *name, const char *type, uint64_t rows, uint32_t columns, uint64_t bytes,
                         uint64_t *from) {
    n = text_add(text, HEADER_BYTES, n, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRIu64 ",%u],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                 name, type, rows, columns, *from, *from + bytes);
    *from += bytes;
    return n;
}

/* Writes the JSON's length, the JSON, padded with blanks so that the data begins at a multiple of eight bytes, and all tensors except the rows. */
static int safetensors_head(const struct export_job *job, struct file_writer *writer) {
    char text[HEADER_BYTES];
    struct side sides[SIDES];
    int count = sides_of(&job->quantizer, sides);
    uint64_t from = 0;
    size_t n = text_add(text, sizeof text, 0, "{\"__metadata__\":{\"rows\":\"in the order of vocab.tsv\"}");
    for (int i = 0; i < count; i++)
        n = add_tensor(text, n, sides[i].name, "F32", sides[i].rows, sides[i].columns, sides[i].rows * sides[i].columns * sizeof(float),
                       &from);
    n = add_tensor(text, n, model_view_name(job->export.view), export_types[job->export.type].safetensors, job->export.rows,
                   width_of(&job->quantizer), job->export.rows * quantizer_bytes(&job->quantizer), &from);
    n = text_add(text, sizeof text, n, "}");
    const uint64_t length = (n + 7) / 8 * 8;
    memset(text + n, ' ', length - n);
    int result = file_write(writer, &length, sizeof length) || file_write(writer, text, length) ? -1 : 0;
    for (int i = 0; !result && i < count; i++)
        result = file_write(writer, sides[i].values, sides[i].rows * sides[i].columns * sizeof(float));
    return result;
}

static int metadata_head(const struct export_job *job, struct file_writer *writer) {
    return file_print(writer, "word\tcount\n");
}

/* ---- a fastText .bin file (rows/vectors_file.h) ----
 *
 * fastText and gensim can continue to train it, since it contains both tables and the rows of all buckets.
 */

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

static int write_words(const struct model *model, struct file_writer *writer) {
    const int32_t head[2] = {FASTTEXT_MAGIC, FASTTEXT_VERSION}, words = (int32_t)model->rows, sizes[3] = {words, words, 0};
    int64_t more[2] = {0, -1};
    for (uint64_t row = 0; row < model->rows; row++) more[0] += (int64_t)vocab_count(&model->vocab, row);
    int result = file_write(writer, head, sizeof head) || file_write(writer, &model->trained, sizeof model->trained) ||
                         file_write(writer, sizes, sizeof sizes) || file_write(writer, more, sizeof more)
                     ? -1 : 0;
    for (uint64_t row = 0; row < model->rows && !result; row++) {
        uint64_t length;
        const char *word = vocab_word(&model->vocab, row, &length), kind = 0;
        const int64_t count = (int64_t)vocab_count(&model->vocab, row);
        if (memchr(word, 0, length))
            return fail("word %" PRIu64 " of the vocabulary, '%s', holds a NUL, which fasttext cannot hold; export npy instead", row, word);
        result = file_write(writer, word, length + 1) || file_write(writer, &count, sizeof count) || file_write(writer, &kind, 1) ? -1 : 0;
    }
    return result;
}

/* Writes a row; zeros for a bucket that has no row. */
static int write_weights(const struct model *model, enum table_side side, uint32_t row, struct file_writer *writer) {
    float weights[COLUMNS_MOST] = {0};
    if (row != WORDS_ABSENT) model_weights(model, side, row, 0, model->dim, weights);
    if (!floats_finite(weights, model->dim) && row < model->rows)
        return fail("a row of '%.100s' in '%s' holds NaN or infinity, which no export may hold: nothing is written",
                    vocab_word(&model->vocab, row, NULL), model->directory);
    if (!floats_finite(weights, model->dim))
        return fail("row %" PRIu32 " of '%s', which n-grams share, holds NaN or infinity, which no export may hold: nothing is written", row,
                    model->directory);
    if (row % 65536 == 0 && interrupt_asked()) return fail("stopped by a signal: '%s' is as it was", writer->path);
    return file_write(writer, weights, model->dim * sizeof *weights);
}

/* Writes the rows of all words, then the rows of `buckets` buckets of n-grams. */
static int write_matrix(const struct model *model, enum table_side side, uint64_t buckets, struct file_writer *writer) {
    const struct subwords *subwords = &model->vocab.subwords;
    const int64_t shape[2] = {(int64_t)(model->rows + buckets), model->dim};
    const char quantized = 0;
    int result = file_write(writer, &quantized, 1) || file_write(writer, shape, sizeof shape) ? -1 : 0;
    for (uint64_t row = 0; row < model->rows && !result; row++) result = write_weights(model, side, (uint32_t)row, writer);
    for (uint64_t bucket = 0; bucket < buckets && !result; bucket++)
        result = write_weights(model, side, subwords->starts ? subwords->row_of[bucket] : WORDS_ABSENT, writer);
    return result;
}

static int fasttext_head(const struct export_job *job, struct file_writer *writer) {
    const struct model *model = job->export.model;
    return check_model(&job->export) || write_words(model, writer) ||
                   write_matrix(model, TABLE_TARGET, (uint64_t)model->trained.buckets, writer) || write_matrix(model, TABLE_CONTEXT, 0, writer)
               ? -1 : 0;
}

/* ---- a row ---- */

struct row {
    const char *word;
    uint64_t length, count; /* length: bytes of the word; count: the word's count in the corpus */
    const float *values;    /* [dim], turned */
    uint32_t dim, class;
    uint64_t id;
    const struct quantizer *quantizer;
};

/* Writes a row in the number type that export->type asks for. */
static int typed_row(struct file_writer *writer, const struct row *row) {
    float code[COLUMNS_MOST];
    for (uint32_t i = 0; row->quantizer->type == EXPORT_F16 && i < row->dim; i++)
        if (!(fabsf(row->values[i]) <= float16_most))
            return fail("the vector of '%.100s' holds %g, and f16 ends at 65504; --type=bf16 holds it", row->word,
                        (double)row->values[i]);
    quantizer_encode(row->quantizer, row->id, row->values, code);
    return file_write(writer, code, quantizer_bytes(row->quantizer));
}

static int sized_row(struct file_writer *writer, const struct row *row) {
    const uint32_t width = width_of(row->quantizer);
    return file_write(writer, &width, sizeof width) || typed_row(writer, row) ? -1 : 0;
}

static int word_raw_row(struct file_writer *writer, const struct row *row) {
    return file_write(writer, row->word, row->length) || file_write(writer, " ", 1) ||
                   file_write(writer, row->values, row->dim * sizeof *row->values) || file_write(writer, "\n", 1)
               ? -1 : 0;
}

/* Prints each value with nine digits, from which the same float32 is read. */
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
    const char *suffix; /* suffix appended to the path of --out; NULL: there is no such file */
    int (*head)(const struct export_job *job, struct file_writer *writer); /* writes the bytes before the rows; NULL: there are none */
    int (*row)(struct file_writer *writer, const struct row *row); /* writes one row; NULL: the file has no rows */
};

/* Bytes that words must not contain, and what error messages call them. */
struct refused {
    const char *bytes, *called;
};
/* For formats in which a word ends at the first blank; readers that split lines into fields stop at other white space, too. */
static const struct refused white_space = {" \t\n\v\f\r", "white space"};
static const struct refused cell_ends = {"\t\n\r", "a TAB or a line end"};

/* Sets of types. */
enum {
    FLOAT32 = 1 << EXPORT_F32,
    FLOATS = FLOAT32 | 1 << EXPORT_BF16 | 1 << EXPORT_F16,
    INT8 = 1 << EXPORT_INT8,
    BITS = 1 << EXPORT_BINARY,
    BYTES = 1 << EXPORT_UINT8 | BITS,
};

static const struct format {
    const char *name;
    unsigned types; /* bit set of the types that the format can store */
    const struct refused *refused; /* bytes that words must not contain; NULL: the format stores no words */
    struct part parts[FILES];
} formats[] = {
    [EXPORT_WORD2VEC_BIN] = {"word2vec-bin", FLOAT32, &white_space, {{"", words_head, word_raw_row}}},
    [EXPORT_WORD2VEC_TEXT] = {"word2vec-text", FLOAT32, &white_space, {{"", words_head, word_text_row}}},
    [EXPORT_GLOVE_TEXT] = {"glove-text", FLOAT32, &white_space, {{"", NULL, word_text_row}}},
    [EXPORT_NPY] = {"npy", FLOATS | INT8 | BITS, NULL, {{"", npy_head, typed_row}}},
    [EXPORT_FVECS] = {"fvecs", FLOAT32, NULL, {{"", NULL, sized_row}}},
    [EXPORT_FBIN] = {"fbin", FLOATS, NULL, {{"", fbin_head, typed_row}}},
    [EXPORT_I8BIN] = {"i8bin", INT8, NULL, {{"", fbin_head, typed_row}}},
    [EXPORT_U8BIN] = {"u8bin", BYTES, NULL, {{"", fbin_head, typed_row}}},
    [EXPORT_BVECS] = {"bvecs", BYTES, NULL, {{"", NULL, sized_row}}},
    [EXPORT_SAFETENSORS] = {"safetensors", FLOATS | INT8 | BITS, NULL, {{"", safetensors_head, typed_row}}},
    [EXPORT_PROJECTOR] = {"projector", FLOAT32, &cell_ends, {{"", NULL, tsv_row}, {".metadata.tsv", metadata_head, metadata_row}}},
    [EXPORT_CLASSES] = {"classes", FLOAT32, &white_space, {{"", NULL, word_class_row}}},
    [EXPORT_FASTTEXT] = {"fasttext", FLOAT32, NULL, {{"", fasttext_head, NULL}}},
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

/* Fails if the format cannot store the numbers or files that the options ask for, or cannot store some word. */
static int check_export(const struct export *export, const struct format *format) {
    if (export->columns && (!format->parts[0].row || format->parts[0].row == word_class_row))
        return fail_usage("--columns is not for %s, which cannot hold rows of fewer columns", format->name);
    for (uint64_t id = 0; format->refused && id < export->rows; id++) {
        uint64_t length;
        const char *word = vocab_word(&export->model->vocab, id, &length);
        if (!length) return fail("word %" PRIu64 " of the vocabulary is empty, which %s cannot hold; export npy instead", id, format->name);
        for (uint64_t i = 0; i < length; i++)
            if (word[i] && strchr(format->refused->bytes, word[i]))
                return fail("word %" PRIu64 " of the vocabulary, '%s', holds %s, which %s cannot hold; export npy instead",
                            id, word, format->refused->called, format->name);
    }
    return 0;
}

int export_type_for(enum export_format format, const char *name) {
    char names[NAMES_BYTES];
    unsigned types = formats[format].types;
    int type = name ? export_type_named(name) : __builtin_ctz(types);
    size_t n = 0;
    if (type < 0 || types >> type & 1) return type;
    for (unsigned i = 0; i < EXPORT_TYPES; i++)
        if (types >> i & 1) n = text_add(names, sizeof names, n, "%s%s", n ? types >> (i + 1) ? ", " : " or " : "", export_types[i].name);
    return fail_usage("--type=%s is not for %s, which can hold %s", name, formats[format].name, names);
}

/* ---- writing ---- */

static char *with_suffix(const char *path, const char *suffix) {
    uint64_t capacity = strlen(path) + strlen(suffix) + 1;
    char *name = mem_alloc(capacity, 1, "a path");
    if (name) snprintf(name, capacity, "%s%s", path, suffix);
    return name;
}

/* Opens one of the format's files. If the format has only one file, its path may be a pipe. */
static int open_part(struct file_writer *writer, const char *suffix, const char *path, int files) {
    OWNED char *name = with_suffix(path, suffix);
    int result = !name || run_owns_refuse(name, "--out") ? -1 : 0;
    if (!result) {
        file_remove_left(name);
        result = files == 1 ? file_writer_open_given(writer, name) : file_writer_open(writer, name);
    }
    return result;
}

static int write_rows(const struct export_job *job, const struct part *parts, int files, struct file_writer *writers,
                      uint64_t first, uint64_t count, const float *values, const uint32_t *classes) {
    const struct model *model = job->export.model;
    uint32_t columns = job->quantizer.columns;
    for (uint64_t id = first; id < first + count; id++, values += columns) {
        struct row row = {
            .count = vocab_count(&model->vocab, id), .values = values, .dim = columns, .id = id, .quantizer = &job->quantizer};
        row.class = classes ? classes[id] : 0;
        row.word = vocab_word(&model->vocab, id, &row.length);
        if (!floats_finite(values, columns))
            return fail("the vector of '%.100s' in '%s' holds NaN or infinity, which no export may hold: nothing is written", row.word,
                        model->directory);
        for (int i = 0; i < files; i++)
            if (parts[i].row(writers + i, &row)) return -1;
    }
    return 0;
}

/* Returns the class of each row; the caller frees them. NULL after fail(). */
static uint32_t *find_classes(const struct export *export) {
    OWNED float *unit = model_matrix(export->model, export->view, export->rows, 1);
    uint32_t found, *classes = unit ? mem_alloc(export->rows, sizeof *classes, "classes") : NULL;
    ENDED_BY(pool_end) struct pool *pool = classes ? pool_open(export->threads) : NULL;
    struct clusters_request request = {.rows = unit, .count = export->rows, .dim = export->model->dim, .most = export->classes,
                                       .tries = 1, .rounds = 10, .pool = pool};
    if (!pool || clusters_find(classes, &found, &request)) {
        free(classes);
        classes = NULL;
    }
    return classes;
}

static int write_parts(const struct export_job *job, const struct part *parts, int files, struct file_writer *writers,
                       const uint32_t *classes) {
    const struct export *export = &job->export;
    uint32_t dim = export->model->dim;
    uint64_t chunk = CHUNK_BYTES / (dim * sizeof(float)) + 1;
    float *values = mem_alloc(chunk, dim * sizeof *values, "rows to export");
    float *turned = job->quantizer.rotation ? mem_alloc(chunk, job->quantizer.columns * sizeof *turned, "rows to export") : values;
    int result = values && turned ? 0 : -1;
    for (int i = 0; !result && i < files; i++)
        if (parts[i].head) result = parts[i].head(job, writers + i);
    for (uint64_t first = 0; !result && parts[0].row && first < export->rows; first += chunk) {
        uint64_t count = export->rows - first < chunk ? export->rows - first : chunk;
        if (interrupt_asked()) result = fail("stopped by a signal: '%s' is as it was", writers->path);
        if (!result) model_rows(export->model, export->view, first, count, values);
        if (!result) result = quantizer_turn(&job->quantizer, values, count, turned);
        if (!result) result = write_rows(job, parts, files, writers, first, count, turned, classes);
    }
    if (turned != values) free(turned);
    free(values);
    return result;
}

/* ---- files that belong together ----
 *
 * The rows of quantized vectors are decoded with arrays in other files. Each of these ends with a mark: the checksum of the file of --out. So a
 * reader can check that both were written together; a process that is killed between two renames leaves an older file beside a newer one.
 */

static const char *const side_suffixes[SIDES] = {".rotation.npy", ".mean.npy", ".scales.npy"};
static const char mark_words[] = "sptx-w2v: beside the file with XXH64 ";
enum { MARK_BYTES = sizeof mark_words - 1 + 16 + 1 };

/* Reads the mark of a file. Returns 1 and stores the checksum; 0 if there is no such file, or no mark; -1 after fail(). */
static int read_mark(const char *path, uint64_t *hash) {
    char mark[MARK_BYTES + 1] = "";
    int there = file_exists(path);
    if (there != 1) return there;
    int64_t size = file_size(path);
    int fd = size < 0 ? -1 : file_open(path, O_RDONLY), result = fd < 0 ? -1 : 0;
    if (!result && size >= MARK_BYTES && retry_read_at(fd, mark, MARK_BYTES, (uint64_t)size - MARK_BYTES) < 0)
        result = fail_system("read", path);
    if (fd >= 0) close(fd);
    if (result || strncmp(mark, mark_words, sizeof mark_words - 1)) return result;
    return sscanf(mark + sizeof mark_words - 1, "%16" SCNx64, hash) == 1;
}

static int hash_of(const char *path, uint64_t *hash) {
    int fd = file_open(path, O_RDONLY), result = fd < 0 ? -1 : file_checksum(fd, path, hash);
    if (fd >= 0) close(fd);
    return result;
}

int export_check(const char *path) {
    uint64_t own, named;
    int found = 0, result = hash_of(path, &own);
    for (int i = 0; !result && i < SIDES; i++) {
        OWNED char *side = with_suffix(path, side_suffixes[i]);
        int marked = side ? read_mark(side, &named) : -1;
        found += marked == 1;
        if (marked == 1 && named != own)
            result = fail("'%s' and '%s' are of two exports, the later of which was stopped: export them again", path, side);
        else if (marked < 0) result = -1;
    }
    return result ? -1 : found;
}

/* Removes the arrays of an older export to the same path; only files that end with a mark. */
static int remove_older_sides(const char *path, const struct side *sides, int count) {
    int result = 0;
    for (int i = 0; !result && i < SIDES; i++) {
        uint64_t hash;
        int stays = 0;
        for (int j = 0; j < count; j++) stays |= !strcmp(sides[j].suffix, side_suffixes[i]);
        OWNED char *side = stays ? NULL : with_suffix(path, side_suffixes[i]);
        if (!stays && !side) result = -1;
        if (side && read_mark(side, &hash) == 1) result = file_remove(side);
    }
    return result;
}

/* Renames all files into place, the one of --out last. If a rename fails, the older files are put back. */
static int commit_all(struct file_writer *writers, int count) {
    char *target[FILES + SIDES] = {NULL}, *older[FILES + SIDES] = {NULL}; /* older: a second name (link) of the file that is replaced */
    int was[FILES + SIDES] = {0}, result = 0, at = count;
    for (int i = 0; !result && i < count; i++) result = file_finish(&writers[i]); /* so that renames can hardly fail */
    while (!result && at) {
        if (--at) {
            target[at] = mem_text(writers[at].target, strlen(writers[at].target), "a path");
            older[at] = target[at] ? file_own_name(target[at]) : NULL;
            was[at] = older[at] ? file_exists(target[at]) : -1;
            if (was[at] < 0) result = -1;
            else if (was[at] && link(target[at], older[at]) && errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK)
                result = fail_system("link", target[at]);
        }
        if (!result) result = file_commit(&writers[at]);
    }
    for (int i = at + 1; i < count; i++) {
        if (result && (!was[i] ? unlink(target[i]) : rename(older[i], target[i])))
            warn("'%s' is of the export that failed", target[i]);
        if (!result && was[i]) unlink(older[i]);
    }
    if (result && at && at < count && older[at]) unlink(older[at]);
    for (int i = 0; i < count; i++) {
        mem_free(target[i], older[i]);
        file_abandon(&writers[i]);
    }
    return result;
}

/* Writes all files of an export. Its quantizer must be open. */
static int write_files(const struct export_job *job, const struct format *format, const char *path) {
    struct file_writer writers[FILES + SIDES];
    struct side sides[SIDES];
    uint64_t hash = 0;
    int files = 0, opened = 0, result = 0;
    while (files < FILES && format->parts[files].suffix) files++;
    int beside = format == &formats[EXPORT_SAFETENSORS] ? 0 : sides_of(&job->quantizer, sides), all = files + beside;
    for (; !result && opened < all; opened += !result)
        result = open_part(&writers[opened], opened < files ? format->parts[opened].suffix : sides[opened - files].suffix, path, all);
    uint32_t *classes = !result && format == &formats[EXPORT_CLASSES] ? find_classes(&job->export) : NULL;
    if (!result && format == &formats[EXPORT_CLASSES] && !classes) result = -1;
    if (!result) result = write_parts(job, format->parts, files, writers, classes);
    free(classes);
    if (!result && beside) result = file_finish(&writers[0]) || hash_of(writers[0].partial, &hash) ? -1 : 0;
    for (int i = 0; !result && i < beside; i++) {
        struct npy npy = {.rows = sides[i].rows, .fields = 1, .field = {{.columns = sides[i].columns, .kind = 'f'}}};
        struct file_writer *writer = &writers[files + i];
        result = npy_write_header(&npy, writer) || file_write(writer, sides[i].values, npy.rows * sides[i].columns * sizeof(float)) ||
                         file_print(writer, "%s%016" PRIx64 "\n", mark_words, hash)
                     ? -1 : 0;
    }
    if (!result) return commit_all(writers, opened) || remove_older_sides(path, sides, beside) ? -1 : 0;
    while (opened) file_abandon(&writers[--opened]);
    return -1;
}

int export_write(const struct export *export, enum export_format format, const char *path) {
    struct export_job job = {.export = *export};
    int result = check_export(export, &formats[format]) ||
                         quantizer_open(&job.quantizer, export->model, export->view, export->rows, export->type, export->columns,
                                        format == EXPORT_I8BIN, export->threads) ||
                         (export->loss && quantizer_measure(&job.quantizer, export->loss)) ||
                         write_files(&job, &formats[format], path) ? -1 : 0;
    quantizer_close(&job.quantizer);
    return result;
}
