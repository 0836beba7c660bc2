#include "evaluate.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "names.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct pair {
    uint64_t line;
    int64_t a, b;      /* numbers of the two words' names */
    const char *score; /* text in the file's copy, not NUL-terminated */
    uint64_t score_length;
};

struct value {
    double value;
    uint64_t place;
};

static int by_value(const void *a, const void *b) {
    double x = ((const struct value *)a)->value, y = ((const struct value *)b)->value;
    return x < y ? -1 : x > y;
}

/* Computes ranks from 0; equal values get the mean of their ranks. Sorts `values`. */
static void rank(struct value *values, uint64_t count, double *ranks) {
    qsort(values, count, sizeof *values, by_value);
    for (uint64_t i = 0, j; i < count; i = j) {
        for (j = i + 1; j < count && values[j].value == values[i].value;) j++;
        for (uint64_t same = i; same < j; same++) ranks[values[same].place] = (double)(i + j - 1) / 2;
    }
}

/* Returns Pearson's correlation; NaN if one side is constant or there are no values. */
static double correlation(const double *a, const double *b, uint64_t count) {
    double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
    for (uint64_t i = 0; i < count; i++) mean_a += a[i], mean_b += b[i];
    mean_a /= (double)count, mean_b /= (double)count;
    for (uint64_t i = 0; i < count; i++) {
        double x = a[i] - mean_a, y = b[i] - mean_b;
        ab += x * y, aa += x * x, bb += y * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN;
}

/* Returns the cosine, rounded to float32, so that cosines that differ only by rounding are ties. */
static double cosine(const float *a, const float *b, uint32_t dim) {
    double ab = 0, aa = 0, bb = 0;
    for (uint32_t i = 0; i < dim; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return (float)(ab / (fmax(sqrt(aa), 1e-12) * fmax(sqrt(bb), 1e-12)));
}

/* Reads pairs: lines of two words and a score. Skips lines with fewer fields. */
static int read_pairs(struct field_file *file, struct names *names, struct pair **pairs, uint64_t *count) {
    uint64_t capacity = 0, a_length, b_length, score_length;
    int more;
    while ((more = field_file_next(file)) > 0) {
        char *a = (char *)field_file_field(file, COLUMN_A, &a_length), *b = (char *)field_file_field(file, COLUMN_B, &b_length);
        const char *score = field_file_field(file, COLUMN_VALUE, &score_length);
        if (!a || !b || !score) continue;
        if (mem_grow(pairs, &capacity, *count + 1, sizeof **pairs, "pairs of words")) return -1;
        struct pair *pair = &(*pairs)[(*count)++];
        *pair = (struct pair){file->number, names_add_lower(names, a, a_length), names_add_lower(names, b, b_length), score,
                              score_length};
        if (pair->a < 0 || pair->b < 0) return -1;
    }
    return more;
}

static int refuse_vectors(const struct model *model, const struct names *names, const struct pair *pair) {
    return fail("the vector of '%s' or of '%s' in '%s' holds NaN or infinity", words_get(&names->words, (uint64_t)pair->a, NULL),
                words_get(&names->words, (uint64_t)pair->b, NULL), model->directory);
}

/* Writes the vector of a name. Returns 1; 0 if the model has no vector for it; -1 after fail(). */
static int vector_of(const struct model *model, enum model_view view, const struct names *names, int64_t name, float *out) {
    uint64_t length;
    const char *word = words_get(&names->words, (uint64_t)name, &length);
    if (names->row[name] < 0) return model_unseen(model, view, word, length, out);
    model_rows(model, view, (uint64_t)names->row[name], 1, out);
    return 1;
}

/* Collects the scores and cosines of the pairs for which both words have vectors. Returns the number of these pairs, or -1. */
static int64_t compare_pairs(const struct model *model, enum model_view view, const struct names *names,
                             const struct pair *pairs, uint64_t count, struct value *golds, struct value *cosines,
                             const struct columns_form *form, const char *path) {
    float *rows = mem_alloc(2, model->dim * sizeof *rows, "two rows");
    int64_t known = rows ? 0 : -1;
    for (uint64_t i = 0; known >= 0 && i < count; i++) {
        int a = vector_of(model, view, names, pairs[i].a, rows), b = vector_of(model, view, names, pairs[i].b, rows + model->dim);
        double gold;
        if (a < 0 || b < 0) known = -1;
        if (a <= 0 || b <= 0) continue;
        if (columns_number(form, pairs[i].score, pairs[i].score_length, &gold)) {
            known = fail("'%s' line %" PRIu64 ": '%.*s' is not a score", path, pairs[i].line, text_shown(pairs[i].score_length),
                         pairs[i].score);
            break;
        }
        double near = cosine(rows, rows + model->dim, model->dim);
        if (!isfinite(near)) {
            known = refuse_vectors(model, names, &pairs[i]);
            break;
        }
        golds[known] = (struct value){gold, (uint64_t)known};
        cosines[known] = (struct value){near, (uint64_t)known};
        known++;
    }
    free(rows);
    return known;
}

/* Fails with the reason why rho cannot be computed. */
static int refuse_pairs(const struct sptx_pairs_score *score, const struct model *model, const char *path) {
    if (!score->total) return fail("'%s' has no line of two words and a score with tabs, commas or blanks between", path);
    if (!score->covered)
        return fail("none of the %" PRIu64 " pairs of '%s' has both words in the vocabulary of '%s'", score->total,
                    path, model->directory);
    return fail("the %" PRIu64 " pairs of '%s' that are covered, of %" PRIu64
                ", tell of no order: their scores or their cosines are all the same",
                score->covered, path, score->total);
}

int evaluate_pairs(struct sptx_pairs_score *score, const struct model *model, enum model_view view, const char *path) {
    struct field_file file;
    struct names names = {.capacity = 0};
    struct pair *pairs = NULL;
    struct value *golds = NULL, *cosines = NULL;
    double *gold_ranks = NULL, *ranks = NULL;
    uint64_t count = 0;
    int result = -1;
    *score = (struct sptx_pairs_score){.rho = NAN};
    if (field_file_open(&file, path, LOOK_WORDS) || read_pairs(&file, &names, &pairs, &count) ||
        names_locate(&names, model, model_items(model)))
        goto out;
    golds = mem_alloc(count, sizeof *golds, "scores of pairs");
    cosines = mem_alloc(count, sizeof *cosines, "scores of pairs");
    gold_ranks = mem_alloc(count, sizeof *gold_ranks, "ranks of pairs");
    ranks = mem_alloc(count, sizeof *ranks, "ranks of pairs");
    if (!golds || !cosines || !gold_ranks || !ranks) goto out;
    int64_t known = compare_pairs(model, view, &names, pairs, count, golds, cosines, &file.look.form, path);
    if (known < 0) goto out;
    rank(golds, (uint64_t)known, gold_ranks);
    rank(cosines, (uint64_t)known, ranks);
    *score = (struct sptx_pairs_score){correlation(gold_ranks, ranks, (uint64_t)known), (uint64_t)known, count};
    if (!isfinite(score->rho)) {
        refuse_pairs(score, model, path);
        goto out;
    }
    result = 0;
out:
    field_file_close(&file);
    free(pairs);
    free(golds);
    free(cosines);
    free(gold_ranks);
    free(ranks);
    names_release(&names);
    return result;
}
