/* segment: memory that the processes of one machine share, for a table that belongs to all of them, and how they wait for each other.
 *
 * The processes, called ranks, open one file in /dev/shm: sptx-USER-NAME. The first rank makes it. When the last rank has opened it, it loses its
 * name, so that nothing of it outlives the processes. Its memory:
 *
 *   header   what the ranks agreed on, a slot for each rank, the barrier
 *   rows     the bytes that the ranks asked for, allocated before anyone writes to them
 *   mail     what the ranks send each other: made when it is first needed; it can grow
 *
 * A process is known by its id and the time at which it began, so that a later process with the same id is not taken for it. A file whose
 * processes are all gone was left by a kill before it lost its name: the next start removes it. A rank that waits looks several times a
 * second whether the others still live; if one does not, every rank's waiting ends with a sentence that names it.
 *
 * The segment does not order the ranks' accesses to rows: callers use segment_wait() and segment_agree() for that.
 */
#ifndef SPTX_SEGMENT_H
#define SPTX_SEGMENT_H

#include <stdint.h>

enum {
    SEGMENT_RANKS = 256,   /* most ranks of a segment */
    SEGMENT_NAME = 200,    /* most letters of a name */
    SEGMENT_ABOUT = 2048,  /* bytes of the text that must be equal for all ranks */
    SEGMENT_SENTENCE = 512 /* most bytes of an error message that other ranks read */
};

/* Describes the next call of a rank. segment_agree() shows it to the other ranks. */
struct segment_call {
    uint64_t kind, count, step;
    double lr;
};

struct segment {
    char *path;         /* owned */
    const char *name;   /* the part of `path` that the caller has chosen */
    uint32_t rank, ranks;
    struct segment_header *header;
    char *rows, *mail;  /* mail: NULL until segment_mail() */
    uint64_t bytes, mail_bytes;
    unsigned told;      /* which of the two sets of calls and messages the last segment_agree() used: they are used in turn */
    int fd;
};

/* Opens the segment `name`, which `ranks` processes share, and waits until all have opened it; this process has the number `rank`. bytes: size of
 * the rows, which are zero at first. about: words KEY=VALUE that must be equal for all ranks. Returns 0, or -1 after fail(); if the arguments are
 * wrong, or differ from another rank's, after fail_usage(). */
int segment_open(struct segment *segment, const char *name, uint32_t rank, uint32_t ranks, uint64_t bytes, const char *about);
void segment_close(struct segment *segment); /* may be called on a struct of zeros. The other ranks' next wait fails */

/* Waits until all ranks have called this. After it, all ranks see what any rank wrote to the segment before it. Returns 0, or -1 after fail(): a
 * rank has died, closed the segment, or failed. It also fails, as interrupt_check() does, if the caller was asked to stop; then the waits of the
 * other ranks fail, too. */
int segment_wait(struct segment *segment);

/* Waits like segment_wait(), and tells all ranks `call` (NULL: nothing). If a rank passes failed = 1, after fail(), this fails on all ranks with
 * that rank's message. After this kind of failure the segment can still be used. */
int segment_agree(struct segment *segment, int failed, const struct segment_call *call);
/* Returns the call that a rank told the others in the last segment_agree(); valid until this rank's next segment_agree(). */
const struct segment_call *segment_call_of(const struct segment *segment, uint32_t rank);

/* For a rank that fails after rows have begun to change: makes all later waits fail, on all ranks, with this thread's error message. Returns -1. */
int segment_break(struct segment *segment);

/* Returns how much mail each rank has for each other rank: [ranks x ranks], at index from * ranks + to. A rank writes only its own row of it. */
uint64_t *segment_counts(struct segment *segment);

/* Makes the mail at least `bytes` bytes long. All ranks call this together with equal `bytes`. Returns 0, or -1 after fail() on all ranks. */
int segment_mail(struct segment *segment, uint64_t bytes);

#endif
