/* planning: the declarations that planner.c and advice.c share. No other file includes it. */
#ifndef SPTX_PLANNING_H
#define SPTX_PLANNING_H

#include "planner.h"
#include "expected_rows.h"

enum { GPU_STREAM_PART = 4 }; /* the id stream is kept on the GPU if it needs at most 1 / GPU_STREAM_PART of the budget */

/* A plan that is being made, and the data from which it is made. */
struct planning {
    struct plan *plan;
    const struct config *config;
    const struct planner_machine *machine;
    const struct examples *examples;
    struct expected_rows touches;
    struct batch_rows batch;   /* rows that a batch of plan->batch examples is expected to touch */
    struct example_source source; /* the source that the backend will receive */
    struct rule_options rule;
    int gpu, hogwild;
    int behind; /* 1: checkpoints are written while training goes on */
    uint64_t idle; /* number of rows at the end of the target table that no example names */
    uint64_t budget;          /* bytes of GPU memory that the run may use; 0 without a GPU */
    uint64_t ordering; /* bytes of scratch for ordering the n-grams' buckets, which is freed before the tables are made */
    uint64_t unmeasured_host; /* bytes of host memory that no backend counts: the program, the vocabulary, buffers for saving
                               * tables */
    struct estimate estimate; /* the backend's estimate for the current values of `plan` */
};

/* Returns the backend's estimate for the plan's places and hot rows and for p->source. */
struct estimate planning_estimate(const struct planning *p);
uint64_t planning_gpu(const struct estimate *estimate);
uint64_t planning_host(const struct estimate *estimate);

/* Returns 1 if the run would fit the host with `dim` columns. */
int planning_fits_host(const struct planning *p, uint32_t dim);

/* Returns 1 if weights are float32 now, and the run would fit the host with weights and state in bfloat16. */
int planning_fits_halved(const struct planning *p);

/* Returns the largest number of hot rows with which the plan fits the GPU budget; 0 also if it does not fit without hot rows. */
uint64_t planning_fitting_rows(const struct planning *p);

/* Write plan->advice: advise_host() for a plan that does not fit the host, advise_gpu() for a plan that fits the host but not
 * the GPU. */
void advise_host(const struct planning *p);
void advise_gpu(const struct planning *p);

#endif
