/* handles: the structs behind the handles of sptx.h, and how a call begins and ends.
 *
 *   status = sptx_something(handle, ..)
 *     enter(context)           for this thread: errors go to the context's report, floating point is in the default mode, and
 *                              numbers are written with a point (base/text.h); clears the last call's error message
 *     ...                      functions fail as in the program: they call fail() and return -1
 *     leave(context, result)   restores the thread's settings; turns 0 or -1 into SPTX_OK, SPTX_FAILED or SPTX_USAGE, depending
 *                              on how the error was reported
 */
#ifndef SPTX_HANDLES_H
#define SPTX_HANDLES_H

#include "base/pool.h"
#include "base/report.h"
#include "base/text.h"
#include "config/config.h"
#include "config/config_keys.h"
#include "corpus/numbered.h"
#include "rows/keys.h"
#include "rows/segment.h"
#include "rows/table.h"
#include "sptx.h"
#include "vectors/evaluate.h"
#include "vectors/infer.h"
#include "vectors/known.h"
#include "vectors/list_scores.h"

#include <fenv.h>
#include <stdatomic.h>

enum { INIT_BYTES = 256 }; /* most bytes of a text of first values (table_init_values), with its NUL */
struct tune_answer;
struct sptx_context {
    struct report *report;    /* holds the error message of this context's last failed call */
    struct report *before;    /* the calling thread's report before the call, restored at its end */
    locale_t numbers;         /* the calling thread's locale before the call, restored at its end */
    report_hear *warning;     /* passes warnings to the caller's function; NULL: it has none */
    void *user;
    unsigned calls;           /* number of calls under way; above 1 if a callback makes a call */
    fenv_t mode;              /* the calling thread's floating-point mode before the call, restored at its end */
    _Atomic int stop;         /* 1: sptx_stop() has asked training to end */
    struct pool *pool;        /* threads that fill, load and save tables */
    const struct backend_ops *ops;
    struct backend *backend;  /* NULL: opening failed */
    struct backend_info machine;
    unsigned index;           /* number of the backend's GPU */
    char device[32];          /* name of the device: "cpu", "cuda:0" */
    struct tune_answer *tuned; /* result of the last sptx_tune(), owned, because the caller has pointers into it; NULL: none */
    char *trained;            /* directory of the run that was trained last, owned; NULL: none */
    struct sptx_table *tables; /* list of the open tables */
    struct sptx_keyed *keyed;  /* list of the open tables by key */
    char keyed_init[INIT_BYTES]; /* the `init` text that sptx_keyed_options_of() gave last */
    struct sptx_run *runs;
};

struct sptx_table {
    struct sptx_context *context;
    struct table table;
    struct rule_options rule; /* the optimizer, with the learning rate of the next updates */
    int fixed;                /* 1: the optimizer is "none", and updates are refused */
    int check_finite;         /* 1: gradients with NaN or infinity are refused */
    uint64_t steps;           /* number of updates so far */
    uint64_t stores;          /* number of stores since the table was opened. Seeds the random rounding of stored bfloat16 values; `steps` seeds
                               * that of updates */
    struct segment segment;   /* of a table that several processes share; zeros: only this process has the table */
    int exact;                /* 1: the several ranks of the segment change rows together */
    uint32_t *ids, *places;   /* of an exact call: [count] its ids; where each goes in the mail, or NO_PLACE. Owned */
    uint64_t id_capacity, place_capacity;
    char *pinned_mail;        /* the segment's mail, which the GPU addresses; NULL: none */
    struct sptx_saving *saving; /* a save that is still running, or whose success was not checked yet; NULL: none */
    struct sptx_table *next;
};

struct sptx_run {
    struct sptx_context *context;
    struct model model;
    struct search search; /* search opened by the last question; reused while table, rows and metric are the same */
    enum model_view searched;
    int searching;
    struct list_scores lists; /* list search opened by the last question; reused while score and candidates are the same */
    struct list_candidates candidates; /* candidates of `lists`; `rows` is a copy, owned */
    struct run_lists trained; /* lists of the training data; opened by the first question that names a list */
    struct infer infer;       /* opened when the first new document is given a row */
    int inferring;            /* 1: `infer` is open */
    struct triple_answers answers; /* opened by the first question about triples */
    int answering;            /* 1: `answers` is open */
    struct sptx_scored *scored; /* result of the last sptx_run_score() */
    struct answer answer;     /* result of the last sptx_run_evaluate(), because the caller has pointers into it */
    int recommending, lists_open; /* 1: `lists` is open; 1: `trained` is open */
    char key[CONFIG_BYTES];   /* the last result of sptx_run_key(), unless it is a text of the config */
    struct sptx_run *next;
};

