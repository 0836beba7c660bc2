/* How a checkpoint comes to be, so that a kill at any moment leaves a whole one:
 *
 *   checkpoint-<step>.partial/    filled and synced
 *   checkpoint-<step>.replaced/   what had that name before, moved aside; still found by checkpoint_newest()
 *   checkpoint-<step>/            the partial one renamed
 *   latest                        replaced by one that names it; then the older ones go
 */
#include "checkpoint.h"

#include "base/directory.h"
#include "base/memory.h"
#include "base/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { NAME_ROOM = 64, READ_PIECE = 1 << 20 };
static const char prefix[] = "checkpoint-";

/* ---- names ---- */

enum candidate_kind { IN_PLACE, ASIDE, PARTIAL }; /* checkpoint-<step>, .replaced, .partial */
struct candidate {
    char *name;
    uint64_t step;
    enum candidate_kind kind;
};
struct candidates {
    struct candidate *list;
    uint64_t count, room;
};
static const char *const suffixes[] = {[IN_PLACE] = "", [ASIDE] = ".replaced", [PARTIAL] = ".partial"};

static void name_of(char name[NAME_ROOM], uint64_t step, enum candidate_kind kind) {
    snprintf(name, NAME_ROOM, "%s%" PRIu64 "%s", prefix, step, suffixes[kind]);
}

/* 1 with the step and the kind where checkpoints are named so, to the byte: checkpoint-007 and checkpoint-best are not ours. */
static int parse_name(const char *name, struct candidate *out) {
    char same[NAME_ROOM];
    if (strncmp(name, prefix, sizeof prefix - 1)) return 0;
    out->step = strtoull(name + sizeof prefix - 1, NULL, 10);
    for (out->kind = IN_PLACE; out->kind <= PARTIAL; out->kind++) {
        name_of(same, out->step, out->kind);
        if (!strcmp(name, same)) return 1;
    }
    return 0;
}

/* By falling step; of one step the one in place before the one aside before a partial one. */
static int newest_first(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? 1 : -1;
    return (int)x->kind - (int)y->kind;
}

static void candidates_release(struct candidates *all) {
    for (uint64_t i = 0; i < all->count; i++) free(all->list[i].name);
    free(all->list);
    *all = (struct candidates){0};
}

/* Directories that are named as checkpoints are, the newest first. */
static int candidates_find(const char *run, struct candidates *all) {
    char **names;
    int result = 0;
    *all = (struct candidates){0};
    int there = directory_exists(run);
    if (there != 1) return there;
    int64_t n = directory_list(run, &names);
    if (n < 0) return -1;
    for (int64_t i = 0; i < n; i++) {
        struct candidate one = {.name = names[i]};
        char *path = !result && parse_name(names[i], &one) ? file_join(run, names[i]) : NULL;
        there = path ? directory_exists(path) : 0;
        if (there < 0) result = -1;
        if (there == 1) {
            result = mem_grow(&all->list, &all->room, all->count + 1, sizeof one, "the list of checkpoints");
            if (!result) all->list[all->count++] = one, names[i] = NULL;
        }
        free(path);
        free(names[i]);
    }
    free(names);
    if (result) candidates_release(all);
    else if (all->count > 1) qsort(all->list, all->count, sizeof *all->list, newest_first);
    return result;
}

/* A failure that the caller can live with: said as a warning, and forgotten where nothing failed before it. */
static void pass_over(const char *what, const char *name, int failed_before) {
    if (failed_before) return;
    warn("%s '%s': %s", what, name, report_sentence());
    report_clear();
}

/* ---- verifying ---- */

/* 1, 0, or -1 after fail() where it cannot be told. */
static int has_state(const char *directory) {
    char *path = file_join(directory, "state.ini");
    int has = path ? file_exists(path) : -1;
    free(path);
    return has;
}

