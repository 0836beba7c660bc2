/* handles: the library's handles, and how a call begins and ends.
 *
 *   status = sptx_something(handle, ..)
 *     enter(context)       this thread uses the context's sink, computes in the default mode and writes numbers with a
 *                          point (base/numbers.h); the last call's sentence is forgotten
 *     ...                  everything below the library calls fail() and returns -1, as in the program
 *     leave(context, result)   turns 0 or -1 into SPTX_OK, SPTX_FAILED or SPTX_USAGE, by the sentence that is there
 */
#ifndef SPTX_HANDLES_H
#define SPTX_HANDLES_H

#include "base/numbers.h"
#include "base/pool.h"
#include "base/report.h"
#include "config/config.h"
#include "corpus/gathered.h"
#include "rows/table.h"
#include "sptx.h"
#include "vectors/answers.h"
#include "vectors/run_lists.h"

#include <fenv.h>
#include <stdatomic.h>

struct tune_answer;
struct sptx_context {
    struct report *report;    /* holds the sentences of this context's calls */
    struct report *before;    /* the sink that the calling thread had, while a call runs */
    locale_t numbers;         /* how the calling thread wrote numbers */
    report_hear *warning;     /* the caller's function for warnings, and its argument; or NULL */
    void *user;
    unsigned calls;           /* calls under way; more than one where a progress callback makes a call, too */
    fenv_t mode;              /* the calling thread's mode of floating point, while a call runs */
    _Atomic int stop;         /* 1: sptx_stop() has asked training to end */
    struct pool *pool;        /* fills, loads and saves tables */
    const struct backend_ops *ops;
    struct backend *backend;  /* NULL where opening failed */
    struct backend_info machine;
    unsigned index;           /* of its GPU */
    char device[32];          /* "cpu", "cuda:0" */
    struct tune_answer *tuned; /* of the last search, owned; NULL: there was none */
    char *trained;            /* the directory of the last run that was trained, owned; NULL: none yet */
    struct sptx_table *tables; /* the open ones */
    struct sptx_run *runs;
};

struct sptx_table {
    struct sptx_context *context;
    struct table table;
    struct rule_options rule; /* lr is that of the next updates */
    int fixed;                /* optimizer "none": updates are refused */
    uint64_t steps;           /* updates so far */
    uint64_t stores;          /* since it was opened: they draw the bits that round, as updates do */
    struct sptx_table *next;
};

struct sptx_run {
    struct sptx_context *context;
    struct model model;
    struct search search; /* of the table, rows and metric that were asked last */
    enum model_view searched;
    int searching;
    struct list_scores lists; /* of the score and rows that were asked last */
    struct list_candidates candidates; /* candidates of the last question; `rows` is a copy, owned */
    struct run_lists trained; /* lists that the run was trained on; opened by the first question that names one */
    int recommending, lists_open; /* 1: `lists` is open; 1: `trained` is open */
    struct sptx_run *next;
};

void enter(struct sptx_context *context);
enum sptx_status leave(struct sptx_context *context, int result);

/* Checks that an array is aligned to its numbers' size in bytes, so that the processor can read them. NULL is fine. Returns -1
 * after fail_usage(). */
int check_aligned(const void *at, unsigned bytes, const char *what);

/* Refuses a count that cannot be meant: a number that has wrapped, or garbage. Returns 0, or -1 after fail_usage(). */
int check_count(uint64_t count, const char *what);

/* Sets the keys of [device] to the context's device. The caller releases in any case. */
int device_config(const struct sptx_context *context, struct config *config);

/* Makes run->search that of a table's rows: words or items, and lists' rows where these are asked for. Returns -1 after
 * fail(). */
int open_search(struct sptx_run *run, const char *table, enum search_metric metric, uint32_t lists);

/* Checks the struct that a view is given in: it may be of an older version, without the dtype. */
int check_view(const struct sptx_view *out);
/* Gives a view. Refuses one of bfloat16 to a program that would take it for float32. Both return -1 after fail_usage(). */
int give_view(struct sptx_view *out, const struct sptx_view *view);

/* Checks the arrays for a call's answers. Returns -1 after fail_usage(). */
int check_answers(const uint32_t *rows, const float *scores);

/* A callback runs between these two: step_out() restores the caller's locale and mode of floating point for the thread,
 * step_in() sets the modes of the call again. */
void step_out(const struct sptx_context *context);
void step_in(void);

/* Reads the config of a run. Its device is the context's, unless the config names one. The caller releases in any case. */
int read_config(struct config *config, const struct sptx_context *context, const char *path,
                const char *const *settings, uint64_t count);

/* Reads the same without resolving it. */
int read_keys(struct config *config, const struct sptx_context *context, const char *path, const char *const *settings,
              uint64_t count);

/* Finds keys over an unresolved config, for files (data: NULL) or for gathered data. Returns 0, or -1 after fail(). */
int tune(struct sptx_context *context, const struct config *config, struct gathered *data,
         const struct sptx_tune_options *options, sptx_progress_fn *progress, void *user, struct sptx_tuned *tuned);

/* Returns the data that a corpus was given. Its corpus.format must be `format`, or lists, pairs or adjacency if that is NULL; any
 * other format, or a closed corpus, gives NULL after fail_usage(). */
const struct gathered *corpus_data(const struct sptx_corpus *corpus, const char *format);

/* Trains on files (data: NULL) or on gathered data; beginning: enum sptx_beginning. Returns 0, 1 if the callback stopped it, or
 * -1 after fail(). leave_training() turns these into a status. */
int train(struct sptx_context *context, struct config *config, struct gathered *data, int beginning,
          sptx_progress_fn *progress, void *user);
enum sptx_status leave_training(struct sptx_context *context, int result);

/* Copies the caller's options of `given` bytes (the struct may be of another version) over the defaults. Returns -1
 * after fail_usage() where the size is impossible. */
int take_options(void *options, uint64_t size, const void *given);

#endif
