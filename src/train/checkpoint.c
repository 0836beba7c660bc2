/* How a checkpoint comes to be, so that a kill at any moment leaves a whole one:
 *
 *   checkpoint-<step>.partial/    filled and synced
 *   checkpoint-<step>.replaced/   what had that name before, moved aside; still found by checkpoint_newest()
 *   checkpoint-<step>/            the partial one renamed
 *   latest                        replaced by one that names it; then the older ones go
 */
#include "checkpoint.h"

#include "base/memory.h"
#include "base/report.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { NAME_ROOM = 64, READ_PIECE = 1 << 20 };
static const char prefix[] = "checkpoint-", partial[] = ".partial", replaced[] = ".replaced";

/* ---- state.ini ---- */

struct record {
    struct progress_state state;
    uint64_t finished; /* of state, as a number like the others */
    uint64_t target_bytes, target_xxh64, context_bytes, context_xxh64, vocab_xxh64, state_xxh64;
};

static const struct key {
    const char *name;
    size_t offset;
    enum { DECIMAL, HEXADECIMAL, SECONDS } kind;
} keys[] = {
    {"step", offsetof(struct record, state.step), DECIMAL},
    {"epoch", offsetof(struct record, state.epoch), DECIMAL},
    {"position", offsetof(struct record, state.position), DECIMAL},
    {"words", offsetof(struct record, state.words), DECIMAL},
    {"pairs", offsetof(struct record, state.pairs), DECIMAL},
    {"seconds", offsetof(struct record, state.seconds), SECONDS},
    {"finished", offsetof(struct record, finished), DECIMAL},
    {"target_bytes", offsetof(struct record, target_bytes), DECIMAL},
    {"target_xxh64", offsetof(struct record, target_xxh64), HEXADECIMAL},
    {"context_bytes", offsetof(struct record, context_bytes), DECIMAL},
    {"context_xxh64", offsetof(struct record, context_xxh64), HEXADECIMAL},
    {"vocab_xxh64", offsetof(struct record, vocab_xxh64), HEXADECIMAL},
    {"state_xxh64", offsetof(struct record, state_xxh64), HEXADECIMAL}, /* last: of all bytes before its line */
};
enum { KEYS = sizeof keys / sizeof *keys };

static int write_state(const char *directory, struct record *record) {
    char text[2048], *path = file_join(directory, "state.ini");
    int n = snprintf(text, sizeof text, "; where a run of sptx-w2v stands, and what its files must be\n[state]\n");
    for (int i = 0; i < KEYS; i++) {
        void *value = (char *)record + keys[i].offset;
        if (i == KEYS - 1) record->state_xxh64 = XXH64(text, (size_t)n, 0);
        n += snprintf(text + n, sizeof text - (size_t)n, "%s = ", keys[i].name);
        const char *format = keys[i].kind == DECIMAL ? "%" PRIu64 "\n" : "%016" PRIx64 "\n";
        if (keys[i].kind == SECONDS) n += snprintf(text + n, sizeof text - (size_t)n, "%.17g\n", *(double *)value);
        else n += snprintf(text + n, sizeof text - (size_t)n, format, *(uint64_t *)value);
    }
    int result = path ? file_replace(path, text, (uint64_t)n) : -1;
    free(path);
    return result;
}

struct reading {
    struct record record;
    unsigned seen; /* a bit a key */
};

static int parse_value(const struct key *key, const char *text, struct record *record) {
    void *place = (char *)record + key->offset;
    char *end;
    errno = 0;
    if (key->kind == SECONDS) *(double *)place = strtod(text, &end);
    else *(uint64_t *)place = strtoull(text, &end, key->kind == DECIMAL ? 10 : 16);
    return end == text || *end || errno ? -1 : 0;
}

/* inih's handler: 1 for a line that is understood. Lines of keys that a later version adds are not a fault. */
static int take_line(void *user, const char *section, const char *name, const char *value) {
    struct reading *reading = user;
    if (strcmp(section, "state")) return 1;
    for (unsigned i = 0; i < KEYS; i++)
        if (!strcmp(name, keys[i].name)) {
            reading->seen |= 1u << i;
            return !parse_value(&keys[i], value, &reading->record);
        }
    return 1;
}

