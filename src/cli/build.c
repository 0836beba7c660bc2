#include "build.h"

#include "commands.h"

#include <stdio.h>

/* The Makefile defines these macros: the commit (git describe), the GPU architectures as nvcc names them, and the names of the
 * MPIs. */
void build_print(void) {
    printf("%s\n"
           "commit  " BUILD_COMMIT "\n"
           "CUDA    " BUILD_CUDA "\n"
           "MPI     " BUILD_MPI "\n",
           command_version);
}
