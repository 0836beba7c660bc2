/* cgroup: reads limits from three places. /proc/self/cgroup names the process's group in each hierarchy; /proc/self/mountinfo
 * says where a hierarchy is mounted; and a group's directory has files with its limit and its use. The directories above it, up
 * to the mount point, are the groups that contain it; their limits apply, too. */
#include "cgroup.h"

#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD = 4096 }; /* longest path that can be read */
enum { CACHE, MORE_CACHE, STILL_MORE_CACHE, LIMIT_ABOVE, STATS }; /* indices of struct version's `stat`, lines of memory.stat */

/* The names of a version's files, and of its lines in memory.stat. These lines count the group and all groups below it. The
 * kernel drops the first three, which are caches, when memory is short, so they count as free. */
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

/* Limits from here on mean "no limit": version 1 then writes the largest number of whole pages. */
static const uint64_t no_limit = (uint64_t)1 << 62;

/* ---- numbers of a group ---- */

static FILE *open_file(const char *directory, const char *name) {
    char path[FIELD + 64];
    int n = snprintf(path, sizeof path, "%s/%s", directory, name);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "r") : NULL;
}

/* Returns the number in a file, or `otherwise` if the file is missing or says "max". */
static uint64_t read_number(const char *directory, const char *name, uint64_t otherwise) {
    FILE *file = open_file(directory, name);
    unsigned long long value;
    if (!file) return otherwise;
    if (fscanf(file, "%llu", &value) != 1) value = otherwise;
    fclose(file);
    return value;
}

/* Reads lines "NAME NUMBER" of a group's memory.stat into `values`; a value whose line is missing is not changed. Returns 1, or
 * 0 if the file cannot be read. */
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
    /* If the use cannot be read, it counts as 0: an unreadable file does not mean that the group is full. */
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

/* Finds the process's group in the hierarchy of a version, as a path from that hierarchy's top. Returns 1, or 0 if the process
 * has no group there. */
static int find_group(const char *root, int version, char path[FIELD]) {
    FILE *file = open_file(root, "proc/self/cgroup");
    char line[FIELD + 256];
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) { /* a line is "4:memory,cpu:/path", or "0::/path" for version 2 */
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

/* Decodes a path of mountinfo in place: blanks and backslashes are written as octal numbers, such as \040. */
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

/* Parses a line of mountinfo: "31 23 0:28 TOP AT options.. - TYPE SOURCE SUPER". Returns the version of the memory hierarchy
 * that it mounts; 0 if it mounts none. */
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

/* Returns the group's path below the mount point. A container may see only a part of the hierarchy; if the group is outside of
 * that part, this returns the mount point itself. */
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
