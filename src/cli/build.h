/* build: what this program was built from and for, as the Makefile says it. */
#ifndef SPTX_BUILD_H
#define SPTX_BUILD_H

/* Prints the version, the commit, the GPUs that there is machine code for, and the MPIs that can be loaded: a line
 * each. */
void build_print(void);

#endif
