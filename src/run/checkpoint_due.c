#include "checkpoint_due.h"

#include "base/directory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>

void checkpoint_due_start(struct checkpoint_due *due, const struct config *config, const char *run, uint64_t step, double now) {
    *due = (struct checkpoint_due){.config = config, .run = run, .last = now, .last_step = step};
}

void checkpoint_due_begun(struct checkpoint_due *due, uint64_t step, double now) {
    due->last = now;
    due->last_step = step;
}

void checkpoint_due_busy(struct checkpoint_due *due, double now) {
    due->last = now;
}

void checkpoint_due_written(struct checkpoint_due *due, uint64_t step, double took, double now) {
    checkpoint_due_begun(due, step, now);
    due->took = took;
}

/* Returns 1 if the disk has space for the checkpoints of run.keep, and for the one that is being written. With checkpoint_every
 * = auto, a checkpoint before the end must not use the space that the last one needs. */
static int disk_has_space(struct checkpoint_due *due) {
    char space_text[TEXT_BYTES], wanted[TEXT_BYTES];
    uint64_t space, count = due->config->run_keep + 1, bytes;
    int failed_before = report_exit_code();
    if (due->took > 0 || due->present >= count) return 1; /* space is only checked before the first checkpoint */
    if (directory_space(due->run, &space)) {
        if (!failed_before) report_clear();
        return 1; /* the file system does not tell its free space */
    }
    if (__builtin_mul_overflow(due->bytes, count - due->present, &bytes)) bytes = UINT64_MAX;
    if (space >= bytes) return 1;
    due->without = 1;
    warn("no checkpoint is written before the end: those of run.keep = %" PRIu64 " and the one being written want %s more, and "
         "the disk of '%s' has %s free; lower run.keep, or say run.checkpoint_every (10m) to write them all the same",
         due->config->run_keep, text_of_bytes(wanted, bytes), due->run, text_of_bytes(space_text, space));
    return 0;
}

static int automatic_due(struct checkpoint_due *due, double passed) {
    const struct config *c = due->config;
    if (due->without || passed < c->checkpoint_seconds || passed < due->took / c->checkpoint_share) return 0;
    return disk_has_space(due);
}

int checkpoint_due_now(struct checkpoint_due *due, uint64_t step, int epoch_ended, double now) {
    const struct config *c = due->config;
    if (step == due->last_step) return 0;
    if (c->checkpoint_epochs && epoch_ended) return 1;
    if (c->checkpoint_steps && step - due->last_step >= c->checkpoint_steps) return 1;
    if (c->checkpoint_share > 0) return automatic_due(due, now - due->last);
    return c->checkpoint_seconds > 0 && now - due->last >= c->checkpoint_seconds;
}
