/* tables: opens the two tables of a run as its config says. */
#ifndef SPTX_TABLES_H
#define SPTX_TABLES_H

#include "config/config.h"
#include "rows/table.h"

/* Returns the optimizer's options of a resolved config, in the kernels' form. */
struct rule_options tables_rule(const struct config *config);

/* Sets how the first weights of a table are drawn. Returns 0, or -1 after fail(). */
int tables_first_values(struct init_values *out, const struct config *config, enum table_side side);
/* Checks that model.target_init and model.context_init can be parsed, before the corpus is read. Returns 0, or -1 after fail(). */
int tables_check_init(const struct config *config);

/* Opens a table, or this rank's columns of it. Places must not be "auto" any more. Working files are created in run.dir. Rows,
 * ranks and frozen rows are taken from `own`, all other options from the config. */
int tables_init(struct table *table, enum table_side side, const struct config *config, const struct table_options *own,
                const struct backend_ops *ops, struct backend *backend);

#endif
