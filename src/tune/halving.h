/* halving: chooses which trial is trained next, and for how long, by successive halving, one trial at a time (ASHA; Li et al.
 * 2020).
 *
 *   rung   trials that are trained on it, for three times the epochs of the rung below
 *   0      every trial
 *   1      the best third of the trials that were trained on rung 0
 *   2      the best third of the trials that were trained on rung 1
 *
 * A trial that may rise is trained next, on the highest rung first; if no trial may rise, a new one begins. So a best trial is
 * known at any time, and it depends only on the scores so far. Trial 0 has the user's own keys. It also rises if that takes at most
 * a fifth of the time left, since the other trials are compared with it.
 */
#ifndef SPTX_HALVING_H
#define SPTX_HALVING_H

#include <stdint.h>

enum { HALVING_RUNGS = 3, HALVING_SHARE = 3 };

/* A trial's results on the rungs that it was trained on. */
struct halving_trial {
    int rungs; /* number of rungs that it was trained on; the last of them is its current rung */
    double score[HALVING_RUNGS];
    double seconds[HALVING_RUNGS];
};

/* All trials so far. */
struct halving {
    struct halving_trial *trial; /* [count], owned */
    uint64_t count, capacity;
};

/* When new trials may begin. With NONE and LAST the search is coming to its end: the best trial of a rung may then rise even if
 * fewer than three trials were on it. */
enum halving_begin {
    HALVING_NONE, /* no more trials begin */
    HALVING_ANY,  /* a new trial begins whenever no trial may rise */
    HALVING_LAST  /* a new trial begins if no trial may rise, and if there is time for it and for its next rung */
};

/* The limits of the next job. */
struct halving_bounds {
    enum halving_begin begin;
    double left; /* seconds left; a job that is expected to take longer is not chosen. INFINITY: no limit */
};

/* One training: a trial and the rung to train it on. */
struct halving_job {
    uint64_t trial; /* halving->count: a new one */
    int rung;
};

void halving_release(struct halving *halving);

/* Chooses the next job. Returns 1; 0 if no job is left; -1 after fail(). */
int halving_next(const struct halving *halving, const struct halving_bounds *bounds, struct halving_job *job);

/* Records the score and the seconds of a finished job. */
int halving_took(struct halving *halving, const struct halving_job *job, double score, double seconds);

/* Sorts the trials that were trained on this rung by falling score on it; equal scores by number. Returns their numbers, for the
 * caller to free, or NULL after fail(). Sets *count. */
uint64_t *halving_order(const struct halving *halving, int rung, uint64_t *count);

/* Returns the highest rung that any trial was trained on, or -1. */
int halving_top(const struct halving *halving);

#endif
