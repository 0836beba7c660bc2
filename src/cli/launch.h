/* launch: a rank for each of several GPUs of this machine, begun by the program itself. */
#ifndef SPTX_LAUNCH_H
#define SPTX_LAUNCH_H

#include "config/config.h"

/* Where device.gpus asks for several processes and no mpirun began this one: becomes mpirun, with the command's arguments (argv
 * begins with its name), and does not come back. 0 where this process is to go on; -1 after fail(). */
int launch_gpus(const struct config *config, char **argv);

#endif
