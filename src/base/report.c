#include "report.h"

#include "progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A sink. */
struct report {
    pthread_mutex_t lock;
    char sentence[4096];
    int exit_code;
    int live_shown;    /* 1: the progress line is on the terminal */
    int quiet;         /* 1: only report_last() writes */
    int mute;          /* 1: not even report_last() writes */
    report_hear *hear; /* called with warnings, which are then not written to stderr; NULL for the program's sink */
    void *user;
};

static struct report of_program = {.lock = PTHREAD_MUTEX_INITIALIZER};
static FILE *held; /* lines held back by report_hold(); NULL: lines are written at once */
static char *held_text;
static size_t held_bytes;
static _Thread_local struct report *used; /* this thread's sink; NULL: the program's */

static struct report *current(void) {
    return used ? used : &of_program;
}

struct report *report_open(report_hear *hear, void *user) {
    struct report *report = calloc(1, sizeof *report);
    if (!report) return NULL;
    pthread_mutex_init(&report->lock, NULL);
    report->quiet = 1;
    report->hear = hear;
    report->user = user;
    return report;
}

void report_close(struct report *report) {
    if (!report) return;
    pthread_mutex_destroy(&report->lock);
    free(report);
}

struct report *report_use(struct report *report) {
    struct report *before = used;
    used = report;
    return before;
}

struct report *report_current(void) {
    return used;
}

static int keep_sentence(int code, const char *format, va_list args) {
    struct report *report = current();
    pthread_mutex_lock(&report->lock);
    if (!report->exit_code) {
        vsnprintf(report->sentence, sizeof report->sentence, format, args);
        terminal_make_line(report->sentence, sizeof report->sentence);
        report->exit_code = code;
    }
    pthread_mutex_unlock(&report->lock);
    return -1;
}

int fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    keep_sentence(1, format, args);
    va_end(args);
    return -1;
}

static int keep_printed(int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    keep_sentence(code, format, args);
    va_end(args);
    return -1;
}

int fail_system(const char *doing, const char *path) {
    int code = errno == EPIPE ? REPORT_UNREAD : 1;
    return keep_printed(code, "cannot %s '%s': %s", doing, path, strerror(errno));
}

int fail_usage(const char *format, ...) {
    va_list args;
    va_start(args, format);
    keep_sentence(2, format, args);
    va_end(args);
    return -1;
}

int fail_stopped(const char *format, ...) {
    va_list args;
    va_start(args, format);
    keep_sentence(REPORT_STOPPED, format, args);
    va_end(args);
    return -1;
}

const char *report_sentence(void) {
    return current()->sentence;
}

int report_exit_code(void) {
    return current()->exit_code;
}

void report_clear(void) {
    struct report *report = current();
    pthread_mutex_lock(&report->lock);
    report->sentence[0] = 0;
    report->exit_code = 0;
    pthread_mutex_unlock(&report->lock);
}

/* Erases the progress line, so that the next line does not begin after it. The caller must hold the lock. */
static void take_live_away(struct report *report) {
    if (report->live_shown) fputs("\r\033[K", stderr);
    report->live_shown = 0;
}

static void write_line(const char *prefix, const char *text) {
    struct report *report = current();
    pthread_mutex_lock(&report->lock);
    if (!report->quiet) {
        if (!held) take_live_away(report);
        fprintf(held ? held : stderr, "%s%s\n", prefix, text);
    }
    pthread_mutex_unlock(&report->lock);
}

void report_hold(void) {
    if (!held) held = open_memstream(&held_text, &held_bytes);
}

void report_release(int write) {
    if (!held) return;
    fclose(held);
    held = NULL;
    if (write) fwrite(held_text, 1, held_bytes, stderr);
    free(held_text);
}

/* Writes one line to stderr. heard = 1: passes the line to the sink's `hear` function instead, if there is one. */
static void say(const char *prefix, int heard, const char *format, va_list args) {
    char text[sizeof of_program.sentence];
    vsnprintf(text, sizeof text, format, args);
    terminal_make_line(text, sizeof text);
    if (heard && current()->hear) current()->hear(current()->user, text);
    else write_line(prefix, text);
}

void warn(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("sptx-w2v: warning: ", 1, format, args);
    va_end(args);
}

void note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("", 0, format, args);
    va_end(args);
}

void remark(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("", 1, format, args);
    va_end(args);
}

void report_live(const char *line) {
    char text[sizeof of_program.sentence];
    snprintf(text, sizeof text, "%s", line);
    terminal_make_line(text, sizeof text);
    struct report *report = current();
    pthread_mutex_lock(&report->lock);
    int terminal = isatty(STDERR_FILENO);
    if (!report->quiet) {
        take_live_away(report);
        if (*text) {
            fputs(text, stderr);
            if (terminal)
                report->live_shown = 1;
            else
                fputc('\n', stderr);
        }
        fflush(stderr);
    }
    pthread_mutex_unlock(&report->lock);
}

int report_is_quiet(void) {
    return current()->quiet;
}

void report_quiet(int quiet) {
    current()->quiet = quiet;
}

void report_mute(void) {
    current()->mute = current()->quiet = 1;
}

void report_last(void) {
    const struct report *report = current();
    report_live("");
    if (!report->mute) fprintf(stderr, "sptx-w2v: %s\n", report->exit_code ? report->sentence : "failed without saying why");
}

/* Appends as many bytes of `more` as fit. Returns the new length of the text. */
static size_t append(char *text, size_t at, size_t capacity, const char *more) {
    size_t length = strlen(more);
    if (length > capacity - at) length = capacity - at;
    memcpy(text + at, more, length);
    return at + length;
}

void report_dying(const char *before, const char *quoted, const char *after) {
    char text[sizeof of_program.sentence];
    size_t capacity = sizeof text - 2, start = append(text, 0, capacity, of_program.live_shown ? "\r\033[K" : "");
    const char *const parts[] = {"sptx-w2v: ", before, quoted, after};
    size_t at = start;
    for (int i = 0; i < 4; i++) at = append(text, at, capacity, parts[i]);
    text[at] = 0;
    terminal_make_line(text + start, capacity - start);
    at = strlen(text);
    text[at] = '\n';
    if (write(STDERR_FILENO, text, at + 1) < 0) return; /* a failure cannot be reported anywhere */
}

static int is_asked(void) {
    const char *asked = getenv("SPTX_TRACE");
    return asked && !strcmp(asked, "1");
}

void trace(const char *format, ...) {
    char text[512];
    va_list values;
    if (!is_asked()) return;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(stderr, "trace %.6f %s\n", progress_now(), text);
}
