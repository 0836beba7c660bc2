#include "checkpoint.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "run_directory.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_MOST = 1000 }; /* largest number that is tried in PATH.kept-<number> */

static const char prefix[] = "checkpoint-";
static const char *const suffixes[] = {
    [CHECKPOINT_IN_PLACE] = "", [CHECKPOINT_ASIDE] = ".replaced", [CHECKPOINT_PARTIAL] = ".partial"};
/* A checkpoint's files, in the order of their removal. state.ini is last: a checkpoint that a kill has left half removed is still recognized by
 * it. */
static const char *const contents[] = {"target.npy", "context.npy", "known.npy", "state.ini"};
enum { CONTENTS = sizeof contents / sizeof *contents };

/* ---- names ---- */

void checkpoint_name(char name[CHECKPOINT_NAME], uint64_t step, enum checkpoint_kind kind) {
    snprintf(name, CHECKPOINT_NAME, "%s%" PRIu64 "%s", prefix, step, suffixes[kind]);
}

/* If `name` is a checkpoint's name, stores its step and kind in *out and returns 1; otherwise returns 0. */
static int parse_name(const char *name, struct checkpoint_entry *out) {
    char same[CHECKPOINT_NAME];
    if (strncmp(name, prefix, sizeof prefix - 1)) return 0;
    out->step = strtoull(name + sizeof prefix - 1, NULL, 10);
    for (out->kind = CHECKPOINT_IN_PLACE; out->kind <= CHECKPOINT_PARTIAL; out->kind++) {
        checkpoint_name(same, out->step, out->kind);
        if (!strcmp(name, same)) return 1;
    }
    return 0;
}

static int newest_first(const void *a, const void *b) {
    const struct checkpoint_entry *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? 1 : -1;
    return (int)x->kind - (int)y->kind;
}

/* ---- which are this program's own ---- */

int checkpoint_holds(const char *name) {
    for (int i = 0; i < CONTENTS; i++)
        if (!strcmp(name, contents[i])) return 1;
    return 0;
}

/* Returns 1 for the name of a checkpoint's file, or of a partial one that a killed process has left. */
static int is_content(const char *name) {
    for (int i = 0; i < CONTENTS; i++)
        if (file_is_partial(name, contents[i])) return 1;
    return checkpoint_holds(name);
}

static int holds_contents_only(const char *path) {
    char **names;
    int64_t count = directory_list(path, &names);
    int only = count < 0 ? -1 : 1;
    for (int64_t i = 0; i < count && only; i++) only = is_content(names[i]);
    mem_free_texts(names, count);
    return only;
}

enum owner { OWNER_OTHER, OWNER_SELF, OWNER_LINK };

/* Returns who made the checkpoint (enum owner), or -1 after fail() if that cannot be found out. */
static int owner_of(const char *path, enum checkpoint_kind kind) {
    struct stat about;
    if (lstat(path, &about)) return errno == ENOENT ? OWNER_OTHER : fail_system("look at", path);
    int link = S_ISLNK(about.st_mode);
    if (!S_ISDIR(about.st_mode) && (!link || kind == CHECKPOINT_PARTIAL)) return OWNER_OTHER;
    int own = kind == CHECKPOINT_PARTIAL ? holds_contents_only(path) : state_is_own(path);
    return own != 1 ? own : link ? OWNER_LINK : OWNER_SELF;
}

/* ---- finding ---- */

void checkpoints_release(struct checkpoints *all) {
    for (uint64_t i = 0; i < all->count; i++) free(all->list[i].path);
    free(all->list);
    *all = (struct checkpoints){0};
}

