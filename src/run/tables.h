/* tables: opens the two tables of a run by its config. */
#ifndef SPTX_TABLES_H
#define SPTX_TABLES_H

#include "config/config.h"
#include "rows/table.h"

/* Returns the optimizer's options as the kernels take them, from a resolved config. */
struct rule_options tables_rule(const struct config *config);

/* Sets how the first weights of a table are drawn. Returns 0, or -1 after fail(). */
int tables_first_values(struct init_values *out, const struct config *config, enum table_side side);
/* Checks that both of model.*_init can be read, before anything is counted or opened. Returns 0, or -1 after fail(). */
int tables_check_init(const struct config *config);

/* Opens a table, or this rank's columns of it; places that were "auto" are settled before. Working files are in run.dir. `own`
 * gives the rows, the ranks and the frozen rows; all else is read from the config. */
int tables_init(struct table *table, enum table_side side, const struct config *config, const struct table_options *own,
                const struct backend_ops *ops, struct backend *backend);

#endif
