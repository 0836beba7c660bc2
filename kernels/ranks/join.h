/* join: how processes that a launcher began become ranks, and that none waits for ever for the others to do so.
 *
 * MPI_Init() returns when all processes have called it. One that does something else (another program, a command that is none of
 * ranks, a shell that has ended) never does, and mpirun sees that only where it ends after the others have begun.
 */
#ifndef SPTX_RANKS_JOIN_H
#define SPTX_RANKS_JOIN_H

#include "kernels/ranks.h"

/* What the launcher has said of this process in its environment. */
struct join_place {
    int launched;           /* 0: no launcher began it */
    unsigned number, count; /* count 0: not said */
};
struct join_place join_place(void);

/* Ends this process with a sentence where join_end() does not follow in time. */
struct join {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int begun, ended;
    double seconds;
    char sentence[512];
};
void join_begin(struct join *join, const char *what);
void join_end(struct join *join);

/* Whether all ranks have come for the same; -1 after fail() on each. */
int join_alike(struct ranks *ranks, const char *what);

#endif
