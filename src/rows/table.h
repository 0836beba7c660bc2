/* table: the rows of one side (targets or contexts) in a backend: their record, their first values, their way to disk.
 *
 * On disk a table is a structured .npy (npy.h): fields "weights", the rule's slots by PyTorch's names, and "updates"
 * where bias correction counts by row. Where ranks share out the columns, each has its own in its backend, and a file
 * has all of them.
 */
#ifndef SPTX_TABLE_H
#define SPTX_TABLE_H

#include "kernels/backend.h"
#include "kernels/ranks.h"
#include "base/npy.h"
#include "base/pool.h"

enum table_side { TABLE_TARGET, TABLE_CONTEXT };

/* Bytes of packed records that are filled, loaded or saved at once. Saving needs two such chunks, and the memory of
 * whole_rows.h. */
enum { TABLE_CHUNK = 16 << 20, SAVED_AT_ONCE = 2 };

/* The ways to draw first weights. */
enum init_kind { INIT_ZEROS, INIT_UNIFORM, INIT_NORMAL };
struct init_values {
    enum init_kind kind;
    double a, b; /* LO HI, or MEAN SD */
};
/* Reads "zeros", "uniform LO HI", "normal MEAN SD", "word2vec" or "notebook M". Returns 0, or -1 (no sentence). */
int table_init_values(struct init_values *values, const char *text, enum table_side side, uint32_t dim);
/* Returns a bound: no first weight is further from 0. Values past float32's largest number become infinities. */
double table_init_reach(const struct init_values *values);

/* The choices that make a table. */
struct table_options {
    uint64_t rows, hot_rows; /* hot_rows: number of first rows that are kept on the GPU if the others are pinned or in a file */
    uint64_t first_row;      /* the table does not have rows below this one (table_spec) */
    uint64_t idle;           /* number of last rows that no example names: they begin as zeros, and take no memory on the CPU
                              * until they are written */
    uint32_t dim;
    struct rule_options rule;
    enum place weights, state;
    struct init_values init;
    uint32_t seed;         /* the seed of the first weights */
    const char *directory; /* the directory for a file place's working file; the caller's, copied */
    struct ranks *ranks;   /* the ranks that share out the columns; the caller's; NULL: this process has all columns */
    const uint32_t *frozen; /* bits of the rows that no step changes (table_spec); the caller's; NULL: none */
};

struct table {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_table *store; /* NULL when closed */
    struct table_spec spec;     /* of the columns of this rank */
    struct record_layout whole; /* of all columns */
    struct columns own;
    struct ranks *ranks; /* the caller's; NULL: this process has all columns */
    struct rule_options rule;
    struct init_values init;
    uint32_t seed;
    enum table_side side;
    uint64_t idle; /* as in table_options */
    char *file_path; /* owned, or NULL */
};

const char *table_side_name(enum table_side side); /* returns "target" or "context" */

/* Returns the bytes that a row takes in memory, by place (one store or two). */
uint64_t table_row_bytes(const struct record_layout *layout, enum place weights, enum place state);

/* Opens the store; its rows hold nothing yet. Returns 0, or -1 after fail(). */
int table_init(struct table *table, enum table_side side, const struct table_options *options,
               const struct backend_ops *ops, struct backend *backend);
void table_release(struct table *table); /* harmless on a zeroed one */
/* Returns 1 for the name of a working file that a process had made and could not remove. */
int table_left(const char *file);

/* Computes first weights of a row in some columns. They depend only on (seed, row, column). */
void table_first_weights(const struct init_values *init, uint32_t seed, enum table_side side, uint64_t row, struct columns columns,
                         float *weights);

/* Fills in the first weights, and the first state of the rule. */
int table_fill(struct table *table, struct pool *pool);

/* A source of rows that are read from elsewhere and not initialized. */
struct table_origin {
    void *user;
    /* Returns 1 when it has filled `record` of row `row` (packed, with the table's own columns; it comes with first
     * state and weights of zero); 0 where the row gets first values; -1 after fail(). Any thread calls it, for any
     * row. */
    int (*take)(void *user, const struct table *table, uint64_t row, char *record);
};
/* Fills the table but for rows that the origin has; NULL: there is no origin. */
int table_fill_from(struct table *table, const struct table_origin *origin, struct pool *pool);

/* Returns 1 where the records of a file have this table's fields. */
int table_has_fields(const struct table *table, const struct npy *npy);

/* Returns how many last rows of a new table take no memory on the CPU, if `idle` last rows are idle: only whole chunks of rows
 * do. */
uint64_t table_blank_rows(uint64_t rows, uint64_t idle, const struct record_layout *whole, unsigned ranks);
/* Returns 1 where the chunk that begins at this row is one of those. */
int table_is_blank(const struct table *table, uint64_t first);

/* Returns the rows of the chunk that begins at row `first`, the same on every rank; 0 behind the last. The first chunk begins with
 * the table's first row, and none has more rows. */
uint64_t table_chunk(const struct table *table, uint64_t first);
uint64_t table_first_chunk(const struct table *table); /* rows of it */

/* Returns the memory that saving or loading a table of this number of rows takes in addition, for this number of ranks and
 * records of all columns. */
uint64_t table_saving_bytes(uint64_t rows, const struct record_layout *whole, unsigned ranks);
uint64_t table_file_bytes(const struct table *table); /* bytes of its file without the header */

/* Saves the rows that the table has to a structured .npy, and loads them. All ranks call these together; *checksum, which only the
 * first rank gets, is XXH64 of the whole file. Saving goes by the first rank's path. Loading verifies names, rows and columns. A
 * failure of one rank is all ranks'.
 *
 * A table that holds infinity or NaN is not saved: TABLE_NOT_FINITE after fail(), where other failures are -1.
 */
enum { TABLE_NOT_FINITE = 1 };
int table_save(struct table *table, const char *path, uint64_t *checksum);
int table_load(struct table *table, const char *path);

#endif
