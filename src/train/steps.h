/* steps: trains the examples of a run in their order, by exact steps with batches in flight or by lock-free pieces. Training and
 * measuring run the same loops, and are told of each step's result.
 */
#ifndef SPTX_STEPS_H
#define SPTX_STEPS_H

#include "config/config.h"
#include "rows/table.h"
#include "run/state.h"

struct steps {
    const struct config *config;
    const struct backend_ops *ops;
    struct backend *backend;
    struct table *target, *context;
    uint64_t per_epoch; /* examples of an epoch */
    uint64_t batch;     /* examples of a step; in a lock-free run this number counts as one step */
    uint64_t run;       /* examples of the whole run, over which the learning rate falls */
    uint64_t end;       /* examples after which the loop ends; UINT64_MAX: it ends when it is told to */
    struct progress_state state;
};

/* Whoever runs the loop: each is called with `user`. */
struct steps_watch {
    void *user;
    /* A batch's result, in the order of the batches; a piece's, with the seconds that it took. -1 after fail() ends the loop. */
    int (*took_batch)(void *user, const struct step_result *result);
    int (*took_piece)(void *user, const struct hogwild_result *result, double seconds);
    /* Called after each step: returns the work to do before the next step, as bits that are passed to between(); 0: nothing. */
    unsigned (*wishes)(void *user, int epoch_ended);
    /* Called with no batch in flight where something is wished, and where an epoch or the run has ended. 1 stops the loop; -1 after
     * fail(). */
    int (*between)(void *user, int epoch_ended, unsigned wished);
    /* After each step, and once more (`last`) when all are done. */
    void (*report)(void *user, double lr, int last);
};

/* Trains until the end, or until it is told to stop. 0: to the end; 1: stopped; -1 after fail(). */
int steps_train(struct steps *steps, const struct steps_watch *watch);

uint64_t steps_done(const struct steps *steps); /* examples */
double steps_share(const struct steps *steps);  /* of the run, at most 1 */

/* Returns the next `most` examples, or the rest of the epoch or of the loop if that is less; and an exact step over them. */
struct batch_request steps_batch(const struct steps *steps, uint64_t most);
struct step_request steps_request(const struct steps *steps);
/* Moves past `count` examples; 1 where that ended an epoch. */
int steps_move(struct steps *steps, uint64_t count);

#endif
