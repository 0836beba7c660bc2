/* A group over MPI. Errors of MPI end the program and all ranks, with MPI's own sentence: there is nothing to go on with. */
#define _GNU_SOURCE
#include "group.h"

#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "kernels/ranks.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { PAUSE_NANOSECONDS = 20000 };
static const double awake_seconds = 50e-6;

struct group {
    MPI_Comm work;      /* sums, rows and what the first rank shares */
    MPI_Comm agreement; /* codes alone: who fails comes here from wherever it is */
    unsigned count;
    int own;
    int *counts; /* [4 x count]: the caller's, then those of what comes to this rank */
};

static void close_group(struct group *group) {
    int begun = 0;
    MPI_Initialized(&begun);
    if (begun) MPI_Finalize();
    if (group) free(group->counts);
    free(group);
}

/* mpirun may give each rank cores of its own, or some of them the same: cores that are counted more than once are shared. */
static unsigned share_of_cores(MPI_Comm host) {
    cpu_set_t own, all;
    int mine, sum;
    CPU_ZERO(&own);
    sched_getaffinity(0, sizeof own, &own);
    mine = CPU_COUNT(&own);
    MPI_Allreduce(&own, &all, (int)sizeof own, MPI_BYTE, MPI_BOR, host);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, host);
    int share = sum ? mine * CPU_COUNT(&all) / sum : 1;
    return share > 1 ? (unsigned)share : 1;
}

static void look_at_host(struct group_place *place) {
    MPI_Comm host;
    int count, number;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &count);
    MPI_Comm_rank(host, &number);
    place->local = (unsigned)count;
    place->place = (unsigned)number;
    place->cores = share_of_cores(host);
    MPI_Comm_free(&host);
}

static int open_group(struct group **out, struct group_place *place) {
    int threads, count, number;
    *out = NULL;
    *place = (struct group_place){.count = 1, .local = 1};
    if (!ranks_launched()) return 0; /* starting MPI takes time */
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads) != MPI_SUCCESS || threads < MPI_THREAD_FUNNELED)
        return fail("MPI does not begin, or not beside threads");
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    place->number = (unsigned)number;
    place->count = (unsigned)count;
    look_at_host(place);
    if (count == 1) {
        MPI_Finalize();
        *place = (struct group_place){.count = 1, .local = 1};
        return 0;
    }
    struct group *group = mem_zalloc(1, sizeof *group, "ranks");
    if (group) group->counts = mem_zalloc(4 * (uint64_t)count, sizeof(int), "ranks");
    if (!group || !group->counts) MPI_Abort(MPI_COMM_WORLD, 1);
    group->count = (unsigned)count;
    group->own = number;
    MPI_Comm_dup(MPI_COMM_WORLD, &group->work);
    MPI_Comm_dup(MPI_COMM_WORLD, &group->agreement);
    *out = group;
    return 0;
}

static void end(struct group *group, int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
}

/* MPI's own calls wait at full speed. Where ranks have not a core each, or other programs want it too, that keeps the very rank
 * from working that is waited for: on two cores that others used as well, two ranks took 87 s where 27 are enough so. A wait
 * becomes short sleeps once it has lasted longer than a message takes between ranks that are both awake.
 * 1 where it took more than `seconds` (0: however long it takes). */
static int wait_for(MPI_Request *request, double seconds) {
    const struct timespec pause = {.tv_nsec = PAUSE_NANOSECONDS};
    double began = progress_now(), waited = 0;
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) {
        if (seconds > 0 && waited > seconds) return 1;
        if (waited > awake_seconds) nanosleep(&pause, NULL);
        waited = progress_now() - began;
    }
    return 0;
}

static int tell(struct group *group, int code, int *codes, double seconds) {
    MPI_Request request;
    MPI_Iallgather(&code, 1, MPI_INT, codes, 1, MPI_INT, group->agreement, &request);
    return wait_for(&request, seconds);
}

static int spread(struct group *group, const float *values, const int *counts, const int *at, float *parts, double seconds) {
    int *come = group->counts + 2 * group->count, *where = come + group->count, own = counts[group->own];
    MPI_Request request;
    for (unsigned r = 0; r < group->count; r++) come[r] = own, where[r] = (int)r * own;
    MPI_Ialltoallv(values, counts, at, MPI_FLOAT, parts, come, where, MPI_FLOAT, group->work, &request);
    return wait_for(&request, seconds);
}

static int collect(struct group *group, float *values, const int *counts, const int *at, double seconds) {
    MPI_Request request;
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, counts, at, MPI_FLOAT, group->work, &request);
    return wait_for(&request, seconds);
}

static int any(struct group *group, unsigned bits, unsigned *all, double seconds) {
    MPI_Request request;
    MPI_Iallreduce(&bits, all, 1, MPI_UNSIGNED, MPI_BOR, group->work, &request);
    return wait_for(&request, seconds);
}

static int gather(struct group *group, const void *own, void *all, const int *counts, const int *at, double seconds) {
    MPI_Request request;
    MPI_Igatherv(own, counts[group->own], MPI_BYTE, all, counts, at, MPI_BYTE, 0, group->work, &request);
    return wait_for(&request, seconds);
}

static void share(struct group *group, unsigned from, void *bytes, uint64_t size) {
    MPI_Request request;
    MPI_Ibcast(bytes, (int)size, MPI_BYTE, (int)from, group->work, &request);
    wait_for(&request, 0);
}

/* Everyone that gives up waiting says so to everyone, in messages that need nobody's answer. */
static unsigned missing(struct group *group, double seconds) {
    MPI_Request said[group->count], heard[group->count];
    double began = progress_now();
    unsigned r;
    for (r = 0; r < group->count; r++) {
        MPI_Isend(NULL, 0, MPI_BYTE, (int)r, 0, group->agreement, &said[r]);
        MPI_Irecv(NULL, 0, MPI_BYTE, (int)r, 0, group->agreement, &heard[r]);
    }
    for (r = 0; r < group->count; r++) {
        double left = seconds - (progress_now() - began);
        if (wait_for(&heard[r], left > 0 ? left : 1e-3)) break;
    }
    return r;
}

static int *counts_of(struct group *group) {
    return group->counts;
}

const struct group_ops group_ops = {
    .open = open_group,
    .close = close_group,
    .end = end,
    .tell = tell,
    .spread = spread,
    .collect = collect,
    .any = any,
    .share = share,
    .gather = gather,
    .missing = missing,
    .counts = counts_of,
};
