/* handles: what the library's handles are, and how a call is begun and ended.
 *
 *   status = sptx_something(handle, ..)
 *     enter(context)       this thread speaks to the context's sink, computes in the default mode and writes numbers with a
 *                          point (base/numbers.h); the last call's sentence is forgotten
 *     ...                  everything below the library says fail() and returns -1, as in the program
 *     leave(context, result)   0 or -1 -> SPTX_OK, SPTX_FAILED or SPTX_USAGE by what was said
 */
#ifndef SPTX_HANDLES_H
#define SPTX_HANDLES_H

#include "base/numbers.h"
#include "base/pool.h"
#include "base/report.h"
#include "rows/table.h"
#include "sptx.h"
#include "vectors/answers.h"

#include <fenv.h>
#include <stdatomic.h>

struct sptx_context {
    struct report *report;    /* sentences of this context's calls */
    struct report *before;    /* while a call runs: the sink that its thread had */
    locale_t numbers;         /* and how that thread writes numbers */
    report_hear *warning;     /* the caller's, for warnings, and what it is called with; or NULL */
    void *user;
    unsigned calls;           /* that run, one in the other: a progress callback may call, too */
    fenv_t mode;              /* of floating point, of the thread that calls; set while a call runs */
    _Atomic int stop;         /* 1: sptx_stop() has asked training to end */
    struct pool *pool;        /* fills, loads and saves tables */
    const struct backend_ops *ops;
    struct backend *backend;  /* NULL where opening failed */
    struct backend_info machine;
    unsigned index;           /* of its GPU */
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

/* Numbers of so many bytes lie where the processor reads them: at a multiple of their size. NULL does. -1 after fail_usage(). */
int check_aligned(const void *at, unsigned bytes, const char *what);

/* Refuses a count that no call can mean: a number that has wrapped, or garbage. 0, or -1 after fail_usage(). */
int check_count(uint64_t count, const char *what);

/* A callback runs between these two: step_out() gives the thread its caller's locale and mode of floating point, step_in() those
 * of the call again. */
void step_out(const struct sptx_context *context);
void step_in(void);

/* Copies options of `given` bytes (the caller's struct may be of another version) over those at their defaults. -1 after
 * fail_usage() where the size is none. */
int take_options(void *options, uint64_t size, const void *given);

#endif
