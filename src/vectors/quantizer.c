#include "quantizer.h"

#include "base/memory.h"
#include "base/report.h"
#include "kernels/rounding.h"
#include "numeric.h"
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 4 << 20, SAMPLE = 100000, QUERIES = 1000, ANSWERS = 10, CANDIDATES = 100, GRAIN = 64 };

const struct export_type_form export_types[EXPORT_TYPES] = {
    [EXPORT_F32] = {"f32", "F32", 'f', 32},  [EXPORT_BF16] = {"bf16", "BF16", 'h', 16},  [EXPORT_F16] = {"f16", "F16", 'e', 16},
    [EXPORT_INT8] = {"int8", "I8", 'b', 8}, [EXPORT_UINT8] = {"uint8", "U8", 'B', 8}, [EXPORT_BINARY] = {"binary", "U8", 'B', 1}};

int export_type_named(const char *name) {
    for (int i = 0; i < EXPORT_TYPES; i++)
        if (!strcmp(name, export_types[i].name)) return i;
    return fail_usage("'%.100s' is not a type of export; wanted f32, bf16, f16, int8, uint8 or binary", name);
}

/* ---- a row ---- */

/* Returns the float16 nearest to a value below 65520; of two equally near ones, the even one. The bits are computed here since compilers before
 * GCC 12 and clang 15 have no float16. Below 2^-14 float16 has steps of 2^-24; adding 1/2 in float32 rounds to such a step. */
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

uint64_t quantizer_bytes(const struct quantizer *quantizer) {
    return ((uint64_t)quantizer->columns * export_types[quantizer->type].bits + 7) / 8;
}

static float scale_of(const struct quantizer *quantizer, uint64_t row) {
    return quantizer->scales ? quantizer->scales[row] : quantizer->scale;
}

/* Returns round(value / scale), limited to -127 .. 127. */
static int level(float value, float scale) {
    float found = scale > 0 ? rintf(value / scale) : 0;
    return (int)fmaxf(-127, fminf(127, found));
}

void quantizer_encode(const struct quantizer *quantizer, uint64_t row, const float *turned, void *out) {
    uint16_t *halves = out;
    uint8_t *bytes = out;
    float scale = scale_of(quantizer, row);
    if (quantizer->type == EXPORT_F32) memcpy(out, turned, quantizer->columns * sizeof *turned);
    if (quantizer->type == EXPORT_BINARY) memset(out, 0, quantizer_bytes(quantizer));
    for (uint32_t i = 0; i < quantizer->columns; i++) switch (quantizer->type) {
        case EXPORT_BF16: halves[i] = bfloat16_nearest(turned[i]); break;
        case EXPORT_F16: halves[i] = float16_of(turned[i]); break;
        case EXPORT_INT8: bytes[i] = (uint8_t)level(turned[i], scale); break;
        case EXPORT_UINT8: bytes[i] = (uint8_t)(level(turned[i], scale) + 128); break;
        case EXPORT_BINARY: bytes[i / 8] |= (uint8_t)((turned[i] > quantizer->mean[i]) << (7 - i % 8)); break;
        default: break;
        }
}

/* Writes a quantized row as float32. */
static void decode(const struct quantizer *quantizer, uint64_t row, const void *in, float *out) {
    const uint16_t *halves = in;
    const uint8_t *bytes = in;
    float scale = scale_of(quantizer, row);
    for (uint32_t i = 0; i < quantizer->columns; i++) switch (quantizer->type) {
        case EXPORT_BF16: out[i] = bfloat16_value(halves[i]); break;
        case EXPORT_F16: {
            int exponent = halves[i] >> 10 & 31, digits = halves[i] & 1023;
            float size = exponent ? ldexpf((float)(digits + 1024), exponent - 25) : ldexpf((float)digits, -24);
            out[i] = halves[i] & 0x8000 ? -size : size;
            break;
        }
        case EXPORT_INT8: out[i] = (float)(int8_t)bytes[i] * scale; break;
        case EXPORT_UINT8: out[i] = (float)(bytes[i] - 128) * scale; break;
        case EXPORT_BINARY: out[i] = bytes[i / 8] >> (7 - i % 8) & 1 ? 1 : -1; break;
        default: out[i] = ((const float *)in)[i];
        }
}

