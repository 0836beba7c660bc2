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

#endif
