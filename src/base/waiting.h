/* waiting: a clock that never goes back, and a timer of how long something has been waited for. It uses only the C library, since
 * the code that is compiled separately for MPI has a copy of it (kernels/ranks/mpi.c). */
#ifndef SPTX_WAITING_H
#define SPTX_WAITING_H

/* Returns the seconds of a clock that never goes back. */
double waiting_now(void);

/* Measures how long a caller has waited. Time in which this process did not run (Ctrl-Z, a paused container) does not count,
 * since the process that it waits for may have been paused, too. */
struct waiting {
    double last, seconds;
};
struct waiting waiting_begin(void);
/* Returns the seconds waited so far. Call it more often than once a second: a longer gap counts as time in which the process did
 * not run. */
double waiting_seconds(struct waiting *waiting);

#endif
