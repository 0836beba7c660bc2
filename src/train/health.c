#include "health.h"

#include "base/memory.h"
#include "base/report.h"
#include "rows/values.h"
#include "run/checkpoint.h"
#include "run/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS_ASKED = 64, COLUMNS_LEAST = 16 }; /* ROWS_ASKED: most rows that are compared. COLUMNS_LEAST: fewest columns: with
                                               * fewer, rows of good models have high cosines, too */
static const double alike = 0.9;

/* Reads a row's weights and scales them to unit length; a row of zeros stays zeros. */
static int read_row(const struct table *table, uint64_t row, char *packed, float *out) {
    const struct record_field *weights = &table->spec.layout.field[RECORD_WEIGHTS];
    struct npy_field field = {.kind = values_kind(weights->type)};
    double square = 0;
    if (table->ops->table_read(table->backend, table->store, row, 1, packed)) return -1;
    values_of_file(&field, packed + weights->packed, 0, weights->columns, out);
    for (uint32_t i = 0; i < weights->columns; i++) square += (double)out[i] * out[i];
    for (uint32_t i = 0; square > 0 && i < weights->columns; i++) out[i] = (float)(out[i] / sqrt(square));
    return 0;
}

/* Returns the mean cosine of all pairs of different rows. The rows have unit length, so the cosines of all ordered pairs add up to
 * |sum of rows|^2 - sum of |row|^2. */
static double mean_of_pairs(const float *rows, uint64_t count, uint32_t columns) {
    double all = 0, own = 0;
    for (uint32_t i = 0; i < columns; i++) {
        double sum = 0;
        for (uint64_t row = 0; row < count; row++) {
            double value = rows[row * columns + i];
            sum += value;
            own += value * value;
        }
        all += sum * sum;
    }
    return (all - own) / ((double)count * (double)(count - 1));
}

int told_apart_cosine(const struct table *table, uint64_t first, uint64_t end, double *mean) {
    const struct record_layout *layout = &table->spec.layout;
    uint64_t there = end > first ? end - first : 0, count = there < ROWS_ASKED ? there : ROWS_ASKED;
    *mean = NAN;
    if (count < 2 || table->whole.dim < COLUMNS_LEAST) return 0;
    char *packed = mem_alloc(layout->packed, 1, "a row");
    float *rows = mem_alloc(count * layout->dim, sizeof *rows, "rows");
    int result = packed && rows ? 0 : -1;
    for (uint64_t i = 0; !result && i < count; i++)
        result = read_row(table, first + i * there / count, packed, rows + i * layout->dim);
    if (!result) *mean = mean_of_pairs(rows, count, layout->dim);
    free(packed);
    free(rows);
    return result;
}

void told_apart_warn(const struct config *config, double mean, const char *what) {
    char way[METRICS_ADVICE];
    if (!(mean > alike)) return;
    metrics_advise(config, way);
    warn("the vectors of random pairs of %s have a mean cosine of %.2f: the model hardly tells %s apart; %s", what, mean, what, way);
}

/* Returns advice for keys other than the learning rate: those against divergence that this run has not set. */
static const char *other_ways(const struct config *c) {
    int summed = c->train_update == UPDATE_BATCH && c->train_reduction == REDUCTION_SUM;
    char why[HOGWILD_WHY];
    struct hogwild_asked asked = config_hogwild(c);
    if (!summed) return "";
    if (c->optimizer_clip > 0) return " or train.batch, whose gradients are summed, or optimizer.clip";
    return hogwild_refuses(&asked, why)
               ? " or train.batch, whose gradients are summed, or set optimizer.clip (10 is a good first try)"
               : " or train.batch, whose gradients are summed, or set optimizer.clip (10 is a good first try), or "
                 "train.update = hogwild, which adds them one by one";
}

/* The arguments of diverged_say(). */
struct diverging {
    const struct config *config;
    const char *run;
    uint64_t step;
    const char *what;
};

static int say(void *user) {
    const struct diverging *d = user;
    char seen[256];
    snprintf(seen, sizeof seen, "%s", d->what);
    report_clear();
    char *kept = checkpoint_newest(d->run, NULL, &(int){0});
    report_clear();
    fail("%s at step %" PRIu64 ": the weights have diverged; lower optimizer.lr (now %g)%s; %s%s%s", seen, d->step,
         d->config->optimizer_lr, other_ways(d->config),
         kept ? "the last good checkpoint is '" : "no checkpoint had been written", kept ? kept : "", kept ? "'" : "");
    free(kept);
    return -1;
}

int diverged_say(const struct config *config, struct ranks *ranks, const char *run, uint64_t step, const char *what) {
    struct diverging diverging = {config, run, step, what};
    return ranks_do(ranks, ranks_first(ranks) ? say : NULL, &diverging);
}
