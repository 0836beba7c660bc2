#include "agree.h"

#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "group.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The codes that ranks send each other: 0, the exit code of a failure, or one of these. */
enum {
    CODE_BUSY = -1,  /* the rank's work is not done yet */
    CODE_RESULT = 16 /* RESULT + r: the rank's result is r, above 0 */
};
enum {
    LOOK_NANOSECONDS = 100000, /* nanoseconds between two checks whether work is done */
    TURN_SECONDS = 5,          /* seconds after the end of one rank with an error, within which mpirun ends all other ranks, even
                                * on a busy machine */
    TURNS = 4
};

/* The error message of a failing rank, as the others receive it. */
struct last_words {
    char sentence[3072], host[256];
};

static struct last_words own_words(void) {
    struct last_words words = {{0}, {0}};
    snprintf(words.sentence, sizeof words.sentence, "%s", report_sentence());
    if (gethostname(words.host, sizeof words.host - 1)) words.host[0] = 0;
    return words;
}

static void name_rank(char *text, size_t capacity, const struct ranks *ranks, unsigned number, const char *host) {
    snprintf(text, capacity, "rank %u of %u, on %s: ", number, ranks->count, *host ? host : "a machine without a name");
}

void agree_on_nothing(const struct ranks *ranks, int code) {
    struct last_words words = own_words();
    char name[320];
    name_rank(name, sizeof name, ranks, ranks->number, words.host);
    report_dying(name, words.sentence, "");
    ranks->calls->end(ranks->group, code);
}

/* Waits so that only one rank prints the error. All ranks that waited know which ranks are missing. The first rank that is not
 * missing prints the error; each of the others prints it only if the ranks before it have not. A rank for which no rank is
 * missing was itself stopped for a while: it continues until mpirun ends it. */
static void wait_for_turn(const struct ranks *ranks, unsigned missing) {
    const struct timespec pause = {.tv_nsec = LOOK_NANOSECONDS};
    unsigned turn = !missing ? ranks->number - 1 : missing < ranks->count ? ranks->number : ranks->number + 1;
    double until = progress_now() + TURN_SECONDS * (turn < TURNS ? turn : TURNS);
    while (progress_now() < until) nanosleep(&pause, NULL); /* mpirun's signals cut this short */
}

void agree_in_time(struct ranks *ranks, int late, const char *what) {
    if (!late) return;
    unsigned r = ranks->calls->missing(ranks->group, PATIENCE);
    report_clear(); /* this rank may have failed too, because of the missing one */
    if (r < ranks->count)
        fail("rank %u of %u did not come with its part of %s within %u s (device.rank_timeout%s): its process hangs", r,
             ranks->count, ranks->steps ? what : "the start", ranks->patience, ranks->steps ? "" : ", a minute at least");
    else
        fail("ranks waited for one another for more than %u s (device.rank_timeout)", ranks->patience);
    wait_for_turn(ranks, r);
    agree_on_nothing(ranks, 1);
}

/* Makes all ranks fail with the error message of rank `from`. The first rank prints it, after the number of
 * the rank that failed; without a number if the first rank itself failed. */
int agree_on_failure(struct ranks *ranks, unsigned from) {
    struct last_words words = own_words();
    char name[320] = "";
    int late = ranks->calls->share(ranks->group, from, &words, sizeof words, ranks->patience);
    agree_in_time(ranks, late, "a failure");
    if (from) name_rank(name, sizeof name, ranks, from, words.host);
    report_clear();
    ranks->over = 1;
    return ranks->codes[from] == 2 ? fail_usage("%s%s", name, words.sentence) : fail("%s%s", name, words.sentence);
}

/* ---- agreeing ---- */

static int code_of(int result) {
    return result > 0 ? CODE_RESULT + result : !result ? 0 : report_exit_code() ? report_exit_code() : 1;
}

static int is_failure(int code) {
    return code > 0 && code < CODE_RESULT;
}