static int take_name(struct checkpoints *all, const char *run, const char *name) {
    struct checkpoint_entry one;
    if (!parse_name(name, &one)) return 0;
    one.path = file_join(run, name);
    int there = one.path ? directory_exists(one.path) : -1;
    int owner = there == 1 ? owner_of(one.path, one.kind) : OWNER_OTHER;
    one.own = owner == OWNER_SELF;
    one.linked = owner == OWNER_LINK;
    if (there == 1 && owner >= 0 && !mem_grow(&all->list, &all->capacity, all->count + 1, sizeof one, "the list of checkpoints")) {
        all->list[all->count++] = one;
        return 0;
    }
    free(one.path);
    return there ? -1 : 0;
}

int checkpoints_find(const char *run, struct checkpoints *all) {
    char **names;
    *all = (struct checkpoints){0};
    int result = directory_exists(run);
    if (result != 1) return result;
    int64_t n = directory_list(run, &names);
    result = n < 0 ? -1 : 0;
    for (int64_t i = 0; i < n && !result; i++) result = take_name(all, run, names[i]);
    mem_free_texts(names, n);
    if (result) checkpoints_release(all);
    else if (all->count > 1) qsort(all->list, all->count, sizeof *all->list, newest_first);
    return result;
}

int64_t checkpoint_count(const char *run, enum checkpoint_kind most, enum checkpoints_of of) {
    ENDED_BY(checkpoints_release) struct checkpoints all = {0};
    int64_t count = 0;
    if (checkpoints_find(run, &all)) return -1;
    for (uint64_t i = 0; i < all.count; i++)
        count += all.list[i].kind <= most &&
                 (of == CHECKPOINTS_ALL || all.list[i].own || (all.list[i].linked && of == CHECKPOINTS_LINKED));
    return count;
}

/* ---- removing ---- */

/* Renames a checkpoint to a partial one before it is removed, so that a kill leaves no directory that looks whole; not if it contains foreign
 * files. Returns the new path, which the caller frees; NULL after fail(). */
static char *discard(const char *path, uint64_t step, enum checkpoint_kind kind) {
    char name[CHECKPOINT_NAME], *run = path_parent(path), *partial = NULL;
    int only = kind == CHECKPOINT_PARTIAL ? 0 : holds_contents_only(path), there = 0;
    checkpoint_name(name, step, CHECKPOINT_PARTIAL);
    if (run && only == 1) partial = file_join(run, name);
    if (partial) there = file_exists(partial);
    free(run);
    if (only < 0 || there < 0 || (only && !partial)) return NULL;
    if (partial && !there && !rename(path, partial)) return partial;
    free(partial);
    return mem_text(path, strlen(path), "a path");
}

static int remove_directory(const char *path) {
    char **names;
    int64_t n = directory_list(path, &names);
    int result = n < 0 ? -1 : 0;
    for (int64_t i = 0; i < n && !result; i++)
        if (is_content(names[i]) && strcmp(names[i], contents[CONTENTS - 1])) result = file_remove_in(path, names[i]);
    mem_free_texts(names, n);
    if (!result) result = file_remove_in(path, contents[CONTENTS - 1]);
    if (result || !rmdir(path)) return result;
    if (errno != ENOTEMPTY && errno != EEXIST) return fail_system("remove", path);
    warn("'%s' stays, because it holds files that are no checkpoint's", path);
    return 0;
}

int checkpoint_remove(const struct checkpoint_entry *one) {
    int there = file_exists(one->path);
    OWNED char *path = there == 1 ? discard(one->path, one->step, one->kind) : NULL;
    return path ? remove_directory(path) : there ? -1 : 0;
}

/* Renames `path` to an unused name that is not a checkpoint's; a warning calls it `what`. */
static int move_aside(const char *path, const char *what) {
    int taken = 1;
    uint64_t capacity = strlen(path) + 16;
    OWNED char *kept = mem_alloc(capacity, 1, "a path");
    for (int i = 1; kept && taken == 1 && i < KEPT_MOST; i++) {
        snprintf(kept, capacity, "%s.kept-%d", path, i);
        taken = file_exists(kept);
    }
    int result = kept && !taken ? file_rename(path, kept) : -1;
    if (taken == 1) fail("'%s' is %s, and in the way of a checkpoint", path, what);
    if (!result) warn("'%s' is %s: it is kept as '%s'", path, what, kept);
    return result;
}

