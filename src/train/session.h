/* session: the beginning that train, plan and bench have in common: the backend, the encoded corpus, the example source, the
 * plan, and the two tables. It writes no file of a run except the encoded corpus (in corpus.cache, or in the run directory),
 * which the next session reuses. */
#ifndef SPTX_SESSION_H
#define SPTX_SESSION_H

#include "warm_start.h"
#include "corpus/graph.h"
#include "corpus/held_out.h"
#include "planner.h"
#include "steps.h"

struct gathered;
/* All that is open while a run is planned, measured or trained. */
struct session {
    struct config *config;
    struct ranks *ranks; /* the processes that share out the columns; owned by the caller; NULL: this process has all columns */
    unsigned local;      /* number of ranks on this machine, including this one */
    unsigned cores;      /* number of cores that this rank may use; 0: all */
    struct pool *pool;
    struct gathered *data; /* the corpus, if the caller has gathered it in this process; NULL: it is read from the files of
                            * corpus.path */
    struct corpus *corpus;
    struct corpus_found found; /* what the look found in its files */
    struct vocab vocab;
    struct idstream stream; /* all zeros if the corpus is a graph */
    struct graph graph;     /* all zeros if the corpus is not a graph */
    struct idstream counts; /* with train.loss = glove, the counts of pairs, made of the stream or the graph; otherwise zeros */
    int reused; /* 1: the encoded corpus of an earlier session was reused */
    struct held_out held_out; /* the stream's lists, split by train.held_out_items; zeros: no items are held out */
    struct examples examples;
    struct warm_start grow;     /* the source of first values (train.from) */
    char *grown; /* path of vocab.tsv, if the resumed run may have kept words of an older run; otherwise NULL; owned */
    int reads_older; /* 1: train.from was opened only for its words, and is closed when the corpus has been read */
    struct frozen frozen; /* the rows that no step changes (train.freeze) */
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info machine; /* the machine before the tables were allocated */
    char defaults[DEFAULTS_TEXT]; /* text: keys that defaults_by_size() changed, with their values */
    struct plan plan;
    struct table target, context; /* opened by session_tables() */
};

/* Opens everything except the tables. All ranks call it together: the first rank encodes the corpus, the others read its files.
 * It makes the plan, which may say that the run does not fit. `data`: the corpus, if the caller has gathered it; NULL: the files
 * of corpus.path. `checkpoint`: the checkpoint from which a run is resumed; NULL: a new run. */
int session_open(struct session *session, struct config *config, struct gathered *data, struct ranks *ranks,
                 const char *checkpoint);

/* Opens only what a plan needs, in one process. If device.backend = cuda and this machine has no GPU, the plan is for a GPU with
 * memory.gpu_budget bytes. `ranks`: the ranks to plan for; if it is a single rank or NULL, device.gpus and device.ranks say how
 * many. */
int session_plan(struct session *session, struct config *config, const struct ranks *ranks);

/* Encodes the corpus, so that a later session with these keys finds it, and sets the defaults in `config` that depend on its
 * size. Returns 0, or -1 after fail(). */
int session_settle(struct config *config, struct gathered *data);

/* Prints the corpus and the plan on stderr, as train does at its start. */
void session_print(const struct session *session);

/* Refuses a plan that does not fit. Otherwise writes the settled batch and places into the config, and opens both tables without
 * filling them. All ranks call session_tables() and session_fill() together. */
int session_tables(struct session *session);

/* Fills the tables of a new run: with first values, or with the rows of train.from. */
int session_fill(struct session *session);

/* Returns the steps over the session's tables, from the first example on. The caller sets how many examples to train. */
struct steps session_steps(struct session *session);

void session_close(struct session *session); /* may be called on a struct of zeros */

#endif
