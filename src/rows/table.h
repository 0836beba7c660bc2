/* table: a row store of either side in a backend: its record, its first values, its way to disk.
 *
 * On disk a table is a structured .npy (npy.h): fields "weights", the rule's slots by PyTorch's names, and "updates"
 * where bias correction counts by row. Where ranks share out the columns, each has its own in its backend, and a file has all.
 */
#ifndef SPTX_TABLE_H
#define SPTX_TABLE_H

#include "kernels/backend.h"
#include "kernels/ranks.h"
#include "base/npy.h"
#include "base/pool.h"

enum table_side { TABLE_TARGET, TABLE_CONTEXT };

/* Bytes of packed records that are filled, loaded or saved at once. Saving has two such chunks in memory, beside those of
 * whole_rows.h. */
enum { TABLE_CHUNK = 16 << 20, SAVED_AT_ONCE = 2 };

/* How first weights are drawn. */
enum init_kind { INIT_ZEROS, INIT_UNIFORM, INIT_NORMAL };
struct init_values {
    enum init_kind kind;
    double a, b; /* LO HI, or MEAN SD */
};
/* Reads "zeros", "uniform LO HI", "normal MEAN SD", "word2vec" or "notebook M". 0, or -1 (no sentence). */
int table_init_values(struct init_values *values, const char *text, enum table_side side, uint32_t dim);
/* No first weight is further than this from 0. Values past float32's largest number become infinities. */
double table_init_reach(const struct init_values *values);

/* What a table is made of. */
struct table_options {
    uint64_t rows, hot_rows; /* hot ones lie on the GPU where the rest is pinned or in a file */
    uint64_t first_row;      /* rows below this one are not there (table_spec) */
    uint32_t dim;
    struct rule_options rule;
    enum place weights, state;
    struct init_values init;
    uint32_t seed;         /* of the first weights */
    const char *directory; /* where a file place puts its working file; the caller's, copied */
    struct ranks *ranks;   /* that share out the columns; the caller's; NULL: this process has all */
    const uint32_t *frozen; /* rows that no step changes (table_spec); the caller's; NULL: none */
};

struct table {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_table *store; /* NULL when closed */
    struct table_spec spec;     /* of this rank's columns */
    struct record_layout whole; /* of all columns */
    struct columns own;
    struct ranks *ranks; /* the caller's; NULL: one has all */
    struct rule_options rule;
    struct init_values init;
    uint32_t seed;
    enum table_side side;
    uint64_t older_rows; /* a file may have so many rows, too, from row 0 on, of which the table takes its own; 0: no file may */
    char *file_path; /* owned, or NULL */
};

const char *table_side_name(enum table_side side); /* "target", "context" */

/* Bytes that a row takes in memory by place (one store or two). */
uint64_t table_row_bytes(const struct record_layout *layout, enum place weights, enum place state);

/* Opens the store; its rows hold nothing yet. 0, or -1 after fail(). */
int table_init(struct table *table, enum table_side side, const struct table_options *options,
               const struct backend_ops *ops, struct backend *backend);
void table_release(struct table *table); /* harmless on a zeroed one */
/* Whether a file of that name is a working file that a process could not remove when it had made it. */
int table_left(const char *file);

/* The weights that a row of a table begins with in so many columns, from draws alone: (seed, row, column). */
void table_first_weights(const struct init_values *init, uint32_t seed, enum table_side side, uint64_t row, struct columns columns,
                         float *weights);

/* First weights, and first state by the rule. */
int table_fill(struct table *table, struct pool *pool);

/* Rows that begin elsewhere. */
struct table_origin {
    void *user;
    /* Of row `row`: 1 when it has filled `record` (packed, the table's own columns, with first state and weights of zero in it);
     * 0 where the row gets first values; -1 after fail(). Any thread calls it, for any row. */
    int (*take)(void *user, const struct table *table, uint64_t row, char *record);
};
/* The same but for rows that the origin has; NULL: there is none. */
int table_fill_from(struct table *table, const struct table_origin *origin, struct pool *pool);

/* Whether the records of a file are this table's, field by field. */
int table_has_fields(const struct table *table, const struct npy *npy);

/* Rows of the chunk that begins at row `first`, the same on every rank; 0 behind the last. The first chunk begins at the table's
 * first row, and none has more rows. */
uint64_t table_chunk(const struct table *table, uint64_t first);
uint64_t table_first_chunk(const struct table *table); /* rows of it */

/* Bytes of memory that saving or loading a table of so many rows takes beside it, of so many ranks, of records of all columns. */
uint64_t table_saving_bytes(uint64_t rows, const struct record_layout *whole, unsigned ranks);
uint64_t table_file_bytes(const struct table *table); /* of its file, but for the header */

/* Write the rows that are there to a structured .npy, and read them; by all ranks together. *checksum, the first rank's alone, is
 * XXH64 of the whole file. Saving goes by the first one's path. Loading verifies names, rows and columns. A table that holds infinity or NaN is not saved:
 * TABLE_NOT_FINITE after fail(), where other failures are -1. A failure of one rank is all ranks'. */
enum { TABLE_NOT_FINITE = 1 };
int table_save(struct table *table, const char *path, uint64_t *checksum);
int table_load(struct table *table, const char *path);

#endif
