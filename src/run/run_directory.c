#define _GNU_SOURCE
#include "run_directory.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "checkpoints.h"
#include "corpus/cache.h"
#include "replacement.h"
#include "run_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char lock_name[] = "train.lock";

/* ---- may a run be written into the directory? ---- */

/* Returns 1 for a name that does not show who made the directory: files that exist before a run has written anything, and files
 * that file systems make. */
static int tells_nothing(const char *name) {
    return cache_owns(name) || !strcmp(name, lock_name) || run_file_is_piece(name) || !strncmp(name, ".nfs", 4);
}

/* Returns 1 if the directory has files that a run has written; 0 if not; -1 after fail(). */
static int is_run(const char *path) {
    int result = replacement_exists(path);
    for (int file = 0; file < RUN_FILES && !result; file++) {
        int owner = run_file_owner(path, (enum run_file)file);
        result = owner < 0 ? -1 : owner == RUN_FILE_OWN;
    }
    struct checkpoints all;
    if (!result) result = checkpoints_find(path, &all);
    else return result;
    for (uint64_t i = 0; i < all.count; i++) result |= all.list[i].own || all.list[i].linked;
    checkpoints_release(&all);
    return result;
}

static int refuse_others(const char *path) {
    char **names;
    int64_t count = directory_list(path, &names), at = 0;
    while (at < count && tells_nothing(names[at])) at++;
    int result = count < 0 ? -1 : 0;
    if (at < count)
        result = fail("'%s' is no run directory and holds '%s': a run wants a directory of its own (run.dir = ...)", path,
                      names[at]);
    mem_free_texts(names, count);
    return result;
}

/* Accepts the directory of a run, and a directory whose files do not show who made it. Fails for other directories. */
static int check_owner(const char *path) {
    int run = is_run(path);
    return run < 0 || (!run && refuse_others(path)) ? -1 : 0;
}

int run_directory_check(const char *path) {
    char *place = path_resolve(path);
    int there = place ? directory_exists(place) : -1, result = there == 1 ? check_owner(place) : there;
    free(place);
    return result;
}

static int check_place(const char *path, int resumed) {
    if (check_owner(path)) return -1;
    return run_files_remove_pieces(path) || replacement_settle(path) || (!resumed && replacement_check(path)) ||
                   run_files_check(path, resumed) ? -1 : 0;
}

/* ---- who has it ---- */

static int claim(struct run_directory *run) {
    char holder[LOCK_HOLDER];
    int taken = directory_claim(&run->lock, run->path, lock_name, &run->made, holder);
    if (taken == 1) fail("'%s' is being trained by %s; one process at a time has a run directory", run->path, holder);
    return taken ? -1 : 0;
}

/* ---- where it is ---- */

/* Returns 1 if `path` leads to the open directory; 0 if not; -1 after fail(). */
static int is_at(const struct run_directory *run, const char *path) {
    int result = file_is_at(run->fd, path);
    return result < 0 ? fail_system("look at", path) : result;
}

/* Returns the present path of the open directory, for the caller to free; NULL after fail() if it has none. */
static char *path_of(const struct run_directory *run) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", run->fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    int found = n > 0 ? is_at(run, path) : fail_system("look at", link);
    if (found > 0) return mem_text(path, (uint64_t)n, "a path");
    if (!found) fail("'%s' was removed while a run trained in it: nothing of it can be written there", run->path);
    return NULL;
}

/* Returns 1 if the run's files are in RUN/replacement, because the older run is not replaced yet. */
static int is_beside(const struct run_directory *run) {
    return strcmp(run->place, run->path) != 0;
}

static int move_to(struct run_directory *run, char *path) {
    char *place = is_beside(run) ? file_join(path, strrchr(run->place, '/') + 1) : mem_text(path, strlen(path), "a path");
    char *lock = file_join(path, lock_name);
    int result = place && lock ? lock_move(&run->lock, lock) : -1;
    free(lock);
    if (result) {
        free(place);
        free(path);
        return -1;
    }
    warn("'%s' is '%s' now: the run goes on there", run->path, path);
    free(run->path);
    free(run->place);
    run->path = path;
    run->place = place;
    run->made = 0;
    return 0;
}

/* Takes the lock again, if somebody has removed its file and no other process has made a new one. */
static int retake(struct run_directory *run) {
    char holder[LOCK_HOLDER];
    struct lock again;
    int taken = lock_try(&again, run->lock.path, holder);
    if (taken == 1) return fail("the lock of '%s' was removed while a run trained in it, and now %s has it", run->path, holder);
    if (taken) return -1;
    lock_give(&run->lock);
    run->lock = again;
    return 0;
}

int run_directory_follow(struct run_directory *run) {
    int here = is_at(run, run->path);
    if (here < 0) return -1;
    char *path = here ? NULL : path_of(run);
    if (!here && (!path || move_to(run, path))) return -1;
    int locked = lock_stands(&run->lock);
    return locked < 0 || (!locked && retake(run)) ? -1 : !here;
}

