#include "join.h"

#include "base/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds that mpirun may take from starting the first process to starting the last: programs are read over networks, and cores
 * are shared. */
enum { JOIN_SECONDS = 30, JOIN_SECONDS_A_RANK = 1 };
static const double speaks_later = 2; /* seconds that each rank waits longer than the one before, so that the first one has
                                       * printed its message when mpirun ends the others */

/* ---- what launchers put into the environment ---- */

/* Environment variables of Open MPI, of MPICH and other MPIs that use its names, and of PMIx, which Slurm uses. */
static const struct {
    const char *number, *count, *mpi;
} launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "openmpi"},
                 {"PMI_RANK", "PMI_SIZE", "mpich"},
                 {"PMIX_RANK", NULL, "openmpi"}};

static unsigned number_of(const char *name) {
    const char *text = name ? getenv(name) : NULL;
    long number = text ? atol(text) : 0;
    return number > 0 ? (unsigned)number : 0;
}

struct join_place join_place(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (getenv(launchers[i].count ? launchers[i].count : launchers[i].number))
            return (struct join_place){1, number_of(launchers[i].number), number_of(launchers[i].count),
                                       launchers[i].mpi};
    return (struct join_place){0};
}

/* ---- waiting for the others ---- */

static void *watch(void *context) {
    struct join *join = context;
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)join->seconds;
    until.tv_nsec += (long)((join->seconds - (double)(time_t)join->seconds) * 1e9);
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&join->lock);
    while (!join->ended && error != ETIMEDOUT) error = pthread_cond_timedwait(&join->changed, &join->lock, &until);
    if (!join->ended) {
        report_dying("", join->sentence, "");
        _exit(1); /* mpirun then ends the others */
    }
    pthread_mutex_unlock(&join->lock);
    return NULL;
}

void join_begin(struct join *join, const char *what) {
    struct join_place place = join_place();
    char host[256] = "", rank[64] = "a rank";
    uint64_t seconds = JOIN_SECONDS + (uint64_t)place.count * JOIN_SECONDS_A_RANK;
    *join = (struct join){.seconds = (double)seconds + speaks_later * place.number};
    if (!place.launched || place.count == 1) return;
    if (gethostname(host, sizeof host - 1)) host[0] = 0;
    if (place.count) snprintf(rank, sizeof rank, "rank %u of %u", place.number, place.count);
    snprintf(join->sentence, sizeof join->sentence,
             "%s, on %s: not all of the processes that mpirun began have joined within %" PRIu64
             " s: it must begin '%s' as each of them",
             rank, *host ? host : "a machine without a name", seconds, what);
    pthread_mutex_init(&join->lock, NULL);
    pthread_cond_init(&join->changed, NULL);
    join->begun = !pthread_create(&join->thread, NULL, watch, join);
}

void join_end(struct join *join) {
    if (!join->begun) return;
    pthread_mutex_lock(&join->lock);
    join->ended = 1;
    pthread_cond_signal(&join->changed);
    pthread_mutex_unlock(&join->lock);
    pthread_join(join->thread, NULL);
    pthread_mutex_destroy(&join->lock);
    pthread_cond_destroy(&join->changed);
}

/* ---- the same command ---- */

int join_alike(struct ranks *ranks, const char *what) {
    char own[128] = "", first[128];
    snprintf(own, sizeof own, "%s", what);
    memcpy(first, own, sizeof first);
    ranks_share(ranks, first, sizeof first);
    first[sizeof first - 1] = 0;
    return ranks_agree(ranks, !strcmp(own, first) ? 0
                                                  : fail("mpirun began '%s' as this process, and '%s' as rank 0: all ranks need "
                                                         "the same command and version",
                                                         own, first));
}
