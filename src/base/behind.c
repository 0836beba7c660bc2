#include "behind.h"

#include "numbers.h"
#include "report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

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

/* Starts the thread while all signals are blocked. It inherits the block, so signals reach only the threads that handle them. */
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
