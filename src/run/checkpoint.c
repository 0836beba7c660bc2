/* How a checkpoint is written, so that a kill at any moment leaves a whole one:
 *
 *   1. checkpoint-<step>.partial/    is filled and synced
 *   2. checkpoint-<step>.replaced/   is the older checkpoint of this step, if any, renamed; checkpoint_newest() still finds it
 *   3. checkpoint-<step>/            is the partial one, renamed
 *   4. latest                        is replaced by a file that names the new checkpoint; then older checkpoints are removed
 *
 * A kill may leave a partial checkpoint, or more older checkpoints than run.keep allows. Writing the next checkpoint removes them.
 * A finished run writes no further checkpoint, so --resume of such a run removes them.
 */
#include "checkpoint.h"

#include "base/directory.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/report.h"
#include "base/text.h"
#include "checkpoints.h"
#include "replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Prints a failure that does not stop the caller as a warning, and clears its message. Does nothing if an earlier failure had
 * already set a message (failed_before). */
static void pass_over(const char *what, const char *name, int failed_before) {
    if (failed_before) return;
    warn("%s '%s': %s", what, name, report_sentence());
    report_clear();
}

/* ---- verifying ---- */

/* Returns 1 if the directory has a state.ini; 0 if not; -1 after fail() if this cannot be found out. */
static int has_state(const char *directory) {
    char *path = file_join(directory, "state.ini");
    int has = path ? file_exists(path) : -1;
    free(path);
    return has;
}

static int check_open(int fd, const char *path, const struct table_file *wanted, int *broken) {
    struct stat about;
    uint64_t seen = 0;
    if (fstat(fd, &about)) return fail_system("look at", path);
    if ((uint64_t)about.st_size == wanted->bytes) {
        if (file_checksum(fd, path, &seen)) return -1;
        if (seen == wanted->xxh64) return 0;
    }
    *broken = 1;
    if ((uint64_t)about.st_size != wanted->bytes)
        return fail("'%s' has %" PRId64 " bytes, its state.ini says %" PRIu64, path, (int64_t)about.st_size, wanted->bytes);
    return fail("'%s' was changed: its checksum is %016" PRIx64 ", its state.ini says %016" PRIx64, path, seen, wanted->xxh64);
}

static int check_file(const char *directory, const char *name, const struct table_file *wanted, int *broken) {
    char *path = file_join(directory, name);
    int fd = path ? file_open(path, O_RDONLY) : -1;
    int result = fd < 0 ? -1 : check_open(fd, path, wanted, broken);
    if (fd >= 0) close(fd);
    else if (path && file_exists(path) == 0) *broken = 1;
    free(path);
    return result;
}

/* Returns 0 if the checkpoint is whole; otherwise -1 after fail(), with *broken as state_read() sets it. */
static int check_whole(const char *directory, struct run_state *state, int *broken) {
    struct run_state read;
    if (state_read(directory, &read, broken)) return -1;
    *broken = 0;
    if (check_file(directory, "target.npy", &read.target, broken) || check_file(directory, "context.npy", &read.context, broken) ||
        (read.known.bytes && check_file(directory, "known.npy", &read.known, broken)))
        return -1;
    if (state) *state = read;
    return 0;
}

int checkpoint_verify(const char *directory, struct run_state *state) {
    int broken;
    return check_whole(directory, state, &broken);
}

char *checkpoint_newest(const char *run, struct run_state *state, int *found) {
    struct checkpoints all;
    uint64_t own = 0;
    char *good = NULL, unreadable[512] = ""; /* unreadable: error message of the newest checkpoint that could not be read but may
                                              * be whole */
    *found = -1;
    if (checkpoints_find(run, &all)) return NULL;
    for (uint64_t i = 0; i < all.count && !good; i++) {
        struct checkpoint_entry *one = &all.list[i];
        int failed_before = report_exit_code(), broken;
        if (one->kind == CHECKPOINT_PARTIAL) continue;
        own += (uint64_t)one->own;
        if (!check_whole(one->path, state, &broken)) {
            good = one->path, one->path = NULL;
            break;
        }
        if (report_exit_code() == REPORT_STOPPED) { /* the caller has stopped the check, so the checkpoint may be whole */
            checkpoints_release(&all);
            return NULL;
        }
        if (!broken && !*unreadable) snprintf(unreadable, sizeof unreadable, "%s", report_sentence());
        pass_over("passing over checkpoint", one->path, failed_before);
    }
    *found = good != NULL;
    if (!good && own) {
        *found = -1;
        if (*unreadable)
            fail("none of the %" PRIu64 " checkpoints in '%s' can be read now, though one may be whole: %s", own, run, unreadable);
        else
            fail("none of the %" PRIu64 " checkpoints in '%s' is whole, so there is nothing to go on from", own, run);
    }
    checkpoints_release(&all);
    return good;
}

