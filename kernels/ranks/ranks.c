/* ranks: several processes that train one run together (kernels/ranks.h). Four parts, each of which uses those before it:
 *
 *   agreeing   ranks come to the same decision, so that none waits for ever for one that failed or hangs
 *   joining    processes that a launcher started become ranks. MPI_Init() returns when all processes have called it. A process that
 *              does something else (another program, a command that does not use ranks, a shell that has ended) never calls it, and
 *              mpirun notices that only if it ends after the others have started
 *   loading    finds the library that is compiled for this machine's MPI (group.h), and opens the group with it
 *   calls      sums, rows and bytes of all ranks
 *
 * A message has less than 2^31 bytes, and every wait ends after ranks->patience seconds. Nothing here knows what a row is.
 */
#include "group.h"

#include "kernels/ranks.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 3 }; /* seconds that a failing rank waits for the others to agree */

static inline int is_alone(const struct ranks *ranks) {
    return ranks_count(ranks) == 1;
}

/* The number of this process among the ranks, as the launcher says in environment variables. */
struct join_place {
    int launched;           /* 0: no launcher started it */
    unsigned number, count; /* count = 0: the launcher does not say */
    const char *mpi;        /* the MPI to which this launcher usually belongs: "openmpi", "mpich" */
};
struct join_place join_place(void);

/* A thread that ends this process with an error message if join_end() is not called in time. */
struct join {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int begun, ended;
    double seconds;
    char sentence[512];
};

/* Codes that ranks send each other: 0, a failure's exit code, or one of these. */
enum {
    CODE_BUSY = -1,  /* the rank's work is not done yet */
    CODE_RESULT = 16 /* CODE_RESULT + r: the rank's result is r, above 0 */
};
enum {
    LOOK_NANOSECONDS = 100000, /* nanoseconds between two checks whether work is done */
    TURN_SECONDS = 5,          /* seconds within which mpirun ends all other ranks after one has ended with an error, even on a busy machine */
    TURNS = 4
};

/* A failing rank's error message, as it is sent to the others. */
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

/* Ends all ranks with this rank's error message, since the others do not answer. */
static void agree_on_nothing(const struct ranks *ranks, int code) {
    struct last_words words = own_words();
    char name[320];
    name_rank(name, sizeof name, ranks, ranks->number, words.host);
    report_dying(name, words.sentence, "");
    ranks->calls->end(ranks->group, code);
}

/* If late = 1, a call took longer than ranks->patience: ends all ranks, since nothing can continue. The message names the rank that did not
 * answer, and `what` it should have sent. */
static void agree_in_time(struct ranks *ranks, int late, const char *what) {
    if (!late) return;
    unsigned r = ranks->calls->missing(ranks->group, PATIENCE);
    report_clear(); /* this rank may have failed because of the missing one */
    if (r < ranks->count)
        fail("rank %u of %u did not come with its part of %s within %u s (device.rank_timeout%s): its process hangs", r,
             ranks->count, ranks->steps ? what : "the start", ranks->patience, ranks->steps ? "" : ", a minute at least");
    else
        fail("ranks waited for one another for more than %u s (device.rank_timeout)", ranks->patience);
    /* Only one rank prints the error. All that waited know which ranks are missing. The first rank that is not missing prints it; each other one
     * prints it only if the ranks before it have not. A rank that misses nobody was itself stopped for a while: it continues until mpirun ends it. */
    const struct timespec pause = {.tv_nsec = LOOK_NANOSECONDS};
    unsigned turn = !r ? ranks->number - 1 : r < ranks->count ? ranks->number : ranks->number + 1;
    double until = progress_now() + TURN_SECONDS * (turn < TURNS ? turn : TURNS);
    while (progress_now() < until) nanosleep(&pause, NULL); /* mpirun's signals cut this short */
    agree_on_nothing(ranks, 1);
}

