#include "state.h"

#include "base/file.h"
#include "base/report.h"
#include "base/text.h"

#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The lines of state.ini. Each has the value of one field of struct run_state. */
static const struct key {
    const char *name;
    size_t offset;
    enum { DECIMAL, HEXADECIMAL, TRUTH, SECONDS, REAL } kind;
    enum { NEEDED, NOT_ZERO } written; /* NEEDED: every state.ini has the line; NOT_ZERO: only if the number is not 0 */
} keys[] = {
    {"step", offsetof(struct run_state, progress.step), DECIMAL, NEEDED},
    {"epoch", offsetof(struct run_state, progress.epoch), DECIMAL, NEEDED},
    {"position", offsetof(struct run_state, progress.position), DECIMAL, NEEDED},
    {"words", offsetof(struct run_state, progress.words), DECIMAL, NEEDED},
    {"pairs", offsetof(struct run_state, progress.pairs), DECIMAL, NEEDED},
    {"seconds", offsetof(struct run_state, progress.seconds), SECONDS, NEEDED},
    {"finished", offsetof(struct run_state, progress.finished), TRUTH, NEEDED},
    {"best_score", offsetof(struct run_state, progress.best), REAL, NOT_ZERO},
    {"best_step", offsetof(struct run_state, progress.best_step), DECIMAL, NOT_ZERO},
    {"worse_epochs", offsetof(struct run_state, progress.worse_epochs), DECIMAL, NOT_ZERO},
    {"judged_step", offsetof(struct run_state, progress.judged_step), DECIMAL, NOT_ZERO},
    {"ended_step", offsetof(struct run_state, progress.ended_step), DECIMAL, NOT_ZERO},
    {"target_bytes", offsetof(struct run_state, target.bytes), DECIMAL, NEEDED},
    {"target_xxh64", offsetof(struct run_state, target.xxh64), HEXADECIMAL, NEEDED},
    {"context_bytes", offsetof(struct run_state, context.bytes), DECIMAL, NEEDED},
    {"context_xxh64", offsetof(struct run_state, context.xxh64), HEXADECIMAL, NEEDED},
    {"vocab_xxh64", offsetof(struct run_state, corpus.vocab), HEXADECIMAL, NEEDED},
    {"stream_xxh3", offsetof(struct run_state, corpus.stream), HEXADECIMAL, NEEDED},
    {"tree_xxh3", offsetof(struct run_state, corpus.tree), HEXADECIMAL, NOT_ZERO},
    {"target_first_row", offsetof(struct run_state, target_first), DECIMAL, NOT_ZERO},
    {"known_bytes", offsetof(struct run_state, known.bytes), DECIMAL, NOT_ZERO},
    {"known_xxh64", offsetof(struct run_state, known.xxh64), HEXADECIMAL, NOT_ZERO},
};
enum {
    KEYS = sizeof keys / sizeof *keys,
    STATE_MOST = 64 << 10 /* most bytes of a file that is read; later versions may write more lines than this one */
};
static const char first_line[] = "; where a run of sptx-w2v stands, and what its files must be";
static const char last_key[] = "state_xxh64"; /* key of the last line: the checksum of all bytes before that line */

static size_t add_value(char *out, size_t capacity, size_t at, const struct key *key, const struct run_state *state) {
    const void *value = (const char *)state + key->offset;
    switch (key->kind) {
    case HEXADECIMAL:
        return text_add(out, capacity, at, "%016" PRIx64, *(const uint64_t *)value);
    case TRUTH:
        return text_add(out, capacity, at, "%d", *(const int *)value != 0);
    case SECONDS:
    case REAL:
        return text_add(out, capacity, at, "%.17g", *(const double *)value);
    default:
        return text_add(out, capacity, at, "%" PRIu64, *(const uint64_t *)value);
    }
}

