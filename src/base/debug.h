/* debug: checks that only a debugging build makes, and lines that trace a batch from its start to its end.
 *
 *   make DEBUG=yes     enables the conditions of INVARIANT(); a false one aborts with its file and line
 *   SPTX_TRACE=1       prints the lines of trace() on stderr, in any build
 */
#ifndef SPTX_DEBUG_H
#define SPTX_DEBUG_H

#include <assert.h>

/* A condition that must hold whatever the caller passes. The Makefile sets SPTX_DEBUG to 1 with DEBUG=yes and to 0 otherwise;
 * with 0 the condition is compiled but not computed. */
#define INVARIANT(condition) assert(!SPTX_DEBUG || (condition))

/* If the environment has SPTX_TRACE=1, prints a line of "trace", the clock's seconds, and the text. Any thread may call it. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
