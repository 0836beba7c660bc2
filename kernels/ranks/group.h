/* group: processes that send one another messages. Counts and places are in bytes; no call moves 2^31 of them.
 *
 * The messages go over an MPI, which is loaded when a launcher has begun several processes, and never before: the
 * program itself links none and starts where none is installed. MPIs differ in what their handles are (MPI_COMM_WORLD
 * is an address in one, a number in another), so mpi.c is compiled once for each MPI that is found at build time, as a
 * library of its own (libsptx_openmpi.so, libsptx_mpich.so). These libraries lie beside the program or in ../lib/sptx,
 * and use nothing of it.
 */
#ifndef SPTX_GROUP_H
#define SPTX_GROUP_H

#include <stdint.h>

struct group;

struct group_place {
    unsigned number, count, local, place, cores; /* as in struct ranks */
};

struct group_ops {
    /* Opens the group; *group is NULL where this process is alone. Returns NULL, or a sentence that says why it cannot.
     */
    const char *(*open)(struct group **group, struct group_place *place);
    void (*close)(struct group *group);
    /* Ends every process of the group at once, this one included. */
    void (*end)(struct group *group, int code);

    /* Gives everyone's code to everyone: codes[count]. Returns 1 where it took more than `seconds` (0: no limit); the
     * others may still come then. The waiting sleeps, since some ranks wait for hours while the first one reads a
     * corpus. */
    int (*tell)(struct group *group, int code, int *codes, double seconds);

    /* The calls below return 1 where they took more than `seconds`, like tell(); nothing of them can be used then.
     *
     * Sends bytes [at[r], at[r] + counts[r]) of `own` to rank r, and receives what r sends in [where[r], where[r] +
     * come[r]) of `others`.
     */
    int (*swap)(struct group *group, const void *own, const int *counts, const int *at, void *others, const int *come,
                const int *where, double seconds);
    /* Gives everyone's bytes [at[number], at[number] + counts[number]) to everyone. */
    int (*collect)(struct group *group, void *bytes, const int *counts, const int *at, double seconds);
    int (*any)(struct group *group, unsigned bits, unsigned *all, double seconds);
    int (*gather)(struct group *group, const void *own, void *all, const int *counts, const int *at, double seconds);

    int (*share)(struct group *group, unsigned from, void *bytes, uint64_t size, double seconds);
    /* Sends from one rank to another; only these two call it. */
    int (*pass)(struct group *group, unsigned from, unsigned to, void *bytes, uint64_t size, double seconds);
    /* Comes after a call that took too long: returns the first rank that has not come here within `seconds`, or count
     * where all have. */
    unsigned (*missing)(struct group *group, double seconds);
    int *(*counts)(struct group *group); /* [4 x count] space for the caller's counts and places */
};

/* The calls that a library compiled for an MPI exports, under the name GROUP_SYMBOL. */
extern const struct group_ops group_over_mpi;
#define GROUP_SYMBOL "group_over_mpi"

/* Opens the group that a launcher has begun this process in. *group and *calls are NULL where it is alone. Returns -1
 * after fail(). */
int group_open(struct group **group, const struct group_ops **calls, struct group_place *place);

#endif