/* ---- rows turned to their axes ---- */

struct turning {
    const struct quantizer *quantizer;
    float *values, *turned;
    uint64_t count;
    _Atomic uint64_t next;
};

static void turn_row(const struct quantizer *quantizer, float *values, float *turned) {
    uint32_t dim = quantizer->model->dim, columns = quantizer->columns;
    double sums[QUANTIZER_COLUMNS_MOST];
    if (quantizer->unit) model_make_unit(values, dim);
    if (!quantizer->rotation) {
        if (turned != values) memcpy(turned, values, dim * sizeof *values);
        return;
    }
    memset(sums, 0, columns * sizeof *sums);
    for (uint32_t i = 0; i < dim; i++)
        for (uint32_t column = 0; column < columns; column++)
            sums[column] += (double)values[i] * (double)quantizer->rotation[i * columns + column];
    for (uint32_t column = 0; column < columns; column++) turned[column] = (float)sums[column];
}

static int turn(void *context, unsigned worker) {
    struct turning *turning = context;
    const struct quantizer *quantizer = turning->quantizer;
    uint64_t row, end;
    while (pool_take(&turning->next, turning->count, GRAIN, &row, &end))
        for (; row < end; row++)
            turn_row(quantizer, turning->values + row * quantizer->model->dim, turning->turned + row * quantizer->columns);
    return 0;
}

int quantizer_turn(const struct quantizer *quantizer, float *values, uint64_t count, float *turned) {
    struct turning turning = {.quantizer = quantizer, .values = values, .turned = turned, .count = count};
    return pool_run(quantizer->pool, turn, &turning);
}

/* ---- axes, means and scales, which are found before the first row is quantized ---- */

/* Finds the principal axes of a sample of the rows, scaled to length 1. */
static int find_principal(const struct quantizer *quantizer, double *axes) {
    uint64_t count = quantizer->rows < SAMPLE ? quantizer->rows : SAMPLE;
    OWNED uint32_t *ids = mem_alloc(count, sizeof *ids, "the rows of a sample");
    for (uint64_t i = 0; ids && i < count; i++) ids[i] = (uint32_t)(i * quantizer->rows / count);
    OWNED float *sample = ids ? model_matrix_of(quantizer->model, quantizer->view, ids, count, 1) : NULL;
    return sample ? principal_axes(axes, sample, count, quantizer->model->dim, quantizer->pool) : -1;
}

/* Writes random orthogonal axes: eigenvectors of a random symmetric matrix. */
static int draw_axes(struct numpy_draws *draws, double *axes, uint32_t dim) {
    OWNED double *matrix = mem_alloc(dim, dim * sizeof *matrix, "random axes"), *values = mem_alloc(dim, sizeof *values, "random axes");
    for (uint64_t i = 0; matrix && i < dim; i++)
        for (uint64_t j = 0; j <= i; j++)
            matrix[i * dim + j] = matrix[j * dim + i] = (double)numpy_draws_below(draws, UINT64_C(1) << 32) / 4294967296.0 - 0.5;
    if (matrix && values) eigen_symmetric(matrix, dim, values, axes);
    return matrix && values ? 0 : -1;
}

static int find_rotation(struct quantizer *quantizer) {
    uint32_t dim = quantizer->model->dim, columns = quantizer->columns;
    struct numpy_draws draws = numpy_draws_make(1);
    OWNED double *axes = mem_alloc(dim, dim * sizeof *axes, "principal axes");
    quantizer->rotation = axes ? mem_alloc(dim, columns * sizeof *quantizer->rotation, "principal axes") : NULL;
    int result = quantizer->rotation ? 0 : -1;
    for (uint32_t first = 0; !result && first < columns; first += dim) {
        uint32_t end = columns - first < dim ? columns : first + dim;
        result = columns > dim ? draw_axes(&draws, axes, dim) : find_principal(quantizer, axes);
        for (uint64_t i = 0; !result && i < dim; i++)
            for (uint64_t column = first; column < end; column++)
                quantizer->rotation[i * columns + column] = (float)axes[(column - first) * dim + i];
    }
    return result;
}

