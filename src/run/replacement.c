#include "replacement.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/file_map.h"
#include "base/memory.h"
#include "base/report.h"
#include "checkpoints.h"
#include "run_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char name[] = "replacement", marker_name[] = "replaces";
static const char marker[] = "the run of sptx-w2v in this directory takes the place of the one above\n";

/* ---- whose it is ---- */

/* Returns 1 for a directory that a killed process left before the marker was there: it is empty, or holds the partial
 * file of the marker. */
static int is_just_made(const char *place) {
    char **names;
    int64_t count = directory_list(place, &names);
    int result = count < 0 ? -1 : 1;
    for (int64_t i = 0; i < count && result; i++) result = file_is_partial(names[i], marker_name);
    mem_free_texts(names, count);
    return result;
}

/* Returns 1 where the marker is there, 0 where not, -1 after fail(). */
static int is_marked(const char *place) {
    char head[sizeof marker + 1] = "", *path = file_join(place, marker_name);
    int kind = path ? file_head(path, head, sizeof head) : -1;
    free(path);
    return kind < 0 ? -1 : kind == 1 && !strcmp(head, marker);
}

static int is_own(const char *place) {
    struct stat about;
    int marked = is_marked(place);
    if (marked || lstat(place, &about) || !S_ISDIR(about.st_mode)) return marked;
    return is_just_made(place);
}

static int has_checkpoint(const char *place) {
    struct checkpoints all;
    int has = 0;
    if (checkpoints_find(place, &all)) return -1;
    for (uint64_t i = 0; i < all.count; i++) has |= all.list[i].own && all.list[i].kind == CHECKPOINT_IN_PLACE;
    checkpoints_release(&all);
    return has;
}

int replacement_exists(const char *run) {
    char *place = file_join(run, name);
    int result = place ? is_own(place) : -1;
    free(place);
    return result;
}

int replacement_check(const char *run) {
    char *place = file_join(run, name);
    int there = place ? file_exists(place) : -1, own = there == 1 ? is_own(place) : there;
    if (there == 1 && !own)
        own = fail("'%s' is in the way: a run that replaces another one begins there; move it away, or choose another run.dir",
                   place);
    free(place);
    return own < 0 ? -1 : 0;
}

char *replacement_place(const char *run) {
    char *place = file_join(run, name);
    int there = place ? is_marked(place) : -1;
    if (there == 1) there = has_checkpoint(place);
    if (there == 1) return place;
    free(place);
    return there ? NULL : mem_text(run, strlen(run), "a path");
}

/* ---- removing ---- */

/* Removes partial files of the marker that a killed process left. */
static int remove_pieces(const char *place) {
    char **names;
    int64_t count = directory_list(place, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count && !result; i++)
        if (file_is_partial(names[i], marker_name)) result = file_remove_in(place, names[i]);
    mem_free_texts(names, count);
    return result;
}

/* Removes the directory. The marker goes last, so that what a kill leaves can still be recognized as ours. */
static int remove_place(const char *place) {
    if (checkpoints_remove(place) || run_files_remove(place) || run_files_remove_pieces(place) || remove_pieces(place) ||
        file_remove_in(place, marker_name))
        return -1;
    if (!rmdir(place) || errno == ENOENT) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST) return fail_system("remove", place);
    warn("'%s' stays, because it holds files that are no run's", place);
    return 0;
}

/* ---- beginning ---- */

char *replacement_begin(const char *run) {
    char *place = file_join(run, name), *path = place ? file_join(place, marker_name) : NULL;
    int result = path ? 0 : -1;
    if (!result && mkdir(place, 0777)) result = fail_system("make directory", place);
    if (!result) result = file_replace(path, marker, sizeof marker - 1);
    free(path);
    if (!result) return place;
    free(place);
    return NULL;
}

/* ---- settling ---- */

static int copy(const char *from, const char *to) {
    struct file_map map;
    if (file_map_open(&map, from)) return -1;
    int result = file_replace(to, map.data, map.size);
    file_map_close(&map);
    return result;
}

static int is_same(const char *a, const char *b) {
    struct stat x, y;
    return !lstat(a, &x) && !lstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Gives a file a second name in the place of the file that has that name. The first name stays, so that the run there
 * is whole all the time. Where the file system has no such links, the file is copied. */
static int link_over(const char *from, const char *to) {
    if (is_same(from, to)) return 0;
    char *own = file_own_name(to);
    if (!own) return -1;
    int linked = !link(from, own), result = linked ? file_rename(own, to) : copy(from, to);
    if (linked && result) unlink(own);
    free(own);
    return result;
}

/* Puts the new run's file in the place of the older run's; where the new run has none, the older one goes. */
static int replace_file(const char *place, const char *run, enum run_file file) {
    char *from = file_join(place, run_file_names[file]), *to = file_join(run, run_file_names[file]);
    int there = from && to ? file_exists(from) : -1, result = there < 0 ? -1 : there ? link_over(from, to) : file_remove(to);
    free(from);
    free(to);
    return result;
}

/* Moves the new run's checkpoints. `latest` names the one that moves last, which is the newest. */
static int move_checkpoints(const char *place, const char *run) {
    struct checkpoints all;
    char line[CHECKPOINT_NAME + 1];
    int result = checkpoints_find(place, &all);
    for (uint64_t i = all.count; i-- && !result;) {
        if (!all.list[i].own || all.list[i].kind != CHECKPOINT_IN_PLACE) continue;
        checkpoint_name(line, all.list[i].step, CHECKPOINT_IN_PLACE);
        char *to = file_join(run, line), *latest = file_join(run, run_file_names[RUN_LATEST]);
        result = !to || !latest || checkpoint_make_way(to, CHECKPOINT_IN_PLACE) ? -1 : 0;
        if (!result) result = file_replace(latest, strcat(line, "\n"), strlen(line) + 1);
        if (!result) result = file_rename(all.list[i].path, to);
        free(to);
        free(latest);
    }
    checkpoints_release(&all);
    return result;
}

/* Each step can be done again from the start, as it is after a kill. */
static int put_in_place(const char *place, const char *run) {
    if (directory_sync(run) || checkpoints_remove(run)) return -1;
    for (int file = 0; file < RUN_FILES; file++)
        if (file != RUN_LATEST && replace_file(place, run, (enum run_file)file)) return -1;
    return move_checkpoints(place, run);
}

int replacement_settle(const char *run) {
    char *place = file_join(run, name);
    int own = place ? is_own(place) : -1, has = own == 1 ? has_checkpoint(place) : own;
    int result = has < 0 || (has && put_in_place(place, run)) || (own == 1 && remove_place(place)) ? -1 : 0;
    free(place);
    return result;
}
