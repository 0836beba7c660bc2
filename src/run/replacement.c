#include "replacement.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "checkpoints.h"
#include "run_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char name[] = "replacement";
static const struct directory_mark mark = {"replaces", "the run of sptx-w2v in this directory takes the place of the one above\n"};

/* ---- whose it is ---- */

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
    int result = place ? directory_mark_is_there(place, &mark) : -1;
    free(place);
    return result;
}

int replacement_check(const char *run) {
    char *place = file_join(run, name);
    int there = place ? file_exists(place) : -1, own = there == 1 ? directory_mark_is_there(place, &mark) : there;
    if (there == 1 && !own)
        own = fail("'%s' is in the way: a run that replaces another one begins there; move it away, or choose another run.dir",
                   place);
    free(place);
    return own < 0 ? -1 : 0;
}

char *replacement_place(const char *run) {
    char *place = file_join(run, name);
    int there = place ? directory_mark_is_there(place, &mark) : -1;
    if (there == 1) there = has_checkpoint(place);
    if (there == 1) return place;
    free(place);
    return there ? NULL : mem_text(run, strlen(run), "a path");
}

/* ---- removing ---- */

/* Removes the directory, its mark last: so a directory that a killed process has left is still recognized as made by this
 * program. */
static int remove_place(const char *place) {
    if (checkpoints_remove(place) || run_files_remove(place) || run_files_remove_pieces(place)) return -1;
    return directory_mark_remove(place, &mark);
}

/* ---- beginning ---- */

char *replacement_begin(const char *run) {
    char *place = file_join(run, name);
    if (place && !directory_mark_make(place, &mark)) return place;
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

/* Gives the new run's file the name of the older run's file, too, as a hard link that replaces the older file. The file keeps
 * its first name, so the new run is whole all the time. If the file system has no hard links, copies the file. */
static int link_over(const char *from, const char *to) {
    if (is_same(from, to)) return 0;
    char *own = file_own_name(to);
    if (!own) return -1;
    int linked = !link(from, own), result = linked ? file_rename(own, to) : copy(from, to);
    if (linked && result) unlink(own);
    free(own);
    return result;
}

/* Replaces the older run's file by the new run's; if the new run has no such file, removes the older one. */
static int replace_file(const char *place, const char *run, enum run_file file) {
    char *from = file_join(place, run_file_names[file]), *to = file_join(run, run_file_names[file]);
    int there = from && to ? file_exists(from) : -1, result = there < 0 ? -1 : there ? link_over(from, to) : file_remove(to);
    free(from);
    free(to);
    return result;
}

/* Moves the new run's checkpoints to RUN; the newest, which `latest` names, is moved last. */
static int move_checkpoints(const char *place, const char *run) {
    struct checkpoints all;
    char line[CHECKPOINT_NAME + 1];
    int result = checkpoints_find(place, &all);
    for (uint64_t i = all.count; i-- && !result;) {
        if (!all.list[i].own || all.list[i].kind != CHECKPOINT_IN_PLACE) continue;
        checkpoint_name(line, all.list[i].step, CHECKPOINT_IN_PLACE);
        char *to = file_join(run, line), *latest = file_join(run, run_file_names[RUN_LATEST]);
        result = !to || !latest || checkpoint_make_way(to, CHECKPOINT_IN_PLACE) ? -1 : 0;
        strcat(line, "\n");
        if (!result) result = file_replace(latest, line, strlen(line));
        if (!result) result = file_rename(all.list[i].path, to);
        free(to);
        free(latest);
    }
    checkpoints_release(&all);
    return result;
}

/* After a kill all these steps are done again from the beginning, so each of them can be repeated. */
static int put_in_place(const char *place, const char *run) {
    if (directory_sync(run) || checkpoints_remove(run)) return -1;
    for (int file = 0; file < RUN_FILES; file++)
        if (file != RUN_LATEST && replace_file(place, run, (enum run_file)file)) return -1;
    return move_checkpoints(place, run);
}

int replacement_settle(const char *run) {
    char *place = file_join(run, name);
    int own = place ? directory_mark_is_there(place, &mark) : -1, has = own == 1 ? has_checkpoint(place) : own;
    int result = has < 0 || (has && put_in_place(place, run)) || (own == 1 && remove_place(place)) ? -1 : 0;
    free(place);
    return result;
}