/* Adds a turned row (multiplied by the rotation) to the sums for the mean, and finds its scale. */
static void survey_row(struct quantizer *quantizer, uint64_t row, const float *turned, double *sums) {
    float most = 0;
    for (uint32_t i = 0; i < quantizer->columns; i++) {
        most = fmaxf(most, fabsf(turned[i]));
        sums[i] += (double)turned[i];
    }
    if (quantizer->scales) quantizer->scales[row] = most / 127;
    quantizer->scale = fmaxf(quantizer->scale, most / 127);
}

/* Finds the mean or the scales, for which all rows must be read. */
static int survey(struct quantizer *quantizer) {
    uint32_t dim = quantizer->model->dim, columns = quantizer->columns;
    uint64_t chunk = CHUNK_BYTES / (dim * sizeof(float)) + 1, count;
    OWNED float *values = mem_alloc(chunk, dim * sizeof *values, "rows"), *turned = mem_alloc(chunk, columns * sizeof *turned, "rows");
    OWNED double *sums = mem_zalloc(columns, sizeof *sums, "the mean of rows");
    int result = values && turned && sums ? 0 : -1;
    for (uint64_t first = 0; !result && first < quantizer->rows; first += count) {
        count = quantizer->rows - first < chunk ? quantizer->rows - first : chunk;
        model_rows(quantizer->model, quantizer->view, first, count, values);
        result = quantizer_turn(quantizer, values, count, turned);
        for (uint64_t i = 0; !result && i < count; i++) survey_row(quantizer, first + i, turned + i * columns, sums);
    }
    for (uint32_t i = 0; !result && quantizer->mean && i < columns; i++)
        quantizer->mean[i] = (float)(sums[i] / (double)quantizer->rows);
    return result;
}

int quantizer_open(struct quantizer *quantizer, const struct model *model, enum model_view view, uint64_t rows,
                   enum export_type type, uint32_t columns, int one_scale, unsigned threads) {
    *quantizer = (struct quantizer){.model = model, .view = view, .rows = rows, .type = type, .columns = columns ? columns : model->dim,
                                    .unit = type == EXPORT_BINARY || type == EXPORT_UINT8 || (type == EXPORT_INT8 && one_scale)};
    if (columns && (model->dim > QUANTIZER_COLUMNS_MOST || columns > QUANTIZER_COLUMNS_MOST))
        return fail_usage("columns = %u of the %u of '%s': rows are turned to new axes for at most %d of either", columns, model->dim,
                          model->directory, QUANTIZER_COLUMNS_MOST);
    if (columns > model->dim && type != EXPORT_BINARY)
        return fail_usage("columns = %u is more than the %u columns of '%s', which only binary can have", columns, model->dim,
                          model->directory);
    if (!(quantizer->pool = pool_open(threads)) || (columns && find_rotation(quantizer))) return -1;
    if (type < EXPORT_INT8) return 0;
    if (type == EXPORT_BINARY && !(quantizer->mean = mem_zalloc(quantizer->columns, sizeof(float), "the mean of rows"))) return -1;
    if (!quantizer->unit && !(quantizer->scales = mem_alloc(rows, sizeof(float), "scales of rows"))) return -1;
    return survey(quantizer);
}

void quantizer_close(struct quantizer *quantizer) {
    if (quantizer->pool) pool_close(quantizer->pool);
    mem_free(quantizer->rotation, quantizer->mean, quantizer->scales);
    *quantizer = (struct quantizer){.rows = 0};
}

/* ---- what is lost ---- */

