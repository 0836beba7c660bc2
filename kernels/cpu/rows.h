/* rows: arithmetic on rows, compiled once for each processor level (rows.c) and chosen at run time. Every sum is always added in the same order,
 * for any tile or thread: columns in lanes, then the lanes as a tree, then the last columns. */
#ifndef SPTX_CPU_ROWS_H
#define SPTX_CPU_ROWS_H

#include "kernels/losses.h"
#include "kernels/optimizers.h"
#include "kernels/rounding.h"

#include <stdint.h>

/* most contexts of one call of gain() */
enum { CPU_ROWS_CONTEXTS = 8 };

/* float32 copies of bfloat16 rows in lock-free training are padded to a multiple of this number of columns */
enum { CPU_APART = 32 };

/* rows of a panel, which is stored column by column: panel[column x CPU_PANEL + row] */
enum { CPU_PANEL = 32 };

/* Determines the random bits with which a field of a row is rounded. */
struct cpu_draws {
    const struct rounding *of;
    enum draw_purpose purpose;
    uint64_t global_step;
    uint32_t row, slot;
};

/* A target and its contexts for fit(): their float32 rows, sums of squared gradients, and counts. */
enum { CPU_FIT = 64 };
struct cpu_fit {
    float *weights, *sums;                  /* [span] of the target */
    float *const *context_weights, *const *context_sums; /* [count] */
    const float *counts;                    /* [count] */
    uint32_t count, span;                   /* count: at most CPU_FIT; span: columns of a row, a multiple of 4 */
    const char *const *ahead;               /* [ahead_count] addresses of ahead_bytes bytes each to prefetch, for the next block */
    uint32_t ahead_count, ahead_bytes;
};

struct cpu_rows {
    const char *name;

    /* logits[t x stride + c] = dot(targets[t], contexts[c]) over dim columns. */
    void (*dots)(const float *const *targets, uint32_t t_count, const float *const *contexts, uint32_t c_count, uint32_t dim,
                 float *logits, uint64_t stride);

    /* out[q x stride + r] = dot(queries[q], row r of the panel), summed over columns in order. add = 1: sums begin with the values in `out`; add =
     * 0: with zero. */
    void (*products)(const float *const *queries, uint32_t q_count, const float *panel, uint32_t dim, float *out, uint64_t stride, int add);

    /* Replaces logits[t_count x c_count] by scale x (sigmoid(logit) - y), where y is 1 for the first `positives` of each row, otherwise 0. */
    void (*coefficients)(float *logits, uint32_t t_count, uint32_t c_count, uint32_t positives, float scale);

    /* Returns the sum of the losses of logits; to be called before coefficients replace them. */
    double (*loss)(const float *logits, uint32_t t_count, uint32_t c_count, uint32_t positives);

    /* For any loss of losses.h: replaces scores[t_count x c_count] by scale x their coefficients. Returns the sum of the losses.
     * weights: [positives]; NULL: every positive weighs 1. spare: [2 x c_count] scratch. */
    double (*learn)(const struct loss_options *loss, float *scores, uint32_t t_count, uint32_t c_count, uint32_t positives,
                    const float *weights, float scale, float *spare);

    /* Softmax of losses.h, for one target with shared negatives: replaces *positive and scores[count] by scale x their coefficients. weight: the
     * positive's weight; NULL: 1. Negatives with id `own` are left out of every sum, and get coefficient 0. Returns the loss. */
    double (*learn_shared)(const struct loss_options *loss, float *positive, const float *weight, float *scores,
                           const uint32_t *ids, uint32_t count, uint32_t own, float scale);

    /* Trains one target with its contexts by LOSS_GLOVE and adagrad: each context in turn changes the target's row and its own. A step is lr x
     * gradient / sqrt(sum), without eps, since the sums are far from 0. Returns the sum of the losses. */
    double (*fit)(const struct loss_options *loss, const struct cpu_fit *fit, float lr);

    /* squares[i] = dot(rows[i], rows[i]) */
    void (*squares)(const float *const *rows, uint64_t count, uint32_t dim, float *squares);

    /* values[t x c_count + c] *= t_factors[t] x c_factors[c] */
    void (*scale)(float *values, const float *t_factors, uint32_t t_count, const float *c_factors, uint32_t c_count);

    /* sum[dim] += factors[i x stride] x rows[i], for i in rising order. */
    void (*combine)(float *sum, const float *factors, uint64_t stride, const float *const *rows, uint64_t count, uint32_t dim);

    /* sums[i][dim] += factors[i] x row, for i in rising order. */
    void (*spread)(const float *row, const float *factors, float *const *sums, uint64_t count, uint32_t dim);

    /* moved[t] += sum over c of factors[t x c_count + c] x old contexts[c]; gained[c] += sum over t of the same factor x
     * targets[t]. c_count <= CPU_ROWS_CONTEXTS.
     *
     * gained: separate memory, or `contexts` itself, which then change; a row that occurs there several times gets the sum of each occurrence.
     *
     * moved: separate memory, or `targets` itself; the second occurrence of a row is then read as the first one has changed it.
     *
     * new_moved, new_gained = 1: sums begin at zero; 0: at the values in the arrays. new_gained must be 0 if contexts change. */
    void (*gain)(const float *const *targets, float *const *moved, uint32_t t_count, const float *const *contexts,
                 float *const *gained, uint32_t c_count, uint32_t dim, const float *factors, int new_moved, int new_gained);

    /* For bfloat16 fields; `kept` is such a field, from its first column on. widen() converts it to floats; write() rounds floats with the random
     * bits of `draws`; combine_kept() does the same as combine() for bfloat16 fields. */
    void (*widen)(const uint16_t *kept, uint32_t columns, float *out);
    void (*write)(uint16_t *kept, const float *values, uint32_t columns, const struct cpu_draws *draws);
    void (*combine_kept)(float *sum, const float *factors, uint64_t stride, const uint16_t *const *rows, uint64_t count, uint32_t dim);

    /* For the weights of coarse rows (record.h). `kept` is a row's scale with its codes; float8: the codes are e4m3, otherwise int8.
     * close_codes() rounds with the random bits of `draws`. */
    void (*open_codes)(const void *kept, int float8, uint32_t columns, float *out);
    void (*close_codes)(void *kept, int float8, const float *values, uint32_t columns, const struct cpu_draws *draws);

    /* For lock-free training, whose copies of bfloat16 rows have a faster order of columns: of every CPU_APART columns (or half
     * as many) the even ones first. Dot products and sums of two such copies are unaffected. A copy is padded with zeros to a
     * multiple of CPU_APART columns. add_apart() takes a gain in that order, adds it to the row, rounds with the cheap random
     * bits of round_row_key() and stores. If two workers change a column at once, one change may be lost, as with float32. */
    void (*widen_apart)(const uint16_t *kept, uint32_t columns, float *out);
    void (*add_apart)(uint16_t *kept, const float *gain, uint32_t columns, uint32_t row_key);

    /* Updates a row's columns by one rule. */
    void (*rule[RULE_COUNT])(const struct rule_step *step, uint32_t dim, const float *gradient, float *w, float *s0, float *s1, float *s2);
};

/* Returns the functions of the highest level that this processor supports. */
const struct cpu_rows *cpu_rows_best(void);

#endif
