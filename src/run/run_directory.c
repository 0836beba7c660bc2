#define _GNU_SOURCE
#include "run_directory.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "checkpoint.h"
#include "corpus/cache.h"
#include "rows/table.h"
#include "state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* Indexed by enum run_file. Files are removed in this order: vocab.tsv before config.ini, by which it is recognized as a run's. */
const char *const run_file_names[RUN_FILES] = {
    [RUN_LATEST] = "latest", [RUN_METRICS] = "metrics.jsonl", [RUN_AGES] = "ages.txt", [RUN_VOCAB] = "vocab.tsv", [RUN_CONFIG] = "config.ini"};

static const char config_line[] = "; written by sptx-w2v for the run in this directory; fingerprint of its vocab.tsv: ";
static const char ages_line[] = "; in how many runs each word of vocab.tsv has not occurred; fingerprint of vocab.tsv: ";
static const char metrics_line[] = "{\"step\": ", latest_line[] = "checkpoint-";
enum { HEAD = 256 };

/* ---- whose they are ---- */

/* Reads the fingerprint of vocab.tsv from config.ini. Returns 1; 0 if there is no config.ini that a run has written; -1 after fail(). */
static int named_fingerprint(const char *run, uint64_t *fingerprint) {
    char head[HEAD] = "", *path = file_join(run, run_file_names[RUN_CONFIG]);
    int kind = path ? file_head(path, head, sizeof head) : -1;
    free(path);
    if (kind != 1) return kind < 0 ? -1 : 0;
    if (strncmp(head, config_line, sizeof config_line - 1)) return 0;
    return sscanf(head + sizeof config_line - 1, "%16" SCNx64, fingerprint) == 1;
}

static int owns_config(const char *run, const char *head) {
    return !strncmp(head, config_line, sizeof config_line - 1);
}

static int owns_metrics(const char *run, const char *head) {
    return !*head || !strncmp(head, metrics_line, sizeof metrics_line - 1);
}

static int owns_ages(const char *run, const char *head) {
    return !strncmp(head, ages_line, sizeof ages_line - 1);
}

static int owns_latest(const char *run, const char *head) {
    size_t digits;
    if (!*head) return 1;
    if (strncmp(head, latest_line, sizeof latest_line - 1)) return 0;
    head += sizeof latest_line - 1;
    digits = strspn(head, "0123456789");
    return digits && (!head[digits] || !strcmp(head + digits, "\n"));
}

static int owns_vocab(const char *run, const char *head) {
    char *path = file_join(run, run_file_names[RUN_VOCAB]);
    struct file_map map;
    uint64_t named, seen;
    int result = path ? file_map_open(&map, path) : -1;
    free(path);
    if (result) return -1;
    seen = XXH3_64bits(map.data, map.size);
    file_map_close(&map);
    result = named_fingerprint(run, &named);
    if (result < 0 || (result && named == seen)) return result;
    /* If config.ini names another vocabulary or none, some checkpoint must have been trained with this one. Checkpoints that cannot be read are
     * skipped. */
    ENDED_BY(checkpoints_release) struct checkpoints all = {0};
    struct run_state state;
    int failed_before = report_exit_code(), broken;
    result = checkpoints_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++) {
        if (!all.list[i].own || all.list[i].kind == CHECKPOINT_PARTIAL) continue;
        if (!state_read(all.list[i].path, &state, &broken)) result = state.corpus.vocab == seen;
        else if (!failed_before) report_clear();
    }
    return result;
}

static int (*const shows_owner[RUN_FILES])(const char *run, const char *head) = {
    [RUN_LATEST] = owns_latest, [RUN_METRICS] = owns_metrics, [RUN_AGES] = owns_ages, [RUN_VOCAB] = owns_vocab, [RUN_CONFIG] = owns_config};

int run_file_owner(const char *run, enum run_file file) {
    char head[HEAD] = "", *path = file_join(run, run_file_names[file]);
    int kind = path ? file_head(path, head, sizeof head) : -1;
    free(path);
    if (kind != 1) return kind < 0 ? -1 : kind == 0 ? RUN_FILE_ABSENT : RUN_FILE_FOREIGN;
    int own = shows_owner[file](run, head);
    return own < 0 ? -1 : own ? RUN_FILE_OWN : RUN_FILE_FOREIGN;
}

