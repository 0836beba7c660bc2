/* cmd_bench: functions that several kinds of `bench` use. Each kind is a command in a file of its own. */
#ifndef SPTX_CMD_BENCH_H
#define SPTX_CMD_BENCH_H

#include "commands.h"
#include "train/bench.h"

int cmd_bench_transfer(int argc, char **argv);
int cmd_bench_train(int argc, char **argv);
int cmd_bench_ranks(int argc, char **argv);
int cmd_bench_memory(int argc, char **argv);
int cmd_bench_walks(int argc, char **argv);

struct bench_call {
    int argc;
    char **argv;      /* argv[0] is "bench" */
    const char *name; /* "bench train" */
    int json;
    const char *config_path; /* NULL: no file is named */
};

/* Reads arguments like arguments_read(), with the kind and at most one configuration file among them. */
int bench_arguments(struct arguments *arguments, struct bench_call *call, const struct option *options, const char *sections);

/* How long a kind measures that trains a configuration. */
struct bench_length {
    double seconds;
    uint64_t steps; /* 0: as many as `seconds` hold */
};
int bench_run_arguments(struct arguments *arguments, struct bench_call *call, struct bench_length *length);

/* Prints the circumstances of a result: command, device, date and, with `gpu`, the speed of plain copies. */
void bench_print_head(const struct bench_call *call, const struct backend_info *machine, const struct bench_limits *limits,
                      int gpu);

#endif
