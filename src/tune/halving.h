/* halving: which trial is trained next, and for how long: successive halving, a trial at a time (ASHA; Li et al. 2020).
 *
 *   rung   who comes here, for three times the epochs of the rung below
 *   0      every trial
 *   1      the best third of those that have been on rung 0
 *   2      the best third of those that have been on rung 1
 *
 * Whoever may rise does so at once, the highest rung first; otherwise a new trial begins. So there is an answer at any
 * time, and it depends on nothing but the scores so far. Trial 0 has the keys that the user has, and rises where a
 * fifth of what is left is enough for it: the others are compared with it.
 */
#ifndef SPTX_HALVING_H
#define SPTX_HALVING_H

#include <stdint.h>

enum { HALVING_RUNGS = 3, HALVING_SHARE = 3 };

struct halving_trial {
    int rungs; /* how many it has been on; it stands on the last of them */
    double score[HALVING_RUNGS];
    double seconds[HALVING_RUNGS];
};

struct halving {
    struct halving_trial *trial; /* [count], owned */
    uint64_t count, capacity;
};

/* Tells when new trials may begin. With every value but ANY, the present trials are finished, at least one on each rung. */
enum halving_begin {
    HALVING_NONE, /* no more trials begin */
    HALVING_ANY,  /* one begins wherever nobody may rise */
    HALVING_LAST  /* one begins where all have come to their end, and the time of a trial and of its rise is left */
};

/* Limits of the next job. */
struct halving_bounds {
    enum halving_begin begin;
    double left; /* seconds; what would take longer is left out. INFINITY: there is no bound */
};

struct halving_job {
    uint64_t trial; /* halving->count: a new one */
    int rung;
};

void halving_release(struct halving *halving);

/* Returns 1 with the next job, 0 where none is left, -1 after fail(). */
int halving_next(const struct halving *halving, const struct halving_bounds *bounds, struct halving_job *job);

/* Notes what a job came to. */
int halving_took(struct halving *halving, const struct halving_job *job, double score, double seconds);

/* Sorts the trials that have been on this rung by falling score there, equal ones by number. Returns them for the
 * caller to free (never NULL but after fail()), and stores their number. */
uint64_t *halving_order(const struct halving *halving, int rung, uint64_t *count);

/* Returns the highest rung that a trial has been on, or -1. */
int halving_top(const struct halving *halving);

#endif