int run_files_check(const char *run, int resumed) {
    for (int file = 0; file < RUN_FILES; file++) {
        int owner = run_file_owner(run, (enum run_file)file);
        if (owner < 0) return -1;
        if (owner == RUN_FILE_FOREIGN && !(resumed && file == RUN_CONFIG))
            return fail("'%s/%s' is in the way: a run writes a file of this name, and this one is not its own; move it away, "
                        "or choose another run.dir",
                        run, run_file_names[file]);
    }
    return 0;
}

/* ---- removing and writing ---- */

int run_files_remove(const char *run) {
    int result = 0;
    for (int file = 0; file < RUN_FILES && !result; file++) {
        int owner = run_file_owner(run, (enum run_file)file);
        if (owner < 0 || (owner == RUN_FILE_OWN && file_remove_in(run, run_file_names[file]))) result = -1;
    }
    return result;
}

/* Returns 1 for the name of a partial file that a killed process has left: of one of these files, or of a table's working file. */
static int run_file_is_piece(const char *name) {
    for (int file = 0; file < RUN_FILES; file++)
        if (file_is_partial(name, run_file_names[file])) return 1;
    return table_left(name);
}

int run_files_remove_pieces(const char *run) {
    char **names;
    int64_t count = directory_list(run, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count && !result; i++)
        if (run_file_is_piece(names[i])) result = file_remove_in(run, names[i]);
    mem_free_texts(names, count);
    return result;
}

static int write_config(const char *path, const struct config *config, uint64_t fingerprint) {
    ENDED_BY(file_abandon) struct file_writer writer = {.fd = -1};
    if (file_writer_open(&writer, path) || file_print(&writer, "%s%016" PRIx64 "\n", config_line, fingerprint)) return -1;
    return config_write(config, 0, &writer) ? -1 : file_commit(&writer);
}

static int write_ages(const char *run, const struct vocab *vocab) {
    OWNED char *path = file_join(run, run_file_names[RUN_AGES]);
    ENDED_BY(file_abandon) struct file_writer writer = {.fd = -1};
    int result = !path || file_writer_open(&writer, path) || file_print(&writer, "%s%016" PRIx64 "\n", ages_line, vocab_fingerprint(vocab)) ? -1 : 0;
    for (uint64_t row = 0; row < vocab->size && !result; row++) result = file_print(&writer, "%" PRIu32 "\n", vocab->age[row]);
    return result ? -1 : file_commit(&writer);
}

/* Reads the lines of ages.txt. Returns 0 if they are whole, and belong to the vocabulary. */
static int parse_ages(const char *text, const char *end, struct vocab *vocab) {
    uint64_t fingerprint, row = 0;
    char line[sizeof ages_line + 17] = "";
    if ((uint64_t)(end - text) < sizeof line - 1) return -1;
    memcpy(line, text, sizeof line - 1);
    text += sizeof line - 1;
    if (!owns_ages(NULL, line) || sscanf(line + sizeof ages_line - 1, "%16" SCNx64 "\n", &fingerprint) != 1 ||
        fingerprint != vocab_fingerprint(vocab))
        return -1;
    for (uint64_t age = 0, digits = 0; text < end; text++) {
        if (*text == '\n' ? !digits || row == vocab->size : *text < '0' || *text > '9' || (age = 10 * age + (uint64_t)(*text - '0')) > UINT32_MAX)
            return -1;
        digits++;
        if (*text == '\n') vocab->age[row++] = (uint32_t)age, age = digits = 0;
    }
    return row == vocab->size && end[-1] == '\n' ? 0 : -1;
}

