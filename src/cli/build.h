/* build: prints what this program was built from, and for which machines. */
#ifndef SPTX_BUILD_H
#define SPTX_BUILD_H

/* Prints, one a line, the version, the commit, the GPUs that the program has machine code for, and the MPIs that it can load. */
void build_print(void);

#endif
