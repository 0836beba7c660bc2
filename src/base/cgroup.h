/* cgroup: what the control groups around this process leave it of memory. A container's limit is one: a process that
 * passes it is killed, whatever the machine still has. Version 1 and version 2 are read, and a mix of both.
 */
#ifndef SPTX_CGROUP_H
#define SPTX_CGROUP_H

#include <stdint.h>

struct cgroup_memory {
    uint64_t limit; /* bytes: the smallest limit of a group around the process; UINT64_MAX where none has one */
    uint64_t left;  /* bytes that the tightest group still gives: its limit less what is used and cannot be dropped */
};

/* Over the process's own group and all above it that can be seen. `root` stands before /proc and /sys: "" but in tests. */
struct cgroup_memory cgroup_memory(const char *root);

#endif
