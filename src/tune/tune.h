/* tune: finds keys for the user's data by training on most of it and judging by the rest.
 *
 *   space.c    which keys, with which values, and what a trial draws of them
 *   halving.c  which trial is trained next, and for how long
 *   split.c    a graph without some of its edges
 *   trial.c    one trial, from its keys to its score
 *   tried.c    what was tried already, on disk
 *   tune_directory.c  the directory RUN.tune, which holds all files of a search
 *   tune.c     the loop
 *   best.c     the configuration that it leaves
 *
 * What is held out, and what a trial is judged by:
 *
 *   lists, pairs, adjacency   a tenth of each list's items           recall@20, as evaluate finds it
 *   graph                     a tenth of the edges, and the others   MRR of both ends among 1,000 nodes
 *                             hang together as all did               (evaluate --edges, cross)
 *   text                      a fiftieth of the windows              their loss, of a pair
 *   text, with sets           nothing                                mean of --pairs and --analogies
 *
 * All random choices follow from train.seed. Trials write their files to RUN.tune beside run.dir (tune_directory.h). They are
 * removed at the end, except for RUN.tune/tried.tsv, from which a later call with the same keys continues the search.
 */
#ifndef SPTX_TUNE_H
#define SPTX_TUNE_H

#include "config/config.h"

struct gathered;

/* One training of a trial. */
struct tune_tried {
    uint64_t trial; /* 0: the user's own keys */
    int rung;       /* 0 .. 2 */
    uint64_t epochs;
    double score; /* the higher the better; NaN: it failed */
    double shown; /* the score as people know it: of a loss without the turned sign */
    double seconds;
    int known;         /* 1: it was tried in an earlier call */
    int leads;         /* 1: no trial was better so far on this rung */
    const char *keys;  /* those that were drawn: "model.dim=256 optimizer.lr=0.001" */
    const char *error; /* why it failed, or "" */
};

#define TUNE_MINUTES 1e6 /* longest duration of a search that may be asked for */

struct tune_request {
    const struct config *config;                 /* unresolved: keys that are set in it are not changed */
    struct gathered *data;                       /* data that the caller has gathered; NULL: the files of corpus.path */
    double seconds;                              /* how long it may take; 0: until the trials are done */
    uint64_t trials;                             /* that are begun; 0: as many as there is time for */
    const char *const *pairs, *const *analogies; /* files that words are judged by */
    int pair_count, analogy_count;
    int anew;                                                 /* 1: trials of an earlier call are forgotten */
    const char *out;                                          /* the file that gets the best keys; NULL: none */
    void (*took)(void *user, const struct tune_tried *tried); /* told of each training, NULL: nobody */
    void *user;
};

enum { TUNE_KEYS = 512 };
struct tune_answer {
    char measure[32];     /* "recall@20" */
    char keys[TUNE_KEYS]; /* the best trial's */
    uint64_t epochs;      /* of that trial */
    double shown,
        own; /* its score; that of the user's own keys with their own epochs (NaN: there was no time for it) */
    uint64_t trials, best;
    int diverged; /* 1: train.epochs is set, and every trial of that many epochs failed; this answer is the best shorter trial */
    int stopped; /* 1: a signal or the caller's flag ended it early */
};

/* Writes a training as a line of the table, whose columns TUNE_HEAD names. */
#define TUNE_HEAD "trial  rung  epochs      score  seconds  keys"
void tune_line(const struct tune_tried *tried, char *out, uint64_t capacity);

/* Searches. Returns 0, or -1 after fail(), also if it was stopped before a trial was done. After a failure answer->trials is 0,
 * with one exception: if answer->diverged is 1, the answer is complete, and request->out is written. */
int tune_run(struct tune_answer *answer, const struct tune_request *request);

#endif
