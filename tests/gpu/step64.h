/* step64: one exact step in plain float64. It decides between two backends that round the same sums differently. The
 * rules are kernels/optimizers.h compiled in double; tests/reference checks that they are PyTorch's. */
#ifndef SPTX_TESTS_GPU_STEP64_H
#define SPTX_TESTS_GPU_STEP64_H

#include "kernels/backend.h"

struct table64 {
    struct record_layout layout;
    uint64_t rows;
    double *values;    /* [rows x (1 + slots) x dim] each row's weights, then its slots */
    uint32_t *updates; /* [rows] update counts */
    double *gradients; /* [rows x dim] summed gradient of each row in the current step; zeros between steps */
    uint64_t *places;  /* [rows] number of times that a row occurs in the batch, set by the step */
    const uint32_t *frozen; /* bits of the rows that never change; NULL: none */
    struct rounding rounding; /* how a step rounds bfloat16 fields (kernels/rounding.h) */
};

/* Makes a table from packed records; table64_free() frees it. */
struct table64 table64_of(const struct record_layout *layout, uint64_t rows, const char *records);
void table64_free(struct table64 *table);
/* Returns the first row whose update count in `records` differs; table->rows if none differs or updates are not counted. */
uint64_t table64_other_updates(const struct table64 *table, const char *records);
/* Does a step. Returns the loss, summed over all pairs, including those of two frozen rows. */
double step64(struct table64 *target, struct table64 *context, const struct batch_view *view,
              const struct step_request *request);

#endif
