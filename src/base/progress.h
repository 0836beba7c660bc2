/* progress: the live line of long work: share done, rates, time left; a note now and then where stderr is no terminal. */
#ifndef SPTX_PROGRESS_H
#define SPTX_PROGRESS_H

#include <stdint.h>

/* Seconds of a clock that never goes back. */
double progress_now(void);

/* How long something has been waited for. A process that stood still itself between two looks (Ctrl-Z, a container that was
 * paused) has not waited: what it waits for stood still, too. */
struct waiting {
    double last, seconds;
};
struct waiting waiting_begin(void);
/* Seconds waited so far; to be asked more often than once a second. */
double waiting_seconds(struct waiting *waiting);

struct progress {
    const char *what;     /* "counting" */
    double started, shown; /* progress_now() */
    double every;         /* seconds between two lines */
};
void progress_start(struct progress *progress, const char *what, double every);
/* "WHAT 43%  12.3 MB/s  ETA 12s": `done` of `total` in `unit`s. Shows at most every `every` seconds; any thread may call. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total, const char *unit);
void progress_end(struct progress *progress);

#endif
