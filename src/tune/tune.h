/* tune: finds keys for the user's data by training on most of it and scoring on the rest.
 *
 *   space.c    the keys and values to try, and how a trial draws them
 *   trial.c    one trial, from its keys to its score, and the split of a graph or triples that it needs
 *   tune.c     the search: which trial is trained next, and for how long; its directory RUN.tune, the file of finished trainings, the
 *              configuration file of the best trial
 *
 * Data, what is held out of it, and the score of a trial:
 *
 *   lists, pairs, adjacency   a tenth of each list's items           recall@20, as evaluate finds it
 *   graph                     a tenth of the edges, none of which    MRR of both ends among 1,000 nodes
 *                             connects otherwise separate parts      (evaluate --edges, cross)
 *   triples                   a tenth of the triples                 filtered MRR of tails and heads
 *   text                      a fiftieth of the windows              loss of a pair
 *   text, with test files     nothing                                mean of --pairs and --analogies
 *
 * All random choices follow from train.seed. Trials write their files to RUN.tune beside run.dir (tune_inner.h). They are
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
    double score; /* higher is better; NaN: the training failed */
    double shown; /* the score for people: a loss has its usual sign here, and the opposite sign in `score` */
    double seconds;
    int known;         /* 1: the result is from an earlier call */
    int leads;         /* 1: no trial has a better score on this rung so far */
    const char *keys;  /* the keys that were drawn: "model.dim=256 optimizer.lr=0.001" */
    const char *error; /* why it failed, or "" */
};

#define TUNE_MINUTES 1e6 /* longest duration of a search that may be asked for */

/* The data and keys to search with, and how long to search. */
struct tune_request {
    const struct config *config;                 /* unresolved: keys that are set in it are not changed */
    struct gathered *data;                       /* data that the caller has gathered; NULL: the files of corpus.path */
    double seconds;                              /* longest time to search; 0: until `trials` trials are done */
    uint64_t trials;                             /* number of trials to begin; 0: as many as there is time for */
    const char *const *pairs, *const *analogies; /* files for judging words: evaluate's --pairs and --analogies */
    int pair_count, analogy_count;
    int anew;                                                 /* 1: forget the trials of earlier calls */
    const char *out;                                          /* file for the best keys; NULL: none */
    void (*took)(void *user, const struct tune_tried *tried); /* called after each training; NULL: not called */
    void *user;
};

enum { TUNE_KEYS = 512 };
/* The result of a search. */
struct tune_answer {
    char measure[32];     /* name of the score, such as "recall@20" */
    char keys[TUNE_KEYS]; /* keys of the best trial */
    uint64_t epochs;      /* epochs of the best trial */
    double shown,
        own; /* shown: the best trial's score; own: the score of the user's own keys with their own epochs (NaN: there was no
              * time for it) */
    uint64_t trials, best;
    int diverged; /* 1: train.epochs is set, and every trial of that many epochs failed; this answer is the best trial with fewer
                   * epochs */
    int stopped; /* 1: a signal or the caller's flag ended the search early */
};

/* Writes one training as a line of the table; TUNE_HEAD names its columns. */
#define TUNE_HEAD "trial  rung  epochs      score  seconds  keys"
void tune_line(const struct tune_tried *tried, char *out, uint64_t capacity);

/* Searches. Returns 0, or -1 after fail(), also if it was stopped before a trial was done. After a failure answer->trials is 0,
 * with one exception: if answer->diverged is 1, the answer is complete, and request->out is written. */
int tune_run(struct tune_answer *answer, const struct tune_request *request);

#endif
