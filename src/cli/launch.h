/* launch: starts one rank for each of several GPUs of this machine. */
#ifndef SPTX_LAUNCH_H
#define SPTX_LAUNCH_H

#include "config/config.h"

/* If device.gpus asks for several processes and mpirun did not begin this one, replaces this process by mpirun with the
 * command's arguments (argv begins with its name), and does not return. Otherwise returns 0; -1 after fail(), also if this
 * machine has fewer GPUs than device.gpus. */
int launch_gpus(const struct config *config, char **argv);

#endif
