/* trainer_inner: a run as the files of the trainer share it. For nobody else. */
#ifndef SPTX_TRAINER_INNER_H
#define SPTX_TRAINER_INNER_H

#include "trainer.h"

#include "trainer_run.h"
#include "run/checkpoint_due.h"
#include "run/metrics.h"
#include "session.h"

struct trainer {
    struct config *config;
    const struct trainer_options *options;
    struct ranks *ranks; /* the options'; NULL: alone */
    int heard_stop; /* the caller in this process asked for it: options->hear, or its flag */
    struct trainer_run claim;
    struct run_directory *run; /* the claim's; only the first rank writes there */
    struct session session;
    const struct backend_ops *ops; /* the session's */
    struct backend *backend;
    struct table *target, *context;
    struct progress_state state;
    struct corpus_identity corpus;
    uint64_t examples_per_epoch, batch, total; /* total: examples of the whole run */
    double began, began_training, seconds_before;
    double beside; /* seconds since began_training that were not training: held-out loss, checkpoints */
    struct checkpoint_due due;
    struct metrics metrics;
};

/* ---- between steps ---- */

/* Whether this process has the run directory, and writes there. */
int trainer_writes(const struct trainer *t);
uint64_t trainer_done(const struct trainer *t); /* examples that the run has trained so far */
double trainer_share(const struct trainer *t);  /* of the whole run */

void trainer_report_now(struct trainer *t, double lr);
void trainer_report_when_due(struct trainer *t, double lr);
/* Of the first batch, as it was before any update. */
void trainer_report_untrained(struct trainer *t, const struct step_result *first);
/* -1 after fail() for a loss that leaves all bounds. */
int trainer_check_loss(struct trainer *t, double loss, uint64_t terms);

uint64_t trainer_checkpoint_bytes(const struct trainer *t); /* of its files */
int trainer_start_due(struct trainer *t);
int trainer_write_checkpoint(struct trainer *t);

/* What is wished after a step: that of any rank holds for all, so that all do it after the same step. */
enum wish { WISH_STOP = 1, WISH_CHECKPOINT = 2 };
unsigned trainer_wishes(struct trainer *t, int epoch_ended);
/* After some examples: the epoch's end, what is wished. 1: stop here; -1 after fail(). */
int trainer_between(struct trainer *t, int epoch_ended, unsigned wished);

/* ---- the steps: 0: to the run's end; 1: stopped; -1 after fail() ---- */

int trainer_batches(struct trainer *t);
int trainer_hogwild(struct trainer *t);

#endif
