/* cmd_bench: functions that several kinds of `bench` use. Each kind is a command in its own file. */
#ifndef SPTX_CMD_BENCH_H
#define SPTX_CMD_BENCH_H

#include "commands.h"
#include "train/bench.h"

int cmd_bench_transfer(int argc, char **argv);
int cmd_bench_train(int argc, char **argv);
int cmd_bench_ranks(int argc, char **argv);
int cmd_bench_memory(int argc, char **argv);
int cmd_bench_walks(int argc, char **argv);
int cmd_bench_read(int argc, char **argv);

struct bench_call {
    int argc;
    char **argv;      /* argv[0] is "bench" */
    const char *name; /* the kind's name: "bench train" */
    int json;
    const char *config_path; /* path of the configuration file; NULL: none is given */
};

/* Does what arguments_read() does; besides options, the arguments may be the kind and one configuration file. */
int bench_arguments(struct arguments *arguments, struct bench_call *call, const struct option *options, const char *sections);

/* How long a kind of bench that trains measures. */
struct bench_length {
    double seconds;
    uint64_t steps; /* number of steps; 0: as many as `seconds` allow */
};
int bench_run_arguments(struct arguments *arguments, struct bench_call *call, struct bench_length *length);

/* Prints the circumstances of a measurement: command, device and date; with `gpu` also the speed of plain copies. */
void bench_print_head(const struct bench_call *call, const struct backend_info *machine, const struct bench_limits *limits,
                      int gpu);

#endif
