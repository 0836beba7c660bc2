/* ranks: several processes that train one run together, on one machine or several, started by mpirun.
 *
 * Each rank stores a range of columns of all rows of both tables, with their optimizer state. All ranks make the same batches; each computes a
 * partial sum of every dot product over its columns, and these are added up:
 *
 *              rank 0        rank 1       rank 2
 *   row     | 0 .. 19     | 20 .. 35   | 36 .. 49 |        record_columns(): 50 columns, 3 ranks
 *   dot        part 0   +    part 1   +   part 2           ranks_sum(): in this order on every rank, the same bits
 *
 * A process that was not started by mpirun is a single rank, and NULL stands for one, too: all calls then return at once. The thread that opened the
 * ranks makes all calls that ranks make together, in the same order on each rank.
 */
#ifndef SPTX_RANKS_H
#define SPTX_RANKS_H

#include <pthread.h>
#include <stdint.h>

struct ranks {
    unsigned number, count; /* number: this rank's, 0 .. count - 1; count: of all ranks */
    unsigned local, place;  /* local: number of ranks on this machine, with this one; place: this rank's number among these, from 0 */
    unsigned patience;      /* how many seconds to wait for another rank; 0: no limit */
    int steps;              /* 1: the run's steps have begun */
    unsigned cores;         /* number of cores for this rank; 0 for a single rank: all cores */
    int over;               /* 1: all ranks have agreed to fail, and none waits any more */
    int *codes;             /* [count] where ranks_agree() collects exit codes */
    float *parts;           /* [part_capacity] where ranks_sum() collects partial sums */
    uint64_t part_capacity;
    struct group *group;    /* connection of the processes (ranks/group.h); NULL for a single rank */
    const struct group_ops *calls; /* functions that send messages between ranks; NULL for a single rank */
};

/* Returns 1 if a launcher such as mpirun started this process. */
int ranks_launched(void);

/* Joins the ranks that mpirun started together. All processes must run the same command, `what` ("sptx-w2v 1.2.3 train"). If one of them does not
 * join within half a minute, this process ends with an error message. Of several ranks only the first one prints messages from then on; if they
 * fail, ranks_close() prints its error. Returns -1 after fail(). The caller calls ranks_close() in any case. */
int ranks_open(struct ranks *ranks, const char *what);
void ranks_close(struct ranks *ranks);

static inline unsigned ranks_count(const struct ranks *ranks) {
    return ranks ? ranks->count : 1;
}
/* Returns 1 for the rank that owns the run directory and prints messages. */
static inline int ranks_first(const struct ranks *ranks) {
    return !ranks || ranks->number == 0;
}

/* Sets how many seconds to wait for another rank (device.rank_timeout; 0: no limit). steps = 1: the run's steps begin now; before, the limit is at
 * least RANKS_START_SECONDS, since ranks open devices and files at different speeds. Work that may take longer is run by ranks_do(). Does nothing
 * for NULL. */
enum { RANKS_START_SECONDS = 60 };
void ranks_patience(struct ranks *ranks, uint64_t seconds, int steps);

/* Bytes that a rank, if there are several, needs for messages and the library that sends them. */
enum { RANKS_BYTES = 32 << 20 };

/* ---- together ---- */

/* Lets all ranks know whether all can continue. Returns 0 if every rank's `result` is 0. Otherwise returns -1 after fail() on every rank, with the
 * message of the first rank that failed, which is named unless it is rank 0.
 *
 * If a rank does not call within `patience`, all ranks end with an error that names it. If a rank fails and the others do not call
 * within some seconds, it prints its own message and ends all of them.
 */
int ranks_agree(struct ranks *ranks, int result);

/* Lets ranks continue after a failure on which they have agreed. All ranks call it. */
static inline void ranks_forgive(struct ranks *ranks) {
    if (ranks) ranks->over = 0;
}

/* Work of this rank that may take long, such as reading a disk. It runs in its own thread, while the caller's thread tells the other ranks that
 * this rank is alive. */
struct ranks_work {
    int (*work)(void *user);
    void *user;
    void *report; /* where the work's messages are stored: the state of the thread that began it */
    pthread_t thread;
    int begun, done, result; /* done: 1: the work is done; set last, by the work's thread */
};
void ranks_begin(struct ranks_work *work, int (*what)(void *user), void *user);

/* Waits until the work of all ranks (NULL: no work) is done, then agrees like ranks_agree(). Work may take longer than `patience`, but if a rank
 * gives no sign of life for that time, all ranks end with an error that names it. Results above 0 are no failures: all ranks get the largest. */
int ranks_meet(struct ranks *ranks, struct ranks_work *work, int result);
/* Runs the work (NULL: no work) and calls ranks_meet(). */
int ranks_do(struct ranks *ranks, int (*what)(void *user), void *user);

/* Sums values[count] over all ranks; all get the same bits. */
int ranks_sum(struct ranks *ranks, float *values, uint64_t count);

/* Sends `size` bytes of each rank to all ranks, which receive them in `all`, in rank order. */
void ranks_exchange(struct ranks *ranks, const void *own, void *all, uint64_t size);

/* Returns the bits that are set in `bits` of at least one rank. */
unsigned ranks_any(struct ranks *ranks, unsigned bits);

/* Copies the first rank's bytes to all ranks. */
void ranks_share(struct ranks *ranks, void *bytes, uint64_t size);

/* Sends sizes[number] bytes of each rank (in all below 2 GiB) to the first rank, which receives them in `all`, in rank order; on other ranks `all`
 * is NULL. */
void ranks_gather(struct ranks *ranks, const void *own, void *all, const uint64_t *sizes);

/* Sends sizes[r] bytes to each rank r, from `own` in rank order; receives come[r] bytes from each rank r in `others`, in rank order. */
void ranks_swap(struct ranks *ranks, const void *own, const uint64_t *sizes, void *others, const uint64_t *come);

/* Sends bytes from one rank to another. Does nothing on other ranks, or if both are the same rank. */
void ranks_pass(struct ranks *ranks, unsigned from, unsigned to, void *bytes, uint64_t size);

#endif
