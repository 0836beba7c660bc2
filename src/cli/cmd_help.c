#include "cmd_help.h"
#include "commands.h"
#include "base/report.h"

#include <stdio.h>
#include <string.h>

void command_list(FILE *out) {
    fputs("sptx-w2v trains skip-gram embeddings with negative sampling, tables on the GPU, in pinned memory or in "
          "files.\n\n",
          out);
    for (const struct command *c = commands; c->name; c++) fprintf(out, "  %-16s %s\n", c->name, c->summary);
    fputs("\nsptx-w2v help COMMAND tells a command's options, sptx-w2v help keys every key of a configuration.\n"
          "--quiet before or behind a command silences stderr but for a failure; --version tells the version.\n"
          "Exit codes: 0 done, 1 failed, 2 called wrongly; a command whose reader has gone (| head) ends as SIGPIPE ends others.\n",
          out);
}

static int print_command(const char *name) {
    const struct command *command = command_find(name);
    if (!command) return -1;
    printf("sptx-w2v %s\n\n%s\n\n%s\n", command->usage, command->summary, command->help);
    return 0;
}

static int print_keys(void) {
    return config_print_help(stdout);
}

static const struct {
    const char *name;
    int (*print)(void);
} topics[] = {{"keys", print_keys}, {"man", help_man}, {"bash", help_bash}, {"zsh", help_zsh}};

/* sptx-w2v help [COMMAND|keys|man|bash|zsh] */
int cmd_help(int argc, char **argv) {
    if (argc > 2) return fail_usage("help takes one command, or keys; %d given", argc - 1);
    if (argc < 2) return command_list(stdout), 0;
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        if (!strcmp(argv[1], topics[i].name)) return topics[i].print();
    return print_command(argv[1]);
}