/* Makes every rank fail with the error message of rank `from`, which has failed. Returns -1. */
static int agree_on_failure(struct ranks *ranks, unsigned from) {
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

/* Sends every rank's code to all. Returns the first rank that failed, or `count`. seconds: how long to wait for the others (0: no limit); a rank
 * that fails waits only PATIENCE. */
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

/* Combines the results of the caller's thread and the work's thread: a failure, otherwise the larger one. */
static int both(const struct ranks_work *work, int result) {
    if (!work || result < 0 || !is_done(work)) return result;
    return work->result < 0 || work->result > result ? work->result : result;
}

static int join(struct ranks_work *work, int result) {
    if (work && work->begun) pthread_join(work->thread, NULL);
    return both(work, result);
}

/* Asks all ranks once for their state. *busy: 1 if any is still working. */
static unsigned look(struct ranks *ranks, const struct ranks_work *work, int result, int *busy) {
    double own = ranks->patience ? ranks->patience / 4.0 : 1; /* how often, in seconds, this rank tells the others that it is alive */
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

/* How many seconds mpirun may need from starting the first process to starting the last, since programs may be read over a network, and cores be
 * shared. */
enum { JOIN_SECONDS = 30, JOIN_SECONDS_A_RANK = 1 };
static const double speaks_later = 2; /* how many seconds longer each rank waits than the one before it, so that the first one has printed its
                                       * message when mpirun ends the others */

/* ---- what launchers put into the environment ---- */

/* Environment variables of Open MPI, of MPICH and other MPIs that use its names, and of PMIx, which Slurm uses. */
static const struct {
    const char *number, *count, *mpi;
} launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "openmpi"}, {"PMI_RANK", "PMI_SIZE", "mpich"}, {"PMIX_RANK", NULL, "openmpi"}};

static unsigned number_of(const char *name) {
    const char *text = name ? getenv(name) : NULL;
    long number = text ? atol(text) : 0;
    return number > 0 ? (unsigned)number : 0;
}