int state_write(const char *directory, const struct run_state *state) {
    char text[2048], *path = file_join(directory, "state.ini"); /* enough for 24 lines of at most 40 bytes, and a comment */
    size_t n = text_add(text, sizeof text, 0, "%s\n[state]\n", first_line);
    for (int i = 0; i < KEYS; i++) {
        if (keys[i].written == NOT_ZERO && !*(const uint64_t *)(const void *)((const char *)state + keys[i].offset)) continue;
        n = text_add(text, sizeof text, n, "%s = ", keys[i].name);
        n = add_value(text, sizeof text, n, &keys[i], state);
        n = text_add(text, sizeof text, n, "\n");
    }
    n = text_add(text, sizeof text, n, "%s = %016" PRIx64 "\n", last_key, XXH64(text, n, 0));
    int result = path ? file_replace(path, text, n) : -1;
    free(path);
    return result;
}

struct reading {
    struct run_state state;
    unsigned seen; /* the keys that were read, one bit a key */
};

static int parse_value(const struct key *key, const char *text, struct run_state *state) {
    void *place = (char *)state + key->offset;
    char *end;
    errno = 0;
    if (key->kind == SECONDS || key->kind == REAL) {
        double number = *(double *)place = numbers_read(text, &end);
        if (!isfinite(number) || (key->kind == SECONDS && number < 0)) return -1;
    } else if (key->kind == TRUTH)
        *(int *)place = strtol(text, &end, 10) != 0;
    else *(uint64_t *)place = strtoull(text, &end, key->kind == DECIMAL ? 10 : 16);
    return end == text || *end || errno ? -1 : 0;
}

/* Called by inih for each key. Returns 1 if the line is correct. Keys of later versions are skipped. */
static int take_line(void *user, const char *section, const char *name, const char *value) {
    struct reading *reading = user;
    if (strcmp(section, "state")) return 1;
    for (unsigned i = 0; i < KEYS; i++)
        if (!strcmp(name, keys[i].name)) {
            reading->seen |= 1u << i;
            return !parse_value(&keys[i], value, &reading->state);
        }
    return 1;
}

/* Returns 1 if the text ends with the line that state_write() would write: with the right checksum. */
static int own_checksum(const char *text, uint64_t length) {
    char line[64];
    int start = snprintf(line, sizeof line, "\n%s", last_key);
    const char *last = strstr(text, line);
    if (!last || start < 0) return 0;
    last++; /* the first byte of the last line */
    uint64_t before = (uint64_t)(last - text);
    uint64_t n = (uint64_t)snprintf(line, sizeof line, "%s = %016" PRIx64 "\n", last_key, XXH64(text, before, 0));
    return length == before + n && !memcmp(last, line, n);
}

static int parse(const char *text, uint64_t length, const char *path, struct reading *reading) {
    int line = ini_parse_string(text, take_line, reading);
    if (line) return fail("'%s' line %d is damaged", path, line);
    for (unsigned i = 0; i < KEYS; i++)
        if (!(reading->seen >> i & 1) && !keys[i].written) return fail("'%s' has no key '%s'", path, keys[i].name);
    if (own_checksum(text, length)) return 0;
    return fail("'%s' was changed: its bytes do not have the checksum that it ends with", path);
}

int state_is_own(const char *directory) {
    char head[sizeof first_line] = "", *path = file_join(directory, "state.ini");
    int kind = path ? file_head(path, head, sizeof head) : -1;
    free(path);
    return kind < 0 ? -1 : kind == 1 && !strncmp(head, first_line, sizeof first_line - 1);
}

int state_read(const char *directory, struct run_state *state, int *broken) {
    struct reading reading = {.seen = 0};
    uint64_t length;
    char *path = file_join(directory, "state.ini");
    int too_long = path && file_exists(path) == 1 && file_size(path) > STATE_MOST;
    if (too_long) fail("'%s' is damaged: it has more than %d bytes", path, STATE_MOST);
    char *text = path && !too_long ? file_read(path, &length) : NULL;
    *broken = path && (text || too_long || file_exists(path) == 0);
    int result = text ? parse(text, length, path, &reading) : -1;
    if (!result) *state = reading.state;
    free(text);
    free(path);
    return result;
}
