#include "commands.h"
#include "base/memory.h"
#include "base/report.h"
#include "train/trainer.h"

#include <stdlib.h>

/* sptx-w2v train [CONFIG.ini] [--section.key=value ...] [--resume | --overwrite] */
int cmd_train(int argc, char **argv) {
    struct trainer_options how = {0};
    const struct option options[] = {
        {.name = "resume", .flag = &how.resume}, {.name = "overwrite", .flag = &how.overwrite}, {0}};
    const char **texts = mem_zalloc(2 * (uint64_t)argc, sizeof *texts, "arguments"), **settings = texts + argc;
    struct config config = {0};
    int result = -1, setting_count;
    if (!texts) return -1;
    int given = command_arguments(argc, argv, options, texts, settings, &setting_count);
    if (given < 0) goto out;
    if (how.resume && how.overwrite) {
        fail_usage("train: --resume goes on with a run and --overwrite starts over; give one of them");
        goto out;
    }
    if (command_config_wanted(&config, argv[0], texts, given, settings, setting_count)) goto out;
    result = trainer_run(&config, &how);
out:
    free(texts);
    config_release(&config);
    return result;
}
