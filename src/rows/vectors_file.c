#include "vectors_file.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/first_bytes.h"
#include "corpus/vocab.h"
#include "kernels/record.h"
#include "values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DIM_MOST = 1 << 20, NUMBER_MOST = 64, HEADER_MOST = 64 };

/* The unread bytes of the file. */
struct cursor {
    const char *start, *at, *end;
};

/* Returns 1 if `byte` ends a field of a line. VT and FF do not: words of other programs may contain them. */
static int ends_field(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Returns 1 if `byte` ends a word: the end of a field or of a line. */
static int ends_word(char byte) {
    return ends_field(byte) || byte == '\n';
}

static const char *line_end(const struct cursor *cursor) {
    const char *end = memchr(cursor->at, '\n', (size_t)(cursor->end - cursor->at));
    return end ? end : cursor->end;
}

/* ---- the first line ---- */

/* Reads a whole number and skips the blanks after it. */
static int take_count(const char **at, const char *end, uint64_t *count) {
    const char *first = *at;
    for (*count = 0; *at < end && **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(*count, 10, count) || __builtin_add_overflow(*count, (uint64_t)(**at - '0'), count)) return 0;
    int any = *at > first;
    while (*at < end && ends_field(**at)) ++*at;
    return any;
}

/* Reads a first line "V D" and returns 1; returns 0 if the first line is something else. */
static int take_header(struct cursor *cursor, uint64_t *rows, uint64_t *dim) {
    const char *at = cursor->at, *end = line_end(cursor);
    if (end == cursor->end || end - at > HEADER_MOST) return 0;
    if (!take_count(&at, end, rows) || !take_count(&at, end, dim) || at != end) return 0;
    cursor->at = end + 1;
    return 1;
}

/* Counts the words of a line. */
static uint64_t count_fields(const char *at, const char *end) {
    uint64_t fields = 0;
    while (at < end) {
        while (at < end && ends_field(*at)) at++;
        fields += at < end;
        while (at < end && !ends_field(*at)) at++;
    }
    return fields;
}

/* Returns 1 if the rows are text, which means that only bytes of numbers follow the words. A first row may be too short to show it, since a binary
 * vector may begin with a line end, or with a digit and a line end; then further rows are checked. */
static int is_text(struct cursor cursor, uint64_t columns) {
    enum { SURE_BYTES = 8 };
    uint64_t seen = 0, enough = columns < SURE_BYTES / 2 ? 2 * columns : SURE_BYTES;
    while (seen < enough && cursor.at < cursor.end) {
        const char *at = cursor.at, *end = line_end(&cursor);
        while (at < end && *at && !ends_field(*at)) at++;
        seen += (uint64_t)(end - at);
        for (; at < end; at++)
            if (!*at || !strchr("0123456789+-.eE \t\rinfatyINFATY", *at)) return 0;
        cursor.at = end < cursor.end ? end + 1 : end;
    }
    return 1;
}

static int begin_file(struct vectors_file *file, struct cursor *cursor) {
    uint64_t dim = 0, fields;
    if (cursor->at == cursor->end) return fail("'%s' is empty; wanted words with their vectors", file->path);
    if (kind_check_format(file->path, cursor->at, (uint64_t)(cursor->end - cursor->at), 0)) return -1;
    if (take_header(cursor, &file->rows, &dim)) {
        file->format = is_text(*cursor, dim) ? VECTORS_TEXT : VECTORS_BINARY;
        if (!file->rows) dim = 0;
    } else if (is_text(*cursor, 1) && (fields = count_fields(cursor->at, line_end(cursor)))) {
        file->rows = 0; /* set later to the number of lines */
        file->format = VECTORS_TEXT;
        dim = fields - 1;
    }
    if (!dim || dim > DIM_MOST)
        return fail("'%s' begins neither with its numbers of rows and columns nor with a word and its vector; wanted word2vec's "
                    "binary or text form, GloVe's text, or an npy",
                    file->path);
    file->dim = (uint32_t)dim;
    return 0;
}

/* ---- rows ---- */

/* Checks that the file is large enough for its number of rows, each with at least a letter, a blank and its numbers. */
static int check_count(struct vectors_file *file, const struct cursor *cursor) {
    uint64_t left = (uint64_t)(cursor->end - cursor->at), each = 2 + (uint64_t)file->dim * (file->format == VECTORS_TEXT ? 2 : 4);
    if (!file->rows) {
        for (struct cursor c = *cursor; c.at < c.end; c.at = line_end(&c) + 1) file->rows++;
    } else if (file->rows > (left + 1) / each) { /* the last line may have no line end */
        return fail("'%s' says %" PRIu64 " rows of %" PRIu32 " columns, and has %" PRIu64 " bytes for them: it is cut off",
                    file->path, file->rows, file->dim, left);
    }
    if (file->rows > WORDS_MOST)
        return fail("'%s' has %" PRIu64 " rows, more than the %u that ids can name", file->path, file->rows, WORDS_MOST);
    return 0;
}

/* Reads the next row's word, and moves to its numbers. */
static int take_word(const struct vectors_file *file, struct cursor *cursor, uint64_t row, const char **word, uint64_t *length) {
    if (file->format == VECTORS_BINARY) /* skips the line end that may follow the previous row's numbers */
        while (cursor->at < cursor->end && *cursor->at == '\n') cursor->at++;
    *word = cursor->at;
    while (cursor->at < cursor->end && !ends_word(*cursor->at)) cursor->at++;
    *length = (uint64_t)(cursor->at - *word);
    if (cursor->at == cursor->end || *cursor->at == '\n' || !*length)
        return fail("'%s' row %" PRIu64 " of %" PRIu64 ": it %s", file->path, row + 1, file->rows,
                    cursor->at == cursor->end ? "is cut off" : *length ? "has a word and no vector" : "has no word");
    cursor->at++;
    return 0;
}

/* Advances past a row's numbers. */
static int pass_numbers(const struct vectors_file *file, struct cursor *cursor, uint64_t row) {
    if (file->format == VECTORS_TEXT) {
        const char *end = line_end(cursor);
        cursor->at = end < cursor->end ? end + 1 : end;
        return 0;
    }
    if ((uint64_t)(cursor->end - cursor->at) < file->dim * sizeof(float))
        return fail("'%s' row %" PRIu64 " of %" PRIu64 ": it is cut off", file->path, row + 1, file->rows);
    cursor->at += file->dim * sizeof(float);
    return 0;
}

/* Goes through all rows. take = 1: stores the words, and the offsets of their numbers; 0: only counts the words' bytes. */
static int pass_rows(struct vectors_file *file, struct cursor cursor, int take, uint64_t *bytes) {
    const char *word;
    uint64_t length;
    *bytes = 0;
    for (uint64_t row = 0; row < file->rows; row++) {
        if (take_word(file, &cursor, row, &word, &length)) return -1;
        if (take) {
            words_append(&file->words, word, length);
            file->starts[row] = (uint64_t)(cursor.at - cursor.start);
        }
        *bytes += length + 1;
        if (pass_numbers(file, &cursor, row)) return -1;
    }
    while (cursor.at < cursor.end && ends_word(*cursor.at)) cursor.at++;
    if (cursor.at == cursor.end) return 0;
    return fail("'%s' goes on behind its %" PRIu64 " rows: its first line, or a row, is damaged", file->path, file->rows);
}

static int read_rows(struct vectors_file *file) {
    uint64_t bytes;
    const char *data = file->map.data;
    struct cursor cursor = {data, data, data};
    if (data) cursor.at += text_mark(data, file->map.size), cursor.end += file->map.size; /* an empty file is mapped at NULL */
    if (begin_file(file, &cursor) || check_count(file, &cursor) || pass_rows(file, cursor, 0, &bytes)) return -1;
    file->starts = mem_alloc(file->rows, sizeof *file->starts, "where vectors begin");
    if (!file->starts || words_reserve(&file->words, file->rows, bytes) || pass_rows(file, cursor, 1, &bytes)) return -1;
    /* Indexes the words. Fails if a word has two rows. */
    uint64_t first, again, length;
    int twice = words_index(&file->words, NULL, &first, &again);
    if (twice <= 0) return twice;
    const char *word = words_get(&file->words, again, &length);
    return fail("'%s' has the word '%.*s' twice, in rows %" PRIu64 " and %" PRIu64, file->path, text_shown(length), word,
                first + 1, again + 1);
}

/* ---- npy ---- */

static int read_npy(struct vectors_file *file, const char *vocabulary) {
    ENDED_BY(vocab_release) struct vocab vocab = {0};
    if (!vocabulary)
        return fail("'%s' has no words: name the vocabulary of its rows (word TAB count, a line a row) behind it", file->path);
    if (npy_open(&file->npy, file->path)) return -1;
    const struct npy_field *weights = npy_find(&file->npy, "weights");
    if (!weights || (weights->kind != 'f' && weights->kind != 'h'))
        return fail("'%s' has no matrix and no field 'weights' of float32 or bfloat16", file->path);
    if (vocab_read_given(&vocab, vocabulary)) return -1;
    file->rows = file->npy.rows;
    file->dim = weights->columns;
    file->words = vocab.words;
    vocab.words = (struct words){0};
    return vocab.size == file->rows ? 0
                                          : fail("'%s' has %" PRIu64 " rows, and '%s' has %" PRIu64 " words", file->path,
                                                 file->rows, vocabulary, vocab.size);
}

/* ---- all ---- */

int vectors_file_open(struct vectors_file *file, const char *path, const char *vocabulary) {
    *file = (struct vectors_file){.path = path};
    int result = file_map_open(&file->map, path);
    if (!result && file->map.size >= 6 && !memcmp(file->map.data, "\x93NUMPY", 6)) {
        file->format = VECTORS_NPY;
        file_map_close(&file->map);
        result = read_npy(file, vocabulary);
    } else if (!result && vocabulary) {
        result = fail("'%s' is no npy and has words of its own: leave '%s' out", path, vocabulary);
    } else if (!result) {
        result = read_rows(file);
    }
    if (result) vectors_file_close(file);
    return result;
}

void vectors_file_close(struct vectors_file *file) {
    words_release(&file->words);
    file_map_close(&file->map);
    npy_close(&file->npy);
    free(file->starts);
    *file = (struct vectors_file){.path = NULL};
}

void vectors_file_drop_words(struct vectors_file *file) {
    words_release(&file->words);
}

/* ---- numbers ---- */

/* Reads the next number of a line from a copy that ends with a NUL, which the mapped file does not contain. */
static int take_number(const char **at, const char *end, float *value) {
    char text[NUMBER_MOST], *stop;
    size_t n = 0;
    while (*at < end && ends_field(**at)) ++*at;
    while (*at + n < end && !ends_field((*at)[n]) && n + 1 < sizeof text) text[n] = (*at)[n], n++;
    text[n] = 0;
    *at += n;
    *value = numbers_read_float(text, &stop);
    return n && stop == text + n && n + 1 < sizeof text; /* a NUL within the number would end it early, so it is refused */
}

static int read_text(const struct vectors_file *file, uint64_t row, uint32_t first, uint32_t count, float *out) {
    const struct cursor cursor = {file->map.data, file->map.data + file->starts[row], file->map.data + file->map.size};
    const char *at = cursor.at, *end = line_end(&cursor);
    float value;
    uint32_t column = 0;
    while (column < file->dim && take_number(&at, end, &value)) {
        if (column >= first && column - first < count) out[column - first] = value;
        column++;
    }
    while (at < end && ends_field(*at)) at++;
    if (column == file->dim && at == end) return 0;
    return fail("'%s' row %" PRIu64 " does not read as a word and %" PRIu32 " numbers, from column %" PRIu32 " on", file->path,
                row + 1, file->dim, column + 1);
}

int vectors_file_row(const struct vectors_file *file, uint64_t row, uint32_t first, uint32_t count, float *out) {
    if (file->format == VECTORS_TEXT) return read_text(file, row, first, count, out);
    const struct npy_field *weights = file->format == VECTORS_NPY ? npy_find(&file->npy, "weights") : NULL;
    if (weights)
        values_of_file(weights, npy_row(&file->npy, weights, row), first, count, out);
    else
        memcpy(out, file->map.data + file->starts[row] + first * sizeof *out, count * sizeof *out);
    return 0;
}

_Static_assert(sizeof(struct fasttext_args) == 56, "the file has these numbers without gaps");

/* The unread bytes of the file. */
struct bin_cursor {
    const char *at, *end, *path;
};

static int cut_off(const struct bin_cursor *cursor) {
    return fail("'%s' is cut off: a model of fastText goes on behind its last byte", cursor->path);
}

static int take_bytes(struct bin_cursor *cursor, void *to, uint64_t bytes) {
    if ((uint64_t)(cursor->end - cursor->at) < bytes) return cut_off(cursor);
    memcpy(to, cursor->at, bytes);
    cursor->at += bytes;
    return 0;
}

int fasttext_file_is(const char *path) {
    char head[sizeof(int32_t) + 1];
    int32_t magic = 0;
    int directory = directory_exists(path);
    if (directory || file_exists(path) != 1) return directory < 0 ? -1 : 0;
    int kind = file_head(path, head, sizeof head);
    if (kind == 1) memcpy(&magic, head, sizeof magic);
    return kind < 0 ? -1 : magic == FASTTEXT_MAGIC;
}

/* ---- the head ---- */

static int read_args(struct bin_cursor *cursor, struct fasttext_args *args) {
    int32_t head[2] = {0, 0};
    if (take_bytes(cursor, head, sizeof head) || take_bytes(cursor, args, sizeof *args)) return -1;
    if (head[0] != FASTTEXT_MAGIC) return fail("'%s' is no model of fastText", cursor->path);
    if (head[1] != FASTTEXT_VERSION)
        return fail("'%s' is of version %" PRId32 " of fastText's models, wanted %d", cursor->path, head[1], FASTTEXT_VERSION);
    if (args->model != FASTTEXT_CBOW && args->model != FASTTEXT_SKIPGRAM)
        return fail("'%s' was trained to tell labels (fasttext supervised); wanted a model of words: skipgram or cbow", cursor->path);
    if (args->dim < 1 || args->dim > COLUMNS_MOST)
        return fail("'%s' has rows of %" PRId32 " columns, wanted 1 to %u", cursor->path, args->dim, (unsigned)COLUMNS_MOST);
    if (args->buckets < 0 || args->min < 0 || args->max < 0 || args->max > SUBWORDS_LONGEST ||
        (args->max && args->min > args->max))
        return fail("'%s' says n-grams of %" PRId32 " to %" PRId32 " characters in %" PRId32 " buckets, which cannot be",
                    cursor->path, args->min, args->max, args->buckets);
    if (args->max && !args->buckets)
        return fail("'%s' says n-grams of %" PRId32 " to %" PRId32 " characters in no bucket", cursor->path, args->min, args->max);
    return 0;
}

/* ---- words ---- */

struct counts {
    int32_t size, words, labels;
    int64_t tokens, pruned;
};

static int read_counts(struct bin_cursor *cursor, struct counts *counts) {
    int32_t sizes[3] = {0, 0, 0};
    int64_t more[2] = {0, 0};
    if (take_bytes(cursor, sizes, sizeof sizes) || take_bytes(cursor, more, sizeof more)) return -1;
    *counts = (struct counts){sizes[0], sizes[1], sizes[2], more[0], more[1]};
    if (counts->labels) return fail("'%s' has %" PRId32 " labels; wanted a model of words alone", cursor->path, counts->labels);
    if (counts->pruned != -1) return fail("'%s' was pruned (fasttext quantize); wanted the model before that", cursor->path);
    if (counts->words < 1 || counts->size != counts->words || counts->words > (cursor->end - cursor->at) / 10)
        return fail("'%s' says %" PRId32 " words of %" PRId32 " entries, which cannot be", cursor->path, counts->words,
                    counts->size);
    return 0;
}

static int read_word(struct bin_cursor *cursor, struct vocab *vocab) {
    const char *word = cursor->at, *end = memchr(word, 0, (size_t)(cursor->end - word));
    int64_t count = 0;
    char kind = 0;
    if (!end) return cut_off(cursor);
    cursor->at = end + 1;
    if (take_bytes(cursor, &count, sizeof count) || take_bytes(cursor, &kind, sizeof kind)) return -1;
    if (count < 0 || kind)
        return fail("'%s': word %" PRIu64 " counts %" PRId64 " and is of kind %d, wanted a count from 0 on and kind 0",
                    cursor->path, vocab->size, count, kind);
    return vocab_append(vocab, word, (uint64_t)(end - word), (uint64_t)count);
}

static int read_words(struct bin_cursor *cursor, const struct counts *counts, struct vocab *vocab) {
    const char *first = cursor->at;
    uint64_t bytes = 0;
    for (int32_t i = 0; i < counts->words; i++) { /* memory for all words is allocated at once, so the words' bytes are counted first */
        const char *end = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));
        if (!end || cursor->end - end < 10) return cut_off(cursor);
        bytes += (uint64_t)(end - cursor->at) + 1;
        cursor->at = end + 10;
    }
    cursor->at = first;
    if (vocab_reserve(vocab, (uint64_t)counts->words, bytes)) return -1;
    for (int32_t i = 0; i < counts->words; i++)
        if (read_word(cursor, vocab)) return -1;
    return vocab_index(vocab, cursor->path, NULL);
}

