#include "trainer_run.h"

#include "base/memory.h"
#include "base/report.h"
#include "run/checkpoint.h"
#include "run/run_directory.h"
#include "run/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int refuse_older(const char *run, const struct progress_state *state) {
    if (state->finished) return fail("'%s' holds a finished run; --overwrite replaces it, run.dir = ... writes elsewhere", run);
    return fail("'%s' holds an unfinished run at step %" PRIu64 "; --resume goes on from it, --overwrite starts over", run,
                state->step);
}

/* Refuses a run whose `latest` names a checkpoint but which has no whole one: it can neither be resumed, nor be replaced without
 * --overwrite. */
static int refuse_lost(const char *run) {
    int owner = run_file_owner(run, RUN_LATEST);
    if (owner != RUN_FILE_OWN) return owner < 0 ? -1 : 0;
    return fail(
        "'%s' holds a run that had a checkpoint, as its 'latest' says, and none there is one now: put it back, or "
        "replace the run by --overwrite",
        run);
}

/* Finds the checkpoint to resume from; claim->checkpoint stays NULL if a new run begins. Refuses a run that is there if neither
 * --resume nor --overwrite was asked for. */
static int find_older(struct trainer_run *claim, const struct trainer_options *options) {
    const char *run = claim->run.path;
    int found = 0;
    claim->checkpoint = options->overwrite ? NULL : checkpoint_newest(run, &claim->older, &found);
    if (found < 0) return -1;
    if (found && !options->resume) return refuse_older(run, &claim->older.progress);
    if (!found && !options->overwrite && refuse_lost(run)) return -1;
    if (!found && options->resume) note("'%s' has no checkpoint yet: starting over", run);
    return found ? checkpoint_name_latest(run, claim->checkpoint) : 0;
}

/* ---- ranks ---- */

static int share(struct trainer_run *claim, struct ranks *ranks) {
    if (ranks_count(ranks) == 1) return 0;
    ranks_share(ranks, &claim->older, sizeof claim->older);
    return ranks_alike_text(&claim->run.path, ranks) || ranks_alike_text(&claim->run.place, ranks) ||
                   ranks_alike_text(&claim->checkpoint, ranks) ? -1 : 0;
}

/* ---- the whole ---- */

struct claiming {
    struct trainer_run *claim;
    const struct config *config;
    const struct trainer_options *options;
};

static int take_directory(void *user) {
    const struct claiming *c = user;
    if (run_directory_open(&c->claim->run, c->config->run_dir, c->options->resume)) return -1;
    return find_older(c->claim, c->options) ? -1 : 0;
}

/* Sets run.dir to the real path of the directory, so that all later work is done there even if a link in the given path changes. */
static int take_path(const struct trainer_run *claim, struct config *config) {
    char *resolved = mem_text(claim->run.path, strlen(claim->run.path), "a path");
    if (!resolved) return -1;
    free(config->run_dir);
    config->run_dir = resolved;
    return 0;
}

int trainer_run_open(struct trainer_run *claim, struct config *config, const struct trainer_options *options) {
    struct ranks *ranks = options->ranks;
    struct claiming claiming = {claim, config, options};
    *claim = (struct trainer_run){.run = {.fd = -1}};
    if (ranks_do(ranks, ranks_first(ranks) ? take_directory : NULL, &claiming) || share(claim, ranks)) return -1;
    if (ranks_agree(ranks, take_path(claim, config))) return -1;
    return claim->checkpoint ? ranks_agree(ranks, resume_keys(config, claim->run.place, ranks, &claim->kept)) : 0;
}

void trainer_run_close(struct trainer_run *claim) {
    free(claim->checkpoint);
    run_directory_close(&claim->run);
    *claim = (struct trainer_run){.checkpoint = NULL};
}
