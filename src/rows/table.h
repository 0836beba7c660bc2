/* table: all target rows or all context rows, in a backend: the layout of a record, first values, saving and loading.
 *
 * On disk a table is a structured .npy (npy.h) with the fields "weights", the rule's slots by PyTorch's names, and "updates" if
 * bias correction counts the updates of each row. If several ranks train, each has some columns of the table in its backend; a file
 * has all columns.
 */
#ifndef SPTX_TABLE_H
#define SPTX_TABLE_H

#include "base/file.h"
#include "base/npy.h"
#include "base/pool.h"
#include "kernels/backend.h"
#include "kernels/ranks.h"

enum table_side { TABLE_TARGET, TABLE_CONTEXT };

/* TABLE_CHUNK: bytes of packed records that are filled, loaded or saved in one piece. Saving needs memory for SAVED_AT_ONCE chunks, and for the
 * exchange described below. */
enum { TABLE_CHUNK = 16 << 20, SAVED_AT_ONCE = 2 };

/* The distribution from which first weights are drawn. */
enum init_kind { INIT_ZEROS, INIT_UNIFORM, INIT_NORMAL };
struct init_values {
    enum init_kind kind;
    double a, b; /* LO and HI of a uniform distribution, or MEAN and SD of a normal one */
};
/* Parses "zeros", "uniform LO HI", "normal MEAN SD", "word2vec" or "notebook M". Returns 0, or -1 without a message. */
int table_init_values(struct init_values *values, const char *text, enum table_side side, uint32_t dim);
/* The distributions of all first weights of a table. */
struct first_values {
    struct init_values rows, later; /* later: for the rows from later_from on */
    uint64_t later_from;            /* 0: `rows` is for all rows */
};
static inline const struct init_values *first_values_of(const struct first_values *first, uint64_t row) {
    return first->later_from && row >= first->later_from ? &first->later : &first->rows;
}
/* Returns the largest absolute value that a first weight can have; infinity if it is above float32's largest number. */
double table_init_reach(const struct init_values *values);

/* The options of a new table. */
struct table_options {
    uint64_t rows, hot_rows; /* hot_rows: how many of the first rows are kept on the GPU, if the table is in pinned memory or a file */
    uint64_t gpu_cache;      /* most rows that have a copy on the GPU because they are used often (table_spec) */
    uint64_t first_row;      /* id of the table's first row (table_spec) */
    uint64_t idle;           /* number of rows at the end of the table that no example names. They are zeros, and on the CPU need no memory until
                              * they are written */
    uint32_t dim;
    int biases;            /* 1: the last two columns are a bias and a column of ones (losses.h, glove) */
    int complex;           /* 1: columns are complex numbers (record.h), whose two parts belong to the same rank */
    struct rule_options rule;
    enum place weights, state;
    struct first_values init;
    uint32_t seed;         /* seed from which first weights are drawn */
    const char *directory; /* directory of the working file, if weights or state are in a file. The caller owns the text; the table copies it */
    struct ranks *ranks;   /* the processes that divide the columns among them; owned by the caller; NULL: this process has all columns */
    const uint32_t *draws; /* [rows] for each row, the number from which random bits of rounding are drawn (rounding.h); owned by the caller; NULL:
                            * the row's own number */
    char *given;           /* memory for the rows (table_spec); owned by the caller; NULL: the table allocates it */
    uint32_t filler, fillers; /* this process fills only every fillers-th chunk, from chunk `filler` on; fillers = 0: it fills all chunks */
    const uint32_t *frozen; /* bit map of the rows that no step changes (table_spec); owned by the caller; NULL: no row is frozen */
};

/* An open table of this rank: its rows in a backend, and the options for filling, saving and loading them. */
struct table {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_table *store; /* NULL: the table is closed */
    struct table_spec spec;     /* with the layout of this rank's columns */
    struct record_layout whole; /* layout of a record of all columns */
    struct columns own;         /* this rank's columns */
    struct ranks *ranks; /* owned by the caller; NULL: this process has all columns */
    struct rule_options rule;
    struct first_values init;
    uint32_t seed;
    enum table_side side;
    uint64_t idle; /* as `idle` of table_options */
    char *file_path; /* owned, or NULL */
    int biases;      /* as `biases` of table_options */
    uint32_t filler, fillers; /* as in table_options */
    int is_snapshot; /* 1: table_save() reads the rows of the table's snapshot (table_snapshot) */
};