int run_ages_read(const char *run, struct vocab *vocab) {
    OWNED char *path = file_join(run, run_file_names[RUN_AGES]);
    struct file_map map;
    int there = path ? file_exists(path) : -1, result = there < 0 ? -1 : 0;
    if (there == 1 && !(result = file_map_open(&map, path))) {
        vocab->age = mem_zalloc(vocab->size + 1, sizeof *vocab->age, "the ages of words");
        result = vocab->age ? 0 : -1;
        if (vocab->age && parse_ages(map.data, map.data + map.size, vocab))
            result = fail("'%s' is damaged, or of another vocab.tsv: wanted a line with the fingerprint of the %" PRIu64
                          " words, and a number for each", path, vocab->size);
        file_map_close(&map);
    }
    return result;
}

/* config.ini is written first, since vocab.tsv is recognized by it as a run's. */
int run_files_write(const char *run, const struct config *config, const struct vocab *vocab) {
    OWNED char *config_path = file_join(run, run_file_names[RUN_CONFIG]), *vocab_path = file_join(run, run_file_names[RUN_VOCAB]);
    uint64_t fingerprint = vocab_fingerprint(vocab);
    int owner = run_file_owner(run, RUN_CONFIG);
    if (!config_path || !vocab_path || owner < 0) return -1;
    if (owner != RUN_FILE_FOREIGN && write_config(config_path, config, fingerprint)) return -1;
    owner = vocab->age && write_ages(run, vocab) ? -1 : run_file_owner(run, RUN_VOCAB);
    return owner < 0 || (owner == RUN_FILE_ABSENT && vocab_write(vocab, vocab_path)) ? -1 : 0;
}

static const char replacement_name[] = "replacement";
static const struct directory_mark mark = {"replaces", "the run of sptx-w2v in this directory takes the place of the one above\n"};

/* ---- whose it is ---- */

int replacement_exists(const char *run) {
    OWNED char *place = file_join(run, replacement_name);
    return place ? directory_mark_is_there(place, &mark) : -1;
}

int replacement_check(const char *run) {
    OWNED char *place = file_join(run, replacement_name);
    int there = place ? file_exists(place) : -1, own = there == 1 ? directory_mark_is_there(place, &mark) : there;
    if (there == 1 && !own)
        own = fail("'%s' is in the way: a run that replaces another one begins there; move it away, or choose another run.dir",
                   place);
    return own < 0 ? -1 : 0;
}

char *replacement_place(const char *run) {
    char *place = file_join(run, replacement_name);
    int there = place ? directory_mark_is_there(place, &mark) : -1;
    if (there == 1) there = (int)checkpoint_count(place, CHECKPOINT_IN_PLACE, CHECKPOINTS_OWN);
    if (there > 0) return place;
    free(place);
    return there ? NULL : mem_text(run, strlen(run), "a path");
}

/* ---- removing ---- */

/* Removes the directory, its mark last, so that what a killed process leaves is still recognized as this program's. */
static int remove_place(const char *place) {
    if (checkpoints_remove(place) || run_files_remove(place) || run_files_remove_pieces(place)) return -1;
    return directory_mark_remove(place, &mark);
}

/* ---- beginning ---- */

char *replacement_begin(const char *run) {
    char *place = file_join(run, replacement_name);
    if (place && !directory_mark_make(place, &mark)) return place;
    free(place);
    return NULL;
}

/* ---- settling ---- */

/* Gives the new run's file also the older run's name, by a hard link that replaces the older file. It keeps its first name, so the new run is
 * always whole. Without hard links in the file system, copies the file. */
