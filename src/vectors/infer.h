/* infer: computes rows for new documents, as the run's training would, while all trained rows stay unchanged.
 *
 *   start     zeros
 *   an epoch  each kept word is one example, by the draws of training (kernels/examples.h) at its position in the document
 *   rate      falls linearly over the epochs
 *
 * A document's row depends on its words alone, not on other documents of the call or on the number of threads.
 */
#ifndef SPTX_INFER_H
#define SPTX_INFER_H

#include "base/pool.h"
#include "config/config.h"
#include "model.h"
#include "train/examples.h"

/* For how many epochs a new document is trained, and with which learning rates. */
struct infer_passes {
    uint64_t epochs;   /* number of epochs; 0: as many as the run made */
    double first, last; /* learning rates at the beginning and end; first = 0: the run's own, or 0.025 and 0 if its rule is not sgd */
};

struct infer {
    const struct model *model;
    struct examples examples; /* the input of drawing examples; each document replaces its ids and starts */
    uint32_t ids[2];          /* the document of one word from which `examples` was made */
    uint64_t starts[2];
    struct pool *pool;        /* owned by the caller */
};

/* Prepares to compute rows of new documents with a run that was trained on documents. The run and the pool must stay open. Returns 0,
 * or -1 after fail(). The caller calls infer_close() in both cases. */
int infer_open(struct infer *infer, const struct model *model, struct pool *pool);
void infer_close(struct infer *infer); /* may be called on a struct of zeros */

/* Computes the rows of `count` documents: out [count x dim]. Document i has words words[starts[i]] .. words[starts[i + 1] - 1]. Numbers that are
 * not words of the model are ignored. A document gets a row of zeros, and is counted in a warning, if the model knows none of its words or
 * subsampling drops them in every epoch. Returns 0, or -1 after fail(). */
int infer_rows(const struct infer *infer, const struct infer_passes *passes, const uint64_t *starts, const uint64_t *words, uint64_t count,
               float *out);

#endif
