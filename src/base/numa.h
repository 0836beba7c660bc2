/* numa: puts memory near a device, on machines whose processors have memory of their own. A GPU reads another
 * processor's memory over the link between the two, which it shares with all others.
 *
 * These are wishes: where the system does not grant one (a full node, a container that forbids it), memory lies where
 * it would have lain without it. What the user has chosen for the whole process (numactl) stays.
 */
#ifndef SPTX_NUMA_H
#define SPTX_NUMA_H

#include <stdint.h>

enum { NUMA_NONE = -1 };

/* Returns the node that the device of this PCI address ("0000:1B:00.0") is connected to, by the files under `sys`
 * ("/sys"). Returns NUMA_NONE where fewer than two nodes have memory, where the node is not known, and where the user
 * has chosen. */
int numa_near(const char *sys, const char *address);

/* Puts pages of the range on `node` when they are touched for the first time from now on. Does nothing for
 * NUMA_NONE. */
void numa_place(void *start, uint64_t bytes, int node);

/* Makes the system allocate this thread's memory on `node` between numa_begin() and numa_end(). */
void numa_begin(int node);
void numa_end(int node);

#endif
