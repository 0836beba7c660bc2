#define _GNU_SOURCE
#include "pool.h"

#include "interrupt.h"
#include "memory.h"
#include "report.h"
#include "text.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pool {
    unsigned threads;
    pthread_t *handles; /* [threads] worker 0 is the caller, so [0] is unused */
    pthread_mutex_t lock;
    pthread_cond_t start, done;
    pool_job *job;
    void *context;
    struct report *report;     /* sink of the thread that called pool_run() */
    interrupt_flag *interrupt; /* flag of the thread that called pool_run() */
    uint64_t round;   /* number of jobs so far; workers start when it changes */
    unsigned running; /* number of workers that are still working on the current job */
    int failed, closing;
};

struct worker {
    struct pool *pool;
    unsigned number;
};

static void *run_jobs(void *argument) {
    struct worker self = *(struct worker *)argument;
    struct pool *pool = self.pool;
    uint64_t seen = 0;
    free(argument);
    numbers_enter();
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->round == seen && !pool->closing) pthread_cond_wait(&pool->start, &pool->lock);
        if (pool->closing) break;
        seen = pool->round;
        pool_job *job = pool->job;
        void *context = pool->context;
        report_use(pool->report);
        interrupt_use(pool->interrupt);
        pthread_mutex_unlock(&pool->lock);
        int result = job(context, self.number);
        pthread_mutex_lock(&pool->lock);
        if (result) pool->failed = 1;
        if (--pool->running == 0) pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct pool *pool_open(unsigned threads) {
    struct pool *pool = mem_zalloc(1, sizeof *pool, "the thread pool");
    if (!pool) return NULL;
    unsigned wanted = threads ? threads : pool_cores();
    pool->handles = mem_zalloc(wanted, sizeof *pool->handles, "the thread pool");
    if (!pool->handles) {
        free(pool);
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->start, NULL);
    pthread_cond_init(&pool->done, NULL);
    for (pool->threads = 1; pool->threads < wanted; pool->threads++) {
        struct worker *worker = mem_alloc(1, sizeof *worker, "a thread");
        if (!worker) break;
        *worker = (struct worker){pool, pool->threads};
        int error = pthread_create(&pool->handles[pool->threads], NULL, run_jobs, worker);
        if (error) {
            free(worker);
            fail("thread %u of %u cannot be started: %s; lower device.threads", pool->threads + 1, wanted, strerror(error));
            break;
        }
    }
    if (pool->threads < wanted) {
        pool_close(pool);
        return NULL;
    }
    return pool;
}

void pool_close(struct pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = 1;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 1; i < pool->threads; i++) pthread_join(pool->handles[i], NULL);
    pthread_cond_destroy(&pool->start);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool->handles, pool);
}

unsigned pool_threads(const struct pool *pool) {
    return pool ? pool->threads : 1;
}

int pool_run(struct pool *pool, pool_job *job, void *context) {
    if (!pool) return job(context, 0);
    pthread_mutex_lock(&pool->lock);
    INVARIANT(!pool->running); /* a job must not start another job in its own pool */
    pool->job = job;
    pool->context = context;
    pool->report = report_current();
    pool->interrupt = interrupt_used();
    pool->failed = 0;
    pool->running = pool->threads - 1;
    pool->round++;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->lock);
    int result = job(context, 0);
    pthread_mutex_lock(&pool->lock);
    while (pool->running) pthread_cond_wait(&pool->done, &pool->lock);
    if (pool->failed) result = -1;
    pthread_mutex_unlock(&pool->lock);
    return result;
}

void pool_share(uint64_t count, unsigned worker, unsigned workers, uint64_t *first, uint64_t *end) {
    uint64_t each = count / workers, left = count % workers;
    *first = each * worker + (worker < left ? worker : left);
    *end = *first + each + (worker < left);
    INVARIANT(worker < workers && *first <= *end && *end <= count);
}

int pool_take(_Atomic uint64_t *counter, uint64_t count, uint64_t grain, uint64_t *first, uint64_t *end) {
    uint64_t at = atomic_fetch_add_explicit(counter, grain, memory_order_relaxed);
    if (at >= count) return 0;
    *first = at;
    *end = count - at < grain ? count : at + grain;
    return 1;
}

unsigned pool_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    int cores = CPU_COUNT(&set);
    return cores > 0 ? (unsigned)cores : 1;
}

static void keep_warning(void *user, const char *text) {
    struct behind *behind = user;
    if (!*behind->warning) snprintf(behind->warning, sizeof behind->warning, "%s", text);
}

static void *run(void *context) {
    struct behind *behind = context;
    numbers_enter();
    report_use(behind->report);
    behind->result = behind->work(behind->user);
    __atomic_store_n(&behind->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Starts the thread with all signals blocked, so that they reach only threads that handle them. */
static int start(struct behind *behind) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&behind->thread, NULL, run, behind);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int behind_begin(struct behind *behind, int (*work)(void *user), void *user) {
    *behind = (struct behind){.work = work, .user = user};
    behind->report = report_open(keep_warning, behind);
    if (!behind->report) return fail("not enough memory for a thread");
    pthread_mutex_init(&behind->joining, NULL);
    int error = start(behind);
    if (!error) return 0;
    behind->joined = 1;
    behind_close(behind);
    return fail("a thread cannot be started: %s", strerror(error));
}

int behind_is_done(const struct behind *behind) {
    return __atomic_load_n(&behind->done, __ATOMIC_ACQUIRE);
}

void behind_wait(struct behind *behind) {
    pthread_mutex_lock(&behind->joining);
    if (!behind->joined) pthread_join(behind->thread, NULL);
    behind->joined = 1;
    pthread_mutex_unlock(&behind->joining);
}

const char *behind_sentence(struct behind *behind, int *code) {
    behind_wait(behind);
    struct report *own = report_use(behind->report);
    const char *sentence = report_sentence();
    *code = report_exit_code();
    report_use(own);
    return sentence;
}

int behind_end(struct behind *behind) {
    int code;
    const char *sentence = behind_sentence(behind, &code);
    if (*behind->warning) warn("%s", behind->warning);
    behind->warning[0] = 0;
    if (!behind->result) return 0;
    if (code == 2) fail_usage("%s", sentence);
    else if (code == REPORT_STOPPED) fail_stopped("%s", sentence);
    else fail("%s", sentence);
    return behind->result;
}

void behind_close(struct behind *behind) {
    if (!behind->report) return;
    behind_wait(behind);
    pthread_mutex_destroy(&behind->joining);
    report_close(behind->report);
    behind->report = NULL;
}
