/* cgroup: reads memory limits from the files of control groups. /proc/self/cgroup names the process's group in each hierarchy;
 * /proc/self/mountinfo says where a hierarchy is mounted; a group's directory has files with its limit and its use. The directories above it, up
 * to the mount point, are groups that contain it, whose limits apply, too. */

#define _GNU_SOURCE
#include "machine.h"

#include "text.h"

#include <ctype.h>
#include <dirent.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIELD = 4096 }; /* longest path that can be read */
enum { CACHE, MORE_CACHE, STILL_MORE_CACHE, LIMIT_ABOVE, STATS }; /* indices of `stat` in struct version: lines of memory.stat */

/* For version 1 or 2 of control groups: names of a group's files, and of lines in its memory.stat, which include the groups below it. The first
 * three lines are caches, which the kernel drops when memory is short; so they count as free. */
struct version {
    const char *limits[2]; /* files with limits; the smaller limit holds */
    const char *used;
    const char *stat[STATS];
};
static const struct version versions[] = {
    {{"memory.limit_in_bytes", NULL},
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file", NULL, "hierarchical_memory_limit"}},
    {{"memory.max", "memory.high"}, "memory.current", {"inactive_file", "active_file", "slab_reclaimable", NULL}}};

/* Limits from this number on mean "no limit": version 1 writes the largest number of whole pages. */
static const uint64_t no_limit = (uint64_t)1 << 62;

/* ---- numbers of a group ---- */

static FILE *open_file(const char *directory, const char *name) {
    char path[FIELD + 64];
    int n = snprintf(path, sizeof path, "%s/%s", directory, name);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "r") : NULL;
}

/* Returns the number in a file, or `otherwise` if the file is missing or contains "max". */
static uint64_t read_number(const char *directory, const char *name, uint64_t otherwise) {
    FILE *file = open_file(directory, name);
    unsigned long long value;
    if (!file) return otherwise;
    if (fscanf(file, "%llu", &value) != 1) value = otherwise;
    fclose(file);
    return value;
}

/* Reads lines "NAME NUMBER" of a group's memory.stat into `values`; values without a line stay unchanged. Returns 1, or 0 if the file cannot be
 * read. */
static int read_stat(const char *directory, const char *const names[], uint64_t values[], unsigned count) {
    FILE *file = open_file(directory, "memory.stat");
    unsigned long long value;
    char found[128];
    if (!file) return 0;
    while (fscanf(file, "%127s %llu", found, &value) == 2)
        for (unsigned i = 0; i < count; i++)
            if (names[i] && !strcmp(found, names[i])) values[i] = value;
    int whole = feof(file);
    fclose(file);
    return whole;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void take_group(struct cgroup_memory *memory, const struct version *version, const char *directory) {
    uint64_t stat[STATS] = {[LIMIT_ABOVE] = UINT64_MAX}, limit = UINT64_MAX;
    uint64_t used = read_number(directory, version->used, UINT64_MAX);
    int whole = read_stat(directory, version->stat, stat, STATS);
    for (int i = 0; i < 2 && version->limits[i]; i++)
        limit = smaller(limit, read_number(directory, version->limits[i], UINT64_MAX));
    limit = smaller(limit, stat[LIMIT_ABOVE]);
    if (limit >= no_limit) return;
    memory->limit = smaller(memory->limit, limit);
    /* If the use cannot be read, 0 is assumed: the file may be unreadable although the group is not full. */
    if (used == UINT64_MAX || !whole) used = 0;
    for (int i = 0; i < LIMIT_ABOVE; i++) used -= smaller(used, stat[i]);
    memory->left = smaller(memory->left, limit - smaller(limit, used));
}

/* ---- where the groups are ---- */

/* Returns 1 if the list, whose entries are separated by commas, contains `name`. */
static int in_list(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length])) return 1;
    return 0;
}

/* Finds the process's group in the hierarchy of a version, as a path from the hierarchy's top. Returns 1, or 0 if the process has no group in it. */
static int find_group(const char *root, int version, char path[FIELD]) {
    FILE *file = open_file(root, "proc/self/cgroup");
    char line[FIELD + 256];
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) { /* lines look like "4:memory,cpu:/path", or "0::/path" with version 2 */
        char *controllers = strchr(line, ':'), *at = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!at) continue;
        *at++ = 0;
        at[strcspn(at, "\n")] = 0;
        found = version == 2 ? controllers[1] == 0 : in_list(controllers + 1, "memory");
        if (found) snprintf(path, FIELD, "%s", at);
    }
    if (file) fclose(file);
    return found;
}

