/* processor: the name of the machine's processor. */
#ifndef SPTX_PROCESSOR_H
#define SPTX_PROCESSOR_H

#include <stddef.h>

/* Writes the model's name, or "unknown processor". */
void processor_name(char *name, size_t capacity);

#endif
