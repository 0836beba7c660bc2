/* memory: allocation that checks count x size for overflow. If it fails, the message names the purpose of the memory. */
#ifndef SPTX_MEMORY_H
#define SPTX_MEMORY_H

#include <stdint.h>

/* Allocates count x size bytes, uninitialized. Returns NULL after fail() if the product exceeds 2^63 or memory is short. `what`
 * completes the message "not enough memory for WHAT". The caller frees the memory with free(). */
void *mem_alloc(uint64_t count, uint64_t size, const char *what);

/* Works like mem_alloc(), and sets all bytes to zero. */
void *mem_zalloc(uint64_t count, uint64_t size, const char *what);

/* Works like mem_alloc(), with an address that is a multiple of 128 bytes (two cache lines). free() frees it. */
void *mem_aligned(uint64_t count, uint64_t size, const char *what);

/* Asks the system for large pages for a new block of many megabytes, before anything is written to it. Random access to the
 * block then waits less for memory. */
void mem_prefer_huge(void *block, uint64_t bytes);

/* Makes *block, an array of items of `size` bytes, hold at least `need` items. *capacity is its number of items; it at least
 * doubles, so that appending takes linear time. Returns 0, or -1 after fail() with *block unchanged. */
int mem_grow(void *block, uint64_t *capacity, uint64_t need, uint64_t size, const char *what);

/* Makes *block hold at least `need` items, without memory for more. For an array whose final size is known. */
int mem_reserve(void *block, uint64_t *capacity, uint64_t need, uint64_t size, const char *what);

/* Returns freed memory to the system. free() alone keeps blocks of up to 32 MiB for later blocks of the same size. Call this
 * after freeing many blocks and before allocating a few large ones. */
void mem_give_back(void);

/* Returns a copy of `length` bytes with a NUL after them, which the caller frees; NULL after fail(). */
char *mem_text(const char *bytes, uint64_t length, const char *what);
/* Frees texts[count]: each text, and the array. If count is below 0, making the list had failed, and nothing is to be freed. */
void mem_free_texts(char **texts, int64_t count);

/* Return the resident bytes of this process, now and at their highest; 0 if the system does not tell. */
uint64_t mem_resident(void);
uint64_t mem_resident_peak(void);

/* Return the machine's physical bytes, and the bytes available without swapping. If a control group (a container) has a lower
 * limit, that limit is used. 0 if the system does not tell. */
uint64_t mem_total(void);
uint64_t mem_available(void);
/* For tests: work like mem_total() and mem_available(), with /proc and /sys under `root`. */
uint64_t mem_total_under(const char *root);
uint64_t mem_available_under(const char *root);

#endif
