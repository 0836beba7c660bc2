#include "halving.h"

#include "base/memory.h"

#include <stdlib.h>

enum { OWN_SHARE = 5 }; /* the user's own keys may take one part in this number of the remaining time */

void halving_release(struct halving *h) {
    free(h->trial);
    *h = (struct halving){.count = 0};
}

int halving_top(const struct halving *h) {
    int top = -1;
    for (uint64_t i = 0; i < h->count; i++)
        if (h->trial[i].rungs - 1 > top) top = h->trial[i].rungs - 1;
    return top;
}

/* ---- order ---- */

struct placed {
    double score;
    uint64_t trial;
};

static int by_score(const void *a, const void *b) {
    const struct placed *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->trial < y->trial ? -1 : 1;
}

uint64_t *halving_order(const struct halving *h, int rung, uint64_t *count) {
    struct placed *all = mem_alloc(h->count + 1, sizeof *all, "trials");
    uint64_t *order = mem_alloc(h->count + 1, sizeof *order, "trials");
    *count = 0;
    for (uint64_t i = 0; all && i < h->count; i++)
        if (h->trial[i].rungs > rung) all[(*count)++] = (struct placed){h->trial[i].score[rung], i};
    if (all && *count) qsort(all, *count, sizeof *all, by_score);
    for (uint64_t i = 0; all && order && i < *count; i++) order[i] = all[i].trial;
    free(all);
    if (all) return order;
    free(order);
    return NULL;
}

/* ---- the next job ---- */

/* Returns the seconds that a new trial is expected to take: the mean of all trials on rung 0. */
static double beginning_takes(const struct halving *h) {
    double sum = 0;
    for (uint64_t i = 0; i < h->count; i++) sum += h->trial[i].seconds[0];
    return h->count ? sum / (double)h->count : 0;
}

/* Finds a trial that may rise from a rung. Returns 1 with *trial, 0 if none may, -1 after fail(). */
static int find_rising(const struct halving *h, const struct halving_bounds *bounds, int rung, uint64_t *trial) {
    uint64_t count, *order = halving_order(h, rung, &count);
    if (!order) return -1;
    uint64_t most = count / HALVING_SHARE;
    if (bounds->begin != HALVING_ANY && count && !most) most = 1;
    int found = 0;
    for (uint64_t place = 0; place < count && !found; place++) {
        const struct halving_trial *one = &h->trial[order[place]];
        double takes = HALVING_SHARE * one->seconds[one->rungs - 1];
        int may = place < most || (!order[place] && OWN_SHARE * takes <= bounds->left);
        found = may && one->rungs == rung + 1 && takes <= bounds->left;
        if (found) *trial = order[place];
    }
    free(order);
    return found;
}

int halving_next(const struct halving *h, const struct halving_bounds *bounds, struct halving_job *job) {
    int found = 0;
    for (int rung = HALVING_RUNGS - 2; rung >= 0 && !found; rung--) {
        found = find_rising(h, bounds, rung, &job->trial);
        job->rung = rung + 1;
    }
    double takes = beginning_takes(h) * (bounds->begin == HALVING_LAST ? 1 + HALVING_SHARE : 1);
    if (found || bounds->begin == HALVING_NONE || takes > bounds->left) return found;
    *job = (struct halving_job){h->count, 0};
    return 1;
}

int halving_took(struct halving *h, const struct halving_job *job, double score, double seconds) {
    if (job->trial == h->count) {
        if (mem_grow(&h->trial, &h->capacity, h->count + 1, sizeof *h->trial, "trials")) return -1;
        h->trial[h->count++] = (struct halving_trial){.rungs = 0};
    }
    struct halving_trial *trial = &h->trial[job->trial];
    trial->score[job->rung] = score;
    trial->seconds[job->rung] = seconds;
    trial->rungs = job->rung + 1;
    return 0;
}
