/* model_files: opens a finished run: its words and its two tables, mapped and verified. */
#ifndef SPTX_MODEL_FILES_H
#define SPTX_MODEL_FILES_H

#include "base/npy.h"
#include "kernels/examples.h"
#include "kernels/losses.h"
#include "rows/fasttext_file.h"
#include "rows/table.h"
#include "corpus/vocab.h"
#include "state.h"

/* An open run, model of fastText, or file of words with their vectors. */
struct model {
    struct vocab vocab;
    /* The tables of a checkpoint. Context rows are items, so that table ends before the lists' rows. If no item is a target, the
     * target table begins with the lists' rows. In older runs both tables have all rows. model_table_row() handles all cases. */
    struct npy target, context;
    uint64_t rows;
    uint32_t dim;
    int mode;   /* enum config_mode: how the run made its examples; MODE_AUTO if its config.ini is lost */
    int cosine; /* 1: the score of a pair was a cosine (train.score) */
    int tree;   /* 1: contexts are inner nodes of a Huffman tree (train.loss = hierarchical), one fewer than words; 0: they are
                 * words or items */
    struct loss_options loss; /* the loss that the rows were trained with; zeros if mode is MODE_AUTO */
    struct model_negatives {
        uint64_t count;       /* number of negatives of an example, or of a batch that shares them */
        int law, exclude;     /* law: negatives.law; exclude: 1: a list's own items are not among its negatives
                               * (negatives.exclude) */
        double power;         /* negatives.power */
    } negatives;
    double own; /* examples.own. Below 1, a list's row is averaged with its items' target rows */
    int item_targets; /* for a run whose lists have rows: 1: items have trained target rows, too */
    uint64_t relations; /* for triples: number of relations, whose rows are the first of the lists' rows; 0: the run has none */
    int reciprocal;     /* 1: the relations' rows are followed by as many rows of their reciprocals */
    enum example_product product; /* for triples: how the rows of a head and of a relation are multiplied */
    int documents;    /* 1: lists are documents (corpus.format) */
    struct init_values first[2]; /* by enum table_side: first values of the rows; an untrained row still has them */
    uint32_t seed;               /* seed of these first values */
    float *propagated; /* [rows x dim] rows spread over the run's graph; NULL until answers_view_named() makes them */
    struct fasttext_args trained; /* training options in fastText's form; model = 0: fastText has no model that was trained in
                                   * this way */
    char *directory;   /* path of the run directory (or of fastText's file), without links */
    struct run_state state; /* state of the run's checkpoint */
};

/* Opens RUN: a run directory, one checkpoint in it, a model of fastText (.bin), or a file of words with their vectors
 * (vectors_file.h). Such a file has one table, which serves as target and as context table. Verifies checksums before it uses
 * anything, and refuses tables and a vocabulary that do not belong together. */
int model_open(struct model *model, const char *run);
void model_close(struct model *model); /* may be called on a struct of zeros */
/* Reads only the vocabulary of a run, a checkpoint or a model of fastText. Returns 0, or -1 after fail(). */
int model_read_vocab(struct vocab *vocab, const char *run);

/* Returns a pointer into the mapping to a field of a row, or NULL if the table does not have the row. In a model of fastText the
 * floats are not aligned. */
const void *model_table_row(const struct model *model, enum table_side side, const struct npy_field *field, uint64_t row);

/* Reads columns first .. first + count - 1 of a row's weights. Returns 1; 0 if the table does not have the row. */
int model_weights(const struct model *model, enum table_side side, uint64_t row, uint32_t first, uint32_t count, float *out);

/* Returns 1 if a row was trained: if it differs from its first values. Without config.ini the first values are unknown; then
 * every row counts as trained. */
int model_is_trained(const struct model *model, enum table_side side, uint64_t row);

#endif
