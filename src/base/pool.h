/* pool: threads that wait for jobs, so that short work need not start them.
 *
 * A job is a function that every worker calls once, with its number; the caller is worker 0. The job itself divides its work, into fixed ranges
 * (pool_share) or by a shared counter (pool_take). Results must not depend on which worker does what.
 */
#ifndef SPTX_POOL_H
#define SPTX_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct pool;

enum { POOL_THREADS_MOST = 4096 };

/* Bytes that a worker needs besides its job's memory: used pages of its stack, and data of the allocator. */
enum { POOL_THREAD_BYTES = 160 << 10 };

/* A job: every worker calls it once, with its number. Returns 0, or -1 after fail(). */
typedef int pool_job(void *context, unsigned worker);

/* Opens a pool of `threads` workers, of which the caller is one; 0: one for each core that this process may use. Returns NULL after fail(). */
struct pool *pool_open(unsigned threads);
void pool_close(struct pool *pool);
/* Closes a pool that a local pointer declared ENDED_BY(pool_end) points to. */
static inline void pool_end(struct pool **pool) {
    pool_close(*pool);
}
unsigned pool_threads(const struct pool *pool);

/* Runs `job` on all workers and waits for all. Returns 0, or -1 if a worker returned -1. pool = NULL: the caller is the only worker. */
int pool_run(struct pool *pool, pool_job *job, void *context);

/* Divides `count` items evenly: stores the range first .. end - 1 for worker `worker` of `workers`. */
void pool_share(uint64_t count, unsigned worker, unsigned workers, uint64_t *first, uint64_t *end);

/* Assigns the next items of `count`, at most `grain`, by a counter that a job's workers share and that starts at 0. Returns 1 and the range first
 * .. end - 1, or 0 if no items are left. */
int pool_take(_Atomic uint64_t *counter, uint64_t count, uint64_t grain, uint64_t *first, uint64_t *end);

/* Returns the number of cores that this process may use. */
unsigned pool_cores(void);

/* behind: work that runs in its own thread while the caller continues. Its messages are kept until the caller asks how it ended. */

enum { BEHIND_WARNING = 1024 };

struct behind {
    int (*work)(void *user); /* returns 0, or another number after fail() */
    void *user;
    struct report *report; /* where the work's messages are stored; NULL: no work has begun */
    char warning[BEHIND_WARNING]; /* the work's first warning; "": none */
    pthread_t thread;
    pthread_mutex_t joining;
    int joined, result;
    int done; /* 1: the work is done. Atomic */
};

/* Begins the work in its own thread, which receives no signals. Returns 0, or -1 after fail(). */
int behind_begin(struct behind *behind, int (*work)(void *user), void *user);
int behind_is_done(const struct behind *behind); /* any thread may ask */

/* behind_wait() waits until the work is done. behind_end() waits, too, returns the work's result, and repeats its warning and error message in the
 * calling thread. Any thread may call both, repeatedly. */
void behind_wait(struct behind *behind);
int behind_end(struct behind *behind);
const char *behind_sentence(struct behind *behind, int *code); /* waits; returns the work's error message, "" if it succeeded, and its exit code in
                                                                * *code (report.h) */

void behind_close(struct behind *behind); /* waits, then frees; may be called on a struct of zeros */

#endif
