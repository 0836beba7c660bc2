#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* sptx-w2v config [CONFIG.ini] [--section.key=value ...] */
int cmd_config(int argc, char **argv) {
    const struct option options[] = {{0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(config_release) struct config config = {0};
    OWNED char *text = NULL;
    if (arguments_read(&arguments, "config", argc, argv, options, ANY_SECTION)) return -1;
    if (arguments.count > 1) return fail_usage("config takes one file, %d given", arguments.count);
    if (arguments_config(&config, 0, arguments.count ? arguments.given[0] : NULL, &arguments) || config_format(&config, 1, &text))
        return -1;
    for (char *line = text; *line; line += strcspn(line, "\n") + 1) { /* printed by terminal_print(), since a value may contain control characters */
        terminal_print(line, strcspn(line, "\n"));
        putchar('\n');
    }
    return 0;
}