static int hash_open(int fd, const char *path, uint64_t *hash) {
    XXH64_state_t *state = XXH64_createState();
    char *piece = mem_alloc(READ_PIECE, 1, "reading a checkpoint");
    int result = -1;
    ssize_t n = 0;
    if (!state) fail("not enough memory for a checksum");
    if (!state || !piece) goto out;
    XXH64_reset(state, 0);
    while ((n = read(fd, piece, READ_PIECE)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) XXH64_update(state, piece, (size_t)n);
    *hash = XXH64_digest(state);
    result = n < 0 ? fail("cannot read '%s': %s", path, strerror(errno)) : 0;
out:
    XXH64_freeState(state);
    free(piece);
    return result;
}

static int check_open(int fd, const char *path, const struct table_file *wanted, int *broken) {
    struct stat about;
    uint64_t seen = 0;
    if (fstat(fd, &about)) return fail("cannot look at '%s': %s", path, strerror(errno));
    if ((uint64_t)about.st_size == wanted->bytes) {
        if (hash_open(fd, path, &seen)) return -1;
        if (seen == wanted->xxh64) return 0;
    }
    *broken = 1;
    if ((uint64_t)about.st_size != wanted->bytes)
        return fail("'%s' has %" PRId64 " bytes, its state.ini says %" PRIu64, path, (int64_t)about.st_size, wanted->bytes);
    return fail("'%s' was changed: its checksum is %016" PRIx64 ", its state.ini says %016" PRIx64, path, seen,
                wanted->xxh64);
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

/* 0 where it is whole, otherwise -1 after fail(), with *broken as state_read() has it. */
static int check(const char *directory, struct run_state *state, int *broken) {
    struct run_state read;
    if (state_read(directory, &read, broken)) return -1;
    *broken = 0;
    if (check_file(directory, "target.npy", &read.target, broken) ||
        check_file(directory, "context.npy", &read.context, broken))
        return -1;
    if (state) *state = read;
    return 0;
}

int checkpoint_verify(const char *directory, struct run_state *state) {
    int broken;
    return check(directory, state, &broken);
}

char *checkpoint_newest(const char *run, struct run_state *state, int *found) {
    struct candidates all;
    uint64_t seen = 0;
    char *good = NULL;
    *found = -1;
    if (candidates_find(run, &all)) return NULL;
    for (uint64_t i = 0; i < all.count && !good; i++) {
        int failed_before = report_exit_code();
        if (all.list[i].kind == PARTIAL) continue;
        char *path = file_join(run, all.list[i].name);
        if (!path) goto out;
        seen++;
        if (checkpoint_verify(path, state)) pass_over("passing over checkpoint", path, failed_before);
        else good = path, path = NULL;
        free(path);
    }
    *found = good != NULL;
    if (!good && seen) {
        *found = -1;
        fail("none of the %" PRIu64 " checkpoints in '%s' is whole, so there is nothing to go on from", seen, run);
    }
out:
    candidates_release(&all);
    return good;
}

int checkpoint_count(const char *run, uint64_t *count) {
    struct candidates all;
    if (candidates_find(run, &all)) return -1;
    *count = 0;
    for (uint64_t i = 0; i < all.count; i++) *count += all.list[i].kind != PARTIAL;
    candidates_release(&all);
    return 0;
}

/* ---- writing ---- */

/* What a killed writer left. */
static int remove_partial(const char *run) {
    struct candidates all;
    int result = candidates_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++) {
        char *path = all.list[i].kind == PARTIAL ? file_join(run, all.list[i].name) : NULL;
        if (all.list[i].kind == PARTIAL) result = path ? directory_remove_tree(path) : -1;
        free(path);
    }
    candidates_release(&all);
    return result;
}

static int save_one(const char *directory, const char *name, struct table *table, struct table_file *file) {
    char *path = file_join(directory, name);
    int result = path ? table_save(table, path, &file->xxh64) : -1;
    int64_t size = result ? -1 : file_size(path);
    free(path);
    file->bytes = (uint64_t)size;
    return result ? result : size < 0 ? -1 : 0;
}

static int fill_directory(const char *directory, const struct checkpoint *what) {
    struct run_state state = {.progress = what->progress, .corpus = what->corpus};
    int result = directory_make(directory);
    if (!result) result = save_one(directory, "target.npy", what->target, &state.target);
    if (!result) result = save_one(directory, "context.npy", what->context, &state.context);
    if (!result) result = state_write(directory, &state);
    return result ? result : directory_sync(directory);
}

/* Gives the filled directory its name. One of this step that is there already is moved aside first, never removed
 * before the new one stands. */
static int put_in_place(const char *filled, const char *final, const char *aside) {
    int there = file_exists(final);
    if (there < 0) return -1;
    if (there) {
        if (directory_remove_tree(aside) || file_rename(final, aside)) return -1;
    }
    return file_rename(filled, final);
}

static int point_latest(const char *run, const char *name) {
    char line[NAME_ROOM + 1], *path = file_join(run, "latest");
    int n = snprintf(line, sizeof line, "%s\n", name);
    int result = path ? file_replace(path, line, (uint64_t)n) : -1;
    free(path);
    return result;
}

/* Whether it can go now that `step` stands and `kept` of the newest up to `step` stay. A later one was
 * passed over when the run went on from an earlier one. That may have been a disk's passing fault, so it goes only where
 * it is broken for certain; the run comes by its step again and then replaces it. */
static int can_go(const char *path, const struct candidate *one, uint64_t step, uint64_t kept, uint64_t keep) {
    int broken = 0, failed_before = report_exit_code();
    if (one->step <= step) return one->kind != IN_PLACE || (kept >= keep && one->step != step);
    if (check(path, NULL, &broken) && !failed_before) report_clear();
    return broken;
}

/* Keeps the checkpoint of this step and the newest below it. A directory without state.ini is none of ours. */
static int prune(const char *run, uint64_t step, uint64_t keep) {
    struct candidates all;
    uint64_t kept = 0;
    int result = candidates_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++) {
        const struct candidate *one = &all.list[i];
        char *path = file_join(run, one->name);
        int ours = path ? has_state(path) : -1, goes = ours == 1 && can_go(path, one, step, kept, keep);
        kept += ours == 1 && one->step <= step && !goes;
        result = ours < 0 || (goes && directory_remove_tree(path)) ? -1 : 0;
        free(path);
    }
    candidates_release(&all);
    return result;
}

