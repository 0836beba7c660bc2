/* processor: what the machine's processor calls itself. */
#ifndef SPTX_PROCESSOR_H
#define SPTX_PROCESSOR_H

#include <stddef.h>

/* The model's name, or "unknown processor". */
void processor_name(char *name, size_t capacity);

#endif
