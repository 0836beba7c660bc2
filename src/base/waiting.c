#include "waiting.h"

#include <time.h>

static const double stood_still = 1; /* seconds; after a longer gap between two calls, the process was not running */

double waiting_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct waiting waiting_begin(void) {
    return (struct waiting){.last = waiting_now()};
}

double waiting_seconds(struct waiting *waiting) {
    double now = waiting_now();
    if (now - waiting->last < stood_still) waiting->seconds += now - waiting->last;
    waiting->last = now;
    return waiting->seconds;
}
