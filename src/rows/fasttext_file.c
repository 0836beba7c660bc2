#include "fasttext_file.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/report.h"
#include "kernels/record.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(sizeof(struct fasttext_args) == 56, "the file has these numbers without gaps");

/* The bytes of the file that are not read yet. */
struct cursor {
    const char *at, *end, *path;
};

static int cut_off(const struct cursor *cursor) {
    return fail("'%s' is cut off: a model of fastText goes on behind its last byte", cursor->path);
}

static int take_bytes(struct cursor *cursor, void *to, uint64_t bytes) {
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

static int check_args(const struct fasttext_args *args, const char *path) {
    if (args->model != FASTTEXT_CBOW && args->model != FASTTEXT_SKIPGRAM)
        return fail("'%s' was trained to tell labels (fasttext supervised); wanted a model of words: skipgram or cbow", path);
    if (args->dim < 1 || args->dim > COLUMNS_MOST)
        return fail("'%s' has rows of %" PRId32 " columns, wanted 1 to %u", path, args->dim, (unsigned)COLUMNS_MOST);
    if (args->buckets < 0 || args->min < 0 || args->max < 0 || args->max > SUBWORDS_LONGEST ||
        (args->max && args->min > args->max))
        return fail("'%s' says n-grams of %" PRId32 " to %" PRId32 " characters in %" PRId32
                    " buckets, which cannot be",
                    path, args->min, args->max, args->buckets);
    if (args->max && !args->buckets)
        return fail("'%s' says n-grams of %" PRId32 " to %" PRId32 " characters in no bucket", path, args->min, args->max);
    return 0;
}

static int read_args(struct cursor *cursor, struct fasttext_args *args) {
    int32_t head[2] = {0, 0};
    if (take_bytes(cursor, head, sizeof head) || take_bytes(cursor, args, sizeof *args)) return -1;
    if (head[0] != FASTTEXT_MAGIC) return fail("'%s' is no model of fastText", cursor->path);
    if (head[1] != FASTTEXT_VERSION)
        return fail("'%s' is of version %" PRId32 " of fastText's models, wanted %d", cursor->path, head[1], FASTTEXT_VERSION);
    return check_args(args, cursor->path);
}

/* ---- words ---- */

struct counts {
    int32_t size, words, labels;
    int64_t tokens, pruned;
};

static int read_counts(struct cursor *cursor, struct counts *counts) {
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

static int read_word(struct cursor *cursor, struct vocab *vocab) {
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

static int read_words(struct cursor *cursor, const struct counts *counts, struct vocab *vocab) {
    const char *first = cursor->at;
    uint64_t bytes = 0;
    for (int32_t i = 0; i < counts->words; i++) { /* memory for all words is allocated at once, so their bytes are counted first */
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

/* Finds a matrix with `wanted` rows. Sets *at to the offset of its first row. */
static int find_rows(struct cursor *cursor, const struct fasttext_file *file, const char *called, uint64_t wanted, uint64_t *at) {
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
    struct cursor cursor = {data, data ? data + file->map.size : NULL, path};
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