int checkpoint_write(const char *run, const struct checkpoint *what, uint64_t keep) {
    uint64_t step = what->progress.step;
    char names[3][NAME_ROOM], *paths[3] = {NULL};
    int result = -1, failed_before = report_exit_code();
    for (int kind = IN_PLACE; kind <= PARTIAL; kind++) {
        name_of(names[kind], step, (enum candidate_kind)kind);
        if (!(paths[kind] = file_join(run, names[kind]))) goto out;
    }
    if (remove_partial(run)) goto out;
    result = fill_directory(paths[PARTIAL], what);
    if (!result) result = put_in_place(paths[PARTIAL], paths[IN_PLACE], paths[ASIDE]);
    if (result) directory_remove_tree(paths[PARTIAL]); /* gives a full disk its room back; the first sentence stands */
    else result = point_latest(run, names[IN_PLACE]);
    if (!result && prune(run, step, keep)) pass_over("cannot remove older checkpoints of", run, failed_before);
out:
    for (int kind = IN_PLACE; kind <= PARTIAL; kind++) free(paths[kind]);
    return result;
}

/* ---- finding ---- */

/* The newest of a run's checkpoints that is there with its state.ini. */
static char *newest_present(const char *run) {
    struct candidates all;
    char *path = NULL;
    int has = 0;
    if (candidates_find(run, &all)) return NULL;
    for (uint64_t i = 0; i < all.count && !has; i++) {
        if (all.list[i].kind == PARTIAL) continue;
        path = file_join(run, all.list[i].name);
        has = path ? has_state(path) : -1;
        if (has != 1) {
            free(path);
            path = NULL;
        }
    }
    candidates_release(&all);
    if (!has) fail("'%s' holds no checkpoint: it is no run directory, or its run has not written one yet", run);
    return path;
}

static char *parent_of(const char *directory) {
    char *whole = realpath(directory, NULL);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (!slash) {
        free(whole);
        fail("cannot resolve '%s': %s", directory, strerror(errno));
        return NULL;
    }
    slash[slash == whole] = 0;
    return whole;
}

int checkpoint_locate(const char *run, char **checkpoint, char **run_directory) {
    *checkpoint = *run_directory = NULL;
    int there = directory_exists(run);
    if (there < 0) return -1;
    if (!there) return fail("there is no run directory '%s'", run);
    int has = has_state(run);
    if (has < 0) return -1;
    if (has) {
        *checkpoint = mem_text(run, strlen(run), "a path");
        *run_directory = parent_of(run);
    } else {
        *checkpoint = newest_present(run);
        *run_directory = mem_text(run, strlen(run), "a path");
    }
    if (*checkpoint && *run_directory) return 0;
    free(*checkpoint);
    free(*run_directory);
    *checkpoint = *run_directory = NULL;
    return -1;
}