struct join_place join_place(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (getenv(launchers[i].count ? launchers[i].count : launchers[i].number))
            return (struct join_place){1, number_of(launchers[i].number), number_of(launchers[i].count), launchers[i].mpi};
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

static void join_begin(struct join *join, const char *what) {
    struct join_place place = join_place();
    char host[256] = "", rank[64] = "a rank";
    uint64_t seconds = JOIN_SECONDS + (uint64_t)place.count * JOIN_SECONDS_A_RANK;
    *join = (struct join){.seconds = (double)seconds + speaks_later * place.number};
    if (!place.launched || place.count == 1) return;
    if (gethostname(host, sizeof host - 1)) host[0] = 0;
    if (place.count) snprintf(rank, sizeof rank, "rank %u of %u", place.number, place.count);
    snprintf(join->sentence, sizeof join->sentence,
             "%s, on %s: not all of the processes that mpirun began have joined within %" PRIu64 " s: it must begin '%s' as each of them", rank,
             *host ? host : "a machine without a name", seconds, what);
    pthread_mutex_init(&join->lock, NULL);
    pthread_cond_init(&join->changed, NULL);
    join->begun = !pthread_create(&join->thread, NULL, watch, join);
}

static void join_end(struct join *join) {
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

/* Checks that all ranks run the same command. Returns 0, or -1 after fail() on every rank. */
static int join_alike(struct ranks *ranks, const char *what) {
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

/* Finds the library that is compiled for this machine's MPI, and opens the group with it. */

/* The MPIs for which the library may be compiled ("mpi": any other one), with the file names of their own libraries. */
enum { MPIS = 3, NAMES = 2 };
static const struct {
    const char *mpi, *library[NAMES];
} mpis[MPIS] = {{"openmpi", {"libmpi.so.40"}}, {"mpich", {"libmpich.so.12", "libmpi.so.12"}}, {"mpi", {"libmpi.so"}}};

struct search {
    const char *directory; /* the program's directory */
    int met;               /* 1: the directory contains a library for some MPI */
    char why[512];         /* why the first library that was found could not be loaded */
};

/* RTLD_GLOBAL, because MPI loads further libraries, which look for MPI's symbols in the global scope. */
static void *load_globally(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/* Loads the library for an MPI, which loads the MPI if it was linked with it. For a library that was not (the wheel's), the MPI is loaded first. */
static void *load_with_mpi(const char *path, int number) {
    void *library = load_globally(path);
    for (int i = 0; !library && i < NAMES && mpis[number].library[i]; i++)
        if (load_globally(mpis[number].library[i])) library = load_globally(path);
    return library;
}

static const struct group_ops *load(struct search *search, const char *folder, int number) {
    char path[4352];
    snprintf(path, sizeof path, "%s%s/libsptx_%s.so", search->directory, folder, mpis[number].mpi);
    if (access(path, F_OK)) return NULL;
    void *library = load_with_mpi(path, number);
    const void *calls = library ? dlsym(library, GROUP_SYMBOL) : NULL;
    if (!calls && !search->met) snprintf(search->why, sizeof search->why, "%s", dlerror());
    search->met = 1;
    return calls;
}

static const struct group_ops *load_anywhere(struct search *search, int number) {
    const struct group_ops *calls = load(search, "", number);
    return calls ? calls : load(search, "/../lib/sptx", number);
}

/* Returns the functions for the first MPI that can be loaded, trying the launcher's own one first; NULL if none can be loaded. */
static const struct group_ops *find(struct search *search, const char *launcher) {
    const struct group_ops *calls = NULL;
    for (int i = 0; !calls && i < MPIS; i++)
        if (!strcmp(mpis[i].mpi, launcher)) calls = load_anywhere(search, i);
    for (int i = 0; !calls && i < MPIS; i++)
        if (strcmp(mpis[i].mpi, launcher)) calls = load_anywhere(search, i);
    return calls;
}

static int refuse(const struct search *search, unsigned count) {
    if (!search->met)
        return fail("mpirun began %u of these processes, and this program was built without MPI: scripts/setup.sh installs one "
                    "(libopenmpi-dev), and make then finds it",
                    count);
    return fail("mpirun began %u of these processes, and MPI cannot be loaded: %s", count, search->why);
}

static int open_over(struct group **group, const struct group_ops *calls, const struct join_place *launched, struct group_place *place) {
    const char *why = calls->open(group, place);
    if (why) return fail("%s", why);
    if (launched->count > 1 && place->count == 1)
        return fail("mpirun began %u of these processes, and the MPI that was loaded knows of one: it is not mpirun's own "
                    "(make builds for Open MPI and MPICH where it finds both)",
                    launched->count);
    return 0;
}

int group_open(struct group **group, const struct group_ops **calls, struct group_place *place) {
    struct join_place launched = join_place();
    *group = NULL;
    *calls = NULL;
    *place = (struct group_place){.count = 1, .local = 1};
    if (!launched.launched || launched.count == 1) return 0;
    OWNED char *program = path_of_program(), *directory = program ? path_parent(program) : NULL;
    struct search search = {.directory = directory};
    if (directory) *calls = find(&search, launched.mpi);
    int result = !directory       ? -1
                 : *calls         ? open_over(group, *calls, &launched, place)
                 : launched.count ? refuse(&search, launched.count)
                                  : 0; /* Slurm's launcher also starts programs that are not ranks */
    return result;
}

enum { SUMMED_AT_ONCE = 1 << 20 }; /* floats of one message; ranks_sum() has a buffer of this size */

/* ---- joining and leaving ---- */

int ranks_launched(void) {
    return join_place().launched;
}

static int open_ranks(struct ranks *ranks, const char *what) {
    struct group_place place;
    if (group_open(&ranks->group, &ranks->calls, &place)) return -1;
    ranks->number = place.number;
    ranks->count = place.count;
    ranks->local = place.local;
    ranks->place = place.place;
    ranks->cores = place.cores;
    if (is_alone(ranks)) return 0;
    if (!ranks_first(ranks)) report_mute();
    ranks->codes = mem_alloc(place.count, sizeof *ranks->codes, "ranks");
    if (!ranks->codes) agree_on_nothing(ranks, 1); /* without memory this rank cannot even agree */
    return join_alike(ranks, what);
}

int ranks_open(struct ranks *ranks, const char *what) {
    struct join join;
    *ranks = (struct ranks){.count = 1, .local = 1, .patience = RANKS_START_SECONDS};
    join_begin(&join, what);
    int result = open_ranks(ranks, what);
    join_end(&join);
    return result;
}

void ranks_patience(struct ranks *ranks, uint64_t seconds, int steps) {
    if (!ranks) return;
    ranks->steps = steps;
    ranks->patience = (unsigned)(seconds && !steps && seconds < RANKS_START_SECONDS ? RANKS_START_SECONDS : seconds);
}

void ranks_close(struct ranks *ranks) {
    if (ranks->over) { /* when one rank has ended with an error, mpirun ends all others, so the first rank prints its message before any ends */
        unsigned none;
        if (ranks_first(ranks)) report_last();
        report_mute();
        if (ranks->calls->any(ranks->group, 0, &none, ranks->patience)) ranks->calls->end(ranks->group, 1);
    }
    if (ranks->group) ranks->calls->close(ranks->group);
    mem_free(ranks->codes, ranks->parts);
    *ranks = (struct ranks){.count = 1, .local = 1};
}

/* ---- sums ---- */

static const char step[] = "a step"; /* for messages: the purpose of the values that a late rank should have sent */

/* Computes the offset and the size, in bytes, of each rank's share of `count` floats. */
static void share_out(const struct ranks *ranks, uint64_t count, int *counts, int *at) {
    for (unsigned r = 0; r < ranks->count; r++) {
        uint64_t first, end;
        pool_share(count, r, ranks->count, &first, &end);
        at[r] = (int)(first * sizeof(float));
        counts[r] = (int)((end - first) * sizeof(float));
        INVARIANT(end * sizeof(float) <= INT32_MAX); /* a message's offsets are MPI's ints */
    }
}

/* Each rank sums its share of the values and sends the sums to all. If every rank sent all values to all, three ranks would send half as much
 * again, eight ranks four times as much. */
static void sum_piece(struct ranks *ranks, float *values, uint64_t count) {
    int *counts = ranks->calls->counts(ranks->group), *at = counts + ranks->count, *come = at + ranks->count, *where = come + ranks->count;
    share_out(ranks, count, counts, at);
    int own = counts[ranks->number];
    for (unsigned r = 0; r < ranks->count; r++) come[r] = own, where[r] = (int)r * own;
    float *sum = values + (uint64_t)at[ranks->number] / sizeof(float);
    uint64_t floats = (uint64_t)own / sizeof(float);
    agree_in_time(ranks, ranks->calls->swap(ranks->group, values, counts, at, ranks->parts, come, where, ranks->patience), step);
    memcpy(sum, ranks->parts, (uint64_t)own);
    for (unsigned r = 1; r < ranks->count; r++) {
        const float *part = ranks->parts + r * floats;
        for (uint64_t i = 0; i < floats; i++) sum[i] += part[i];
    }
    agree_in_time(ranks, ranks->calls->collect(ranks->group, values, counts, at, ranks->patience), step);
}

int ranks_sum(struct ranks *ranks, float *values, uint64_t count) {
    if (is_alone(ranks) || !count) return 0;
    uint64_t most = SUMMED_AT_ONCE + ranks->count; /* shares differ in size */
    if (mem_reserve(&ranks->parts, &ranks->part_capacity, most, sizeof *ranks->parts, "sums over ranks")) return -1;
    for (uint64_t first = 0; first < count; first += SUMMED_AT_ONCE)
        sum_piece(ranks, values + first, count - first < SUMMED_AT_ONCE ? count - first : SUMMED_AT_ONCE);
    return 0;
}

/* ---- rows and bytes ---- */

void ranks_exchange(struct ranks *ranks, const void *own, void *all, uint64_t size) {
    uint64_t sizes[ranks_count(ranks)];
    for (unsigned r = 0; r < ranks_count(ranks); r++) sizes[r] = size;
    ranks_gather(ranks, own, ranks_first(ranks) ? all : NULL, sizes);
    ranks_share(ranks, all, size * ranks_count(ranks));
}

unsigned ranks_any(struct ranks *ranks, unsigned bits) {
    unsigned all = bits;
    if (!is_alone(ranks)) agree_in_time(ranks, ranks->calls->any(ranks->group, bits, &all, ranks->patience), step);
    return all;
}

void ranks_share(struct ranks *ranks, void *bytes, uint64_t size) {
    if (!is_alone(ranks)) agree_in_time(ranks, ranks->calls->share(ranks->group, 0, bytes, size, ranks->patience), step);
}

/* Converts sizes to MPI's counts and offsets: the ranks' shares follow each other without gaps. */
static void line_up(const struct ranks *ranks, const uint64_t *sizes, int *counts, int *at) {
    int end = 0;
    for (unsigned r = 0; r < ranks->count; r++) {
        counts[r] = (int)sizes[r];
        at[r] = end;
        end += counts[r];
    }
}

void ranks_gather(struct ranks *ranks, const void *own, void *all, const uint64_t *sizes) {
    if (is_alone(ranks)) {
        memcpy(all, own, sizes[0]);
        return;
    }
    int *counts = ranks->calls->counts(ranks->group), *at = counts + ranks->count;
    line_up(ranks, sizes, counts, at);
    agree_in_time(ranks, ranks->calls->gather(ranks->group, own, all, counts, at, ranks->patience), step);
}

void ranks_swap(struct ranks *ranks, const void *own, const uint64_t *sizes, void *others, const uint64_t *come) {
    if (is_alone(ranks)) {
        memcpy(others, own, sizes[0]);
        return;
    }
    int *counts = ranks->calls->counts(ranks->group), *at = counts + ranks->count, *counts_come = at + ranks->count,
        *where = counts_come + ranks->count;
    line_up(ranks, sizes, counts, at);
    line_up(ranks, come, counts_come, where);
    int late = ranks->calls->swap(ranks->group, own, counts, at, others, counts_come, where, ranks->patience);
    agree_in_time(ranks, late, "a step or a checkpoint");
}

void ranks_pass(struct ranks *ranks, unsigned from, unsigned to, void *bytes, uint64_t size) {
    if (is_alone(ranks) || from == to || (ranks->number != from && ranks->number != to)) return;
    agree_in_time(ranks, ranks->calls->pass(ranks->group, from, to, bytes, size, ranks->patience), "a step or a checkpoint");
}
