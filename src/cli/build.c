#include "build.h"

#include "commands.h"

#include <stdio.h>

/* The Makefile defines these: the commit (git describe), the GPUs' architectures as nvcc names them, names of MPIs. */
void build_print(void) {
    printf("%s\n"
           "commit  " BUILD_COMMIT "\n"
           "CUDA    " BUILD_CUDA "\n"
           "MPI     " BUILD_MPI "\n",
           command_version);
}
