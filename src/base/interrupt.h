/* interrupt: lets long work stop in an orderly way after Ctrl-C, SIGTERM or the closing of its terminal (SIGHUP). The first signal only sets a flag,
 * which the work checks from time to time; a second one ends the process at once. Signals that were ignored before (nohup) stay ignored. A process
 * has only one handler for a signal, so only programs call interrupt_watch(); without that call, signals act as usual.
 *
 * The library leaves signals to its caller, who sets a flag instead; it is checked by the working thread and by the workers of its pools (pool.h).
 */
#ifndef SPTX_INTERRUPT_H
#define SPTX_INTERRUPT_H

#include <signal.h>
#include <stdatomic.h>

enum { INTERRUPTS = 3 };

struct interrupt {
    struct sigaction before[INTERRUPTS]; /* the signals' handlers before interrupt_watch() */
};

void interrupt_watch(struct interrupt *watch);
void interrupt_end(const struct interrupt *watch); /* restores the old handlers */

/* Returns 1 if the work should stop: the thread's flag is set, or, if it has none, a signal has arrived since interrupt_watch(). */
int interrupt_asked(void);

typedef const _Atomic int interrupt_flag; /* 1: stop; set by another thread or by a signal handler */

/* Makes this thread check `flag` instead of signals; NULL: signals again. Returns the flag that it checked before. */
interrupt_flag *interrupt_use(interrupt_flag *flag);
interrupt_flag *interrupt_used(void);

/* To be called regularly by long work that needs no cleanup. Returns 0 to continue, or -1 after fail_stopped(): the thread's flag is set, or, if
 * it has none, a signal has arrived and interrupt_ends_work(1) was called. */
int interrupt_check(void);

/* Sets whether interrupt_check() fails after a signal: 1 before training begins; 0 (the default) during training, which writes a checkpoint first.
 * Returns the previous setting. */
int interrupt_ends_work(int ends);

#endif
