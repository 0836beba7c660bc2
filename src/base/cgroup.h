/* cgroup: how much memory this process may still use by the limits of its control groups. A container's memory limit is that of a
 * control group. A process that exceeds it is killed, even if the machine has free memory. Versions 1 and 2 and a mix of both are
 * read. */
#ifndef SPTX_CGROUP_H
#define SPTX_CGROUP_H

#include <stdint.h>

struct cgroup_memory {
    uint64_t limit; /* bytes: the smallest limit of any group around the process; UINT64_MAX if no group has a limit */
    uint64_t left;  /* bytes: the smallest remainder of any group: its limit minus its use, not counting caches that the kernel
                     * can drop; UINT64_MAX if no group has a limit */
};

/* Reads the process's group and all visible groups above it. `root` is a prefix of /proc and /sys: "" except in tests. */
struct cgroup_memory cgroup_memory(const char *root);

#endif
