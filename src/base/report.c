#include "report.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char sentence[4096];
static int exit_code;
static int live_shown;
static int quiet_now;

/* What is quoted of files and words may hold anything; a sentence stays one line, and the terminal as it is. */
static void make_one_line(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) *text = '?';
}

static int keep_sentence(int code, const char *format, va_list args) {
    pthread_mutex_lock(&lock);
    if (!exit_code) {
        vsnprintf(sentence, sizeof sentence, format, args);
        make_one_line(sentence);
        exit_code = code;
    }
    pthread_mutex_unlock(&lock);
    return -1;
}

int fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    keep_sentence(1, format, args);
    va_end(args);
    return -1;
}

int fail_usage(const char *format, ...) {
    va_list args;
    va_start(args, format);
    keep_sentence(2, format, args);
    va_end(args);
    return -1;
}

const char *report_sentence(void) {
    return sentence;
}

int report_exit_code(void) {
    return exit_code;
}

void report_clear(void) {
    pthread_mutex_lock(&lock);
    sentence[0] = 0;
    exit_code = 0;
    pthread_mutex_unlock(&lock);
}

/* Called with the lock held: a line must not start in the middle of the live one. */
static void take_live_away(void) {
    if (live_shown) fputs("\r\033[K", stderr);
    live_shown = 0;
}

static void say(const char *prefix, const char *format, va_list args) {
    char text[sizeof sentence];
    vsnprintf(text, sizeof text, format, args);
    make_one_line(text);
    pthread_mutex_lock(&lock);
    if (!quiet_now) {
        take_live_away();
        fprintf(stderr, "%s%s\n", prefix, text);
    }
    pthread_mutex_unlock(&lock);
}

void warn(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("sptx-w2v: warning: ", format, args);
    va_end(args);
}

void note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("", format, args);
    va_end(args);
}

void report_live(const char *line) {
    pthread_mutex_lock(&lock);
    int terminal = isatty(STDERR_FILENO);
    if (!quiet_now) {
        take_live_away();
        if (*line) {
            fputs(line, stderr);
            if (terminal)
                live_shown = 1;
            else
                fputc('\n', stderr);
        }
        fflush(stderr);
    }
    pthread_mutex_unlock(&lock);
}

void report_quiet(int quiet) {
    quiet_now = quiet;
}
