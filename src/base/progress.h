/* progress: the live line of long work: the share done, the rate, the time left. Where stderr is no terminal, it is a
 * note now and then. */
#ifndef SPTX_PROGRESS_H
#define SPTX_PROGRESS_H

#include <stdint.h>

/* Returns the seconds of a clock that never goes back. */
double progress_now(void);

/* Measures how long something has been waited for. Time during which this process did not run (Ctrl-Z, a paused
 * container) does not count: what it waits for may have stood still, too. */
struct waiting {
    double last, seconds;
};
struct waiting waiting_begin(void);
/* Returns the seconds waited so far. It must be called more often than once a second. */
double waiting_seconds(struct waiting *waiting);

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
