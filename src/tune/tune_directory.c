#include "tune_directory.h"

#include "base/directory.h"
#include "base/directory_claim.h"
#include "base/directory_mark.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/report.h"
#include "corpus/cache.h"
#include "run/run_directory.h"
#include "tried.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char lock_name[] = "tune.lock", trials_name[] = "trials", ending[] = ".tune";
static const struct directory_mark mark = {"searches", "sptx-w2v tune trains its trials in this directory, and removes it\n"};

/* ---- names ---- */

static char *resolve(const char *run) {
    uint64_t capacity = strlen(run) + sizeof ending;
    char *name = mem_alloc(capacity, 1, "a path"), *path;
    if (!name) return NULL;
    snprintf(name, capacity, "%s%s", run, ending);
    path = path_resolve(name);
    free(name);
    return path;
}

static int name_paths(struct tune_directory *d, const char *run) {
    if (!(d->path = resolve(run)) || !(d->trials = file_join(d->path, trials_name))) return -1;
    d->run = file_join(d->trials, "run");
    d->corpus = file_join(d->trials, "corpus");
    d->edges = file_join(d->trials, "edges.tsv");
    d->held_out = file_join(d->trials, "held_out.tsv");
    return d->run && d->corpus && d->edges && d->held_out ? 0 : -1;
}

/* ---- who has made the files ---- */

/* Returns 1 if tune, or NFS (.nfs...), has made this entry of RUN.tune; 0 if not; -1 after fail(). */
static int is_own(const struct tune_directory *d, const char *name) {
    if (!strcmp(name, trials_name)) return directory_mark_is_there(d->trials, &mark);
    return !strcmp(name, tried_name) || file_is_partial(name, tried_name) || !strcmp(name, lock_name) || !strncmp(name, ".nfs", 4);
}

static int refuse_others(const struct tune_directory *d) {
    char **names;
    int own = 1;
    int64_t count = directory_list(d->path, &names), at = 0;
    while (at < count && (own = is_own(d, names[at])) == 1) at++;
    if (at < count && !own)
        fail("'%s' holds '%s', which tune has not written; tune wants that directory for itself: move '%s' away, or choose another "
             "run.dir, after which it is named",
             d->path, names[at], names[at]);
    mem_free_texts(names, count);
    return count < 0 || own != 1 ? -1 : 0;
}

/* ---- removing ---- */

static int remove_trials(const struct tune_directory *d) {
    if (run_directory_remove(d->run) || cache_remove(d->corpus) || cache_remove(d->trials) || file_remove(d->edges) ||
        file_remove(d->held_out))
        return -1;
    directory_unmake(d->corpus, 1);
    return directory_mark_remove(d->trials, &mark);
}

/* ---- the whole ---- */

static int claim(struct tune_directory *d) {
    char holder[LOCK_HOLDER];
    int taken = directory_claim(&d->lock, d->path, lock_name, &d->made, holder);
    if (taken == 1)
        fail("'%s' is being used by the tune of %s; one process at a time searches keys for a run.dir: wait for it, or choose "
             "another run.dir",
             d->path, holder);
    return taken ? -1 : 0;
}

static int begin_trials(struct tune_directory *d) {
    int left = file_exists(d->trials);
    if (left < 0 || (left && remove_trials(d))) return -1;
    if (left && file_exists(d->trials))
        return fail("'%s' holds what tune has not written: move that away, or choose another run.dir", d->trials);
    if (directory_mark_make(d->trials, &mark)) return -1;
    d->begun = 1;
    return 0;
}

int tune_directory_open(struct tune_directory *d, const char *run) {
    *d = (struct tune_directory){.lock = {.fd = -1}};
    return name_paths(d, run) || claim(d) || refuse_others(d) || begin_trials(d) ? -1 : 0;
}

void tune_directory_close(struct tune_directory *d) {
    int failed_before = report_exit_code();
    if (d->begun) remove_trials(d);
    if (!failed_before) report_clear();
    lock_give(&d->lock);
    if (d->made) directory_unmake(d->path, d->made);
    free(d->path);
    free(d->trials);
    free(d->run);
    free(d->corpus);
    free(d->edges);
    free(d->held_out);
    *d = (struct tune_directory){.lock = {.fd = -1}};
}
