#define _GNU_SOURCE
#include "numa.h"

#include <ctype.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE = 1024, NODES = 1024, WORD_BITS = 8 * sizeof(unsigned long) };

/* A set of nodes in the form of the system calls: one bit a node. */
struct nodes {
    unsigned long bits[NODES / WORD_BITS];
};

/* Reads the first line of the file sys/name. Returns 1, or 0 if it cannot be read. */
static int read_line(const char *sys, const char *name, char line[LINE]) {
    char path[LINE];
    if (snprintf(path, sizeof path, "%s/%s", sys, name) >= (int)sizeof path) return 0;
    FILE *file = fopen(path, "re");
    int read = file && fgets(line, LINE, file);
    if (file) fclose(file);
    return read;
}

/* Returns how many numbers a list such as "0-1,4" contains. */
static unsigned long count_list(const char *list) {
    unsigned long count = 0;
    while (isdigit((unsigned char)*list)) {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        count += last >= first ? last - first + 1 : 0;
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

static int has_choice(void) {
    int mode = MPOL_DEFAULT;
    return syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul) == 0 && mode != MPOL_DEFAULT;
}

int numa_near(const char *sys, const char *address) {
    char name[128], line[LINE], *end;
    if (!read_line(sys, "devices/system/node/has_memory", line) || count_list(line) < 2 || has_choice()) return NUMA_NONE;
    int n = snprintf(name, sizeof name, "bus/pci/devices/%s/numa_node", address);
    if (n < 0 || n >= (int)sizeof name) return NUMA_NONE;
    for (char *c = name; *c; c++) *c = (char)tolower((unsigned char)*c);
    if (!read_line(sys, name, line)) return NUMA_NONE;
    long node = strtol(line, &end, 10);
    return end > line && node >= 0 && node < NODES ? (int)node : NUMA_NONE;
}

static struct nodes only(int node) {
    struct nodes nodes = {{0}};
    nodes.bits[(unsigned)node / WORD_BITS] = 1ul << (unsigned)node % WORD_BITS;
    return nodes;
}

void numa_place(void *start, uint64_t bytes, int node) {
    if (node < 0) return;
    struct nodes nodes = only(node);
    syscall(SYS_mbind, start, bytes, MPOL_PREFERRED, nodes.bits, (unsigned long)NODES, 0ul);
}

void numa_begin(int node) {
    if (node < 0) return;
    struct nodes nodes = only(node);
    syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes.bits, (unsigned long)NODES);
}

void numa_end(int node) {
    if (node >= 0) syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0ul);
}
