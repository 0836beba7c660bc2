#include "checkpoints.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/report.h"
#include "state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_MOST = 1000 }; /* largest number that is tried in PATH.kept-<number> */

static const char prefix[] = "checkpoint-";
static const char *const suffixes[] = {
    [CHECKPOINT_IN_PLACE] = "", [CHECKPOINT_ASIDE] = ".replaced", [CHECKPOINT_PARTIAL] = ".partial"};
/* The files of a checkpoint, in the order of their removal. state.ini is last, so that a checkpoint that a kill left half
 * removed is still recognized as made by this program. */
static const char *const contents[] = {"target.npy", "context.npy", "known.npy", "state.ini"};
enum { CONTENTS = sizeof contents / sizeof *contents };

/* ---- names ---- */

void checkpoint_name(char name[CHECKPOINT_NAME], uint64_t step, enum checkpoint_kind kind) {
    snprintf(name, CHECKPOINT_NAME, "%s%" PRIu64 "%s", prefix, step, suffixes[kind]);
}

/* If `name` is exactly the name of a checkpoint, stores its step and kind in *out and returns 1; otherwise returns 0. */
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

/* Returns 1 if a file of a checkpoint has this name, or a partial file of one that a killed process left behind. */
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

/* Returns a value of enum owner, or -1 after fail() if the owner cannot be determined. */
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

/* ---- removing ---- */

/* Renames a checkpoint to a partial one before its removal, so that a kill does not leave a directory that looks whole. Does so
 * only if it has no foreign files. Returns the new path, for the caller to free, or NULL after fail(). */
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
    char *path = there == 1 ? discard(one->path, one->step, one->kind) : NULL;
    int result = path ? remove_directory(path) : there ? -1 : 0;
    free(path);
    return result;
}

/* Renames `path` to a name that no checkpoint has, with a warning that calls the file `what`. */
static int move_aside(const char *path, const char *what) {
    int taken = 1;
    uint64_t capacity = strlen(path) + 16;
    char *kept = mem_alloc(capacity, 1, "a path");
    for (int i = 1; kept && taken == 1 && i < KEPT_MOST; i++) {
        snprintf(kept, capacity, "%s.kept-%d", path, i);
        taken = file_exists(kept);
    }
    int result = kept && !taken ? file_rename(path, kept) : -1;
    if (taken == 1) fail("'%s' is %s, and in the way of a checkpoint", path, what);
    if (!result) warn("'%s' is %s: it is kept as '%s'", path, what, kept);
    free(kept);
    return result;
}

int checkpoint_make_way(const char *path, enum checkpoint_kind kind) {
    int there = file_exists(path), owner = there == 1 ? owner_of(path, kind) : OWNER_SELF;
    if (there < 0 || owner < 0) return -1;
    if (owner == OWNER_SELF) return 0;
    return move_aside(path, owner == OWNER_LINK ? "a link to a checkpoint" : "none of this program's checkpoints");
}

int checkpoints_remove(const char *run) {
    struct checkpoints all;
    int result = checkpoints_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++)
        if (all.list[i].own) result = checkpoint_remove(&all.list[i]);
        else if (all.list[i].linked) result = checkpoint_make_way(all.list[i].path, all.list[i].kind);
    checkpoints_release(&all);
    return result;
}
