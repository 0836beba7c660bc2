/* tune_inner: the declarations that the files of tune share. No other file includes it. */
#ifndef SPTX_TUNE_INNER_H
#define SPTX_TUNE_INNER_H

#include "tune.h"

#include "halving.h"
#include "space.h"
#include "tried.h"
#include "tune_directory.h"

enum { TRIAL_WHY = 512 };
enum tune_measure { TUNE_RECALL, TUNE_LINKS, TUNE_LOSS, TUNE_SETS, TUNE_TRIPLES };

/* A search that is under way. */
struct tuning {
    const struct tune_request *request;
    struct config resolved; /* the user's keys, resolved */
    enum tune_measure measure;
    int weighable; /* 1: trials may weigh the pairs by their ratings */
    struct space space;
    struct halving halving;
    struct space_point *points; /* [halving.count], owned: the keys of each trial */
    uint64_t point_capacity;
    struct tune_directory directory;
    struct tried tried;
    struct report *quiet, *said; /* quiet: the sink for trials' sentences; said: the caller's sink */
    double began;
    char why[TRIAL_WHY]; /* error message of the last trial that failed */
    int stopped, exhausted; /* exhausted: 1: drawing no longer finds a new trial */
};

extern const char *const tune_measures[];

/* ---- trial.c ---- */

/* The result of a trial. */
struct trial_end {
    double score, seconds;
    int stopped;
    char why[TRIAL_WHY]; /* error message of the trial; "" if it did not fail */
};

/* Makes a trial's config: the user's keys with the trial's keys set. The caller releases `config` in any case. */
int trial_config(const struct tuning *t, const struct space_point *point, struct config *config);
/* Returns the epochs of a trial on this rung: a third, all and three times the epochs of the user's keys; if train.epochs is
 * set, a ninth, a third and all of it. */
uint64_t trial_epochs(const struct tuning *t, int rung);
/* Sets the defaults in t->resolved that depend on the size of the trials' data. Ignores data that cannot be read: the first trial
 * fails with the reason. */
void trial_defaults(struct tuning *t);
/* Trains and scores a trial. Always returns 0; if the trial failed, end->why says why. */
int trial_run(const struct tuning *t, const struct halving_job *job, uint64_t epochs, struct trial_end *end);

/* ---- best.c ---- */

/* Returns 0 if best_write() can write `path`; -1 after fail(), also if a file that tune has not written is there. */
int best_check(const char *path);
/* Writes the best trial's configuration, with all trials in its comments. */
int best_write(const struct tuning *t, const struct tune_answer *answer);

/* Returns 1 if the search also chooses train.epochs, which the user has not set. */
static inline int tune_finds_epochs(const struct tuning *t) {
    return !config_is_given(t->request->config, "train", "epochs");
}

/* One training: its score, its trial and its rung. */
struct tune_place {
    double score;
    uint64_t trial;
    int rung;
};
/* Lists the trials that may be the answer: all if epochs are searched, otherwise the trials of the highest rung. Returns a list
 * for the caller to free, or NULL after fail(). */
struct tune_place *tune_places(const struct tuning *t, uint64_t *count);

/* Returns the score for people: a loss has its usual sign. */
static inline double tune_shown(const struct tuning *t, double score) {
    return t->measure == TUNE_LOSS ? -score : score;
}

#endif
