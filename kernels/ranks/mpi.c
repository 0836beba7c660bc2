/* A group over MPI: compiled once for each MPI, as a library that ranks.c loads. It calls only the C library, MPI and
 * base/waiting. An error of MPI ends the program and all ranks with MPI's own message, since nothing can continue. */
#define _GNU_SOURCE
#include "group.h"

#include "base/waiting.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { PAUSE_NANOSECONDS = 20000 };
static const double awake_seconds = 50e-6;

struct group {
    MPI_Comm work;      /* for values, rows, and data that the first rank sends to all */
    MPI_Comm agreement; /* only for codes: a rank that fails sends its code here, whatever it was doing */
    unsigned count;
    int own;
    int *counts; /* [4 x count] for the caller */
};

static void close_group(struct group *group) {
    int begun = 0;
    MPI_Initialized(&begun);
    if (begun) MPI_Finalize();
    if (group) free(group->counts);
    free(group);
}

/* Returns how many cores this rank may use. mpirun may give ranks different cores, or the same cores to several, which then divide them. */
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

static const char *open_group(struct group **out, struct group_place *place) {
    int threads, count, number;
    *out = NULL;
    *place = (struct group_place){.count = 1, .local = 1};
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads) != MPI_SUCCESS || threads < MPI_THREAD_FUNNELED)
        return "MPI does not begin, or not beside threads";
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    place->number = (unsigned)number;
    place->count = (unsigned)count;
    look_at_host(place);
    if (count == 1) {
        MPI_Finalize();
        *place = (struct group_place){.count = 1, .local = 1};
        return NULL;
    }
    struct group *group = calloc(1, sizeof *group);
    if (group) group->counts = calloc(4 * (size_t)count, sizeof(int));
    if (!group || !group->counts) MPI_Abort(MPI_COMM_WORLD, 1);
    group->count = (unsigned)count;
    group->own = number;
    MPI_Comm_dup(MPI_COMM_WORLD, &group->work);
    MPI_Comm_dup(MPI_COMM_WORLD, &group->agreement);
    *out = group;
    return NULL;
}

static void end(struct group *group, int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
}

/* Waits for a request. MPI's own calls wait in a busy loop, which, if ranks share cores, takes the core from the very rank that is waited for: on two
 * busy cores two ranks took 87 s, and take 27 s with this function. It sleeps briefly, again and again, once it has waited longer than a message
 * between two running ranks takes.
 *
 * Returns 1 if it took more than `seconds` (0: no limit).
 */
static int wait_for(MPI_Request *request, double seconds) {
    const struct timespec pause = {.tv_nsec = PAUSE_NANOSECONDS};
    struct waiting waiting = waiting_begin();
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) {
        double waited = waiting_seconds(&waiting);
        if (seconds > 0 && waited > seconds) return 1;
        if (waited > awake_seconds) nanosleep(&pause, NULL);
    }
    return 0;
}

static int tell(struct group *group, int code, int *codes, double seconds) {
    MPI_Request request;
    MPI_Iallgather(&code, 1, MPI_INT, codes, 1, MPI_INT, group->agreement, &request);
    return wait_for(&request, seconds);
}

static int swap(struct group *group, const void *own, const int *counts, const int *at, void *others, const int *come,
                const int *where, double seconds) {
    MPI_Request request;
    MPI_Ialltoallv(own, counts, at, MPI_BYTE, others, come, where, MPI_BYTE, group->work, &request);
    return wait_for(&request, seconds);
}

static int collect(struct group *group, void *bytes, const int *counts, const int *at, double seconds) {
    MPI_Request request;
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes, counts, at, MPI_BYTE, group->work, &request);
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

static int share(struct group *group, unsigned from, void *bytes, uint64_t size, double seconds) {
    MPI_Request request;
    MPI_Ibcast(bytes, (int)size, MPI_BYTE, (int)from, group->work, &request);
    return wait_for(&request, seconds);
}

static int pass(struct group *group, unsigned from, unsigned to, void *bytes, uint64_t size, double seconds) {
    MPI_Request request;
    if (group->own == (int)from)
        MPI_Isend(bytes, (int)size, MPI_BYTE, (int)to, 0, group->work, &request);
    else
        MPI_Irecv(bytes, (int)size, MPI_BYTE, (int)from, 0, group->work, &request);
    return wait_for(&request, seconds);
}

/* Each rank that stops waiting tells all others by messages that need no answer. */
static unsigned missing(struct group *group, double seconds) {
    MPI_Request said[group->count], heard[group->count];
    double began = waiting_now();
    unsigned r;
    for (r = 0; r < group->count; r++) {
        MPI_Isend(NULL, 0, MPI_BYTE, (int)r, 0, group->agreement, &said[r]);
        MPI_Irecv(NULL, 0, MPI_BYTE, (int)r, 0, group->agreement, &heard[r]);
    }
    for (r = 0; r < group->count; r++) {
        double left = seconds - (waiting_now() - began);
        if (wait_for(&heard[r], left > 0 ? left : 1e-3)) break;
    }
    return r;
}

static int *counts_of(struct group *group) {
    return group->counts;
}

__attribute__((visibility("default"))) const struct group_ops group_over_mpi = {
    .open = open_group,
    .close = close_group,
    .end = end,
    .tell = tell,
    .swap = swap,
    .collect = collect,
    .any = any,
    .share = share,
    .pass = pass,
    .gather = gather,
    .missing = missing,
    .counts = counts_of,
};
