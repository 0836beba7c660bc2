/* steps: trains batches one after the other: where they come from, in which order, and how many are in flight.
 *
 * pipeline passes batches through the backend's stages, with up to `depth` batches in flight. The depth changes the speed, but
 * never the result. */
#ifndef SPTX_STEPS_H
#define SPTX_STEPS_H

#include "config/config.h"
#include "kernels/backend.h"
#include "rows/table.h"
#include "run/state.h"

/* The state of the stages of a backend. */
struct pipeline {
    const struct backend_ops *ops;
    struct backend *backend;
    unsigned depth, in_flight, next; /* next: the stage that the next batch will use */
};

void pipeline_init(struct pipeline *pipeline, const struct backend_ops *ops, struct backend *backend, unsigned depth);
/* Starts a batch. If all stages are busy, first waits for the oldest batch, stores its result in *oldest and sets *came to 1;
 * otherwise sets *came to 0. Returns 0; BATCH_STOPPED if make_batch() gave up the new batch; -1 after fail(). */
int pipeline_submit(struct pipeline *pipeline, const struct batch_request *batch, const struct step_request *step,
                    struct step_result *oldest, int *came);
/* Waits for the oldest batch in flight. Returns 1 with its result, 0 if no batch is in flight, -1 after fail(). */
int pipeline_next(struct pipeline *pipeline, struct step_result *oldest);

/* steps: trains the examples of a run in order, by exact steps with several batches in flight, or lock-free, in spans of
 * examples. Training and benchmarks run the same loops, and handle each result by callbacks. */

/* A loop over the examples of a run, and how far it has come. */
struct copies;

struct steps {
    const struct config *config;
    const struct backend_ops *ops;
    struct backend *backend;
    struct table *target, *context;
    struct copies *copies; /* several GPUs that train lock-free (gpus.h); NULL: the backend alone trains */
    uint64_t per_epoch; /* number of examples of an epoch */
    uint64_t batch;     /* number of examples of a step; in lock-free training each `batch` examples count as one step */
    uint64_t run;       /* number of examples of the whole run, over which the learning rate is scheduled */
    uint64_t end;       /* number of examples after which the loop ends; UINT64_MAX: it ends only if between() stops it */
    struct progress_state state;
};

/* Callbacks of the loop. Each gets `user`. */
struct steps_watch {
    void *user;
    /* Called with a result, in order: took_batch() with the result of each batch; took_piece() with that of each span of lock-
     * free training, and the seconds that it took. If it returns -1 after fail(), the loop ends. */
    int (*took_batch)(void *user, const struct step_result *result);
    int (*took_piece)(void *user, const struct hogwild_result *result, double seconds);
    /* Called after each step. Returns the work to do before the next step, as bits, which are passed to between(); 0: no work. */
    unsigned (*wishes)(void *user, int epoch_ended);
    /* Called with no batch in flight, if wishes() returned nonzero or if an epoch or the run has ended. Returns 0 to continue, 1
     * to stop the loop, -1 after fail(). */
    int (*between)(void *user, int epoch_ended, unsigned wished);
    /* Called after each step, and once more with `last` = 1 after the last result. */
    void (*report)(void *user, double lr, int last);
};

/* Trains until s->end, or until between() stops the loop. Returns 0 at the end; 1 if stopped; -1 after fail(). */
int steps_train(struct steps *steps, const struct steps_watch *watch);

uint64_t steps_done(const struct steps *steps); /* returns the number of examples that are trained */
double steps_share(const struct steps *steps);  /* returns the share of the run that is trained, at most 1 */

/* steps_batch() returns the next `most` examples; fewer at the end of the epoch or of the loop. steps_request() returns an exact
 * step over them. */
struct batch_request steps_batch(const struct steps *steps, uint64_t most);
struct step_request steps_request(const struct steps *steps);
/* Counts `count` examples as trained. Returns 1 if they end an epoch. */
int steps_move(struct steps *steps, uint64_t count);

#endif
