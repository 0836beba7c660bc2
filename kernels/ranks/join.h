/* join: turns processes that a launcher started into ranks, so that none waits for ever for the others.
 *
 * MPI_Init() returns when all processes have called it. A process that does something else (another program, a command
 * that does not use ranks, a shell that has ended) never calls it, and mpirun notices that only if it ends after the
 * others have started.
 */
#ifndef SPTX_RANKS_JOIN_H
#define SPTX_RANKS_JOIN_H

#include "kernels/ranks.h"

/* This process, as the launcher describes it in environment variables. */
struct join_place {
    int launched;           /* 0: no launcher started it */
    unsigned number, count; /* count 0: the launcher does not give it */
    const char *mpi;        /* the MPI that usually has this launcher: "openmpi", "mpich" */
};
struct join_place join_place(void);

/* A thread that ends this process with an error message if join_end() is not called in time. */
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

/* Checks that all ranks run the same command. Returns 0, or -1 after fail() on each. */
int join_alike(struct ranks *ranks, const char *what);

#endif
