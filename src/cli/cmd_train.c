#include "commands.h"
#include "base/memory.h"
#include "base/report.h"
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>

/* sptx-w2v train [CONFIG.ini] [--section.key=value ...] [--resume | --overwrite[=now]] */
int cmd_train(int argc, char **argv) {
    struct trainer_options how = {0};
    const char *when = NULL;
    const struct option options[] = {{.name = "resume", .flag = &how.resume},
                                     {.name = "overwrite", .flag = &how.overwrite, .text = &when},
                                     {0}};
    const char **texts = mem_zalloc(2 * (uint64_t)argc, sizeof *texts, "arguments");
    struct config config = {0};
    int result = -1, setting_count;
    if (!texts) return -1;
    const char **settings = texts + argc;
    int given = command_arguments(argc, argv, options, texts, settings, &setting_count);
    if (given < 0) goto out;
    if (when && strcmp(when, "now")) {
        fail_usage("train: --overwrite = '%.100s' is not now: --overwrite replaces an older run when the new one has a "
                   "checkpoint, --overwrite=now at once",
                   when);
        goto out;
    }
    how.overwrite_now = when != NULL;
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