/* Whether the text ends with the line that write_state() ends it with, to the byte. */
static int own_checksum(const char *text, uint64_t length) {
    const char *last = strstr(text, "\nstate_xxh64");
    char line[64];
    if (!last++) return 0;
    uint64_t before = (uint64_t)(last - text);
    uint64_t n = (uint64_t)snprintf(line, sizeof line, "state_xxh64 = %016" PRIx64 "\n", XXH64(text, before, 0));
    return length == before + n && !memcmp(last, line, n);
}

static int read_state(const char *path, struct record *record) {
    struct reading reading = {0};
    uint64_t length;
    char *text = file_read(path, &length);
    int result = -1;
    if (!text) return -1;
    int line = ini_parse_string(text, take_line, &reading);
    if (line) {
        fail("'%s' line %d is damaged", path, line);
        goto out;
    }
    for (unsigned i = 0; i < KEYS; i++)
        if (!(reading.seen >> i & 1)) {
            fail("'%s' has no key '%s'", path, keys[i].name);
            goto out;
        }
    if (!own_checksum(text, length)) {
        fail("'%s' was changed: its bytes do not have the checksum that it ends with", path);
        goto out;
    }
    *record = reading.record;
    record->state.finished = record->finished != 0;
    result = 0;
out:
    free(text);
    return result;
}

/* ---- names ---- */

struct candidate {
    char *name;
    uint64_t step;
    int aside; /* 1: .replaced */
};
struct candidates {
    struct candidate *list;
    uint64_t count, room;
};

/* checkpoint-<step>, checkpoint-<step>.replaced: 1 with the step. Partial ones are none. */
static int parse_name(const char *name, uint64_t *step, int *aside) {
    char *end;
    if (strncmp(name, prefix, sizeof prefix - 1) || name[sizeof prefix - 1] < '0' || name[sizeof prefix - 1] > '9')
        return 0;
    errno = 0;
    *step = strtoull(name + sizeof prefix - 1, &end, 10);
    *aside = !strcmp(end, replaced);
    return !errno && (!*end || *aside);
}

/* By falling step; of one step the one in place before the one aside. */
static int newest_first(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? 1 : -1;
    return x->aside - y->aside;
}

static void candidates_release(struct candidates *all) {
    for (uint64_t i = 0; i < all->count; i++) free(all->list[i].name);
    free(all->list);
    *all = (struct candidates){0};
}

static int candidates_find(const char *run, struct candidates *all) {
    char **names;
    int result = 0;
    *all = (struct candidates){0};
    if (!file_is_directory(run)) return 0;
    int64_t n = file_list(run, &names);
    if (n < 0) return -1;
    for (int64_t i = 0; i < n; i++) {
        struct candidate one = {.name = names[i]};
        if (!result && parse_name(names[i], &one.step, &one.aside)) {
            result = mem_grow(&all->list, &all->room, all->count + 1, sizeof one, "the list of checkpoints");
            if (!result) all->list[all->count++] = one, names[i] = NULL;
        }
        free(names[i]);
    }
    free(names);
    if (result) candidates_release(all);
    else if (all->count > 1) qsort(all->list, all->count, sizeof *all->list, newest_first);
    return result;
}

/* Moves the one that `latest` names to the front. A `latest` that is missing or names nothing is no loss: the names tell. */
static void latest_first(const char *run, struct candidates *all) {
    char *path = file_join(run, "latest");
    char *text = path && file_exists(path) ? file_read(path, NULL) : NULL;
    if (text) {
        text[strcspn(text, "\r\n")] = 0;
        for (uint64_t i = 1; i < all->count; i++)
            if (!strcmp(text, all->list[i].name)) {
                struct candidate latest = all->list[i];
                memmove(all->list + 1, all->list, i * sizeof latest);
                all->list[0] = latest;
            }
    }
    free(text);
    free(path);
}

/* A failure that the caller can live with: said as a warning, and forgotten where nothing failed before it. */
static void pass_over(const char *what, const char *name, int failed_before) {
    if (failed_before) return;
    warn("%s '%s': %s", what, name, report_sentence());
    report_clear();
}

/* ---- verifying ---- */

