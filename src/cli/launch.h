/* launch: the program begins a rank for each of several GPUs of this machine by itself. */
#ifndef SPTX_LAUNCH_H
#define SPTX_LAUNCH_H

#include "config/config.h"

/* Becomes mpirun with the command's arguments (argv begins with its name), and does not return, where device.gpus asks
 * for several processes and no mpirun began this one. Returns 0 if this process is to go on; -1 after fail(), also if
 * this machine has fewer GPUs than device.gpus. */
int launch_gpus(const struct config *config, char **argv);

#endif