int checkpoint_count(const char *run, uint64_t *count) {
    struct checkpoints all;
    if (checkpoints_find(run, &all)) return -1;
    *count = 0;
    for (uint64_t i = 0; i < all.count; i++) *count += all.list[i].kind != CHECKPOINT_PARTIAL;
    checkpoints_release(&all);
    return 0;
}

/* ---- writing ---- */

/* Removes the partial checkpoints of processes that were killed while they wrote them. */
static int remove_partial(const char *run) {
    struct checkpoints all;
    int result = checkpoints_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++)
        if (all.list[i].own && all.list[i].kind == CHECKPOINT_PARTIAL) result = checkpoint_remove(&all.list[i]);
    checkpoints_release(&all);
    return result;
}

/* A checkpoint that is being written. Only the first rank has its paths. */
struct writing {
    const char *run;
    const struct checkpoint *what;
    uint64_t keep;
    char names[3][CHECKPOINT_NAME], *paths[3]; /* [enum checkpoint_kind] */
    struct run_state state;
};

static int begin_directory(void *user) {
    struct writing *w = user;
    if (remove_partial(w->run)) return -1;
    for (int kind = CHECKPOINT_IN_PLACE; kind <= CHECKPOINT_PARTIAL; kind++) {
        checkpoint_name(w->names[kind], w->what->progress.step, (enum checkpoint_kind)kind);
        w->paths[kind] = file_join(w->run, w->names[kind]);
        if (!w->paths[kind] || checkpoint_make_way(w->paths[kind], (enum checkpoint_kind)kind)) return -1;
    }
    return directory_make(w->paths[CHECKPOINT_PARTIAL]);
}

static int note_size(const char *path, struct table_file *file) {
    int64_t size = file_size(path);
    file->bytes = (uint64_t)size;
    return size < 0 ? -1 : 0;
}

/* Saves one table, with the columns of all ranks in one file. Every rank calls this; only the first rank has a path. */
static int save_table(struct writing *w, struct table *table, const char *name, struct table_file *file) {
    int first = ranks_first(table->ranks);
    char *path = first ? file_join(w->paths[CHECKPOINT_PARTIAL], name) : NULL;
    int result = ranks_meet(table->ranks, NULL, first && !path ? -1 : 0);
    if (!result) result = table_save(table, first ? path : name, &file->xxh64);
    if (!result && first) result = note_size(path, file);
    free(path);
    return result;
}

static int save_known(struct writing *w) {
    char *path = file_join(w->paths[CHECKPOINT_PARTIAL], "known.npy");
    int result = !path || frozen_write(w->what->frozen, path, &w->state.known.xxh64) ? -1 : note_size(path, &w->state.known);
    free(path);
    return result;
}

/* Renames the filled directory to its final name. If there is an older checkpoint of this step, it is moved aside before, and
 * removed after. */
static int put_in_place(char *const paths[], uint64_t step) {
    const struct checkpoint_entry aside = {.path = paths[CHECKPOINT_ASIDE], .step = step, .kind = CHECKPOINT_ASIDE, .own = 1};
    int there = file_exists(paths[CHECKPOINT_IN_PLACE]);
    if (there == 1 && (checkpoint_remove(&aside) || file_rename(paths[CHECKPOINT_IN_PLACE], paths[CHECKPOINT_ASIDE]))) return -1;
    return there < 0 ? -1 : file_rename(paths[CHECKPOINT_PARTIAL], paths[CHECKPOINT_IN_PLACE]);
}