static int hash_file(const char *path, uint64_t *hash) {
    XXH64_state_t *state = XXH64_createState();
    char *piece = mem_alloc(READ_PIECE, 1, "reading a checkpoint");
    int result = -1, fd = -1;
    ssize_t n = 0;
    if (!state || !piece) goto out;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fail("cannot open '%s': %s", path, strerror(errno));
        goto out;
    }
    XXH64_reset(state, 0);
    while ((n = read(fd, piece, READ_PIECE)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) XXH64_update(state, piece, (size_t)n);
    if (n < 0) {
        fail("cannot read '%s': %s", path, strerror(errno));
        goto out;
    }
    *hash = XXH64_digest(state);
    result = 0;
out:
    if (fd >= 0) close(fd);
    XXH64_freeState(state);
    free(piece);
    return result;
}

static int verify_file(const char *directory, const char *name, uint64_t bytes, uint64_t checksum) {
    char *path = file_join(directory, name);
    uint64_t seen = 0;
    int result = -1;
    if (!path) return -1;
    int64_t size = file_size(path);
    if (size < 0) goto out;
    if ((uint64_t)size != bytes) {
        fail("'%s' has %" PRId64 " bytes, its state.ini says %" PRIu64, path, size, bytes);
        goto out;
    }
    if (hash_file(path, &seen)) goto out;
    if (seen != checksum) {
        fail("'%s' was changed: its checksum is %016" PRIx64 ", its state.ini says %016" PRIx64, path, seen, checksum);
        goto out;
    }
    result = 0;
out:
    free(path);
    return result;
}

int checkpoint_verify(const char *directory, struct progress_state *state, uint64_t *vocab_fingerprint) {
    struct record record = {0};
    char *path = file_join(directory, "state.ini");
    int result = path ? read_state(path, &record) : -1;
    if (!result) result = verify_file(directory, "target.npy", record.target_bytes, record.target_xxh64);
    if (!result) result = verify_file(directory, "context.npy", record.context_bytes, record.context_xxh64);
    if (!result && state) *state = record.state;
    if (!result && vocab_fingerprint) *vocab_fingerprint = record.vocab_xxh64;
    free(path);
    return result;
}

char *checkpoint_newest(const char *run, struct progress_state *state, uint64_t *vocab_fingerprint, int *found) {
    struct candidates all;
    char *good = NULL;
    *found = -1;
    if (candidates_find(run, &all)) return NULL;
    latest_first(run, &all);
    for (uint64_t i = 0; i < all.count && !good; i++) {
        int failed_before = report_exit_code();
        char *path = file_join(run, all.list[i].name);
        if (!path) goto out;
        if (checkpoint_verify(path, state, vocab_fingerprint)) pass_over("passing over checkpoint", path, failed_before);
        else good = path, path = NULL;
        free(path);
    }
    *found = good != NULL;
    if (!good && all.count) {
        *found = -1;
        fail("none of the %" PRIu64 " checkpoints in '%s' is whole, so there is nothing to go on from", all.count, run);
    }
out:
    candidates_release(&all);
    return good;
}

/* ---- writing ---- */

static int ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* What a killed writer left. */
static int remove_partial(const char *run) {
    char **names;
    int64_t n = file_list(run, &names);
    int result = n < 0 ? -1 : 0;
    for (int64_t i = 0; i < n; i++) {
        int stale = !strncmp(names[i], prefix, sizeof prefix - 1) && ends_with(names[i], partial);
        char *path = stale && !result ? file_join(run, names[i]) : NULL;
        if (stale && !result) result = path ? file_remove_tree(path) : -1;
        free(path);
        free(names[i]);
    }
    free(names);
    return result;
}

static int save_one(const char *directory, const char *name, struct table *table, uint64_t *bytes, uint64_t *checksum) {
    char *path = file_join(directory, name);
    int64_t size = -1;
    if (path && !table_save(table, path, checksum)) size = file_size(path);
    free(path);
    *bytes = (uint64_t)size;
    return size < 0 ? -1 : 0;
}

static int fill_directory(const char *directory, struct table *target, struct table *context,
                          const struct progress_state *state, uint64_t vocab_fingerprint) {
    struct record record = {.state = *state, .finished = state->finished != 0, .vocab_xxh64 = vocab_fingerprint};
    if (file_make_directory(directory)) return -1;
    if (save_one(directory, "target.npy", target, &record.target_bytes, &record.target_xxh64)) return -1;
    if (save_one(directory, "context.npy", context, &record.context_bytes, &record.context_xxh64)) return -1;
    if (write_state(directory, &record)) return -1;
    return file_sync_directory(directory);
}

