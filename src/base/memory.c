#include "memory.h"

#include "machine.h"
#include "report.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int product(uint64_t count, uint64_t size, const char *what, uint64_t *bytes) {
    if (__builtin_mul_overflow(count, size, bytes) || *bytes > INT64_MAX)
        return fail("%" PRIu64 " x %" PRIu64 " bytes for %s is more than any machine addresses", count, size, what);
    return 0;
}

static void *got(void *block, uint64_t bytes, const char *what) {
    if (!block) fail("not enough memory for %s (%" PRIu64 " bytes)", what, bytes);
    return block;
}

void *mem_alloc(uint64_t count, uint64_t size, const char *what) {
    uint64_t bytes;
    if (product(count, size, what, &bytes)) return NULL;
    return got(malloc(bytes ? bytes : 1), bytes, what);
}

void *mem_zalloc(uint64_t count, uint64_t size, const char *what) {
    uint64_t bytes;
    if (product(count, size, what, &bytes)) return NULL;
    return got(calloc(bytes ? bytes : 1, 1), bytes, what);
}

void *mem_aligned(uint64_t count, uint64_t size, const char *what) {
    uint64_t bytes;
    if (product(count, size, what, &bytes)) return NULL;
    uint64_t padded = (bytes + 127) / 128 * 128;
    return got(aligned_alloc(128, padded ? padded : 128), bytes, what);
}

/* Changes the size of *block to exactly `items` items. Returns 0, or -1 after fail(). */
static int resize(void *block, uint64_t *capacity, uint64_t items, uint64_t size, const char *what) {
    void **place = block;
    uint64_t bytes;
    if (product(items, size, what, &bytes)) return -1;
    void *grown = got(realloc(*place, bytes), bytes, what);
    if (!grown) return -1;
    *place = grown;
    *capacity = items;
    return 0;
}

int mem_grow(void *block, uint64_t *capacity, uint64_t need, uint64_t size, const char *what) {
    if (need <= *capacity) return 0;
    uint64_t more = *capacity < 32 ? 64 : *capacity * 2;
    return resize(block, capacity, more < need ? need : more, size, what);
}

int mem_reserve(void *block, uint64_t *capacity, uint64_t need, uint64_t size, const char *what) {
    return need <= *capacity ? 0 : resize(block, capacity, need, size, what);
}

void mem_prefer_huge(void *block, uint64_t bytes) {
    enum { HUGE_PAGE = 2 << 20 };
    uintptr_t first = ((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, end = (uintptr_t)block + bytes;
    if (block && first < end) madvise((void *)first, end - first, MADV_HUGEPAGE); /* if this fails, small pages work too */
}

void mem_give_back(void) {
    malloc_trim(0);
}

char *mem_text(const char *bytes, uint64_t length, const char *what) {
    char *text = mem_alloc(length + 1, 1, what);
    if (!text) return NULL;
    memcpy(text, bytes, length);
    text[length] = 0;
    return text;
}

void mem_free_texts(char **texts, int64_t count) {
    for (int64_t i = 0; i < count; i++) free(texts[i]);
    free(texts);
}

/* Returns the bytes in a line "Name:   123 kB" of a file in /proc; 0 if there is no such line. */
static uint64_t proc_bytes(const char *root, const char *name_of_file, const char *name) {
    char path[4096], line[256];
    uint64_t kib = 0;
    size_t length = strlen(name);
    snprintf(path, sizeof path, "%s/proc/%s", root, name_of_file);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, name, length) && line[length] == ':') {
            kib = strtoull(line + length + 1, NULL, 10);
            break;
        }
    fclose(file);
    return kib * 1024;
}

uint64_t mem_resident(void) {
    return proc_bytes("", "self/status", "VmRSS");
}
uint64_t mem_resident_peak(void) {
    return proc_bytes("", "self/status", "VmHWM");
}

/* Returns the smaller of two limits in bytes, the machine's and the control groups'. Returns 1 for groups with nothing left, since 0 means
 * unknown. */
static uint64_t fewer(uint64_t machine, uint64_t groups) {
    uint64_t bytes = machine && machine < groups ? machine : groups;
    return bytes == UINT64_MAX ? 0 : bytes ? bytes : 1;
}

uint64_t mem_total_under(const char *root) {
    return fewer(proc_bytes(root, "meminfo", "MemTotal"), cgroup_memory(root).limit);
}
uint64_t mem_available_under(const char *root) {
    return fewer(proc_bytes(root, "meminfo", "MemAvailable"), cgroup_memory(root).left);
}
uint64_t mem_total(void) {
    return mem_total_under("");
}
uint64_t mem_available(void) {
    return mem_available_under("");
}

#define BY(name, type)                                  \
    int name(const void *a, const void *b) {            \
        type x = *(const type *)a, y = *(const type *)b; \
        return (x > y) - (x < y);                       \
    }
BY(mem_by_number, uint64_t)
BY(mem_by_id, uint32_t)
BY(mem_by_double, double)
BY(mem_by_float, float)

int mem_by_falling_count(const void *a, const void *b) {
    const struct mem_counted *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : mem_by_id(&x->id, &y->id);
}

uint64_t mem_first_from(const void *items, uint64_t count, uint64_t size, uint64_t value) {
    uint64_t low = 0;
    while (low < count) {
        uint64_t middle = low + (count - low) / 2;
        if (*(const uint64_t *)((const char *)items + middle * size) < value) low = middle + 1;
        else count = middle;
    }
    return low;
}