static int link_over(const char *from, const char *to) {
    struct stat x, y;
    struct file_map map;
    if (!lstat(from, &x) && !lstat(to, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino) return 0;
    OWNED char *own = file_own_name(to);
    int linked = own && !link(from, own), result = linked ? file_rename(own, to) : own ? file_map_open(&map, from) : -1;
    if (linked && result) unlink(own);
    if (own && !linked && !result) {
        result = file_replace(to, map.data, map.size);
        file_map_close(&map);
    }
    return result;
}

/* Replaces the older run's file by the new run's; if the new run has none, removes the older one. */
static int replace_file(const char *place, const char *run, enum run_file file) {
    OWNED char *from = file_join(place, run_file_names[file]), *to = file_join(run, run_file_names[file]);
    int there = from && to ? file_exists(from) : -1, result = there < 0 ? -1 : there ? link_over(from, to) : file_remove(to);
    return result;
}

/* Moves the new run's checkpoints to RUN, last the newest one, which `latest` names. */
static int move_checkpoints(const char *place, const char *run) {
    ENDED_BY(checkpoints_release) struct checkpoints all = {0};
    char line[CHECKPOINT_NAME + 1];
    int result = checkpoints_find(place, &all);
    for (uint64_t i = all.count; i-- && !result;) {
        if (!all.list[i].own || all.list[i].kind != CHECKPOINT_IN_PLACE) continue;
        checkpoint_name(line, all.list[i].step, CHECKPOINT_IN_PLACE);
        OWNED char *to = file_join(run, line), *latest = file_join(run, run_file_names[RUN_LATEST]);
        result = !to || !latest || checkpoint_make_way(to, CHECKPOINT_IN_PLACE) ? -1 : 0;
        strcat(line, "\n");
        if (!result) result = file_replace(latest, line, strlen(line));
        if (!result) result = file_rename(all.list[i].path, to);
    }
    return result;
}

/* After a kill all of this is done again from the beginning, so each step can be repeated. */
static int put_in_place(const char *place, const char *run) {
    if (directory_sync(run) || checkpoints_remove(run)) return -1;
    for (int file = 0; file < RUN_FILES; file++)
        if (file != RUN_LATEST && replace_file(place, run, (enum run_file)file)) return -1;
    return move_checkpoints(place, run);
}

int replacement_settle(const char *run) {
    OWNED char *place = file_join(run, replacement_name);
    int own = place ? directory_mark_is_there(place, &mark) : -1;
    int has = own == 1 ? (int)checkpoint_count(place, CHECKPOINT_IN_PLACE, CHECKPOINTS_OWN) : own;
    return has < 0 || (has && put_in_place(place, run)) || (own == 1 && remove_place(place)) ? -1 : 0;
}

static const char lock_name[] = "train.lock";

/* ---- may a run be written into the directory? ---- */

/* Returns above 0 if the directory contains files that a run has written; 0 if not; -1 after fail(). */
static int is_run(const char *path) {
    int result = replacement_exists(path);
    for (int file = 0; file < RUN_FILES && !result; file++) {
        int owner = run_file_owner(path, (enum run_file)file);
        result = owner < 0 ? -1 : owner == RUN_FILE_OWN;
    }
    return result ? result : (int)checkpoint_count(path, CHECKPOINT_PARTIAL, CHECKPOINTS_LINKED);
}

/* Refuses a directory with files other than those that exist before a run writes anything, or that file systems make. */
static int refuse_others(const char *path) {
    char **names;
    int64_t count = directory_list(path, &names), at = 0;
    while (at < count && (cache_owns(names[at]) || !strcmp(names[at], lock_name) || run_file_is_piece(names[at]) ||
                          !strncmp(names[at], ".nfs", 4)))
        at++;
    int result = count < 0 ? -1 : 0;
    if (at < count)
        result = fail("'%s' is no run directory and holds '%s': a run wants a directory of its own (run.dir = ...)", path,
                      names[at]);
    mem_free_texts(names, count);
    return result;
}

/* Accepts a run's directory, and one whose files do not show who made it; fails for others. */
static int check_owner(const char *path) {
    int run = is_run(path);
    return run < 0 || (!run && refuse_others(path)) ? -1 : 0;
}

int run_directory_check(const char *path) {
    OWNED char *place = path_resolve(path);
    int there = place ? directory_exists(place) : -1, result = there == 1 ? check_owner(place) : there;
    return result;
}

/* ---- where it is ---- */

/* Returns 1 if `path` is the open directory; 0 if not; -1 after fail(). */
static int is_at(const struct run_directory *run, const char *path) {
    int result = file_is_at(run->fd, path);
    return result < 0 ? fail_system("look at", path) : result;
}

/* Returns the current path of the open directory, which the caller frees; NULL after fail() if it has none. */
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
        mem_free(place, path);
        return -1;
    }
    warn("'%s' is '%s' now: the run goes on there", run->path, path);
    mem_free(run->path, run->place);
    run->path = path;
    run->place = place;
    run->made = 0;
    return 0;
}