/* Gives the filled directory its name. One of this step that is there already is moved aside first, never removed
 * before the new one stands. */
static int put_in_place(const char *filled, const char *final, const char *aside) {
    if (file_exists(final)) {
        if (file_remove_tree(aside) || file_rename(final, aside)) return -1;
    }
    return file_rename(filled, final);
}

static int point_latest(const char *run, const char *name) {
    char line[NAME_ROOM + 1], *path = file_join(run, "latest");
    int n = snprintf(line, sizeof line, "%s\n", name), result = path ? file_replace(path, line, (uint64_t)n) : -1;
    free(path);
    return result;
}

/* Keeps this step and the newest below it. Those of later steps are from a future that this run went back from: they
 * were broken, or the run would have gone on from them. */
static int prune(const char *run, uint64_t step, uint64_t keep) {
    struct candidates all;
    uint64_t kept = 0;
    int result = candidates_find(run, &all);
    for (uint64_t i = 0; i < all.count && !result; i++) {
        const struct candidate *one = &all.list[i];
        int stays = one->step <= step && !one->aside && (kept < keep || one->step == step);
        char *path = stays ? NULL : file_join(run, one->name);
        kept += stays;
        if (!stays) result = path ? file_remove_tree(path) : -1;
        free(path);
    }
    candidates_release(&all);
    return result;
}

int checkpoint_write(const char *run, struct table *target, struct table *context, const struct progress_state *state,
                     uint64_t vocab_fingerprint, uint64_t keep) {
    char name[NAME_ROOM], filling[NAME_ROOM], aside_name[NAME_ROOM];
    char *final = NULL, *filled = NULL, *aside = NULL;
    int result = -1, failed_before = report_exit_code();
    snprintf(name, sizeof name, "%s%" PRIu64, prefix, state->step);
    snprintf(filling, sizeof filling, "%s%" PRIu64 "%s", prefix, state->step, partial);
    snprintf(aside_name, sizeof aside_name, "%s%" PRIu64 "%s", prefix, state->step, replaced);
    if (!(final = file_join(run, name)) || !(filled = file_join(run, filling)) || !(aside = file_join(run, aside_name)))
        goto out;
    if (remove_partial(run)) goto out;
    if (fill_directory(filled, target, context, state, vocab_fingerprint) || put_in_place(filled, final, aside)) {
        file_remove_tree(filled); /* gives a full disk its room back; the first sentence stands */
        goto out;
    }
    if (point_latest(run, name)) goto out;
    result = 0;
    if (prune(run, state->step, keep)) pass_over("cannot remove older checkpoints of", run, failed_before);
out:
    free(final);
    free(filled);
    free(aside);
    return result;
}

/* ---- finding ---- */

static int has_state(const char *directory) {
    char *path = file_join(directory, "state.ini");
    int has = path && file_exists(path);
    free(path);
    return has;
}

/* The first of a run's checkpoints that is there with its state.ini. */
static char *first_present(const char *run) {
    struct candidates all;
    char *path = NULL;
    if (candidates_find(run, &all)) return NULL;
    latest_first(run, &all);
    for (uint64_t i = 0; i < all.count && !path; i++) {
        path = file_join(run, all.list[i].name);
        if (path && !has_state(path)) {
            free(path);
            path = NULL;
        }
    }
    candidates_release(&all);
    if (!path) fail("'%s' holds no checkpoint: it is no run directory, or its run has not written one yet", run);
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
    if (!file_is_directory(run)) return fail("there is no run directory '%s'", run);
    if (has_state(run)) {
        *checkpoint = mem_text(run, strlen(run), "a path");
        *run_directory = parent_of(run);
    } else {
        *checkpoint = first_present(run);
        *run_directory = mem_text(run, strlen(run), "a path");
    }
    if (*checkpoint && *run_directory) return 0;
    free(*checkpoint);
    free(*run_directory);
    *checkpoint = *run_directory = NULL;
    return -1;
}