static int find_subwords(struct vocab *vocab, const struct fasttext_args *args) {
    const struct subword_form form = {
        .min = (uint32_t)args->min, .max = (uint32_t)args->max, .buckets = (uint32_t)args->buckets, .in_order = 1};
    return subwords_make(&vocab->subwords, &form, vocab);
}

/* ---- rows ---- */

/* Checks that a matrix with `wanted` rows follows. *at: offset of its first row. */
static int find_rows(struct bin_cursor *cursor, const struct fasttext_file *file, const char *called, uint64_t wanted, uint64_t *at) {
    char quantized = 0;
    int64_t rows = 0, columns = 0;
    if (take_bytes(cursor, &quantized, sizeof quantized)) return -1;
    if (quantized) return fail("'%s' is quantized; wanted the model before 'fasttext quantize'", cursor->path);
    if (take_bytes(cursor, &rows, sizeof rows) || take_bytes(cursor, &columns, sizeof columns)) return -1;
    if (rows < 0 || (uint64_t)rows != wanted || columns != file->args.dim)
        return fail("'%s' has %" PRId64 " x %" PRId64 " %s numbers, wanted %" PRIu64 " x %" PRId32, cursor->path, rows,
                    columns, called, wanted, file->args.dim);
    uint64_t bytes = wanted * (uint64_t)columns * sizeof(float);
    if ((uint64_t)(cursor->end - cursor->at) < bytes) return cut_off(cursor);
    *at = (uint64_t)(cursor->at - file->map.data);
    cursor->at += bytes;
    return 0;
}

static int read_all(struct fasttext_file *file, struct vocab *vocab, const char *path) {
    const char *data = file->map.data; /* NULL if the file is empty */
    struct bin_cursor cursor = {data, data ? data + file->map.size : NULL, path};
    struct counts counts;
    if (read_args(&cursor, &file->args) || read_counts(&cursor, &counts) || read_words(&cursor, &counts, vocab)) return -1;
    file->words = (uint64_t)counts.words;
    file->rows = file->words + (uint64_t)file->args.buckets;
    if (find_rows(&cursor, file, "input", file->rows, &file->input) ||
        find_rows(&cursor, file, "output", file->words, &file->output))
        return -1;
    return find_subwords(vocab, &file->args);
}

int fasttext_file_open(struct fasttext_file *file, struct vocab *vocab, const char *path) {
    *file = (struct fasttext_file){.rows = 0};
    if (file_map_open(&file->map, path)) return -1;
    if (!read_all(file, vocab, path)) return 0;
    fasttext_file_close(file);
    return -1;
}

void fasttext_file_close(struct fasttext_file *file) {
    file_map_close(&file->map);
    *file = (struct fasttext_file){.rows = 0};
}
