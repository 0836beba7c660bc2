/* machine: what this machine has, according to its system files: memory that this process may still use, the processor and its memory nodes,
 * devices of a vendor. */
#ifndef SPTX_MACHINE_H
#define SPTX_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* ---- memory: control groups ----
 *
 * cgroup: how much memory this process may still use within the limits of its control groups, such as a container's. A process that exceeds a
 * limit is killed, even if the machine has free memory. Versions 1 and 2, and a mix of both, are supported. */
struct cgroup_memory {
    uint64_t limit; /* bytes: smallest limit of the groups that contain the process; UINT64_MAX: none has a limit */
    uint64_t left;  /* bytes: smallest remainder of these groups: limit minus use, not counting caches that the kernel can drop; UINT64_MAX: none
                     * has a limit */
};

/* Reads the limits of the process's group and all visible groups above it. root: prefix of /proc and /sys; "" except in tests. */
struct cgroup_memory cgroup_memory(const char *root);

/* numa: allocates memory near a device, on machines where each processor has its own memory. A GPU reads another processor's memory over the link
 * between the processors, which is slower.
 *
 * The system may ignore these requests (the node is full, or a container forbids them); memory is then allocated as usual. A choice of the user for
 * the whole process (numactl) is respected.
 */

enum { NUMA_NONE = -1 };

/* Returns the NUMA node to which the device with this PCI address ("0000:1B:00.0") is connected, according to files under `sys` ("/sys");
 * NUMA_NONE if fewer than two nodes have memory, if the node is unknown, or if the user has chosen nodes for the process. */
int numa_near(const char *sys, const char *address);

/* Asks the system to allocate the range's pages on `node` when they are first used; used pages stay where they are. Does nothing for NUMA_NONE. */
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

/* Returns 1 if the folder `devices` (PCI_DEVICES) lists a device of this vendor, otherwise 0; -1, without calling fail(), if the folder cannot be
 * opened. */
int pci_has(const char *devices, const char *vendor);

/* Returns 1 if this machine certainly has no NVIDIA GPU: the PCI bus has none, and there are no device files of a GPU that is not on the bus (WSL,
 * boards whose GPU is part of the processor). Otherwise 0. */
int pci_without_nvidia(void);

#endif
