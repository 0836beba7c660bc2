/* group: processes that send each other messages. Counts and offsets are in bytes; no call moves 2^31 bytes or more.
 *
 * Messages are sent by an MPI, which is loaded only if a launcher has started several processes: the program itself is not linked with an
 * MPI, and runs on machines without one. MPIs differ in what their handles are (MPI_COMM_WORLD is an address in one, a number in another),
 * so mpi.c is compiled once for each MPI that is found at build time, as a separate library (libsptx_openmpi.so, libsptx_mpich.so). These
 * libraries are in the program's directory or in ../lib/sptx, and call nothing in the program.
 */
#ifndef SPTX_GROUP_H
#define SPTX_GROUP_H

#include <stdint.h>

struct group;

struct group_place {
    unsigned number, count, local, place, cores; /* as in struct ranks */
};

struct group_ops {
    /* Opens the group; *group is NULL if this process is alone. Returns NULL, or a sentence that says why it failed. */
    const char *(*open)(struct group **group, struct group_place *place);
    void (*close)(struct group *group);
    /* Ends every process of the group at once, including this one. */
    void (*end)(struct group *group, int code);

    /* Sends every process's code to all: codes[count]. Returns 1 if that took more than `seconds` (0: no limit); codes may still arrive later.
     * Waits by sleeping, because ranks may wait for hours while the first one reads a corpus. */
    int (*tell)(struct group *group, int code, int *codes, double seconds);

    /* Like tell(), the functions below return 1 if they took more than `seconds`; their results must not be used then. swap() sends counts[r]
     * bytes from own + at[r] to each rank r, and receives come[r] bytes from r at others + where[r]. */
    int (*swap)(struct group *group, const void *own, const int *counts, const int *at, void *others, const int *come,
                const int *where, double seconds);
    /* Sends each process's counts[number] bytes at bytes + at[number] to all processes. */
    int (*collect)(struct group *group, void *bytes, const int *counts, const int *at, double seconds);
    int (*any)(struct group *group, unsigned bits, unsigned *all, double seconds);
    int (*gather)(struct group *group, const void *own, void *all, const int *counts, const int *at, double seconds);

    int (*share)(struct group *group, unsigned from, void *bytes, uint64_t size, double seconds);
    /* Sends bytes from one rank to another; only these two call it. */
    int (*pass)(struct group *group, unsigned from, unsigned to, void *bytes, uint64_t size, double seconds);
    /* Called after a call that took too long. Returns the first rank that does not call it within `seconds`; `count` if all do. */
    unsigned (*missing)(struct group *group, double seconds);
    int *(*counts)(struct group *group); /* [4 x count] memory for counts and offsets of the caller */
};

/* The functions that the library for each MPI exports, under the name GROUP_SYMBOL. */
extern const struct group_ops group_over_mpi;
#define GROUP_SYMBOL "group_over_mpi"

/* Opens the group in which a launcher started this process. *group and *calls are NULL if the process is alone. Returns -1 after fail(). */
int group_open(struct group **group, const struct group_ops **calls, struct group_place *place);

#endif