void enter(struct sptx_context *context);
enum sptx_status leave(struct sptx_context *context, int result);

/* Checks that an array's address is a multiple of `bytes`, the size of its elements. NULL passes. Returns 0, or -1 after fail_usage(). */
int check_aligned(const void *at, unsigned bytes, const char *what);

/* Refuses a count that cannot be meant: a negative number that has wrapped around, or garbage. Returns 0, or -1 after fail_usage(). */
int check_count(uint64_t count, const char *what);

/* Makes a config that sets only the [device] keys, to the context's device. The caller releases it even if this fails. */
int device_config(const struct sptx_context *context, struct config *config);

/* Opens run->search for a table's words or items, and if `lists` is 1 for its rows of lists, too. If the same search is open, keeps it. Returns 0,
 * or -1 after fail(). */
int open_search(struct sptx_run *run, const char *table, enum search_metric metric, uint64_t lists);

/* Checks the size of the caller's struct, which may be of an older header without `dtype`. Returns 0, or -1 after fail_usage(). */
int check_view(const struct sptx_view *out);
/* Copies a view to the caller's struct. Fails for a bfloat16 view if that struct has no `dtype`, because the program would take the values for
 * float32. Returns 0, or -1 after fail_usage(). */
int give_view(struct sptx_view *out, const struct sptx_view *view);

/* Checks the addresses of the arrays for an answer's rows and scores. Returns 0, or -1 after fail_usage(). */
int check_answers(const uint32_t *rows, const float *scores);

/* step_out() is called before a callback, and gives this thread the caller's locale and floating-point mode again; step_in() is called after it,
 * and sets those of library calls. */
void step_out(const struct sptx_context *context);
void step_in(void);

/* Opens a table without filling its rows. spare: number of rows in addition to those of the options. keys: the index whose `draw` draws the
 * table's first values, or NULL. Returns 0, or -1 after fail(). */
int table_open(struct sptx_context *context, const struct sptx_table_options *given, const struct keys *keys, uint64_t spare,
               struct sptx_table **out);

/* Sets the learning rate of later updates, which is also rprop's first step_size of rows of new keys. */
void set_rate(struct sptx_table *table, double lr);

/* check_values() checks the values or gradients (gradients = 1) of a call on rows; `what` names them in messages. ask_rows() makes the backend's
 * call `call` with ids that are row numbers, and counts it. failed: 1 after fail(), if this call is wrong: other ranks that make it together with
 * this one are told. Return 0, or -1 after fail(). */
typedef int rows_call(struct backend *backend, const struct rows_request *request);
int check_values(const struct sptx_table *table, uint64_t count, const float *values, enum sptx_memory memory, const char *what,
                 int gradients);
int ask_rows(struct sptx_table *table, int failed, const struct sptx_ids *taken, const float *values, enum sptx_memory memory, void *stream,
             rows_call *call);

/* Sets a key from "section.key=value", as on the command line. Returns 0, or -1 after fail_usage(). */
int set_key(struct config *config, const char *setting);

/* Does what read_config() does, without resolving the config. */
int read_keys(struct config *config, const struct sptx_context *context, const char *path, const char *const *settings,
              uint64_t count);

/* Finds good values for keys that `config` (unresolved) does not set; the data is in files (data: NULL) or gathered. Returns 0, or -1 after
 * fail(). */
int tune(struct sptx_context *context, const struct config *config, struct gathered *data,
         const struct sptx_tune_options *options, sptx_progress_fn *progress, void *user, struct sptx_tuned *tuned);

/* Returns the data of a corpus. Its corpus.format must be `format`; if `format` is NULL: lists, pairs or adjacency. With any other format, or if
 * the corpus is closed, returns NULL after fail_usage(). */
const struct gathered *corpus_data(const struct sptx_corpus *corpus, const char *format);

/* Trains on files (data: NULL) or on gathered data. beginning: enum sptx_beginning. Returns 0, 1 if the callback stopped training, or -1 after
 * fail(). leave_training() turns these results into a status. */
int train(struct sptx_context *context, struct config *config, struct gathered *data, int beginning,
          sptx_progress_fn *progress, void *user);
enum sptx_status leave_training(struct sptx_context *context, int result);

/* Copies the caller's options over the defaults in `options`, which has `size` bytes. given: begins with its own size, which differs in another
 * version of the header; NULL: keeps the defaults. Returns 0, or -1 after fail_usage() if that size is impossible. */
int take_options(void *options, uint64_t size, const void *given);

#endif
