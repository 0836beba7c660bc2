/* tables: the two tables of a run as its config has them. */
#ifndef SPTX_TABLES_H
#define SPTX_TABLES_H

#include "config/config.h"
#include "rows/table.h"

/* The optimizer's options as the kernels take them, from a resolved config. */
struct rule_options tables_rule(const struct config *config);

/* How the first weights of a table of this side are drawn. 0, or -1 after fail(). */
int tables_first_values(struct init_values *out, const struct config *config, enum table_side side);
/* Whether both of model.*_init can be read: before anything is counted or opened. 0, or -1 after fail(). */
int tables_check_init(const struct config *config);

/* Opens the table of this side, or the columns of it that this one of the ranks has; places "auto" are settled already. Working
 * files lie in run.dir. Of `own` the rows, ranks and frozen rows are taken; the config has all else. 0, or -1 after fail(). */
int tables_init(struct table *table, enum table_side side, const struct config *config, const struct table_options *own,
                const struct backend_ops *ops, struct backend *backend);

#endif
