/* interrupt: Ctrl-C, SIGTERM and a terminal that is gone (SIGHUP) as a question that long work asks itself between two
 * pieces, so that it can end in order. The second signal kills, in case the first takes too long for the person. What was
 * ignored before (nohup) stays so. A process has one handler of a signal: this is for programs, and who does not watch is
 * never asked to stop.
 */
#ifndef SPTX_INTERRUPT_H
#define SPTX_INTERRUPT_H

#include <signal.h>

enum { INTERRUPTS = 3 };

struct interrupt {
    struct sigaction before[INTERRUPTS]; /* what the signals did */
};

void interrupt_watch(struct interrupt *watch);
void interrupt_end(const struct interrupt *watch); /* the signals do again what they did */

/* Whether a signal has asked to stop since interrupt_watch(). */
int interrupt_asked(void);

#endif
