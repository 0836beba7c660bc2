/* numa: allocates memory near a device, on machines whose processors have memory of their own. A GPU reads the memory of another
 * processor over the link between the two processors, which everything else uses, too.
 *
 * The system may ignore these requests (if a node is full, or in a container that forbids them); memory is then allocated as usual.
 * What the user has chosen for the whole process (numactl) is not changed.
 */
#ifndef SPTX_NUMA_H
#define SPTX_NUMA_H

#include <stdint.h>

enum { NUMA_NONE = -1 };

/* Returns the NUMA node to which the device with this PCI address ("0000:1B:00.0") is connected, as the files under `sys`
 * ("/sys") tell. Returns NUMA_NONE if fewer than two nodes have memory, if the node is not known, or if the user has chosen
 * nodes for the process. */
int numa_near(const char *sys, const char *address);

/* Asks the system to allocate the range's pages on `node` when they are first used; pages in use stay where they are. Does
 * nothing for NUMA_NONE. */
void numa_place(void *start, uint64_t bytes, int node);

/* Makes the system allocate this thread's memory on `node` between numa_begin() and numa_end(). */
void numa_begin(int node);
void numa_end(int node);

#endif
