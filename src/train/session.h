/* session: what train, plan and bench do first: open the backend, the encoded corpus and the example source, make the plan, and open the two
 * tables. Of a run's files it writes only the encoded corpus (in corpus.cache, or in the run directory), which the next session reuses. */
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
    struct ranks *ranks; /* the processes that divide the columns among them; owned by the caller; NULL: this process has all columns */
    unsigned local;      /* number of ranks on this machine, including this one */
    unsigned cores;      /* number of cores that this rank may use; 0: all */
    struct pool *pool;
    struct gathered *data; /* the corpus, if the calling program has handed it over; NULL: the files of corpus.path are read */
    struct corpus *corpus;
    struct corpus_found found; /* what the look found in its files */
    char said[LOOK_SAID];      /* the last printed description of a file's format, of the corpus or of train.evaluate */
    struct vocab vocab;
    struct idstream stream; /* the encoded corpus; zeros if it is a graph */
    struct graph graph;     /* the graph; zeros if the corpus is not a graph */
    struct idstream counts; /* with train.loss = glove: counts of pairs, made from the stream or graph; otherwise zeros */
    int reused; /* 1: the encoded corpus of an earlier session was reused */
    struct held_out held_out; /* the stream's lists, split by train.held_out_items; zeros: nothing is held out */
    struct examples examples;
    struct warm_start grow;     /* the source of first values (train.from) */
    char *grown; /* path of vocab.tsv if the resumed run may have kept words of an older run; otherwise NULL; owned */
    int reads_older; /* 1: train.from is opened only for its words, and closed once the corpus has been read */
    struct frozen frozen; /* the rows that no step changes (train.freeze) */
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info machine; /* the machine before the tables were allocated */
    char defaults[DEFAULTS_TEXT]; /* text: keys changed by defaults_by_size(), with their values */
    struct plan plan;
    struct table target, context; /* opened by session_tables() */
};

/* Opens everything except the tables, and makes the plan, which may say that the run does not fit. All ranks call it together: the first one
 * encodes the corpus, the others read its files. data: the corpus in memory; NULL: the files of corpus.path. checkpoint: from which a run is
 * resumed; NULL: a new run. */
int session_open(struct session *session, struct config *config, struct gathered *data, struct ranks *ranks,
                 const char *checkpoint);

/* Opens only what a plan needs, in one process. If device.backend = cuda and there is no GPU, plans for a GPU with memory.gpu_budget bytes. ranks:
 * those to plan for; if NULL or a single rank, device.gpus and device.ranks say how many. */
int session_plan(struct session *session, struct config *config, const struct ranks *ranks);

/* Encodes the corpus, so that a later session with these keys finds it, and sets the defaults in `config` that depend on the size of the data.
 * Returns 0, or -1 after fail(). */
int session_settle(struct config *config, struct gathered *data);

/* Prints the corpus and the plan on stderr, as train does at its start. */
void session_print(const struct session *session);

/* Refuses a plan that does not fit. Otherwise stores the chosen batch and places in the config, and opens both tables without filling them. All
 * ranks call session_tables() and session_fill() together. */
int session_tables(struct session *session);

/* Fills the tables of a new run: with first values, or with the rows of train.from. */
int session_fill(struct session *session);

/* Returns the state of training at the first example. The caller sets how many examples to train. */
struct steps session_steps(struct session *session);

void session_close(struct session *session); /* may be called on a struct of zeros */

#endif
