/* handles: what the library's handles are, and how a call is begun and ended.
 *
 *   status = sptx_something(handle, ..)
 *     enter(context)       this thread speaks to the context's sink; the last call's sentence is forgotten
 *     ...                  everything below the library says fail() and returns -1, as in the program
 *     leave(context, result)   0 or -1 -> SPTX_OK, SPTX_FAILED or SPTX_USAGE by what was said
 */
#ifndef SPTX_HANDLES_H
#define SPTX_HANDLES_H

#include "base/pool.h"
#include "base/report.h"
#include "rows/table.h"
#include "sptx.h"
#include "vectors/answers.h"

struct sptx_context {
    struct report *report;    /* sentences of this context's calls */
    struct report *before;    /* the sink of the thread that calls, while a call runs */
    unsigned calls;           /* that run, one in the other: a progress callback may call, too */
    struct pool *pool;        /* fills, loads and saves tables */
    const struct backend_ops *ops;
    struct backend *backend;  /* NULL where opening failed */
    struct backend_info machine;
    char device[32];          /* "cpu", "cuda:0" */
    struct sptx_table *tables; /* open ones */
    struct sptx_run *runs;
};

struct sptx_table {
    struct sptx_context *context;
    struct table table;
    struct rule_options rule; /* lr: of the updates from now on */
    int fixed;                /* optimizer "none": updates are refused */
    uint64_t steps;           /* updates so far */
    struct sptx_table *next;
};

struct sptx_run {
    struct sptx_context *context;
    struct model model;
    struct search search; /* of the table and rows asked last */
    enum model_view searched;
    int searching;
    struct list_scores lists; /* of the score asked last */
    int recommending;
    struct sptx_run *next;
};

void enter(struct sptx_context *context);
enum sptx_status leave(struct sptx_context *context, int result);

/* Copies options of `given` bytes (the caller's struct may be of another version) over those at their defaults. -1 after
 * fail_usage() where the size is none. */
int take_options(void *options, uint64_t size, const void *given);

#endif
