#include "base/progress.h"
#include "base/report.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints line by line through the terminal's filter, since a value may contain control characters. */
static void print_lines(const char *text) {
    for (size_t length; *text; text += length + 1) {
        length = strcspn(text, "\n"); /* every line ends in a line feed */
        terminal_print(text, length);
        putchar('\n');
    }
}

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
    print_lines(text);
    result = 0;
out:
    free(text);
    arguments_release(&arguments);
    config_release(&config);
    return result;
}
