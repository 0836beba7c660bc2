/* group: processes that send one another messages, one file a way of doing so: mpi.c, and absent.c for programs built without.
 * Counts and places are in bytes; no call moves 2^31 of them.
 */
#ifndef SPTX_GROUP_H
#define SPTX_GROUP_H

#include <stdint.h>

struct group;

struct group_place {
    unsigned number, count, local, place, cores; /* as in struct ranks */
};

struct group_ops {
    /* *group NULL where this process is alone. -1 after fail(). */
    int (*open)(struct group **group, struct group_place *place);
    void (*close)(struct group *group);
    /* Ends every process of the group at once, this one with it. */
    void (*end)(struct group *group, int code);

    /* Everyone's code to everyone: codes[count]. 1 where it took more than `seconds` (0: however long it takes), and the others
     * still may come. The waiting sleeps: some wait for hours while the first one reads a corpus. */
    int (*tell)(struct group *group, int code, int *codes, double seconds);

    /* As tell(), these give 1 where they took more than `seconds`: nothing of the call can be used then.
     *
     * Bytes [at[r], at[r] + counts[r]) of own go to rank r; what it sends comes to [where[r], where[r] + come[r]) of others. */
    int (*swap)(struct group *group, const void *own, const int *counts, const int *at, void *others, const int *come,
                const int *where, double seconds);
    /* Everyone's bytes [at[number], at[number] + counts[number]) to everyone. */
    int (*collect)(struct group *group, void *bytes, const int *counts, const int *at, double seconds);
    int (*any)(struct group *group, unsigned bits, unsigned *all, double seconds);
    int (*gather)(struct group *group, const void *own, void *all, const int *counts, const int *at, double seconds);

    int (*share)(struct group *group, unsigned from, void *bytes, uint64_t size, double seconds);
    /* From one rank to another; only these two call it. */
    int (*pass)(struct group *group, unsigned from, unsigned to, void *bytes, uint64_t size, double seconds);
    /* After a call that took too long: the first rank that has not come here within `seconds`; count where all have. */
    unsigned (*missing)(struct group *group, double seconds);
    int *(*counts)(struct group *group); /* [4 x count] for the caller's counts and places */
};

extern const struct group_ops group_ops;

#endif
