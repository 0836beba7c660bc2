/* behind: work that a thread does while its caller goes on. The work's messages are kept until the caller asks how the work
 * ended. */
#ifndef SPTX_BEHIND_H
#define SPTX_BEHIND_H

#include <pthread.h>

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
