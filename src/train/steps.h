/* steps: trains batch after batch: which examples, in which order, and how many batches are in flight.
 *
 * pipeline passes batches through the backend's stages, up to `depth` at a time. The depth changes the speed, never the result. */
#ifndef SPTX_STEPS_H
#define SPTX_STEPS_H

#include "config/config.h"
#include "kernels/backend.h"
#include "rows/table.h"
#include "run/state.h"

/* The state of a backend's stages. */
struct pipeline {
    const struct backend_ops *ops;
    struct backend *backend;
    unsigned depth, in_flight, next; /* next: the stage that the next batch will use */
};

void pipeline_init(struct pipeline *pipeline, const struct backend_ops *ops, struct backend *backend, unsigned depth);
/* Starts a batch. If all stages are busy, first waits for the oldest batch, stores its result in *oldest and sets *came to 1; otherwise *came is
 * 0. Returns 0; BATCH_STOPPED if make_batch() gave the new batch up; -1 after fail(). */
int pipeline_submit(struct pipeline *pipeline, const struct batch_request *batch, const struct step_request *step,
                    struct step_result *oldest, int *came);
/* Waits for the oldest batch in flight. Returns 1 and its result; 0 if there is none; -1 after fail(). */
int pipeline_next(struct pipeline *pipeline, struct step_result *oldest);

/* steps: trains the examples of a run in order, by exact steps with several batches in flight, or lock-free, in spans of examples. Training and
 * benchmarks use the same loops, with different callbacks for the results. */

/* A loop over the examples of a run, and how far it has come. */
struct copies;

struct steps {
    const struct config *config;
    const struct backend_ops *ops;
    struct backend *backend;
    struct table *target, *context;
    struct copies *copies; /* several GPUs that train lock-free (gpus.h); NULL: only the backend trains */
    uint64_t per_epoch; /* number of examples of an epoch */
    uint64_t batch;     /* number of examples of a step; lock-free training has no batches: each `batch` examples of an epoch, and the rest at its
                         * end, are counted as one step */
    uint64_t run;       /* number of examples of the whole run; the learning rate depends on the share that is done */
    uint64_t end;       /* the loop ends after this example; UINT64_MAX: only between() ends it */
    struct progress_state state;
};

/* Callbacks of the loop. Each gets `user`. */
struct steps_watch {
    void *user;
    /* Called with each result, in order: took_batch() with a batch's, took_piece() with that of a span of lock-free training, and its seconds. If
     * it returns -1 after fail(), the loop ends. */
    int (*took_batch)(void *user, const struct step_result *result);
    int (*took_piece)(void *user, const struct hogwild_result *result, double seconds);
    /* Called after each step. Returns, as bits, what work to do before the next step; they are passed to between(). 0: none. */
    unsigned (*wishes)(void *user, int epoch_ended);
    /* Called while no batch is in flight: if wishes() returned bits, or at the end of an epoch or of the run. Returns 0 to continue, 1 to end the
     * loop, -1 after fail(). */
    int (*between)(void *user, int epoch_ended, unsigned wished);
    /* Called after each step, and finally with last = 1 after the last result. */
    void (*report)(void *user, double lr, int last);
};

/* Trains until s->end, or until between() stops the loop. Returns 0 at the end; 1 if stopped; -1 after fail(). */
int steps_train(struct steps *steps, const struct steps_watch *watch);

uint64_t steps_done(const struct steps *steps); /* returns how many examples have been trained */
double steps_share(const struct steps *steps);  /* returns which share of the run is trained, at most 1 */

/* steps_batch() returns the next `most` examples, or fewer at the end of the epoch or the loop; steps_request() returns an exact step over them. */
struct batch_request steps_batch(const struct steps *steps, uint64_t most);
struct step_request steps_request(const struct steps *steps);
/* Counts `count` more examples as trained. Returns 1 if an epoch ends with them. */
int steps_move(struct steps *steps, uint64_t count);

#endif
