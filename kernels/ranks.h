/* ranks: several processes that train one run together, on one machine or several, begun by mpirun.
 *
 * Every rank owns a range of the columns of all rows of both tables, with their optimizer state. All ranks make the same
 * batches; each computes its part of every dot product, and the parts are summed:
 *
 *              rank 0        rank 1       rank 2
 *   row     | 0 .. 19     | 20 .. 35   | 36 .. 49 |        ranks_columns(50, 4, 3, number)
 *   dot        part 0   +    part 1   +   part 2           ranks_sum(): in this order on every rank, the same bits
 *
 * A process that no mpirun began is a single rank. So is a NULL: for both, every call here is done at once. Calls that all ranks
 * make together are made by the thread that opened the ranks, and in the same order on each.
 */
#ifndef SPTX_RANKS_H
#define SPTX_RANKS_H

#include <pthread.h>
#include <stdint.h>

struct ranks {
    unsigned number, count; /* this rank's number, 0..count-1, and how many ranks there are */
    unsigned local, place;  /* ranks on this machine, including this one; this one's number among them, from 0 */
    unsigned patience;      /* seconds that another rank is waited for; 0: for ever */
    int steps;              /* 1: the run's steps have begun */
    unsigned cores;         /* this rank's share of the cores that all may use; 0 for a single rank: all of them */
    int over;               /* 1: all have agreed that they fail, and no rank waits any more */
    int *codes;             /* [count] where ranks_agree() collects exit codes */
    float *parts;           /* [part_capacity] where ranks_sum() collects parts */
    uint64_t part_capacity;
    struct group *group;    /* the processes (ranks/group.h); NULL for a single rank */
    const struct group_ops *calls; /* the calls for messages between ranks; NULL for a single rank */
};

/* Returns 1 where a launcher such as mpirun began this process. */
int ranks_launched(void);

/* Joins the ranks that mpirun began together. All processes must run the same command, `what` ("sptx-w2v 1.2.3 train").
 * Where one does not come within half a minute, this process ends with a sentence. Where there are several ranks, only
 * the first one speaks from now on, and where they fail its sentence comes with ranks_close(). Returns -1 after fail().
 * The caller closes in any case. */
int ranks_open(struct ranks *ranks, const char *what);
void ranks_close(struct ranks *ranks);

static inline unsigned ranks_count(const struct ranks *ranks) {
    return ranks ? ranks->count : 1;
}
/* Returns 1 for the rank that owns the run directory, and speaks. */
static inline int ranks_first(const struct ranks *ranks) {
    return !ranks || ranks->number == 0;
}

/* Sets how long another rank is waited for (device.rank_timeout; 0: for ever). `steps`: 1 where the run's steps begin.
 * Before them it is RANKS_START_SECONDS at least, since each rank opens devices and files in its own time; work that
 * may take even longer goes through ranks_do(). Does nothing for NULL. */
enum { RANKS_START_SECONDS = 60 };
void ranks_patience(struct ranks *ranks, uint64_t seconds, int steps);

/* Bytes that a rank takes for being one of several: messages on their way, and the library that sends them. */
enum { RANKS_BYTES = 32 << 20 };

/* ---- who owns which columns ---- */

struct columns {
    uint32_t first, count;
};

/* Returns the columns of rank `number` of `count`, in whole groups of `grain` (record_grain()) where there are as many;
 * dim >= count. No rank has more than rank 0. */
struct columns ranks_columns(uint32_t dim, uint32_t grain, unsigned count, unsigned number);

/* ---- together ---- */

/* All ranks learn if all go on. Returns 0 where every rank's `result` is 0. Otherwise every rank gets -1 after fail(),
 * with the sentence of the first rank that failed, which names it unless it is rank 0.
 *
 * A rank that is not there within `patience` is named and ends all. A rank that fails while the others do not come to
 * agree for some seconds says its own sentence, and ends them all.
 */
int ranks_agree(struct ranks *ranks, int result);

/* Work of this rank that may take as long as a disk does. It runs on a thread of its own, while the caller's thread
 * tells the other ranks that this one is alive. */
struct ranks_work {
    int (*work)(void *user);
    void *user;
    void *report; /* the sink of the thread that began the work */
    pthread_t thread;
    int begun, done, result; /* done: set last, by the work's thread */
};
void ranks_begin(struct ranks_work *work, int (*what)(void *user), void *user);

/* Agrees like ranks_agree(), after every rank's work (NULL: it has none) is done. A rank that gives no sign of life
 * within `patience` is named and ends all; its work may take longer. A result above 0 is no failure: all get the
 * largest. */
int ranks_meet(struct ranks *ranks, struct ranks_work *work, int result);
/* Runs the work, unless it is NULL, and meets. */
int ranks_do(struct ranks *ranks, int (*what)(void *user), void *user);

/* Sums values[count] over all ranks; each gets the same bits. */
int ranks_sum(struct ranks *ranks, float *values, uint64_t count);

/* Gives every rank's `size` bytes to all, in rank order in `all`. */
void ranks_exchange(struct ranks *ranks, const void *own, void *all, uint64_t size);

/* Returns the bits that any of the ranks has set. */
unsigned ranks_any(struct ranks *ranks, unsigned bits);

/* Gives the first rank's bytes to all. */
void ranks_share(struct ranks *ranks, void *bytes, uint64_t size);

/* Gives every rank's sizes[number] bytes (below 2 GiB in all) to the first rank, in rank order in `all`, which is NULL
 * on the others. */
void ranks_gather(struct ranks *ranks, const void *own, void *all, const uint64_t *sizes);

/* Sends sizes[r] bytes to each rank r, from `own` in rank order, and receives come[r] bytes from each, in rank order in
 * `others`. */
void ranks_swap(struct ranks *ranks, const void *own, const uint64_t *sizes, void *others, const uint64_t *come);

/* Sends bytes from one rank to another. Does nothing on the other ranks, and where both are the same. */
void ranks_pass(struct ranks *ranks, unsigned from, unsigned to, void *bytes, uint64_t size);

#endif
