/* model_files: the tables of a run: which rows are frozen, opening tables for training, opening a finished run.
 *
 * frozen: which rows of a run's tables never change (train.freeze), one bit for each row.
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

/* The frozen rows of a run's two tables. */
struct frozen {
    uint64_t rows;
    int known;         /* 1: train.freeze = known */
    uint32_t *bits[2]; /* [table_side][table_frozen_words(rows)] bit map of rows, as table_options.frozen; NULL: no row is frozen */
};

/* Allocates and sets the bits for what the config says, for tables with `rows` rows; with train.freeze = known, none is set yet. Returns 0, or -1
 * after fail(). Call frozen_release() in any case. */
int frozen_init(struct frozen *frozen, const struct config *config, uint64_t rows);
void frozen_release(struct frozen *frozen); /* may be called on a struct of zeros */

void frozen_add(struct frozen *frozen, enum table_side side, uint64_t row);

/* Writes known.npy of a checkpoint; *checksum: XXH64 of the whole file. */
int frozen_write(const struct frozen *frozen, const char *path, uint64_t *checksum);
int frozen_read(struct frozen *frozen, const char *path);
/* Reads known.npy of a checkpoint. All ranks call it together, since perhaps only the first one sees the file. */
int frozen_resume(struct frozen *frozen, const char *checkpoint, struct ranks *ranks);

uint64_t frozen_bytes(const struct frozen *frozen); /* returns the most bytes that known.npy can have; 0: the run has none */

/* tables: opens the two tables of a run as its config says. */

/* Returns the optimizer options of a resolved config, as kernels use them. */
struct rule_options tables_rule(const struct config *config);

/* Checks that model.target_init, context_init and relation_init can be parsed, before the corpus is read. Returns 0, or -1 after fail(). */
int tables_check_init(const struct config *config);

/* Opens a table, or this rank's columns of it. Places must not be "auto". Working files are created in run.dir. `own` gives rows, ranks and frozen
 * rows, the config all other options. */
int tables_init(struct table *table, enum table_side side, const struct config *config, const struct table_options *own,
                const struct backend_ops *ops, struct backend *backend);

/* model_files: opens a finished run: its words and its two tables, mapped and verified. */

/* Rows that a run was not trained on, with their names: of new items, or of features (vectors/features.h). */
struct model_extra {
    struct words names;
    float *rows; /* [names.size x dim] */
    uint64_t capacity;
};

/* A graph whose nodes are items (trained ones, then new ones) and, after them, features: an arc joins an item and each of its features. */
struct model_content {
    uint64_t items, features;
    uint64_t *starts; /* [items + features + 1] an item's features or a feature's items: of[starts[n]] .. of[starts[n + 1] - 1] */
    uint32_t *of;
    float *part;   /* of each arc: the feature's part in the item (features.h) */
    float weight;  /* by which content is added to the scores of lists; 0: it is not */
    float longer;  /* factor of the scores of new items, learnt and by content */
};

/* An open run, fastText model, or file of words with their vectors. */
struct model {
    struct vocab vocab;
    /* The tables of a checkpoint. `vocab` has first the items, then the lists. The context table has rows for the items only; if items are never
     * targets, the target table has rows for the lists only. In older runs both have all rows. model_table_row() knows each of these cases. */
    struct npy target, context;
    struct config keys; /* the run's config.ini, read once; the defaults if it is missing, and for files of vectors */
    uint64_t rows;
    uint32_t dim;
    uint32_t biases; /* with train.loss = glove 2: the files have so many columns after the vectors; otherwise 0 */
    int mode;   /* enum config_mode: how the run made its examples; MODE_AUTO if its config.ini is missing */
    int cosine; /* 1: the score of a pair was a cosine (train.score) */
    int tree;   /* 1: contexts are inner nodes of a Huffman tree (train.loss = hierarchical), one fewer than words; 0: words or items */
    struct loss_options loss; /* loss with which the rows were trained; zeros if mode is MODE_AUTO */
    struct model_negatives {
        uint64_t count;       /* number of negatives of an example, or of a batch that shares them */
        int law, exclude;     /* law: negatives.law; exclude: 1: a list's own items were not its negatives (negatives.exclude) */
        double power;         /* negatives.power */
    } negatives;
    double own; /* examples.own; below 1, a list's row is averaged with its items' target rows */
    int item_targets; /* runs whose lists have rows: 1: items have trained target rows, too */
    uint64_t relations; /* triples: number of relations, which have the first of the lists' rows; 0: no triples */
    int reciprocal;     /* 1: after the relations' rows come as many rows of their reciprocals */
    enum example_product product; /* triples: how the rows of a head and a relation are multiplied */
    int documents;    /* 1: lists are documents (corpus.format) */
    struct first_values first[2]; /* [table_side] first values of rows; an untrained row still has them */
    uint32_t seed;               /* seed of these first values */
    struct model_extra added, added_lists, features; /* new items, which are rows from model->rows on, new lists, which are rows after these, and
                                                      * features; empty until features_open_of() */
    struct model_content content;                    /* of features_open_of(), too */
    int met_features;                                /* 1: features_open_of() was called */
    float *propagated; /* [rows x dim] rows spread over the run's graph; NULL until answers_view_named() computes them */
    struct fasttext_args trained; /* training options as fastText has them; model = 0: fastText cannot train such a model */
    const struct table *live[2]; /* [table_side] tables that are being trained: rows are read from them. NULL: rows are read from `target` and `context` */
    char *directory;   /* path of the run directory (or fastText file), without links */
    struct run_state state; /* state of the run's checkpoint */
};

/* Opens RUN: a run directory, one checkpoint in it, a model of fastText (.bin), or a file of words with their vectors (vectors_file.h). Such a
 * file has one table, used as target and as context table. Verifies checksums first, and refuses tables and a vocabulary that do not belong
 * together. */
int model_open(struct model *model, const char *run);
/* Sets *model to a run of triples in training: its rows are read from the tables while no batch is in flight. The vocabulary, the config and the
 * tables are borrowed: the struct is not closed. stream: checksum of its triples. Returns 0, or -1 after fail(). */
int model_live(struct model *model, const struct config *config, const struct vocab *vocab, const struct table *target, const struct table *context,
               uint64_t stream);
void model_close(struct model *model); /* may be called on a struct of zeros */
/* Reads only the vocabulary of a run, a checkpoint or a fastText model, with the ages of its words. Returns 0, or -1 after fail(). */
int model_read_vocab(struct vocab *vocab, const char *run);

/* Returns a pointer to a field of a row in the mapping; NULL if the table does not contain the row. A fastText model's floats are not aligned. */
const void *model_table_row(const struct model *model, enum table_side side, const struct npy_field *field, uint64_t row);

/* Reads columns first .. first + count - 1 of a row's weights. Returns 1; 0 if the table does not contain the row. */
int model_weights(const struct model *model, enum table_side side, uint64_t row, uint32_t first, uint32_t count, float *out);

/* Returns 1 if a row was trained, which means that it differs from its first values. Without config.ini these are unknown, and every row counts as
 * trained. */
int model_is_trained(const struct model *model, enum table_side side, uint64_t row);

#endif