float *quantizer_matrix(const struct quantizer *quantizer, uint64_t count) {
    uint32_t columns = quantizer->columns;
    float *values = model_matrix(quantizer->model, quantizer->view, count, 0);
    float *rows = values ? mem_aligned(count, columns * sizeof *rows, "quantized rows") : NULL, code[COLUMNS_MOST];
    int result = rows ? quantizer_turn(quantizer, values, count, rows) : -1;
    for (uint64_t row = 0; !result && row < count; row++) {
        quantizer_encode(quantizer, row, rows + row * columns, code);
        decode(quantizer, row, code, rows + row * columns);
        model_make_unit(rows + row * columns, columns);
    }
    free(values);
    if (!result) return rows;
    free(rows);
    return NULL;
}

int quantizer_queries(const struct quantizer *quantizer, float *values, uint64_t count, float *turned) {
    if (quantizer_turn(quantizer, values, count, turned)) return -1;
    for (uint64_t i = 0; quantizer->mean && i < count * quantizer->columns; i++) turned[i] -= quantizer->mean[i % quantizer->columns];
    return 0;
}

/* Returns how many of a query's true nearest rows, wanted[k], are among found[k]. */
static uint64_t common(const uint32_t *wanted, const uint32_t *found, uint32_t k) {
    uint64_t same = 0;
    for (uint32_t i = 0; i < ANSWERS; i++)
        for (uint32_t j = 0; j < k; j++) same += wanted[i] == found[j] && wanted[i] != DRAW_NONE;
    return same;
}

/* The queries are the float32 vectors of up to 1,000 rows; a row is not its own answer. Rescoring needs no second search: a row among the ten
 * nearest in float32 is also among the candidates' ten best if it is a candidate at all. */
int quantizer_measure(const struct quantizer *quantizer, struct quantizer_loss *loss) {
    ENDED_BY(search_close) struct search whole = {.rows = 0}, small = {.rows = 0};
    uint64_t rows = loss->searched = quantizer->rows < loss->most ? quantizer->rows : loss->most;
    uint64_t count = rows < QUERIES ? rows : QUERIES, same = 0, rescored = 0, of = 0, *starts = mem_alloc(count + 1, sizeof *starts, "queries");
    float *vectors = NULL, *turned = mem_aligned(count, quantizer->columns * sizeof *turned, "queries");
    float *scores = mem_alloc(count, CANDIDATES * sizeof *scores, "answers");
    uint32_t *ids = mem_alloc(count, sizeof *ids, "queries"), *wanted = mem_alloc(count, ANSWERS * sizeof *wanted, "answers");
    uint32_t *found = mem_alloc(count, CANDIDATES * sizeof *found, "answers");
    int result = starts && turned && scores && ids && wanted && found ? 0 : -1;
    for (uint64_t i = 0; !result && i <= count; i++) starts[i] = i;
    for (uint64_t i = 0; !result && i < count; i++) ids[i] = (uint32_t)(i * rows / count);
    if (!result)
        result = !(vectors = model_matrix_of(quantizer->model, quantizer->view, ids, count, 1)) ||
                         search_open(&whole, quantizer->model, quantizer->view, METRIC_COSINE, rows, NULL) ||
                         search_over(&small, quantizer_matrix(quantizer, rows), rows, quantizer->columns, METRIC_COSINE, NULL) ||
                         search_top(&whole, vectors, count, ANSWERS, starts, ids, wanted, scores) ||
                         quantizer_queries(quantizer, vectors, count, turned) ||
                         search_top(&small, turned, count, CANDIDATES, starts, ids, found, scores)
                     ? -1 : 0;
    for (uint64_t i = 0; !result && i < count; i++) {
        same += common(wanted + i * ANSWERS, found + i * CANDIDATES, ANSWERS);
        rescored += common(wanted + i * ANSWERS, found + i * CANDIDATES, CANDIDATES);
        of += common(wanted + i * ANSWERS, wanted + i * ANSWERS, ANSWERS);
    }
    loss->recall = of ? (double)same / (double)of : 1;
    loss->rescored = of ? (double)rescored / (double)of : 1;
    void *const arrays[] = {starts, vectors, turned, scores, ids, wanted, found};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    return result;
}
