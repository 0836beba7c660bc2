/* progress: the progress line of long work: the share that is done, the rate, the time left. If stderr is no terminal, a new
 * line is written from time to time. */
#ifndef SPTX_PROGRESS_H
#define SPTX_PROGRESS_H

#include "waiting.h"

#include <stdint.h>

/* Returns the seconds of a clock that never goes back. */
static inline double progress_now(void) {
    return waiting_now();
}

struct progress {
    const char *what;     /* name of the work, such as "counting" */
    double started, shown; /* times of progress_now(): when the work began, when the line was last shown */
    double every;         /* seconds between two updates */
};
void progress_start(struct progress *progress, const char *what, double every);
/* Shows a line such as "counting 43%  12.3 MB/s  ETA 12s", unless the last one is less than progress->every seconds old. done,
 * total: numbers of `unit`s. Any thread may call it. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total, const char *unit);
void progress_end(struct progress *progress);

/* terminal: prints words, names and titles from the user's files on stdout.
 *
 * They may contain any byte, and some bytes control a terminal: an escape sequence can move its cursor, set its title, or type for
 * its user. So on a terminal control characters are shown as \x1b for ESC, \x09 for a tab, \u009b for a two-byte C1 character.
 * In a pipe or a file the text is written unchanged.
 */

void terminal_print(const char *text, uint64_t length);
void terminal_print_name(const char *text); /* prints the text up to its NUL */

/* Sends what was printed so far to stdout. Returns 0, or -1 after fail() if some of it cannot be written: for commands that print
 * many answers, which then need not find the others. errno says why an earlier print failed; 0: that is not known. */
int terminal_flush(void);

/* Replaces each control character of the text, C1 included, by '?', so that the text stays on one line. A signal handler may
 * call it. */
void terminal_make_line(char *text);

#endif
