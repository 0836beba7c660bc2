#include "base/progress.h"
#include "base/report.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* sptx-w2v config [CONFIG.ini] [--section.key=value ...] */
int cmd_config(int argc, char **argv) {
    const struct option options[] = {{0}};
    struct arguments arguments;
    struct config config = {0};
    char *text = NULL;
    int result = -1;
    if (arguments_read(&arguments, "config", argc, argv, options, ANY_SECTION)) goto out;
    if (arguments.count > 1) {
        fail_usage("config takes one file, %d given", arguments.count);
        goto out;
    }
    if (arguments_config(&config, 0, arguments.count ? arguments.given[0] : NULL, &arguments) || config_format(&config, 1, &text))
        goto out;
    for (char *line = text; *line; line += strcspn(line, "\n") + 1) { /* printed by terminal_print(), since a value may contain control characters */
        terminal_print(line, strcspn(line, "\n"));
        putchar('\n');
    }
    result = 0;
out:
    free(text);
    arguments_release(&arguments);
    config_release(&config);
    return result;
}
