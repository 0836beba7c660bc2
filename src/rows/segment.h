/* segment: memory that the processes of one machine share, for a table that belongs to all of them, and how they wait for each other.
 *
 * The processes, called ranks, name one file in /dev/shm: sptx-USER-NAME. Whoever comes first makes it; when the last rank has come, it
 * loses its name, so that nothing of it outlives the processes. Its memory:
 *
 *   header   what the ranks agreed on, a slot for each rank, the barrier
 *   rows     the bytes that the ranks asked for, allocated before anyone writes to them
 *   mail     what the ranks send each other: it grows, and is only made when it is first needed
 *
 * A process is known by its id and the time at which it began, so that a later process with the same id is not taken for it. A file whose
 * processes are all gone was left by a kill before it lost its name: the next start removes it. A rank that waits looks several times a
 * second whether the others still live; if one does not, every rank's waiting ends with a sentence that names it.
 *
 * It does not order what ranks do with the rows: callers use segment_wait() and segment_agree().
 */
#ifndef SPTX_SEGMENT_H
#define SPTX_SEGMENT_H

#include <stdint.h>

enum {
    SEGMENT_RANKS = 256,   /* most ranks of a segment */
    SEGMENT_NAME = 200,    /* most letters of a name */
    SEGMENT_ABOUT = 2048,  /* bytes of the text that all ranks must agree on */
    SEGMENT_SENTENCE = 512 /* bytes of a sentence of failure that other ranks read */
};

/* What a rank tells the others of its next call, by segment_agree(). */
struct segment_call {
    uint64_t kind, count, step;
    double lr;
};

struct segment {
    char *path;         /* owned */
    const char *name;   /* the part of `path` that the caller gave */
    uint32_t rank, ranks;
    struct segment_header *header;
    char *rows, *mail;  /* mail: NULL until segment_mail() */
    uint64_t bytes, mail_bytes;
    unsigned told;      /* index of the calls and sentences of the last segment_agree(): the ranks use two sets in turn */
    int fd;
};

/* Opens the segment `name` of `ranks` processes, of which this one has the number `rank`, and waits until all ranks have opened it. bytes: of
 * the rows, which are zero at first. about: words KEY=VALUE that must be the same for all ranks. Returns 0, or -1 after fail() or, if
 * the arguments are wrong or differ from another rank's, fail_usage(). */
int segment_open(struct segment *segment, const char *name, uint32_t rank, uint32_t ranks, uint64_t bytes, const char *about);
void segment_close(struct segment *segment); /* may be called on a struct of zeros. The other ranks' next wait fails */

/* Waits until all ranks have called it. What a rank wrote to the segment before it, all ranks see after it. Returns 0, or -1 after fail(): a rank
 * has died or closed the segment, or failed. Fails as interrupt_check() does if the caller asked to stop; the others' waits then fail, too. */
int segment_wait(struct segment *segment);

/* Waits like segment_wait(), tells all ranks `call` (NULL: nothing), and if one rank passes failed = 1, after fail(), fails on all ranks with that
 * rank's sentence. Unlike after other failures, the segment can then be used on. */
int segment_agree(struct segment *segment, int failed, const struct segment_call *call);
/* Returns the call that a rank told in the last segment_agree(); valid until this rank's next one. */
const struct segment_call *segment_call_of(const struct segment *segment, uint32_t rank);

/* Makes all later waits fail, in all ranks, with this thread's sentence: for a rank that fails after rows have begun to change. Returns -1. */
int segment_break(struct segment *segment);

/* How much mail each rank has for each other: [ranks x ranks], from rank x ranks + to. A rank writes only its own row. */
uint64_t *segment_counts(struct segment *segment);

/* Makes the mail at least `bytes` long; all ranks call it together with equal `bytes`. Returns 0, or -1 after fail(), on all ranks. */
int segment_mail(struct segment *segment, uint64_t bytes);

#endif
