/* planning: what planner.c and advice.c share while a plan is made. */
#ifndef SPTX_PLANNING_H
#define SPTX_PLANNING_H

#include "planner.h"
#include "expected_rows.h"

enum { GPU_STREAM_PART = 4 }; /* the id stream lies on the GPU where it takes a quarter of the budget at most */

struct planning {
    struct plan *plan;
    const struct config *config;
    const struct planner_machine *machine;
    const struct examples *examples;
    struct expected_rows touches;
    struct batch_rows batch;   /* of plan->batch */
    struct example_source source; /* as the backend will be given it */
    struct rule_options rule;
    int gpu, hogwild;
    uint64_t idle; /* so many last target rows are in no example */
    uint64_t budget;          /* of the GPU */
    uint64_t ordering; /* bytes of scratch memory to order the n-grams' buckets; freed before the tables are made */
    uint64_t unmeasured_host; /* what no backend says: the program, the vocabulary, rows on their way to disk */
    struct estimate estimate; /* of the plan as it stands */
};

/* The backend's estimate for plan's places and hot rows and p->source. */
struct estimate planning_estimate(const struct planning *p);
uint64_t planning_gpu(const struct estimate *estimate);
uint64_t planning_host(const struct estimate *estimate);

/* Whether the host would hold the same run with so many columns. */
int planning_fits_host(const struct planning *p, uint32_t dim);

/* Returns 1 where the host would hold the same run if rows and state were bfloat16, and these are float32 now. */
int planning_fits_halved(const struct planning *p);

/* The most hot rows with which the budget holds; 0 also where not even none do. */
uint64_t planning_fitting_rows(const struct planning *p);

/* Fills plan->advice, for a plan that does not fit the host, or that fits it and not the GPU. */
void advise_host(const struct planning *p);
void advise_gpu(const struct planning *p);

#endif
