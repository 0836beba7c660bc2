/* replicas: lock-free training over ranks. Each rank has whole tables and trains a share of the positions; what the rows of all
 * replicas have moved by since they were last the same is added up, and then they are the same again:
 *
 *   row = base + (row of rank 0 - base) + (row of rank 1 - base) + ..
 *
 * Means of rows in the place of sums were measured, and lose: each replica has seen only its share of the positions, so its rows
 * have moved only that far. Rows that are named often are exchanged often, since replicas that each move a row to where it
 * belongs move it past that together; the rest seldom. Two replicas move it as far past as it was away, which training mends; of
 * more the runs diverge (scripts/RESULTS.md), and they are refused (config_resolve.c).
 */
#ifndef SPTX_REPLICAS_H
#define SPTX_REPLICAS_H

#include "rows/table.h"

struct replicas {
    struct ranks *ranks; /* the caller's; NULL: there are none */
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_table *store[2]; /* target, context */
    uint64_t piece;  /* examples that all ranks together train between two exchanges */
    uint64_t pieces; /* trained since all rows were exchanged */
    unsigned merges; /* that the next call is for: as many as take about a quarter of a second, the same on all ranks */
    uint64_t link_bytes; /* of this rank, in all calls */
    double exchanging; /* seconds of calls in which this rank did not train: rows were exchanged, or others waited for */
};

/* Replicas that stand as this rank's tables do, which are the same on all. 0, or -1 after fail(). */
int replicas_open(struct replicas *replicas, struct ranks *ranks, const struct table *target, const struct table *context,
                  uint64_t examples_per_epoch);

/* Examples that are worth a call of replicas_train(). */
uint64_t replicas_at_once(const struct replicas *replicas);

/* By all ranks: the examples of `request`, each rank its shares, and exchanges. The result is that of all ranks. */
int replicas_train(struct replicas *replicas, const struct hogwild_request *request, struct hogwild_result *result);
/* All rows are the same on all ranks. */
int replicas_settle(struct replicas *replicas);

#endif
