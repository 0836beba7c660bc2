/* `help man`: the help texts as a man page. Their lines are broken already, so man must not fill lines. */
#include "cmd_help.h"
#include "commands.h"
#include "base/report.h"

#include "sptx.h"

#include <stdlib.h>

/* Prints a text, with an escape before what roff would interpret: backslashes, hyphens, and dots and quotes at the beginning of
 * a line. */
static void put_text(const char *text) {
    int begins = 1;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

static void put_section(const char *title, const char *text) {
    printf("\n.SH %s\n.nf\n", title);
    put_text(text);
    fputs("\n.fi\n", stdout);
}

static void put_command(const struct command *command) {
    printf(".SS \"%s\"\n.nf\n", command->name);
    put_text("sptx-w2v ");
    put_text(command->usage);
    fputs("\n\n", stdout);
    put_text(command->summary);
    fputs("\n\n", stdout);
    put_text(command->help);
    fputs("\n.fi\n", stdout);
}

static int print_list(FILE *out) {
    command_list(out);
    return 0;
}

/* Returns the text that `print` writes, for the caller to free; NULL after fail(). */
static char *text_of(int (*print)(FILE *out)) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int result = out ? print(out) : -1;
    if (out && !fclose(out) && !result) return text;
    free(text);
    fail("no memory for the manual page");
    return NULL;
}

int help_man(void) {
    char *list = text_of(print_list), *keys = list ? text_of(config_print_help) : NULL;
    if (keys) {
        puts(".TH SPTX\\-W2V 1 \"\" \"sptx\\-w2v " SPTX_VERSION
             "\"\n.SH NAME\nsptx\\-w2v \\- trains embeddings of huge vocabularies");
        put_section("SYNOPSIS", "sptx-w2v COMMAND [ARGUMENT ...]");
        put_section("DESCRIPTION", list);
        puts("\n.SH COMMANDS");
        for (const struct command *c = commands; c->name; c++) put_command(c);
        put_section("CONFIGURATION", keys);
    }
    free(keys);
    free(list);
    return keys ? 0 : -1;
}