static int point_latest(const char *run, const char *name) {
    char line[CHECKPOINT_NAME + 1], *path = file_join(run, "latest");
    size_t n = text_add(line, sizeof line, 0, "%s\n", name);
    int result = path ? file_replace(path, line, n) : -1;
    free(path);
    return result;
}

int checkpoint_name_latest(const char *run, const char *checkpoint) {
    char head[CHECKPOINT_NAME + 1] = "", *path = file_join(run, "latest");
    const char *slash = strrchr(checkpoint, '/'), *name = slash ? slash + 1 : checkpoint;
    int there = path ? file_head(path, head, sizeof head) : -1;
    free(path);
    if (there < 0 || strchr(name, '.')) return there < 0 ? -1 : 0; /* `latest` never names a checkpoint that was moved aside */
    head[strcspn(head, "\n")] = 0;
    return there == 1 && !strcmp(head, name) ? 0 : point_latest(run, name);
}

/* Returns 1 if a checkpoint may be removed after `checkpoint`, of step `step`, was written. `kept`: number of checkpoints up to
 * `step` that stay. A checkpoint of a later step could not be read when the run was resumed from an earlier one. That may have
 * been a temporary fault of the disk, so it is removed only if it is certainly broken; otherwise the run replaces it when it
 * reaches that step. */
static int can_go(const struct checkpoint_entry *one, const char *checkpoint, uint64_t step, uint64_t kept, uint64_t keep) {
    int broken = 0, failed_before = report_exit_code();
    if (!one->own || !strcmp(one->path, checkpoint)) return 0;
    if (one->step <= step) return one->kind != CHECKPOINT_IN_PLACE || kept >= keep;
    if (check_whole(one->path, NULL, &broken) && !failed_before) report_clear();
    return broken;
}

static int prune(const char *run, const char *checkpoint, uint64_t step, uint64_t keep, uint64_t best) {
    struct checkpoints all;
    uint64_t kept = 0;
    int result = checkpoints_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++) {
        const struct checkpoint_entry *one = &all.list[i];
        int is_best = best && one->step == best && one->kind == CHECKPOINT_IN_PLACE;
        int goes = !is_best && can_go(one, checkpoint, step, kept, keep);
        kept += one->own && one->step <= step && !goes;
        if (goes) result = checkpoint_remove(one);
    }
    checkpoints_release(&all);
    return result;
}

void checkpoint_remove_older(const char *run, const char *checkpoint, uint64_t step, uint64_t keep, uint64_t best) {
    int failed_before = report_exit_code();
    if (prune(run, checkpoint, step, keep, best)) pass_over("cannot remove older checkpoints of", run, failed_before);
}

/* Renames the complete directory to its final name, and removes older checkpoints. */
static int end_directory(void *user) {
    struct writing *w = user;
    const struct frozen *frozen = w->what->frozen;
    uint64_t step = w->what->progress.step;
    if ((frozen && frozen->known && save_known(w)) || state_write(w->paths[CHECKPOINT_PARTIAL], &w->state) ||
        directory_sync(w->paths[CHECKPOINT_PARTIAL]) || put_in_place(w->paths, step) ||
        point_latest(w->run, w->names[CHECKPOINT_IN_PLACE]))
        return -1;
    checkpoint_remove_older(w->run, w->paths[CHECKPOINT_IN_PLACE], step, w->keep, w->state.progress.best_step);
    return 0;
}

/* Removes the unfinished files, so that their space on a full disk is free again. If several things fail, the first failure is
 * reported. */
static void remove_begun(const struct writing *w) {
    const struct checkpoint_entry partial = {.path = w->paths[CHECKPOINT_PARTIAL],
                                             .step = w->what->progress.step,
                                             .kind = CHECKPOINT_PARTIAL,
                                             .own = 1};
    checkpoint_remove(&partial);
}

