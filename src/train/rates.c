#include "rates.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { KEY = 512, TEXT = 1024, TRIES = 40, TRY_MICROSECONDS = 100000 };

/* A rate outside these bounds, in bytes a second, is no measurement of any machine. */
static const double slowest = 1e6, fastest = 1e15;

/* ---- a GPU's file ---- */

/* Returns this program's directory below the user's cache directory, for the caller to free; NULL if the environment names none. */
static char *cache_directory(void) {
    const char *given = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given && *given == '/') return file_join(given, "sptx-w2v");
    return home && *home == '/' ? file_join(home, ".cache/sptx-w2v") : NULL;
}

/* Returns "DIRECTORY/rates-NUMBER.ENDING", for the caller to free; NULL if there is no cache directory. */
static char *file_of(const char *key, const char *ending) {
    char *directory = cache_directory(), *path = NULL, name[64];
    snprintf(name, sizeof name, "rates-%016" PRIx64 ".%s", (uint64_t)XXH3_64bits(key, strlen(key)), ending);
    if (directory) path = file_join(directory, name);
    free(directory);
    return path;
}

/* ---- its text ---- */

static uint64_t format(const char *key, const struct bench_limits *rates, char text[TEXT]) {
    size_t n = text_add(text, TEXT, 0, "%s\nto %.6e\nfrom %.6e\nboth %.6e\ndevice %.6e\n", key, rates->to, rates->from,
                        rates->both, rates->device);
    return text_add(text, TEXT, n, "check %016" PRIx64 "\n", (uint64_t)XXH3_64bits(text, n));
}

static int is_rate(double rate) {
    return rate >= slowest && rate <= fastest;
}
static int are_rates(const struct bench_limits *r) {
    return is_rate(r->to) && is_rate(r->from) && is_rate(r->both) && is_rate(r->device);
}

/* Reads rates from a text. Refuses the text unless writing these rates gives the same bytes. */
static int parse(const char *key, const char *text, struct bench_limits *rates) {
    char again[TEXT];
    struct bench_limits r;
    const char *line = strchr(text, '\n');
    if (!line || sscanf(line, " to %lf from %lf both %lf device %lf", &r.to, &r.from, &r.both, &r.device) != 4) return 0;
    if (!are_rates(&r)) return 0;
    format(key, &r, again);
    if (strcmp(again, text)) return 0;
    *rates = r;
    return 1;
}

/* ---- finding and keeping ---- */

static int find(const char *key, struct bench_limits *rates) {
    char *path = file_of(key, "txt"), *text = NULL;
    int found = 0;
    *rates = (struct bench_limits){0};
    if (path && file_exists(path) == 1 && (text = file_read(path, NULL))) found = parse(key, text, rates);
    free(path);
    free(text);
    return found;
}

static void keep(const char *key, const struct bench_limits *rates) {
    char *directory = cache_directory(), *path = file_of(key, "txt"), text[TEXT];
    struct bench_limits most;
    find(key, &most);
    most.to = fmax(most.to, rates->to);
    most.from = fmax(most.from, rates->from);
    most.both = fmax(most.both, rates->both);
    most.device = fmax(most.device, rates->device);
    if (directory && path && !directory_make(directory)) file_replace(path, text, format(key, &most, text));
    free(directory);
    free(path);
}

/* Waits a few seconds for a lock that another process holds while it measures. Returns 1 if this process got the lock. */
static int take_turn(const char *key, struct lock *lock) {
    char *directory = cache_directory(), *path = file_of(key, "lock"), holder[LOCK_HOLDER];
    int held = 1;
    if (directory && path && !directory_make(directory))
        for (int i = 0; i < TRIES && held == 1; i++) {
            held = lock_try(lock, path, holder);
            if (held == 1) usleep(TRY_MICROSECONDS);
        }
    free(directory);
    free(path);
    return held == 0;
}

static void get(const char *key, struct backend *backend, rates_measure *measure, struct bench_limits *rates) {
    struct bench_limits measured = {0};
    struct lock lock = {.path = NULL};
    if (find(key, rates)) return;
    int turn = take_turn(key, &lock); /* if it does not get the lock, it measures all the same */
    if (!find(key, rates) && !measure(backend, &measured) && are_rates(&measured)) {
        keep(key, &measured);
        *rates = measured;
    }
    if (turn) lock_give(&lock);
}

/* ---- without a word ---- */

/* Opens a place for error messages that are never read, since rates are optional. If there is no memory for it, the functions
 * below do nothing. */
struct silence {
    struct report *own, *before;
    char key[KEY];
};
static int begin_rates(struct silence *silence, const struct backend_info *info) {
    silence->own = report_open(NULL, NULL);
    if (!silence->own) return -1;
    silence->before = report_use(silence->own);
    char processor[128];
    processor_name(processor, sizeof processor);
    snprintf(silence->key, KEY, "%s, driver %s, %s, %s", info->name, info->driver, info->link, processor);
    for (char *at = silence->key; *at; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
    return 0;
}
static void end(struct silence *silence) {
    report_use(silence->before);
    report_close(silence->own);
}

int rates_find(const struct backend_info *info, struct bench_limits *rates) {
    struct silence silence;
    *rates = (struct bench_limits){0};
    if (begin_rates(&silence, info)) return 0;
    int found = find(silence.key, rates);
    end(&silence);
    return found;
}

void rates_keep(const struct backend_info *info, const struct bench_limits *rates) {
    struct silence silence;
    if (begin_rates(&silence, info)) return;
    if (are_rates(rates)) keep(silence.key, rates);
    end(&silence);
}

void rates_get(struct backend *backend, const struct backend_info *info, rates_measure *measure, struct bench_limits *rates) {
    struct silence silence;
    *rates = (struct bench_limits){0};
    if (begin_rates(&silence, info)) return;
    get(silence.key, backend, measure, rates);
    end(&silence);
}
