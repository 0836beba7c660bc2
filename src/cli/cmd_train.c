#include "commands.h"
#include "base/report.h"
#include "launch.h"
#include "train/trainer.h"
#include "vectors/judge.h"

#include <string.h>

/* Reads the arguments into a configuration and options of the trainer. */
static int read_arguments(int argc, char **argv, struct config *config, struct trainer_options *how) {
    const char *when = NULL;
    const struct option options[] = {{.name = "resume", .flag = &how->resume},
                                     {.name = "overwrite", .flag = &how->overwrite, .text = &when},
                                     {0}};
    struct arguments arguments;
    int result = -1;
    if (arguments_read(&arguments, argv[0], argc, argv, options, ANY_SECTION)) goto out;
    if (when && strcmp(when, "now")) {
        fail_usage("train: --overwrite = '%.100s' is not now: --overwrite replaces an older run when the new one has a "
                   "checkpoint, --overwrite=now at once",
                   when);
        goto out;
    }
    how->overwrite_now = when != NULL;
    if (how->resume && how->overwrite) {
        fail_usage("train: --resume goes on with a run and --overwrite starts over; give one of them");
        goto out;
    }
    unsigned ranks = ranks_launched() ? how->ranks->count : 0; /* 0: the configuration says how many */
    result = arguments_config_wanted(config, ranks, argv[0], &arguments);
out:
    arguments_release(&arguments);
    return result;
}

/* sptx-w2v train [CONFIG.ini] [--section.key=value ...] [--resume | --overwrite[=now]]; with mpirun, each rank calls it */
int cmd_train(int argc, char **argv) {
    struct ranks ranks;
    struct trainer_options how = {.ranks = &ranks, .judge = judge_checkpoint};
    struct config config = {0};
    int result = command_ranks(&ranks, argv[0]);
    report_hold(); /* hold warnings back: if this process is replaced by mpirun, the ranks read the configuration and warn again */
    if (!result) result = ranks_agree(&ranks, read_arguments(argc, argv, &config, &how));
    if (!result) result = launch_gpus(&config, argv);
    report_tell();
    if (!result) result = trainer_run(&config, &how);
    config_release(&config);
    ranks_close(&ranks);
    return result;
}
