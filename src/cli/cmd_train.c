#include "base/report.h"
#include "commands.h"
#include "launch.h"
#include "train/trainer.h"
#include "vectors/evaluate.h"

#include <string.h>

/* Reads the arguments into options of the trainer, and into a configuration that is not resolved. */
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
    result = arguments_keys_wanted(config, argv[0], &arguments);
out:
    arguments_release(&arguments);
    return result;
}

/* Resolves the configuration for the processes that train it. If it should be trained on several GPUs and mpirun did not begin this
 * process, replaces the process by mpirun. */
static int settle_ranks(struct config *config, const struct ranks *ranks, char **argv) {
    struct launch launch = {0};
    if (ranks_launched() || ranks->count > 1) {
        config->ranks = ranks->count;
        report_hold();
        int result = config_resolve(config);
        report_release(!launch_warned());
        return result;
    }
    if (config->device_gpus > 1 && launch_check_gpus(config)) return -1;
    if (launch_choose(config, &launch)) return -1;
    launch_print(&launch, 0);
    return launch_gpus(&launch, argv);
}

/* sptx-w2v train [CONFIG.ini] [--section.key=value ...] [--resume | --overwrite[=now]]; with mpirun, each rank calls it */
int cmd_train(int argc, char **argv) {
    struct ranks ranks;
    struct trainer_options how = {.ranks = &ranks, .judge = judge_checkpoint};
    struct config config = {0};
    int result = command_ranks(&ranks, argv[0]);
    if (!result) result = ranks_agree(&ranks, read_arguments(argc, argv, &config, &how));
    if (!result) result = ranks_agree(&ranks, settle_ranks(&config, &ranks, argv));
    if (!result) result = trainer_run(&config, &how);
    config_release(&config);
    ranks_close(&ranks);
    return result;
}
