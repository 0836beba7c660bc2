/* machine: what this machine has, as its system files tell: the memory that this process may still use, the processor and its
 * memory nodes, devices of a vendor. */
#ifndef SPTX_MACHINE_H
#define SPTX_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* ---- memory: control groups ----
 *
 * cgroup: how much memory this process may still use by the limits of its control groups. A container's memory limit is that of a
 * control group. A process that exceeds it is killed, even if the machine has free memory. Versions 1 and 2 and a mix of both are
 * read. */
struct cgroup_memory {
    uint64_t limit; /* bytes: the smallest limit of any group around the process; UINT64_MAX if no group has a limit */
    uint64_t left;  /* bytes: the smallest remainder of any group: its limit minus its use, not counting caches that the kernel
                     * can drop; UINT64_MAX if no group has a limit */
};

/* Reads the process's group and all visible groups above it. `root` is a prefix of /proc and /sys: "" except in tests. */
struct cgroup_memory cgroup_memory(const char *root);

/* numa: allocates memory near a device, on machines whose processors have memory of their own. A GPU reads the memory of another
 * processor over the link between the two processors, which everything else uses, too.
 *
 * The system may ignore these requests (if a node is full, or in a container that forbids them); memory is then allocated as usual.
 * What the user has chosen for the whole process (numactl) is not changed.
 */

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

/* processor: the name of the machine's processor. */

/* Writes the model's name, or "unknown processor". */
void processor_name(char *name, size_t capacity);

/* pci: finds out, without a driver, whether this machine has a device of a vendor. */

#define PCI_DEVICES "/sys/bus/pci/devices"
#define PCI_NVIDIA "0x10de"

/* Returns 1 if the folder `devices` (PCI_DEVICES) lists a device of this vendor, 0 if it does not; -1, without an error message, if
 * the folder cannot be opened. */
int pci_has(const char *devices, const char *vendor);

/* Returns 1 if this machine certainly has no NVIDIA GPU: the PCI bus lists none, and none of the device files exist by which a
 * driver offers a GPU that is not on the bus (WSL, boards whose GPU is part of the processor). Otherwise 0. */
int pci_without_nvidia(void);

#endif
