#include "progress.h"

#include "report.h"
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Fewest seconds between two lines if stderr is not a terminal, where a line cannot replace the previous one. */
static const double without_terminal = 10;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void progress_start(struct progress *progress, const char *what, double every) {
    double now = progress_now();
    if (!isatty(STDERR_FILENO) && every < without_terminal) every = without_terminal;
    *progress = (struct progress){.what = what, .started = now, .shown = now, .every = every};
}

/* Writes a rate such as "12.3 MB/s", "2.63 M words/s" or "17.0 words/s". */
static void format_rate(char *out, size_t capacity, double rate, const char *unit) {
    char number[TEXT_BYTES];
    text_of_rate(number, rate);
    int joined = strlen(unit) == 1 && isalpha((unsigned char)number[strlen(number) - 1]);
    snprintf(out, capacity, "%s%s%s/s", number, joined ? "" : " ", unit);
}

void progress_show(struct progress *progress, uint64_t done, uint64_t total, const char *unit) {
    double now = progress_now(), spent = now - progress->started;
    char line[256], rate[64], left[TEXT_BYTES];
    pthread_mutex_lock(&lock);
    int due = now - progress->shown >= progress->every;
    if (due) progress->shown = now;
    pthread_mutex_unlock(&lock);
    if (!due) return;
    format_rate(rate, sizeof rate, spent > 0 ? (double)done / spent : 0, unit);
    if (total == 0 || done == 0) { /* the total, or the speed, is not known yet */
        snprintf(line, sizeof line, "%s  %s", progress->what, rate);
    } else {
        if (done > total) done = total;
        text_of_time(left, spent * (double)(total - done) / (double)done);
        snprintf(line, sizeof line, "%s %.0f%%  %s  ETA %s", progress->what, 100.0 * (double)done / (double)total, rate, left);
    }
    report_live(line);
}

void progress_end(struct progress *progress) {
    report_live("");
}

/* Returns the length in bytes of the control character that begins here, or 0. Control characters are those of ASCII and C1 (0x80 to 0x9F), which
 * has one byte on terminals of old encodings, two on UTF-8 terminals. */
static unsigned control_length(const char *text, uint64_t left) {
    unsigned char byte = (unsigned char)*text;
    if (byte < ' ' || byte == 127) return 1;
    unsigned length = text_utf8(text, left);
    if (length == 2 && byte == 0xC2 && (unsigned char)text[1] < 0xA0) return 2;
    return !length && byte >= 0x80 && byte < 0xA0;
}

/* Returns the number of bytes before the next control character. */
static uint64_t plain_length(const char *text, uint64_t left) {
    uint64_t at = 0;
    while (at < left && !control_length(text + at, left - at)) {
        unsigned length = text_utf8(text + at, left - at);
        at += length ? length : 1;
    }
    return at;
}

static void print_visibly(const char *text, uint64_t length) {
    for (uint64_t at = 0; at < length;) {
        uint64_t plain = plain_length(text + at, length - at);
        fwrite(text + at, 1, plain, stdout);
        at += plain;
        unsigned control = at < length ? control_length(text + at, length - at) : 0;
        if (control) printf(control == 2 ? "\\u00%02x" : "\\x%02x", (unsigned char)text[at + control - 1]);
        at += control;
    }
}

void terminal_print(const char *text, uint64_t length) {
    static int known, is_terminal; /* determined only once, since a million answers may be printed word by word */
    if (!known) is_terminal = isatty(STDOUT_FILENO), known = 1;
    if (is_terminal)
        print_visibly(text, length);
    else
        fwrite(text, 1, length, stdout);
}

void terminal_print_name(const char *text) {
    terminal_print(text, strlen(text));
}

int terminal_flush(void) {
    struct pollfd pipe = {.fd = STDOUT_FILENO, .events = POLLOUT};
    int failed_before = ferror(stdout), why = failed_before ? errno : 0;
    if (fflush(stdout)) why = errno;
    else if (!failed_before) return 0;
    if (poll(&pipe, 1, 0) > 0 && pipe.revents & POLLERR) { /* a pipe without a reader */
        errno = EPIPE;
        return fail_system("write to", "stdout");
    }
    return why ? fail("cannot write the results to stdout: %s", strerror(why)) : fail("cannot write all of the results to stdout");
}

void terminal_make_line(char *text, size_t capacity) {
    uint64_t left = strlen(text);
    const char *last = text + capacity - 1;
    char *out = text;
    while (left) {
        uint64_t plain = plain_length(text, left);
        memmove(out, text, plain);
        out += plain, text += plain, left -= plain;
        unsigned control = left ? control_length(text, left) : 0;
        if (control && *text == '\t' && text + left < last) { /* one byte more: the rest moves back */
            memmove(text + 1, text, left);
            text++;
            *out++ = '\\', *out++ = 't';
        } else if (control) {
            *out++ = '?';
        }
        text += control, left -= control;
    }
    *out = 0;
}
