/* debug: checks that only a debugging build makes, and lines that follow a batch through its life.
 *
 *   make DEBUG=yes     compiles the conditions of INVARIANT(); a false one aborts with its file and line
 *   SPTX_TRACE=1       prints the lines of trace() on stderr, in any build
 */
#ifndef SPTX_DEBUG_H
#define SPTX_DEBUG_H

/* A condition that the module keeps by itself, whatever its caller gives. Without DEBUG=yes it is not even computed. */
#ifdef SPTX_DEBUG
#include <assert.h>
#define INVARIANT(condition) assert(condition)
#else
#define INVARIANT(condition) ((void)sizeof(condition)) /* names are checked, nothing is computed */
#endif

int trace_on(void); /* returns 1 if the environment has SPTX_TRACE=1. Any thread may call */
/* Prints "trace", the seconds since the first line, and the text, if trace_on(). */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