/* Decodes a path of mountinfo in place: octal numbers such as \040 stand for blanks and backslashes. */
static void decode(char *text) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        unsigned value;
        if (*at == '\\' && sscanf(at + 1, "%3o", &value) == 1) {
            *to++ = (char)value;
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = 0;
}

/* A mounted hierarchy of control groups. */
struct mount {
    int version;                 /* 1 or 2 */
    char top[FIELD], at[FIELD]; /* at: the mount point; top: the group whose directory is mounted there */
};

/* Parses a line of mountinfo: "31 23 0:28 TOP AT options.. - TYPE SOURCE SUPER". Returns the version of the memory hierarchy that is mounted; 0 if
 * it is something else. */
static int read_mount(const char *line, struct mount *mount) {
    char type[64], super[FIELD];
    const char *rest = strstr(line, " - ");
    if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", mount->top, mount->at) != 2) return 0;
    if (sscanf(rest + 3, "%63s %*s %4095s", type, super) != 2) return 0;
    mount->version = !strcmp(type, "cgroup2") ? 2 : !strcmp(type, "cgroup") && in_list(super, "memory") ? 1 : 0;
    decode(mount->top);
    decode(mount->at);
    return mount->version;
}

/* Returns the group's path below the mount point; the mount point itself if a container sees only a part of the hierarchy that does not contain
 * the group. */
static const char *below_mount(const struct mount *mount, const char *group) {
    size_t length = strcmp(mount->top, "/") ? strlen(mount->top) : 0;
    if (strncmp(group, mount->top, length) || (group[length] && group[length] != '/') || strstr(group, "/..")) return "";
    return group + length;
}

static void take_mount(struct cgroup_memory *memory, const char *root, const struct mount *mount) {
    char group[FIELD], directory[3 * FIELD];
    if (!find_group(root, mount->version, group)) return;
    size_t top = text_add(directory, sizeof directory, 0, "%s%s", root, mount->at);
    text_add(directory, sizeof directory, top, "%s", below_mount(mount, group));
    for (;;) {
        take_group(memory, &versions[mount->version - 1], directory);
        char *last = strrchr(directory + top, '/');
        if (!last) return;
        *last = 0;
    }
}

struct cgroup_memory cgroup_memory(const char *root) {
    struct cgroup_memory memory = {UINT64_MAX, UINT64_MAX};
    FILE *file = open_file(root, "proc/self/mountinfo");
    struct mount mount;
    char *line = NULL;
    size_t capacity = 0;
    while (file && getline(&line, &capacity, file) > 0)
        if (read_mount(line, &mount)) take_mount(&memory, root, &mount);
    free(line);
    if (file) fclose(file);
    return memory;
}

enum { LINE = 1024, NODES = 1024, WORD_BITS = 8 * sizeof(unsigned long) };

/* A set of memory nodes, as system calls expect it: one bit for each node. */
struct nodes {
    unsigned long bits[NODES / WORD_BITS];
};

/* Reads the first line of the file `name` under `sys`. Returns 1, or 0 if it cannot be read. */
static int read_line(const char *sys, const char *name, char line[LINE]) {
    char path[LINE];
    if (snprintf(path, sizeof path, "%s/%s", sys, name) >= (int)sizeof path) return 0;
    FILE *file = fopen(path, "re");
    int read = file && fgets(line, LINE, file);
    if (file) fclose(file);
    return read;
}

/* Returns how many numbers a list such as "0-1,4" stands for. */
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

void processor_name(char *name, size_t capacity) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];
    snprintf(name, capacity, "unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10)) continue;
        snprintf(name, capacity, "%s", text_strip(colon + 1));
        break;
    }
    if (file) fclose(file);
}

static int is_of(const char *devices, const char *device, const char *vendor) {
    char path[512], text[32] = "";
    snprintf(path, sizeof path, "%s/%s/vendor", devices, device);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file)) text[0] = 0;
    fclose(file);
    text[strcspn(text, "\n")] = 0;
    return !strcmp(text, vendor);
}

int pci_has(const char *devices, const char *vendor) {
    struct dirent *entry;
    DIR *folder = opendir(devices);
    int found = 0;
    if (!folder) return -1;
    while (!found && (entry = readdir(folder))) found = is_of(devices, entry->d_name, vendor);
    closedir(folder);
    return found;
}

int pci_without_nvidia(void) {
    static const char *const others[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu"};
    int has = pci_has(PCI_DEVICES, PCI_NVIDIA);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) has |= !access(others[i], F_OK);
    return has == 0;
}
