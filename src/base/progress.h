/* progress: the progress line of long work: share done, rate, time left. If stderr is not a terminal, prints a new line from time to time. */
#ifndef SPTX_PROGRESS_H
#define SPTX_PROGRESS_H

#include "waiting.h"

#include <stddef.h>
#include <stdint.h>

/* Returns the seconds of a clock that never goes back. */
static inline double progress_now(void) {
    return waiting_now();
}

struct progress {
    const char *what;     /* name of the work, such as "counting" */
    double started, shown; /* started: when the work began; shown: when the line was last printed (progress_now()) */
    double every;         /* seconds between two updates */
};
void progress_start(struct progress *progress, const char *what, double every);
/* Shows a line such as "counting 43%  12.3 MB/s  ETA 12s", unless the last one is less than progress->every seconds old. done, total: amounts in
 * `unit`. Any thread may call it. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total, const char *unit);
void progress_end(struct progress *progress);

/* terminal: prints words, names and titles from the user's files on stdout.
 *
 * These may contain bytes that control a terminal: an escape sequence can move its cursor, set its title, or even type for its user. So on a terminal
 * control characters are shown as \x1b for ESC, \x09 for a tab, \u009b for a two-byte C1 character. To pipes and files the text is written unchanged.
 */

void terminal_print(const char *text, uint64_t length);
void terminal_print_name(const char *text); /* prints the text up to its NUL */

/* Writes what was printed so far to stdout. Returns 0, or -1 after fail() if that is impossible, so that commands with many answers can stop.
 * errno says why an earlier print failed; 0: unknown. */
int terminal_flush(void);

/* Replaces each control character of the text, also of C1, by '?', and a tab by \t if text[capacity] has room, so that the text stays on one line.
 * A signal handler may call it. */
void terminal_make_line(char *text, size_t capacity);

#endif
