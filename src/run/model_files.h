/* model_files: the tables of a run: which rows are frozen, how tables are opened to be trained, how a finished run is opened.
 *
 * frozen: which rows of a run's tables never change (train.freeze), one bit a row.
 *
 *   target, context   every row of that table
 *   known             the rows that came from train.from. No key tells which rows these are, and the source may be
 *                     gone when the run is resumed. Hence every checkpoint lists them, in known.npy
 *
 * known.npy is a NumPy file with the fields `target` and `context`, uint32, one record for 32 rows, the first row in the
 * lowest bit: numpy.unpackbits(a["target"].copy().view("u1"), bitorder="little")[:rows].
 */
#ifndef SPTX_MODEL_FILES_H
#define SPTX_MODEL_FILES_H

#include "base/npy.h"
#include "config/config.h"
#include "corpus/vocab.h"
#include "kernels/examples.h"
#include "kernels/losses.h"
#include "kernels/ranks.h"
#include "rows/table.h"
#include "rows/vectors_file.h"
#include "state.h"

#include <stdint.h>

/* The frozen rows of both tables of a run. */
struct frozen {
    uint64_t rows;
    int known;         /* 1: train.freeze = known */
    uint32_t *bits[2]; /* by enum table_side: [table_frozen_words(rows)] bit map of the rows, as table_options.frozen; NULL: the
                        * table has no frozen row */
};

/* Allocates and sets the bits that the config asks for, for tables of this number of rows. With train.freeze = known, no bit is
 * set yet. Returns 0, or -1 after fail(). Call frozen_release() in any case. */
int frozen_init(struct frozen *frozen, const struct config *config, uint64_t rows);
void frozen_release(struct frozen *frozen); /* may be called on a struct of zeros */

void frozen_add(struct frozen *frozen, enum table_side side, uint64_t row);

/* Writes known.npy of a checkpoint; *checksum receives XXH64 of the whole file. */
int frozen_write(const struct frozen *frozen, const char *path, uint64_t *checksum);
int frozen_read(struct frozen *frozen, const char *path);
/* Reads known.npy of a checkpoint. All ranks call it together, since only the first one may see the file. */
int frozen_resume(struct frozen *frozen, const char *checkpoint, struct ranks *ranks);

uint64_t frozen_bytes(const struct frozen *frozen); /* returns the most bytes that known.npy can have; 0: the run has no such
                                                     * file */

/* tables: opens the two tables of a run as its config says. */

/* Returns the optimizer's options of a resolved config, in the kernels' form. */
struct rule_options tables_rule(const struct config *config);

/* Checks that model.target_init and model.context_init can be parsed, before the corpus is read. Returns 0, or -1 after fail(). */
int tables_check_init(const struct config *config);

/* Opens a table, or this rank's columns of it. Places must not be "auto" any more. Working files are created in run.dir. Rows,
 * ranks and frozen rows are taken from `own`, all other options from the config. */
int tables_init(struct table *table, enum table_side side, const struct config *config, const struct table_options *own,
                const struct backend_ops *ops, struct backend *backend);

/* model_files: opens a finished run: its words and its two tables, mapped and verified. */

/* An open run, model of fastText, or file of words with their vectors. */
struct model {
    struct vocab vocab;
    /* The tables of a checkpoint. Context rows are items, so that table ends before the lists' rows. If no item is a target, the
     * target table begins with the lists' rows. In older runs both tables have all rows. model_table_row() handles all cases. */
    struct npy target, context;
    struct config keys; /* the run's config.ini, read once; the defaults if it is lost, and for a file of vectors */
    uint64_t rows;
    uint32_t dim;
    uint32_t biases; /* 2 with train.loss = glove: the files have that many more columns, behind the vectors; otherwise 0 */
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
