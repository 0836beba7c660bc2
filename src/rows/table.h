/* table: a row store of either side in a backend, from the configuration: its record, its first values, its way to disk.
 *
 * On disk a table is a structured .npy (npy.h): fields "weights", the rule's slots by PyTorch's names, and "updates"
 * where bias correction counts by row.
 */
#ifndef SPTX_TABLE_H
#define SPTX_TABLE_H

#include "kernels/backend.h"
#include "train/config.h"
#include "base/npy.h"
#include "base/pool.h"

enum table_side { TABLE_TARGET, TABLE_CONTEXT };

/* Bytes of packed records that are filled, loaded or saved at once; saving has two such chunks in memory. */
enum { TABLE_CHUNK = 16 << 20 };

struct table {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_table *store; /* NULL when closed */
    struct table_spec spec;
    struct rule_options rule;
    enum table_side side;
    char *file_path; /* owned, or NULL */
};

/* The optimizer's options as the kernels take them, from a resolved config. */
struct rule_options table_rule(const struct config *config);
/* The record of `dim` columns under this rule; whole bytes a row takes in memory by place (one store or two). */
struct record_layout table_layout(const struct rule_options *rule, uint32_t dim);
uint64_t table_row_bytes(const struct record_layout *layout, enum place weights, enum place state);

/* Opens the store (places "auto" are settled already). `directory`: where a file place puts its working file. */
int table_init(struct table *table, enum table_side side, const struct config *config, uint64_t rows, uint64_t hot_rows,
               const struct backend_ops *ops, struct backend *backend, const char *directory);
void table_release(struct table *table); /* harmless on a zeroed one */

/* Whether both of model.*_init can be read: before anything is counted or opened. 0, or -1 after fail(). */
int table_check_init(const struct config *config);
/* First weights by model.*_init from draws alone (row, column), first state by the rule. */
int table_fill(struct table *table, const struct config *config, struct pool *pool);

/* Whether `text` is an init law: 0, -1 (no sentence). */
enum init_kind { INIT_ZEROS, INIT_UNIFORM, INIT_NORMAL };
struct init_law {
    enum init_kind kind;
    double a, b; /* LO HI, or MEAN SD */
};
int table_init_law(struct init_law *law, const char *text, enum table_side side, uint32_t dim);

/* To and from a structured .npy; *checksum is XXH64 of the whole file. Loading verifies names, rows and columns. */
int table_save(struct table *table, const char *path, uint64_t *checksum);
int table_load(struct table *table, const char *path);

#endif
