/* session: what train, plan and bench all begin with: the machine, the corpus as ids, where examples come from, the plan,
 * and the two tables. Nothing of a run is written but the encoded corpus (corpus.cache, or the run directory), which the
 * next session reuses.
 */
#ifndef SPTX_SESSION_H
#define SPTX_SESSION_H

#include "warm_start.h"
#include "corpus/graph.h"
#include "corpus/held_out.h"
#include "planner.h"
#include "steps.h"

struct gathered;
struct session {
    struct config *config;
    struct ranks *ranks; /* that share out the columns; the caller's; NULL: this process has all */
    unsigned local;      /* of them on this machine, this one counted */
    unsigned cores;      /* this one's share of them; 0: all */
    struct pool *pool;
    struct gathered *data; /* the corpus, as a caller in the same process has gathered it; NULL: it is files */
    struct corpus *corpus;
    struct vocab vocab;
    struct idstream stream; /* all zeros where the corpus is a graph, */
    struct graph graph;     /* which is all zeros otherwise */
    int reused; /* 1: the encoded corpus was there already */
    struct held_out held_out; /* of the stream's lists (train.held_out_items); all zeros: nothing is */
    struct examples examples;
    struct warm_start grow;     /* where rows begin */
    char *grown; /* path of vocab.tsv, if a resumed run may have kept words of an older run; otherwise NULL; owned */
    int reads_older; /* 1: train.from is opened for its words alone, and closed again once the corpus has been read */
    struct frozen frozen; /* which rows stay as they are */
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info machine; /* before the tables */
    char defaults[DEFAULTS_TEXT]; /* text of defaults_by_size(): the keys that it changed, with their values */
    struct plan plan;
    struct table target, context; /* of session_tables() */
};

/* Opens everything but the tables, by all ranks: the first one encodes the corpus, and the others find it. The plan is
 * made and may say that the run does not fit. data: the corpus that the caller has gathered; NULL: the files of
 * corpus.path. `checkpoint`: of the run that goes on; NULL: it begins. */
int session_open(struct session *session, struct config *config, struct gathered *data, struct ranks *ranks,
                 const char *checkpoint);

/* Opens what a plan needs and nothing more, by one process: where device.backend = cuda and no GPU is here, one of
 * memory.gpu_budget bytes is taken for granted. `ranks`: those that are planned for; one alone (or NULL): as device.gpus and
 * device.ranks say. */
int session_plan(struct session *session, struct config *config, const struct ranks *ranks);

/* Encodes the corpus, for a later session with these keys to find, and sets the defaults in `config` that depend on its size.
 * Returns 0, or -1 after fail(). */
int session_settle(struct config *config, struct gathered *data);

/* Prints the corpus and the plan on stderr, as train does at its beginning. */
void session_print(const struct session *session);

/* Refuses a plan that does not fit; puts the settled batch and places into the config; opens
 * both tables (not filled). All ranks call it, and session_fill(). */
int session_tables(struct session *session);

/* Gives the rows of a new run their first values, or the values of train.from. */
int session_fill(struct session *session);

/* The steps over its tables, from their beginning; how many there are is the caller's to say. */
struct steps session_steps(struct session *session);

void session_close(struct session *session); /* harmless on a zeroed one */

#endif
