/* cgroup: how much memory the control groups around this process leave it. A container's limit is such a group's: a
 * process that passes it is killed, whatever the machine still has. Version 1, version 2 and a mix of both are read. */
#ifndef SPTX_CGROUP_H
#define SPTX_CGROUP_H

#include <stdint.h>

struct cgroup_memory {
    uint64_t limit; /* bytes: the smallest limit of a group around the process; UINT64_MAX where none has one */
    uint64_t left;  /* bytes that the tightest group still gives: its limit less the used bytes that it cannot drop */
};

/* Looks at the process's own group and at all above it that can be seen. `root` stands before /proc and /sys; it is ""
 * but in tests. */
struct cgroup_memory cgroup_memory(const char *root);

#endif
