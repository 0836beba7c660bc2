/* step64: one exact step in plain float64. It decides between two backends that round the same sums differently. The
 * rules are kernels/optimizers.h compiled in double; tests/reference checks that they are PyTorch's. */
#ifndef SPTX_TESTS_GPU_STEP64_H
#define SPTX_TESTS_GPU_STEP64_H

#include "kernels/backend.h"

struct table64 {
    struct record_layout layout;
    uint64_t rows;
    double *values;    /* [rows x (1 + slots) x dim]: weights, then the slots */
    uint32_t *updates; /* [rows] */
    double *gradients; /* [rows x dim] of the step under way, summed over a row's places; zero between steps */
    uint64_t *places;  /* [rows] in how many places of the batch a row stands; set by the step, too */
    const uint32_t *frozen; /* one bit a row that never changes; NULL: none */
    struct rounding rounding; /* of bfloat16 fields, which a step rounds as kernels/rounding.h has it */
};

/* Makes a table of packed records; table64_free() frees what it holds. */
struct table64 table64_of(const struct record_layout *layout, uint64_t rows, const char *records);
void table64_free(struct table64 *table);
/* Returns the first row whose packed record has another count of updates; table->rows where none has or they are not
 * counted. */
uint64_t table64_other_updates(const struct table64 *table, const char *records);
/* Returns the loss, summed over all pairs, those of two frozen rows too. */
double step64(struct table64 *target, struct table64 *context, const struct batch_view *view,
              const struct step_request *request);

#endif
