/* memory: allocation that checks count x size for overflow. If it fails, the message names the purpose of the memory. */
#ifndef SPTX_MEMORY_H
#define SPTX_MEMORY_H

#include <stdint.h>

/* count x size bytes, uninitialized. NULL after fail() where the product passes 2^63 or the system refuses.
 * `what` completes the sentence "not enough memory for WHAT". The caller frees with free(). */
void *mem_alloc(uint64_t count, uint64_t size, const char *what);

/* Works like mem_alloc(), and sets all bits to zero. */
void *mem_zalloc(uint64_t count, uint64_t size, const char *what);

/* Works like mem_alloc(), and starts at a multiple of 128 bytes (two cache lines). free() frees it. */
void *mem_aligned(uint64_t count, uint64_t size, const char *what);

/* Asks the system for large pages under a block of many megabytes that nothing has been written to: who reads and writes it here
 * and there waits less. */
void mem_prefer_huge(void *block, uint64_t bytes);

/* Grows *block (of items of `size` bytes) so that it holds at least `need` items; *capacity is in items.
 * Doubles, so that appending is linear. 0, or -1 after fail() with *block untouched. */
int mem_grow(void *block, uint64_t *capacity, uint64_t need, uint64_t size, const char *what);

/* Makes *block hold exactly `need` items, where no more will ever be needed. */
int mem_reserve(void *block, uint64_t *capacity, uint64_t need, uint64_t size, const char *what);

/* Returns freed memory to the system. free() alone keeps blocks of up to 32 MiB for later ones of their size: call this
 * where many have been freed and a few large ones come next. */
void mem_give_back(void);

/* Copies `length` bytes and puts a NUL after them. */
char *mem_text(const char *bytes, uint64_t length, const char *what);
/* Frees texts[count], each text and the array. A count below 0 means that making the list failed: nothing is freed. */
void mem_free_texts(char **texts, int64_t count);

/* Returns the resident bytes of this process now, and the highest so far (0 where the system does not tell). */
uint64_t mem_resident(void);
uint64_t mem_resident_peak(void);

/* Returns the machine's physical bytes, and the bytes that can be had without swapping. If a control group (a container) allows
 * fewer, its numbers count. 0 if the system does not tell. */
uint64_t mem_total(void);
uint64_t mem_available(void);
/* For tests: reads a system whose /proc and /sys lie under `root`. */
uint64_t mem_total_under(const char *root);
uint64_t mem_available_under(const char *root);

#endif