/* Opens the directory, so that it can be found after it was renamed. */
static int hold(struct run_directory *run) {
    run->fd = retry_open(run->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return run->fd < 0 ? fail_system("open", run->path) : 0;
}

int run_directory_open(struct run_directory *run, const char *path, int resumed) {
    *run = (struct run_directory){.path = path_resolve(path), .fd = -1};
    if (run->path) run->place = mem_text(run->path, strlen(run->path), "a path");
    if (run->place && !claim(run) && !hold(run) && !check_place(run->path, resumed)) return 0;
    run_directory_close(run);
    return -1;
}

void run_directory_close(struct run_directory *run) {
    if (!run->path) return;
    int held = run->lock.path != NULL;
    int stands = run->fd < 0 || file_is_at(run->fd, run->path) == 1; /* 0: another directory may have this path by now */
    if (held && stands && is_beside(run)) replacement_settle(run->path);
    lock_give(&run->lock);
    if (stands) directory_unmake(run->path, run->made);
    if (run->fd >= 0) close(run->fd);
    free(run->path);
    free(run->place);
    *run = (struct run_directory){.fd = -1};
}

/* ---- an older run, and a new one ---- */

int run_directory_has_run(const struct run_directory *run) {
    struct checkpoints all;
    int has = 0;
    if (checkpoints_find(run->path, &all)) return -1;
    for (uint64_t i = 0; i < all.count; i++)
        has |= (all.list[i].own || all.list[i].linked) && all.list[i].kind != CHECKPOINT_PARTIAL;
    checkpoints_release(&all);
    return has;
}

/* Returns the bytes of a checkpoint on disk. */
static uint64_t bytes_of_checkpoint(const char *path) {
    char **names;
    uint64_t bytes = 0;
    int64_t count = directory_list(path, &names);
    for (int64_t i = 0; i < count; i++) {
        struct stat about;
        char *inner = file_join(path, names[i]);
        if (inner && !lstat(inner, &about)) bytes += (uint64_t)about.st_blocks * 512;
        free(inner);
    }
    mem_free_texts(names, count);
    return bytes;
}

static int bytes_of_run(const char *path, uint64_t *bytes) {
    struct checkpoints all;
    *bytes = 0;
    if (checkpoints_find(path, &all)) return -1;
    for (uint64_t i = 0; i < all.count; i++)
        if (all.list[i].own) *bytes += bytes_of_checkpoint(all.list[i].path);
    checkpoints_release(&all);
    return 0;
}

int run_directory_space(const char *path, uint64_t *space, uint64_t *older) {
    char *place = path_resolve(path);
    int there = place ? directory_exists(place) : -1, result = there < 0 ? -1 : 0;
    *older = 0;
    if (there == 1) result = bytes_of_run(place, older);
    while (!there && !result) { /* the directory will be on the disk of the nearest one that exists */
        char *slash = strrchr(place, '/');
        if (slash) slash[slash == place] = 0;
        else strcpy(place, ".");
        if ((there = directory_exists(place)) < 0) result = -1;
    }
    if (!result) result = directory_space(place, space);
    free(place);
    return result;
}

/* Checks that the disk has space for a checkpoint of the new run, in addition to the older run; if the older run is removed
 * first, its space counts as free. */
static int check_space(const struct run_directory *run, int has_older, int now, uint64_t bytes) {
    uint64_t space, older;
    char free_text[TEXT_BYTES], wanted[TEXT_BYTES];
    if (directory_space(run->path, &space)) return -1;
    if (space >= bytes) return 0;
    if (bytes_of_run(run->path, &older)) return -1;
    text_of_bytes(free_text, space);
    text_of_bytes(wanted, bytes);
    if (space + older < bytes)
        return fail("a checkpoint of this run takes %s, and the disk of '%s' has %s free%s: free some, or choose another run.dir",
                    wanted, run->path, free_text, has_older ? ", too little even without the older run" : "");
    if (now) return 0;
    return fail("a checkpoint of the new run takes %s, and beside the older run the disk of '%s' has %s free: --overwrite=now "
                "removes the older run first, run.dir = ... writes elsewhere",
                wanted, run->path, free_text);
}

static int begin_beside(struct run_directory *run) {
    char *place = replacement_begin(run->path);
    if (!place) return -1;
    free(run->place);
    run->place = place;
    return 0;
}

int run_directory_begin(struct run_directory *run, int now, uint64_t bytes) {
    int older = run_directory_has_run(run);
    if (older < 0 || check_space(run, older, now, bytes)) return -1;
    if (older && !now) return begin_beside(run);
    return checkpoints_remove(run->path) || run_files_remove(run->path) ? -1 : 0;
}

int run_directory_describe(const struct run_directory *run, const struct config *config, const struct vocab *vocab) {
    return run_files_write(run->place, config, vocab);
}

int run_directory_settle(struct run_directory *run) {
    if (!is_beside(run)) return 0;
    char *place = mem_text(run->path, strlen(run->path), "a path");
    if (!place || replacement_settle(run->path)) {
        free(place);
        return -1;
    }
    free(run->place);
    run->place = place;
    return 0;
}

int run_directory_remove(const char *path) {
    struct run_directory run;
    if (!directory_is_plain(path)) return 0;
    if (run_directory_open(&run, path, 0)) return -1;
    int result = checkpoints_remove(run.path) || run_files_remove(run.path) || cache_remove(run.path) ? -1 : 0;
    char *resolved = run.path ? mem_text(run.path, strlen(run.path), "a path") : NULL;
    run_directory_close(&run);
    if (resolved) directory_unmake(resolved, 1);
    free(resolved);
    return result;
}
