/* numa: memory near a device, on machines whose processors have memory of their own. A GPU reads that of another processor over
 * the link between the two, which it shares with all others.
 *
 * These are wishes: where the system does not grant one (a node that is full, a container that forbids it), memory lies where it
 * would have lain without. What the user has chosen for the whole process (numactl) stays.
 */
#ifndef SPTX_NUMA_H
#define SPTX_NUMA_H

#include <stdint.h>

enum { NUMA_NONE = -1 };

/* The node that the device of this PCI address ("0000:1B:00.0") is connected to, as the files under `sys` ("/sys") say. NUMA_NONE
 * where fewer than two nodes have memory, where it is not known, and where the user has chosen. */
int numa_near(const char *sys, const char *address);

/* Pages of the range that are touched for the first time from now on, where `node` is one. */
void numa_place(void *start, uint64_t bytes, int node);

/* The same for what this thread has the system allocate between the two. */
void numa_begin(int node);
void numa_end(int node);

#endif
