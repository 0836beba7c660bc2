#include "commands.h"
#include "base/memory.h"
#include "base/report.h"

#include <stdio.h>
#include <stdlib.h>

/* sptx-w2v config [CONFIG.ini] [--section.key=value ...] */
int cmd_config(int argc, char **argv) {
    const struct option options[] = {{0}};
    const char **texts = mem_zalloc(2 * (uint64_t)argc, sizeof *texts, "arguments");
    struct config config = {0};
    char *text = NULL;
    int result = -1, setting_count;
    if (!texts) return -1;
    const char **settings = texts + argc;
    int given = command_arguments(argc, argv, options, texts, settings, &setting_count);
    if (given < 0) goto out;
    if (given > 1) {
        fail_usage("config takes one file, %d given", given);
        goto out;
    }
    if (command_config(&config, given ? texts[0] : NULL, settings, setting_count) || config_format(&config, 1, &text))
        goto out;
    fputs(text, stdout);
    result = 0;
out:
    free(text);
    free(texts);
    config_release(&config);
    return result;
}