int checkpoint_make_way(const char *path, enum checkpoint_kind kind) {
    int there = file_exists(path), owner = there == 1 ? owner_of(path, kind) : OWNER_SELF;
    if (there < 0 || owner < 0) return -1;
    if (owner == OWNER_SELF) return 0;
    return move_aside(path, owner == OWNER_LINK ? "a link to a checkpoint" : "none of this program's checkpoints");
}

/* Removes checkpoints that this program has written: partial ones (partial = 1), or those of later steps than `step` (partial = 0). */
static int remove_some(const char *run, int partial, uint64_t step) {
    ENDED_BY(checkpoints_release) struct checkpoints all = {0};
    int result = checkpoints_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++)
        if (all.list[i].own && (partial ? all.list[i].kind == CHECKPOINT_PARTIAL : all.list[i].step > step))
            result = checkpoint_remove(&all.list[i]);
    return result;
}

int checkpoints_remove(const char *run) {
    ENDED_BY(checkpoints_release) struct checkpoints all = {0};
    int result = checkpoints_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++)
        if (all.list[i].own) result = checkpoint_remove(&all.list[i]);
        else if (all.list[i].linked) result = checkpoint_make_way(all.list[i].path, all.list[i].kind);
    return result;
}

/* How a checkpoint is written, so that a kill at any moment leaves a whole one:
 *
 *   1. checkpoint-<step>.partial/    is filled and synced
 *   2. checkpoint-<step>.replaced/   is the older checkpoint of this step, if any, renamed; checkpoint_newest() still finds it
 *   3. checkpoint-<step>/            is the partial one, renamed
 *   4. latest                        is replaced by a file that names the new checkpoint; then older checkpoints are removed
 *
 * A kill may leave a partial checkpoint, or more older ones than run.keep allows; they are removed when the next checkpoint is written or, in a
 * finished run, by --resume.
 */

/* Prints a failure as a warning, for callers that can continue, and clears its message. Does nothing if an earlier failure has already set one
 * (failed_before). */
static void pass_over(const char *what, const char *name, int failed_before) {
    if (failed_before) return;
    warn("%s '%s': %s", what, name, report_sentence());
    report_clear();
}

/* ---- verifying ---- */

/* Returns 1 if the directory contains a state.ini, 0 if not; -1 after fail() if that is unknown. */
static int has_state(const char *directory) {
    OWNED char *path = file_join(directory, "state.ini");
    return path ? file_exists(path) : -1;
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
    OWNED char *path = file_join(directory, name);
    int fd = path ? file_open(path, O_RDONLY) : -1;
    int result = fd < 0 ? -1 : check_open(fd, path, wanted, broken);
    if (fd >= 0) close(fd);
    else if (path && file_exists(path) == 0) *broken = 1;
    return result;
}

/* Returns 0 if the checkpoint is whole; otherwise -1 after fail(), with *broken set like state_read() does. */
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
    ENDED_BY(checkpoints_release) struct checkpoints all = {0};
    uint64_t own = 0;
    char *good = NULL, unreadable[512] = ""; /* unreadable: error message about the newest checkpoint that could not be read but may be whole */
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
        if (report_exit_code() == REPORT_STOPPED) return NULL; /* the caller stopped the check, so the checkpoint may be whole */
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
    return good;
}

/* ---- writing ---- */

/* A checkpoint that is being written; only the first rank has its paths. */
struct writing {
    const char *run;
    const struct checkpoint *what;
    uint64_t keep;
    char names[3][CHECKPOINT_NAME], *paths[3]; /* [enum checkpoint_kind] */
    struct run_state state;
};