const char *table_side_name(enum table_side side); /* returns "target" or "context" */

/* Returns the bytes of a row in memory. Weights and state are in one record if their places are the same, otherwise in two. */
uint64_t table_row_bytes(const struct record_layout *layout, enum place weights, enum place state);

/* Allocates the table without setting its rows. Returns 0, or -1 after fail(). */
int table_init(struct table *table, enum table_side side, const struct table_options *options,
               const struct backend_ops *ops, struct backend *backend);
void table_release(struct table *table); /* may be called on a struct of zeros */
/* Returns 1 if `file` is the name of a working file, which a killed process may have left. */
int table_left(const char *file);

/* Computes the first weights of a row in the given columns. They depend only on (init, seed, side, row, column). */
void table_first_weights(const struct init_values *init, uint32_t seed, enum table_side side, uint64_t row, struct columns columns,
                         float *weights);

/* Makes a packed record, in a table without biases: the rule's first state and the first weights of row `row`, which may be any number. */
void table_first_record(const struct table *table, uint64_t row, char *record);

/* Fills the table with first weights and the rule's first state. */
int table_fill(struct table *table, struct pool *pool);

/* A source of first values for some rows of a table, such as the tables of an older run. */
struct table_origin {
    void *user;
    /* Fills `record`, the packed record of row `row` with this rank's columns; it comes with zero weights and the rule's first state. Returns 1 if
     * it has filled the record; 0 if the row must get first values; -1 after fail(). Any thread may call it, for rows in any order. */
    int (*take)(void *user, const struct table *table, uint64_t row, char *record);
};
/* Fills the table with the origin's rows; all other rows get first values. origin = NULL: all rows get first values. */
int table_fill_from(struct table *table, const struct table_origin *origin, struct pool *pool);

/* Returns 1 if the records of a file have the same fields as this table. */
int table_has_fields(const struct table *table, const struct npy *npy);

/* Returns how many rows at the end of a new table need no memory on the CPU, if its last `idle` rows are idle: those in chunks of which all rows
 * are idle. */
uint64_t table_blank_rows(uint64_t rows, uint64_t idle, const struct record_layout *whole, unsigned ranks);
/* Returns 1 if the chunk that begins at row `first` has no memory, because all its rows are idle. */
int table_is_blank(const struct table *table, uint64_t first);

/* Returns the number of rows of the chunk that begins at row `first`; 0 past the last row. It is the same on every rank. The first chunk begins
 * with the table's first row, and is the largest. */
uint64_t table_chunk(const struct table *table, uint64_t first);
uint64_t table_first_chunk(const struct table *table); /* returns the number of rows of the first chunk */

/* Returns the bytes of memory that saving or loading a table of `rows` rows needs. `whole`: layout of a record of all columns. */
uint64_t table_saving_bytes(uint64_t rows, const struct record_layout *whole, unsigned ranks);
uint64_t table_file_bytes(const struct table *table); /* returns the bytes of the table's file, without the header */

/* Save the table's rows to a structured .npy, and load them. All ranks call these together; if one rank fails, all fail. Saving writes to the first
 * rank's `path`; only the first rank gets *checksum, the XXH64 of the whole file. Loading compares the file's fields, rows and columns with the
 * table's.
 *
 * Return 0, or -1 after fail(). A table with infinity or NaN is not saved: TABLE_NOT_FINITE after fail().
 */
enum { TABLE_NOT_FINITE = 1 };
int table_save(struct table *table, const char *path, uint64_t *checksum);
int table_load(struct table *table, const char *path);

/* Begins a snapshot (backend.h) of a table whose columns are all in this process. Sets *snapshot to a copy of the struct; one table_save() may be
 * called with it, in any thread, while the table is used. The caller ends the snapshot by the backend's functions, and does not release *snapshot.
 * most: as for snapshot_begin(); 0: table_snapshot_bytes(). Returns 0, or -1 after fail(). */
int table_snapshot(struct table *table, uint64_t most, struct table *snapshot);
/* Returns the default limit on the bytes of a snapshot's copies, for a table of `bytes` bytes in memory: an eighth, but at least 64
 * MiB (all, if the table is smaller). */
uint64_t table_snapshot_bytes(uint64_t bytes);

/* Returns the bytes of the buffers by which ranks exchange columns to save or load a table, for chunks of `chunk` rows; 0 with one rank. */
uint64_t whole_rows_bytes(uint64_t chunk, const struct record_layout *whole, unsigned ranks);

#endif
