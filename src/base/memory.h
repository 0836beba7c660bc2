/* memory: allocates memory, checking count x size for overflow. Error messages name the purpose of the memory. */
#ifndef SPTX_MEMORY_H
#define SPTX_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Allocates count x size bytes, uninitialized; free() frees them. Returns NULL after fail() if the product exceeds 2^63 or memory is short. `what`
 * ends the message "not enough memory for WHAT". */
void *mem_alloc(uint64_t count, uint64_t size, const char *what);

/* Frees several blocks, each of which may be NULL: mem_free(a, b, c). */
#define mem_free(...) mem_free_each((void *[]){__VA_ARGS__}, sizeof(void *[]){__VA_ARGS__} / sizeof(void *))
static inline void mem_free_each(void *const *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) free(blocks[i]);
}

/* A local pointer declared OWNED is freed where its scope ends, by whatever path the function leaves it. Its declaration must initialize it, and no
 * goto may jump over that declaration. */
#define OWNED __attribute__((cleanup(mem_free_owned)))
static inline void mem_free_owned(void *pointer) {
    void *block;
    memcpy(&block, pointer, sizeof block);
    free(block);
}
/* Does the same for another local variable: where its scope ends, end(&variable) is called. `end` must allow for the value of the declaration. */
#define ENDED_BY(end) __attribute__((cleanup(end)))

/* Does the same as mem_alloc(), and zeroes the bytes. */
void *mem_zalloc(uint64_t count, uint64_t size, const char *what);

/* Does the same as mem_alloc(), at an address that is a multiple of 128 bytes (two cache lines). */
void *mem_aligned(uint64_t count, uint64_t size, const char *what);

/* Asks the system for large pages for a new block of many megabytes, before it is written to, so that random access waits less for memory. */
void mem_prefer_huge(void *block, uint64_t bytes);

/* Enlarges *block, an array of items of `size` bytes, to at least `need` items. *capacity is its number of items; it at least doubles, so that
 * appending takes linear time. Returns 0, or -1 after fail() with *block unchanged. */
int mem_grow(void *block, uint64_t *capacity, uint64_t need, uint64_t size, const char *what);

/* Enlarges *block to `need` items and no more, for an array whose final size is known. */
int mem_reserve(void *block, uint64_t *capacity, uint64_t need, uint64_t size, const char *what);

/* Returns freed memory to the system: free() alone keeps blocks of up to 32 MiB for later use. To be called after freeing many blocks and before
 * allocating a few large ones. */
void mem_give_back(void);

/* Compare two numbers, for qsort() and bsearch(): uint64_t, uint32_t, double or float, each alone or as the first member of a struct. */
int mem_by_number(const void *a, const void *b);
int mem_by_id(const void *a, const void *b);
int mem_by_double(const void *a, const void *b);
int mem_by_float(const void *a, const void *b);

/* A row, or what else has a number, with its count. The comparison puts higher counts first, and equal ones by number. */
struct mem_counted {
    uint64_t count;
    uint32_t id;
};
int mem_by_falling_count(const void *a, const void *b);

/* Returns the index of the first of these items that begins with a number of at least `value`; `count` if there is none. items: [count] structs of
 * `size` bytes whose first member is a uint64_t, or such numbers; they rise. */
uint64_t mem_first_from(const void *items, uint64_t count, uint64_t size, uint64_t value);

/* Returns a copy of `length` bytes with a NUL after them, which the caller frees; NULL after fail(). */
char *mem_text(const char *bytes, uint64_t length, const char *what);
/* Frees texts[count]: each text, and the array. Does nothing if count is below 0, because making the list had failed. */
void mem_free_texts(char **texts, int64_t count);

/* Return the resident bytes of this process: now, and the most so far; 0 if the system does not say. */
uint64_t mem_resident(void);
uint64_t mem_resident_peak(void);

/* Return the machine's physical bytes, and those available without swapping, limited by control groups (containers). 0 if the system does not say. */
uint64_t mem_total(void);
uint64_t mem_available(void);
/* For tests: do the same as mem_total() and mem_available(), with /proc and /sys under `root`. */
uint64_t mem_total_under(const char *root);
uint64_t mem_available_under(const char *root);

#endif