static int begin_directory(void *user) {
    struct writing *w = user;
    if (remove_some(w->run, 1, 0)) return -1; /* removes partial checkpoints of killed processes */
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

/* Saves one table, with the columns of all ranks in one file. All ranks call this; only the first one has a path. */
static int save_table(struct writing *w, struct table *table, const char *name, struct table_file *file) {
    int first = ranks_first(table->ranks);
    OWNED char *path = first ? file_join(w->paths[CHECKPOINT_PARTIAL], name) : NULL;
    int result = ranks_meet(table->ranks, NULL, first && !path ? -1 : 0);
    if (!result) result = table_save(table, first ? path : name, &file->xxh64);
    if (!result && first) result = note_size(path, file);
    return result;
}

static int save_known(struct writing *w) {
    OWNED char *path = file_join(w->paths[CHECKPOINT_PARTIAL], "known.npy");
    return !path || frozen_write(w->what->frozen, path, &w->state.known.xxh64) ? -1 : note_size(path, &w->state.known);
}

/* Renames the complete directory to its final name. An older checkpoint of the same step is moved aside before, and removed after. */
static int put_in_place(char *const paths[], uint64_t step) {
    const struct checkpoint_entry aside = {.path = paths[CHECKPOINT_ASIDE], .step = step, .kind = CHECKPOINT_ASIDE, .own = 1};
    int there = file_exists(paths[CHECKPOINT_IN_PLACE]);
    if (there == 1 && (checkpoint_remove(&aside) || file_rename(paths[CHECKPOINT_IN_PLACE], paths[CHECKPOINT_ASIDE]))) return -1;
    return there < 0 ? -1 : file_rename(paths[CHECKPOINT_PARTIAL], paths[CHECKPOINT_IN_PLACE]);
}

static int point_latest(const char *run, const char *name) {
    char line[CHECKPOINT_NAME + 1];
    OWNED char *path = file_join(run, "latest");
    size_t n = text_add(line, sizeof line, 0, "%s\n", name);
    return path ? file_replace(path, line, n) : -1;
}

int checkpoint_name_latest(const char *run, const char *checkpoint) {
    char head[CHECKPOINT_NAME + 1] = "", *path = file_join(run, "latest");
    const char *slash = strrchr(checkpoint, '/'), *name = slash ? slash + 1 : checkpoint;
    int there = path ? file_head(path, head, sizeof head) : -1;
    free(path);
    if (there < 0 || strchr(name, '.')) return there < 0 ? -1 : 0; /* a checkpoint that was moved aside is never named in `latest` */
    head[strcspn(head, "\n")] = 0;
    return there == 1 && !strcmp(head, name) ? 0 : point_latest(run, name);
}

/* Removes all checkpoints up to `step` except the newest `keep` and the best one, now that `checkpoint`, of step `step`, is written. */
static int prune(const char *run, const char *checkpoint, uint64_t step, uint64_t keep, uint64_t best) {
    ENDED_BY(checkpoints_release) struct checkpoints all = {0};
    uint64_t kept = 0;
    int result = checkpoints_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++) {
        const struct checkpoint_entry *one = &all.list[i];
        int is_best = best && one->step == best && one->kind == CHECKPOINT_IN_PLACE;
        int broken = 0, failed_before = report_exit_code(), goes = !is_best && one->own && strcmp(one->path, checkpoint) != 0;
        if (goes && one->step <= step) goes = one->kind != CHECKPOINT_IN_PLACE || kept >= keep;
        else if (goes) {
            /* A checkpoint of a later step could not be read when the run was resumed from an earlier one, perhaps because of a temporary fault of
             * the disk. So it is removed only if it is certainly broken; otherwise the run replaces it when it reaches that step. */
            if (check_whole(one->path, NULL, &broken) && !failed_before) report_clear();
            goes = broken;
        }
        kept += one->own && one->step <= step && !goes;
        if (goes) result = checkpoint_remove(one);
    }
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
    if (result && begun) { /* frees the space of unfinished files on a full disk; the first failure is reported */
        const struct checkpoint_entry partial = {
            .path = w.paths[CHECKPOINT_PARTIAL], .step = what->progress.step, .kind = CHECKPOINT_PARTIAL, .own = 1};
        checkpoint_remove(&partial);
    }
    for (int kind = CHECKPOINT_IN_PLACE; kind <= CHECKPOINT_PARTIAL; kind++) free(w.paths[kind]);
    return result;
}

