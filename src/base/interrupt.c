#include "interrupt.h"

#include "report.h"

#include <stddef.h>

static const int numbers[INTERRUPTS] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t asked;
static atomic_int ends_work; /* argument of interrupt_ends_work() */
static _Thread_local interrupt_flag *used; /* this thread's flag; NULL: the thread listens to signals */

static void on_signal(int number) {
    asked = 1;
    signal(number, SIG_DFL);
}

void interrupt_watch(struct interrupt *watch) {
    struct sigaction action = {.sa_handler = on_signal};
    asked = 0;
    for (int i = 0; i < INTERRUPTS; i++) {
        sigaction(numbers[i], &action, &watch->before[i]);
        if (watch->before[i].sa_handler == SIG_IGN) sigaction(numbers[i], &watch->before[i], NULL);
    }
}

void interrupt_end(const struct interrupt *watch) {
    for (int i = 0; i < INTERRUPTS; i++) sigaction(numbers[i], &watch->before[i], NULL);
    asked = 0;
}

int interrupt_asked(void) {
    return used ? *used : asked;
}

interrupt_flag *interrupt_use(interrupt_flag *flag) {
    interrupt_flag *before = used;
    used = flag;
    return before;
}

interrupt_flag *interrupt_used(void) {
    return used;
}

int interrupt_ends_work(int ends) {
    return atomic_exchange(&ends_work, ends);
}

int interrupt_check(void) {
    if (used) return *used ? fail_stopped("stopped before training has begun: nothing new is written") : 0;
    return asked && ends_work ? fail_stopped("stopped by a signal before training has begun: nothing new is written") : 0;
}