/* Sends every rank's code to all ranks. Returns the first rank that failed, or count. seconds: how long to wait for the others
 * (0: for ever); a rank that fails waits only PATIENCE. */
static unsigned tell(struct ranks *ranks, int code, double seconds) {
    int late = ranks->calls->tell(ranks->group, code, ranks->codes, is_failure(code) ? PATIENCE : seconds);
    if (late && is_failure(code)) agree_on_nothing(ranks, code);
    agree_in_time(ranks, late, "a step or a checkpoint");
    unsigned r = 0;
    while (r < ranks->count && !is_failure(ranks->codes[r])) r++;
    return r;
}

int ranks_agree(struct ranks *ranks, int result) {
    if (is_alone(ranks)) return result;
    if (ranks->over) return -1;
    unsigned failed = tell(ranks, code_of(result), ranks->patience);
    return failed < ranks->count ? agree_on_failure(ranks, failed) : 0;
}

/* ---- work that may take long ---- */

static void *run(void *context) {
    struct ranks_work *work = context;
    numbers_enter();
    report_use(work->report);
    work->result = work->work(work->user);
    __atomic_store_n(&work->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

void ranks_begin(struct ranks_work *work, int (*what)(void *user), void *user) {
    *work = (struct ranks_work){.work = what, .user = user, .report = report_current()};
    int error = pthread_create(&work->thread, NULL, run, work);
    work->begun = !error;
    if (!error) return;
    work->result = fail("a thread for writing cannot be started: %s", strerror(error));
    work->done = 1;
}

static int is_done(const struct ranks_work *work) {
    return !work || __atomic_load_n(&work->done, __ATOMIC_ACQUIRE);
}

static void await(const struct ranks_work *work, double seconds) {
    const struct timespec pause = {.tv_nsec = LOOK_NANOSECONDS};
    double began = progress_now();
    while (!is_done(work) && progress_now() - began < seconds) nanosleep(&pause, NULL);
}

/* Combines the results of the caller's thread and of the work's thread: a failure, or the larger result. */
static int both(const struct ranks_work *work, int result) {
    if (!work || result < 0 || !is_done(work)) return result;
    return work->result < 0 || work->result > result ? work->result : result;
}

static int join(struct ranks_work *work, int result) {
    if (work && work->begun) pthread_join(work->thread, NULL);
    return both(work, result);
}

/* Asks all ranks once for their state. *busy: 1 if one of them is still working. */
static unsigned look(struct ranks *ranks, const struct ranks_work *work, int result, int *busy) {
    double own = ranks->patience ? ranks->patience / 4.0 : 1; /* how often, in seconds, this rank tells the others that it is
                                                               * alive */
    if (result >= 0) await(work, own < 1 ? own : 1);
    int done = result < 0 || is_done(work);
    unsigned failed = tell(ranks, done ? code_of(both(work, result)) : CODE_BUSY, ranks->patience);
    *busy = 0;
    for (unsigned r = 0; r < ranks->count; r++) *busy |= ranks->codes[r] == CODE_BUSY;
    return failed;
}

int ranks_meet(struct ranks *ranks, struct ranks_work *work, int result) {
    int busy = !is_alone(ranks) && !ranks->over;
    unsigned failed = ranks_count(ranks);
    while (busy && failed == ranks->count) failed = look(ranks, work, result, &busy);
    result = join(work, result);
    if (is_alone(ranks)) return result;
    if (ranks->over) return -1;
    if (failed < ranks->count) return agree_on_failure(ranks, failed);
    for (unsigned r = 0; r < ranks->count; r++)
        if (ranks->codes[r] - CODE_RESULT > result) result = ranks->codes[r] - CODE_RESULT;
    return result;
}

int ranks_do(struct ranks *ranks, int (*what)(void *user), void *user) {
    struct ranks_work work;
    if (is_alone(ranks)) return what ? what(user) : 0;
    if (ranks->over) return -1;
    if (what) ranks_begin(&work, what, user);
    return ranks_meet(ranks, what ? &work : NULL, 0);
}
