/* waiting: a clock that never goes back, and a timer of waiting. It uses only the C library, since code that is compiled separately for MPI has a
 * copy of it (kernels/ranks/mpi.c). */
#ifndef SPTX_WAITING_H
#define SPTX_WAITING_H

/* Returns the seconds of a clock that never goes back. */
double waiting_now(void);

/* Measures how long a caller has been waiting. Time in which this process was not running (Ctrl-Z, a paused container) is not counted, since the
 * process that it waits for may have been paused, too. */
struct waiting {
    double last, seconds;
};
struct waiting waiting_begin(void);
/* Returns the seconds waited so far. To be called more than once a second: a longer gap is taken as time in which the process was not running. */
double waiting_seconds(struct waiting *waiting);

#endif
