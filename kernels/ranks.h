/* ranks: several processes that train one run together, on one machine or several, begun by mpirun.
 *
 * Every rank owns a range of the columns of all rows of both tables, with their optimizer state. All ranks make the same
 * batches; each has its part of every dot product, and the parts are summed:
 *
 *              rank 0        rank 1       rank 2
 *   row     | 0 .. 19     | 20 .. 35   | 36 .. 49 |        ranks_columns(50, 3, number)
 *   dot        part 0   +    part 1   +   part 2           ranks_sum(): in this order on every rank, the same bits
 *
 * A process that no mpirun began is one rank alone, and so is NULL: every call here is then done at once. Calls that all
 * ranks make together are made by the thread that opened the ranks, and by all ranks in the same order.
 */
#ifndef SPTX_RANKS_H
#define SPTX_RANKS_H

#include <pthread.h>
#include <stdint.h>

struct ranks {
    unsigned number, count; /* this rank's number, 0..count-1, and how many there are */
    unsigned local, place;  /* of them on this machine, this one counted; which of those this one is, from 0 */
    unsigned patience;      /* seconds that a rank is waited for; 0: however long it takes */
    int steps;              /* the run's steps have begun */
    unsigned cores;         /* this rank's share of the cores that they may use; 0 alone: all of them */
    int over;               /* all have agreed that they fail: nobody is waited for any more */
    int *codes;             /* [count] exit codes that ranks_agree() collects */
    float *parts;           /* [part_capacity] what ranks_sum() collects */
    uint64_t part_capacity;
    struct group *group;    /* the processes (ranks/group.h); NULL for a rank alone */
};

/* Whether a launcher such as mpirun began this process. */
int ranks_launched(void);

/* Joins the ranks that mpirun began together, which all have come for the same: `what`, "sptx-w2v 1.2.3 train". Where one does
 * not come for half a minute, this process ends with a sentence. Where there are several, only the first one speaks from now on,
 * and where they fail its sentence comes with ranks_close(). -1 after fail(). The caller closes in any case. */
int ranks_open(struct ranks *ranks, const char *what);
void ranks_close(struct ranks *ranks);

static inline unsigned ranks_count(const struct ranks *ranks) {
    return ranks ? ranks->count : 1;
}
/* The rank that owns the run directory, and speaks. */
static inline int ranks_first(const struct ranks *ranks) {
    return !ranks || ranks->number == 0;
}

/* How long a rank is waited for from now on (device.rank_timeout; 0: however long it takes). `steps`: the run's steps begin;
 * until then it is RANKS_START_SECONDS at least, since each rank opens devices and files in its own time. What takes longer
 * than that is ranks_do()'s. Nothing for NULL. */
enum { RANKS_START_SECONDS = 60 };
void ranks_patience(struct ranks *ranks, uint64_t seconds, int steps);

/* What a rank takes for being one of several: messages on their way and the library that sends them. */
enum { RANKS_BYTES = 32 << 20 };

/* ---- who owns which columns ---- */

struct columns {
    uint32_t first, count;
};

/* Of rank `number` of `count`, whole groups of four columns where there are as many; dim >= count. None has
 * more than rank 0. */
struct columns ranks_columns(uint32_t dim, unsigned count, unsigned number);

/* ---- together ---- */

/* Whether all go on: 0 where every rank's `result` is 0. Otherwise all get -1 after fail() with the sentence of the first rank
 * that failed, which is named in it unless it is rank 0. A rank that is not there within `patience` is named and ends all. A rank
 * that fails where the others do not come to agree for some seconds says so itself, and ends them all. */
int ranks_agree(struct ranks *ranks, int result);

/* Work of this rank alone that may take as long as a disk does: on a thread of its own, while the caller's thread says to the
 * other ranks that it is there. */
struct ranks_work {
    int (*work)(void *user);
    void *user;
    void *report; /* the sink of the thread that began it */
    pthread_t thread;
    int begun, done, result; /* done: set last, by the thread */
};
void ranks_begin(struct ranks_work *work, int (*what)(void *user), void *user);

/* As ranks_agree(), where all ranks come at once, with the work of each (NULL: it has none) done: a rank that is not there within
 * `patience`, itself and not its work, is named and ends all. A result above 0 is no failure: all get the largest. */
int ranks_meet(struct ranks *ranks, struct ranks_work *work, int result);
/* Begins the work (NULL: none), and meets. */
int ranks_do(struct ranks *ranks, int (*what)(void *user), void *user);

/* values[count]: the sum over all ranks, the same bits on each. */
int ranks_sum(struct ranks *ranks, float *values, uint64_t count);

/* Every rank's `size` bytes to all of them, in rank order in `all`. */
void ranks_exchange(struct ranks *ranks, const void *own, void *all, uint64_t size);

/* The bits that any of the ranks has set. */
unsigned ranks_any(struct ranks *ranks, unsigned bits);

/* The first rank's bytes to all. */
void ranks_share(struct ranks *ranks, void *bytes, uint64_t size);

/* Every rank's sizes[number] bytes (below 2 GiB in all) to the first one, in rank order in `all`, which the others leave NULL. */
void ranks_gather(struct ranks *ranks, const void *own, void *all, const uint64_t *sizes);

/* sizes[r] bytes for each rank r, in rank order in `own`; come[r] bytes from each, in rank order in `others`. */
void ranks_swap(struct ranks *ranks, const void *own, const uint64_t *sizes, void *others, const uint64_t *come);

/* From one rank to another; nothing for the others, and where both are the same. */
void ranks_pass(struct ranks *ranks, unsigned from, unsigned to, void *bytes, uint64_t size);

#endif
