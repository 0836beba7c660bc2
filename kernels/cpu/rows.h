/* rows: arithmetic on rows, compiled once a processor level (rows.c) and chosen at run time.
 *
 * Every sum has one order whatever the tile or the thread: lanes over columns, one tree, then the columns left over.
 */
#ifndef SPTX_CPU_ROWS_H
#define SPTX_CPU_ROWS_H

#include "kernels/losses.h"
#include "kernels/optimizers.h"
#include "kernels/rounding.h"

#include <stdint.h>

/* Contexts of one call to update(), at most. */
enum { CPU_ROWS_CONTEXTS = 8 };

/* Columns of a copy's grain in lock-free training of bfloat16 rows. */
enum { CPU_APART = 32 };

/* Rows that lie side by side in a panel: panel[column x CPU_PANEL + row]. */
enum { CPU_PANEL = 32 };

/* The draws that round one field of one row. */
struct cpu_draws {
    const struct rounding *of;
    enum draw_purpose purpose;
    uint64_t global_step;
    uint32_t row, slot;
};

struct cpu_rows {
    const char *name;

    /* logits[t x stride + c] = dot(targets[t], contexts[c]) over dim columns. */
    void (*dots)(const float *const *targets, uint32_t t_count, const float *const *contexts, uint32_t c_count, uint32_t dim,
                 float *logits, uint64_t stride);

    /* out[q x stride + r] = dot(queries[q], row r of the panel), over columns in order; add: the sum goes on from what stands
     * there. */
    void (*products)(const float *const *queries, uint32_t q_count, const float *panel, uint32_t dim, float *out, uint64_t stride,
                     int add);

    /* logits[t_count x c_count] -> scale x (sigmoid(logit) - y), y = 1 for the first `positives` of each row. */
    void (*coefficients)(float *logits, uint32_t t_count, uint32_t c_count, uint32_t positives, float scale);

    /* Returns the loss of those logits, summed, before they become coefficients. */
    double (*loss)(const float *logits, uint32_t t_count, uint32_t c_count, uint32_t positives);

    /* Computes any loss of losses.h: scores[t_count x c_count] become scale x their coefficients. Returns the loss,
     * summed. weights: of the positives; NULL: 1 each. `spare`: [2 x c_count]. */
    double (*learn)(const struct loss_options *loss, float *scores, uint32_t t_count, uint32_t c_count, uint32_t positives,
                    const float *weights, float scale, float *spare);

    /* Computes the softmax of losses.h of one target whose negatives are shared: *positive and scores[count] become scale x their
     * coefficients. weight: of the positive; NULL: 1. Negatives whose id is `own` have none and stand in no sum. Returns the loss. */
    double (*learn_shared)(const struct loss_options *loss, float *positive, const float *weight, float *scores,
                           const uint32_t *ids, uint32_t count, uint32_t own, float scale);

    /* squares[i] = dot(rows[i], rows[i]) */
    void (*squares)(const float *const *rows, uint64_t count, uint32_t dim, float *squares);

    /* values[t x c_count + c] *= t_factors[t] x c_factors[c] */
    void (*scale)(float *values, const float *t_factors, uint32_t t_count, const float *c_factors, uint32_t c_count);

    /* sum[dim] += factors[i x stride] x rows[i], i in order. */
    void (*combine)(float *sum, const float *factors, uint64_t stride, const float *const *rows, uint64_t count, uint32_t dim);

    /* sums[i][dim] += factors[i] x row, i in order. */
    void (*spread)(const float *row, const float *factors, float *const *sums, uint64_t count, uint32_t dim);

    /* moved[t] += sum over c of factors[t x c_count + c] x contexts[c], from contexts as they were; contexts[c] += sum
     * over t of the same factor x targets[t]. A row may come several times among the contexts: each place's sum is
     * added. moved may be targets; a row that comes twice there is read as its first place left it. c_count <=
     * CPU_ROWS_CONTEXTS. */
    void (*update)(const float *const *targets, float *const *moved, uint32_t t_count, float *const *contexts,
                   uint32_t c_count, uint32_t dim, const float *factors);

    /* Does what update() does, but for where the sums of contexts go: to gained[c], which are no contexts.
     * new_moved, new_gained: 1 where the sums begin there, with nothing in them. */
    void (*gain)(const float *const *targets, float *const *moved, uint32_t t_count, const float *const *contexts,
                 float *const *gained, uint32_t c_count, uint32_t dim, const float *factors, int new_moved, int new_gained);

    /* Fields of bfloat16: `kept` is one, of `columns` columns from the first on. widen() reads it; write() rounds values by the
     * draws. combine_kept() is combine() over such fields. */
    void (*widen)(const uint16_t *kept, uint32_t columns, float *out);
    void (*write)(uint16_t *kept, const float *values, uint32_t columns, const struct cpu_draws *draws);
    void (*combine_kept)(float *sum, const float *factors, uint64_t stride, const uint16_t *const *rows, uint64_t count,
                         uint32_t dim);

    /* Lock-free training copies rows in the order in which that is fastest: of every CPU_APART columns the even ones first, or of
     * half as many. Dot products and sums of such copies do not see it. A copy is filled up with zeros to whole CPU_APART.
     * add_apart() takes a gain in that order, rounds what is kept + gain by a row's cheap bits (round_row_key()) and stores it:
     * of two workers on a column one may lose its change, as with float32. */
    void (*widen_apart)(const uint16_t *kept, uint32_t columns, float *out);
    void (*add_apart)(uint16_t *kept, const float *gain, uint32_t columns, uint32_t row_key);

    /* Applies one rule to a row's columns. */
    void (*rule[RULE_COUNT])(const struct rule_step *step, uint32_t dim, const float *gradient, float *w, float *s0, float *s1,
                             float *s2);
};

/* Returns the best level that this processor has. */
const struct cpu_rows *cpu_rows_best(void);

#endif