/* ---- the best one ---- */

/* Reads the state of a step's checkpoint. Returns its path, which the caller frees; NULL after fail(). */
static char *read_step(const char *run, uint64_t step, struct run_state *state) {
    char name[CHECKPOINT_NAME], *path;
    int broken;
    checkpoint_name(name, step, CHECKPOINT_IN_PLACE);
    path = file_join(run, name);
    if (path && !state_read(path, state, &broken)) return path;
    free(path);
    return NULL;
}

int checkpoint_amend(const char *run, const struct progress_state *progress, uint64_t keep) {
    struct run_state state;
    OWNED char *path = read_step(run, progress->step, &state);
    state.progress = *progress;
    if (!path || state_write(path, &state)) return -1;
    checkpoint_remove_older(run, path, progress->step, keep, progress->best_step);
    return 0;
}

int checkpoint_end_at(const char *run, uint64_t step, uint64_t ended) {
    struct run_state state;
    OWNED char *path = read_step(run, step, &state);
    state.progress.finished = 1;
    state.progress.ended_step = ended;
    return !path || state_write(path, &state) || remove_some(run, 0, step) || checkpoint_name_latest(run, path) ? -1 : 0;
}

/* ---- finding ---- */

/* Returns the path of the newest checkpoint that contains a state.ini; the caller frees it. NULL after fail(). */
static char *newest_present(const char *run) {
    ENDED_BY(checkpoints_release) struct checkpoints all = {0};
    char *path = NULL;
    int has = 0;
    if (checkpoints_find(run, &all)) return NULL;
    for (uint64_t i = 0; i < all.count && !has; i++) {
        if (all.list[i].kind == CHECKPOINT_PARTIAL) continue;
        has = has_state(all.list[i].path);
        if (has == 1) path = all.list[i].path, all.list[i].path = NULL;
    }
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

/* Returns 1 if the disk has space for run.keep checkpoints and the one that is being written. With checkpoint_every = auto, an earlier checkpoint
 * must not use the space that the last one needs. */
static int disk_has_space(struct checkpoint_due *due) {
    char space_text[TEXT_BYTES], wanted[TEXT_BYTES];
    uint64_t space, count = due->config->run_keep + 1, bytes;
    int failed_before = report_exit_code();
    if (due->took > 0 || due->present >= count) return 1; /* space is checked only before the first checkpoint */
    if (directory_space(due->run, &space)) {
        if (!failed_before) report_clear();
        return 1; /* the file system does not say how much space is free */
    }
    if (__builtin_mul_overflow(due->bytes, count - due->present, &bytes)) bytes = UINT64_MAX;
    if (space >= bytes) return 1;
    due->without = 1;
    warn("no checkpoint is written before the end: those of run.keep = %" PRIu64 " and the one being written want %s more, and "
         "the disk of '%s' has %s free; lower run.keep, or say run.checkpoint_every (10m) to write them all the same",
         due->config->run_keep, text_of_bytes(wanted, bytes), due->run, text_of_bytes(space_text, space));
    return 0;
}

int checkpoint_due_now(struct checkpoint_due *due, uint64_t step, int epoch_ended, double now) {
    const struct config *c = due->config;
    if (step == due->last_step) return 0;
    if (c->checkpoint_epochs && epoch_ended) return 1;
    if (c->checkpoint_steps && step - due->last_step >= c->checkpoint_steps) return 1;
    if (c->checkpoint_share > 0)
        return !due->without && now - due->last >= fmax(c->checkpoint_seconds, due->took / c->checkpoint_share) && disk_has_space(due);
    return c->checkpoint_seconds > 0 && now - due->last >= c->checkpoint_seconds;
}
