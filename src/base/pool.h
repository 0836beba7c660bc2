/* pool: threads that wait for jobs, so that a step of a millisecond does not have to start them.
 *
 * A job is a function that every worker calls once, with its number; the caller is worker 0. The job divides its work itself, in
 * fixed ranges (pool_share) or by a shared counter (pool_take). Results must not depend on which worker does what.
 */
#ifndef SPTX_POOL_H
#define SPTX_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct pool;

enum { POOL_THREADS_MOST = 4096 };

/* Bytes that a worker needs besides its job's memory: the used pages of its stack and its allocator's bookkeeping. */
enum { POOL_THREAD_BYTES = 160 << 10 };

/* A job: every worker calls it once, with its number. Returns 0, or -1 after fail(). */
typedef int pool_job(void *context, unsigned worker);

/* Opens a pool of `threads` workers, one of which is the caller; 0: one worker for each core that this process may use. Returns
 * NULL after fail(). */
struct pool *pool_open(unsigned threads);
void pool_close(struct pool *pool);
unsigned pool_threads(const struct pool *pool);

/* Runs `job` on all workers and waits until all have finished. Returns 0, or -1 if it returned -1 on any worker. Without a pool
 * (NULL) the caller is the only worker. */
int pool_run(struct pool *pool, pool_job *job, void *context);

/* Splits `count` items evenly: stores the range [*first, *end) of worker `worker` of `workers`. */
void pool_share(uint64_t count, unsigned worker, unsigned workers, uint64_t *first, uint64_t *end);

/* Takes the next items, at most `grain` of `count`, from a counter that all workers of a job share and that starts at 0. Returns
 * 1 with their range [*first, *end), or 0 if no items are left. */
int pool_take(_Atomic uint64_t *counter, uint64_t count, uint64_t grain, uint64_t *first, uint64_t *end);

/* Returns the number of cores that this process may use. */
unsigned pool_cores(void);

/* behind: work that a thread does while its caller goes on. The work's messages are kept until the caller asks how the work
 * ended. */

enum { BEHIND_WARNING = 1024 };

struct behind {
    int (*work)(void *user); /* returns 0, or another number after fail() */
    void *user;
    struct report *report; /* receives the work's messages; NULL: no work was begun */
    char warning[BEHIND_WARNING]; /* the work's first warning; "": none */
    pthread_t thread;
    pthread_mutex_t joining;
    int joined, result;
    int done; /* 1: the work is done. Atomic */
};

/* Begins the work on a thread of its own, which receives no signals. Returns 0, or -1 after fail(). */
int behind_begin(struct behind *behind, int (*work)(void *user), void *user);
int behind_is_done(const struct behind *behind); /* any thread may ask */

/* behind_wait() waits until the work is done. behind_end() waits, too; it returns the work's result, and repeats the work's warning
 * and the sentence of its failure in the calling thread. Any thread may call both functions, more than once. */
void behind_wait(struct behind *behind);
int behind_end(struct behind *behind);
const char *behind_sentence(struct behind *behind, int *code); /* waits; returns the sentence of the failure, "" if none, and sets
                                                               * *code to its exit code (report.h) */

void behind_close(struct behind *behind); /* waits, then frees; may be called on a struct of zeros */

#endif
