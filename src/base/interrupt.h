/* interrupt: Ctrl-C, SIGTERM and a terminal that is gone (SIGHUP) as a question that long work asks itself between two
 * pieces, so that it can end in order. The second signal kills, in case the first takes too long for the person. What was
 * ignored before (nohup) stays so. A process has one handler of a signal: this is for programs, and who does not watch is
 * never asked to stop.
 *
 * The library leaves its caller's signals alone. A caller asks by a flag instead: the thread that works uses it, and with that
 * thread the workers of the pools that it runs (pool.h).
 */
#ifndef SPTX_INTERRUPT_H
#define SPTX_INTERRUPT_H

#include <signal.h>
#include <stdatomic.h>

enum { INTERRUPTS = 3 };

struct interrupt {
    struct sigaction before[INTERRUPTS]; /* what the signals did */
};

void interrupt_watch(struct interrupt *watch);
void interrupt_end(const struct interrupt *watch); /* the signals do again what they did */

/* 1 where a signal has asked to stop since interrupt_watch(); of a thread that uses a flag, where that flag is set. */
int interrupt_asked(void);

typedef const _Atomic int interrupt_flag; /* 1: stop. It is set by another thread or in a signal's handler */

/* This thread asks by the flag from now on, NULL: by signals. Returns the one that it used before. */
interrupt_flag *interrupt_use(interrupt_flag *flag);
interrupt_flag *interrupt_used(void);

/* For long work that has nothing to put in order, which a signal simply ends in a program: -1 after fail_stopped() where
 * this thread's flag is set, otherwise 0. */
int interrupt_check(void);

#endif
