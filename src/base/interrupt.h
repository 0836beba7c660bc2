/* interrupt: Ctrl-C and SIGTERM as a question that long work asks itself between two pieces, so that it can end in order. The
 * second signal kills, in case the first takes too long for the person. A process has one handler of a signal: this is for
 * programs, and who does not watch is never asked to stop.
 */
#ifndef SPTX_INTERRUPT_H
#define SPTX_INTERRUPT_H

#include <signal.h>

struct interrupt {
    struct sigaction before[2]; /* what the two signals did */
};

void interrupt_watch(struct interrupt *watch);
void interrupt_end(const struct interrupt *watch); /* the signals do again what they did */

/* Whether a signal has asked to stop since interrupt_watch(). */
int interrupt_asked(void);

#endif
