/* cgroup: how much memory the control groups around this process leave it. A container's limit is such a group's: a
 * process that passes it is killed, whatever the machine still has. Version 1, version 2 and a mix of both are read. */
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
