/* infer: computes rows for documents that a run was not trained on, as its training would, with all trained rows fixed.
 *
 *   start     zeros
 *   an epoch  each kept word is one example, by the draws of training (kernels/examples.h) at its position in the document
 *   rate      falls on a straight line over the epochs
 *
 * A document's row depends on its words alone, not on other documents of the call or on the number of threads.
 */
#ifndef SPTX_INFER_H
#define SPTX_INFER_H

#include "base/pool.h"
#include "config/config.h"
#include "model.h"
#include "train/examples.h"

/* How long a new document is trained, and with which learning rates. */
struct infer_passes {
    uint64_t epochs;   /* number of epochs; 0: as many as the run made */
    double first, last; /* learning rates at the beginning and at the end; first = 0: the run's rates, or 0.025 and 0 if its rule
                         * is not sgd */
};

struct infer {
    const struct model *model;
    struct examples examples; /* the tables for its draws; each document replaces ids and starts */
    uint32_t ids[2];          /* a document of one word, from which `examples` was made */
    uint64_t starts[2];
    struct pool *pool;        /* owned by the caller */
};

/* Prepares to compute rows of new documents with a run that was trained on documents. The run and the pool must stay open. Returns 0,
 * or -1 after fail(). The caller calls infer_close() in both cases. */
int infer_open(struct infer *infer, const struct model *model, struct pool *pool);
void infer_close(struct infer *infer); /* may be called on a struct of zeros */

/* Computes the rows of `count` documents: out [count x dim]. Document i has words words[starts[i]] .. words[starts[i + 1] - 1].
 * Numbers that are no word of the model are ignored. A document without any word of the model, or whose words subsampling drops in
 * every epoch, has a row of zeros; a warning counts these documents. Returns 0, or -1 after fail(). */
int infer_rows(const struct infer *infer, const struct infer_passes *passes, const uint64_t *starts, const uint64_t *words, uint64_t count,
               float *out);

#endif