int checkpoint_write(const char *run, const struct checkpoint *what, uint64_t keep) {
    struct run_state state = {.progress = what->progress,
                              .corpus = what->corpus,
                              .target_first = what->target->spec.first_row};
    struct writing w = {.run = run, .what = what, .keep = keep, .state = state};
    struct ranks *ranks = what->target->ranks;
    int first = ranks_first(ranks), begun = 0;
    int result = ranks_do(ranks, first ? begin_directory : NULL, &w);
    if (!result) {
        begun = first;
        result = save_table(&w, what->target, "target.npy", &w.state.target);
    }
    if (!result) result = save_table(&w, what->context, "context.npy", &w.state.context);
    if (!result) result = ranks_do(ranks, first ? end_directory : NULL, &w);
    if (result && begun) remove_begun(&w);
    for (int kind = CHECKPOINT_IN_PLACE; kind <= CHECKPOINT_PARTIAL; kind++) free(w.paths[kind]);
    return result;
}

/* ---- the best one ---- */

static char *path_of_step(const char *run, uint64_t step) {
    char name[CHECKPOINT_NAME];
    checkpoint_name(name, step, CHECKPOINT_IN_PLACE);
    return file_join(run, name);
}

int checkpoint_amend(const char *run, const struct progress_state *progress) {
    struct run_state state;
    char *path = path_of_step(run, progress->step);
    int broken, result = !path || state_read(path, &state, &broken) ? -1 : 0;
    if (!result) {
        state.progress = *progress;
        result = state_write(path, &state);
    }
    free(path);
    return result;
}

static int remove_later(const char *run, uint64_t step) {
    struct checkpoints all;
    int result = checkpoints_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++)
        if (all.list[i].own && all.list[i].step > step) result = checkpoint_remove(&all.list[i]);
    checkpoints_release(&all);
    return result;
}

static int end_at(const char *run, const char *path, uint64_t step, uint64_t ended) {
    struct run_state state;
    int broken;
    if (state_read(path, &state, &broken)) return -1;
    state.progress.finished = 1;
    state.progress.ended_step = ended;
    return state_write(path, &state) || remove_later(run, step) || checkpoint_name_latest(run, path) ? -1 : 0;
}

int checkpoint_end_at(const char *run, uint64_t step, uint64_t ended) {
    char *path = path_of_step(run, step);
    int result = path ? end_at(run, path, step, ended) : -1;
    free(path);
    return result;
}

/* ---- finding ---- */

/* Returns the path of the newest checkpoint of a run that has a state.ini, for the caller to free; NULL after fail(). */
static char *newest_present(const char *run) {
    struct checkpoints all;
    char *path = NULL;
    int has = 0;
    if (checkpoints_find(run, &all)) return NULL;
    for (uint64_t i = 0; i < all.count && !has; i++) {
        if (all.list[i].kind == CHECKPOINT_PARTIAL) continue;
        has = has_state(all.list[i].path);
        if (has == 1) path = all.list[i].path, all.list[i].path = NULL;
    }
    checkpoints_release(&all);
    if (!has) fail("'%s' holds no checkpoint: it is no run directory, or its run has not written one yet", run);
    return path;
}

static char *parent_of(const char *directory) {
    char *whole = realpath(directory, NULL);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (!slash) {
        free(whole);
        fail_system("resolve", directory);
        return NULL;
    }
    slash[slash == whole] = 0;
    return whole;
}

static int locate(const char *run, char **checkpoint, char **run_directory) {
    int there = directory_exists(run), has = there == 1 ? has_state(run) : there;
    if (!there) return fail("there is no run directory '%s'", run);
    if (has < 0) return -1;
    *run_directory = has ? parent_of(run) : replacement_place(run);
    if (*run_directory) *checkpoint = has ? mem_text(run, strlen(run), "a path") : newest_present(*run_directory);
    return *checkpoint ? 0 : -1;
}

int checkpoint_locate(const char *run, char **checkpoint, char **run_directory) {
    char *resolved = path_resolve(run);
    *checkpoint = *run_directory = NULL;
    int result = resolved ? locate(resolved, checkpoint, run_directory) : -1;
    free(resolved);
    if (result) {
        free(*run_directory);
        *run_directory = NULL;
    }
    return result;
}