/* Locks again, if the lock file was removed and no other process has made a new one. */
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

/* Locks and opens the directory, so that it can be found after it was renamed, and finishes what a killed process has left undone. */
static int take(struct run_directory *run, int resumed) {
    char holder[LOCK_HOLDER];
    int taken = directory_claim(&run->lock, run->path, lock_name, &run->made, holder);
    if (taken == 1) fail("'%s' is being trained by %s; one process at a time has a run directory", run->path, holder);
    if (taken) return -1;
    run->fd = retry_open(run->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (run->fd < 0) return fail_system("open", run->path);
    return check_owner(run->path) || run_files_remove_pieces(run->path) || replacement_settle(run->path) ||
                   (!resumed && replacement_check(run->path)) || run_files_check(run->path, resumed) ? -1 : 0;
}

int run_directory_open(struct run_directory *run, const char *path, int resumed) {
    *run = (struct run_directory){.path = path_resolve(path), .fd = -1};
    if (run->path) run->place = mem_text(run->path, strlen(run->path), "a path");
    if (run->place && !take(run, resumed)) return 0;
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
    mem_free(run->path, run->place);
    *run = (struct run_directory){.fd = -1};
}

/* ---- an older run, and a new one ---- */

/* Sets *bytes to what the run's own checkpoints take on disk. */
static int bytes_of_run(const char *path, uint64_t *bytes) {
    ENDED_BY(checkpoints_release) struct checkpoints all = {0};
    *bytes = 0;
    if (checkpoints_find(path, &all)) return -1;
    for (uint64_t i = 0; i < all.count; i++) {
        char **names;
        int64_t count = all.list[i].own ? directory_list(all.list[i].path, &names) : 0;
        for (int64_t at = 0; at < count; at++) {
            struct stat about;
            OWNED char *inner = file_join(all.list[i].path, names[at]);
            if (inner && !lstat(inner, &about)) *bytes += (uint64_t)about.st_blocks * 512;
        }
        if (all.list[i].own) mem_free_texts(names, count);
    }
    return 0;
}

int run_directory_space(const char *path, uint64_t *space, uint64_t *older) {
    OWNED char *place = path_resolve(path);
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

int run_directory_begin(struct run_directory *run, int now, uint64_t bytes) {
    int older = (int)checkpoint_count(run->path, CHECKPOINT_ASIDE, CHECKPOINTS_LINKED); /* of an older run, whole or not */
    if (older < 0 || check_space(run, older, now, bytes)) return -1;
    if (!older || now) return checkpoints_remove(run->path) || run_files_remove(run->path) ? -1 : 0;
    char *place = replacement_begin(run->path);
    if (!place) return -1;
    free(run->place);
    run->place = place;
    return 0;
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
    OWNED char *resolved = run.path ? mem_text(run.path, strlen(run.path), "a path") : NULL;
    run_directory_close(&run);
    if (resolved) directory_unmake(resolved, 1);
    return result;
}

/* Returns 1 if the file `name` in `directory` is a file of a run; 0 if not; -1 after fail(). */
static int owns(const char *directory, const char *name) {
    int config = run_file_owner(directory, RUN_CONFIG);
    if (config < 0) return -1;
    if (cache_owns(name)) return config == RUN_FILE_OWN;
    for (int file = 0; file < RUN_FILES; file++)
        if (!strcmp(name, run_file_names[file])) {
            int owner = run_file_owner(directory, (enum run_file)file);
            return owner < 0 ? -1 : owner == RUN_FILE_OWN;
        }
    return checkpoint_holds(name) ? state_is_own(directory) : 0;
}

int run_owns_refuse(const char *path, const char *option) {
    OWNED char *place = path_resolve(path), *directory = place ? path_parent(place) : NULL;
    const char *slash = place ? strrchr(place, '/') : NULL;
    int result = directory ? owns(directory, slash ? slash + 1 : place) : -1;
    if (result == 1)
        result = fail("%s = '%s' is a file of the run in '%s', which would be lost: choose another", option, path, directory);
    return result;
}
