/* progress: the live line of long work: the share done, the rate, the time left. Where stderr is no terminal, it is a
 * note now and then. */
#ifndef SPTX_PROGRESS_H
#define SPTX_PROGRESS_H

#include "waiting.h"

#include <stdint.h>

/* Returns the seconds of a clock that never goes back. */
static inline double progress_now(void) {
    return waiting_now();
}

struct progress {
    const char *what;     /* "counting" */
    double started, shown; /* progress_now() */
    double every;         /* seconds between two lines */
};
void progress_start(struct progress *progress, const char *what, double every);
/* Shows "WHAT 43%  12.3 MB/s  ETA 12s" for `done` of `total` in `unit`s, at most every `every` seconds. Any thread may
 * call it. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total, const char *unit);
void progress_end(struct progress *progress);

#endif
