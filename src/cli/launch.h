/* launch: chooses how many GPUs of this machine train a run, and starts one process (rank) for each. */
#ifndef SPTX_LAUNCH_H
#define SPTX_LAUNCH_H

#include "train/gpus.h"

struct launch {
    unsigned gpus;        /* number of processes that train the run, each with a GPU: 1 also if there is no GPU, or for copies */
    char why[GPUS_WHY];   /* text: "1 of 4: .."; "" if device.gpus does not allow several */
    char other[GPUS_WHY]; /* text: keys whose values differ from a run on one GPU, with both values; "" if no key differs */
};

/* Resolves a config, whose keys are set, for the number of GPUs, up to device.gpus, that trains it fastest. To find out, it encodes
 * the corpus, which the ranks then reuse. Returns 0, or -1 after fail(). */
int launch_choose(struct config *config, struct launch *launch);

/* Prints the choice, if there is one: to stdout, or as notes. */
void launch_print(const struct launch *launch, int to_stdout);

/* Fails if device.gpus is larger than the number of GPUs: two processes that share a GPU, or a CPU, are slower than one. */
int launch_check_gpus(const struct config *config);

/* If several GPUs were chosen, replaces this process by mpirun with the command's arguments (argv begins with its name), and does
 * not return. Otherwise returns 0; -1 after fail(). */
int launch_gpus(const struct launch *launch, char **argv);

/* Returns 1 if launch_gpus() began this process: it has then warned about the keys already. */
int launch_warned(void);

#endif
