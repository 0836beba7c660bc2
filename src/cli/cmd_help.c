/* `help`: explains a command, a key, or all; the manual page; completion for bash and zsh. All are made from the tables of commands and keys. The
 * manual's lines are already broken, so man must not fill them. */

#include "base/memory.h"
#include "base/report.h"
#include "commands.h"
#include "sptx.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints a text with escapes for what roff would interpret: backslashes, hyphens, and dots and quotes at the beginning of a line. */
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

/* Returns the text that `print` writes; the caller frees it. NULL after fail(). */
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

static int help_man(void) {
    OWNED char *list = text_of(command_list), *keys = list ? text_of(config_print_help) : NULL;
    if (keys) {
        puts(".TH SPTX\\-W2V 1 \"\" \"sptx\\-w2v " SPTX_VERSION
             "\"\n.SH NAME\nsptx\\-w2v \\- trains embeddings of huge vocabularies");
        put_section("SYNOPSIS", "sptx-w2v COMMAND [ARGUMENT ...]");
        put_section("DESCRIPTION", list);
        puts("\n.SH COMMANDS");
        for (const struct command *c = commands; c->name; c++) put_command(c);
        put_section("CONFIGURATION", keys);
    }
    return keys ? 0 : -1;
}

/* `help bash`, `help zsh`: completion scripts. Options are read from each command's usage and help; keys and their choices from
 * config.def. */

/* ---- what a command takes ---- */

enum { OPTIONS_MOST = 40, OPTION_BYTES = 32 };

struct shown {
    char name[OPTIONS_MOST][OPTION_BYTES]; /* "--k=" if a value follows, otherwise "--json" */
    int count;
};

static void add_text(struct shown *shown, const char *name, size_t length) {
    if (length + 1 > OPTION_BYTES || shown->count == OPTIONS_MOST) return;
    for (int i = 0; i < shown->count; i++)
        if (strlen(shown->name[i]) == length && !strncmp(shown->name[i], name, length)) return;
    snprintf(shown->name[shown->count++], OPTION_BYTES, "%.*s", (int)length, name);
}

/* Adds the option at `at`, unless it is the placeholder for keys ("--section.key=value"). An option with an optional value ("--overwrite[=now]")
 * is added with and without it. */
static void add_at(struct shown *shown, const char *at) {
    size_t length = 2;
    while (isalpha((unsigned char)at[length]) || at[length] == '-') length++;
    if (length == 2 || at[length] == '.') return;
    int may = at[length] == '[' && at[length + 1] == '=', must = at[length] == '=';
    add_text(shown, at, length + (size_t)must);
    if (may) {
        char both[OPTION_BYTES];
        snprintf(both, sizeof both, "%.*s=", (int)length, at);
        add_text(shown, both, strlen(both));
    }
}

/* Adds the options in a usage text, or, with lines = 1, those at the beginning of a help text's lines. */
static void look(struct shown *shown, const char *text, int lines) {
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *end = line + strcspn(line, "\n"), *at = line + strspn(line, " ");
        if (lines && strncmp(at, "--", 2)) continue;
        if (lines) end = strstr(at, "  ") && strstr(at, "  ") < end ? strstr(at, "  ") : end;
        for (; (at = strstr(at, "--")) && at < end; at += 2) add_at(shown, at);
    }
}

/* Returns the section whose keys a command accepts; "": all sections; NULL: none. */
static const char *section_of(const struct command *command) {
    if (strstr(command->usage, "--section.key=")) return "";
    return strstr(command->help, "keys of [device]") ? "device." : NULL;
}

/* ---- the lists that both shells read ---- */

static void put_cases(void) {
    for (const struct command *c = commands; c->name; c++) {
        struct shown shown = {0};
        const char *section = section_of(c), *choices, *name;
        look(&shown, c->usage, 0);
        look(&shown, c->help, 1);
        add_text(&shown, "--help", 6);
        add_text(&shown, "--quiet", 7);
        printf("        %s) offered='", c->name);
        for (int i = 0; i < shown.count; i++) printf("%s%s", i ? " " : "", shown.name[i]);
        for (int i = 0; section && (name = config_key_at(i, &choices)); i++)
            if (!strncmp(name, section, strlen(section))) printf(" --%s=", name);
        puts("' ;;");
    }
}

/* Prints the shell functions that both scripts use: the words that a command accepts, and the values of a key. */
static void put_lists(void) {
    fputs("_sptx_w2v_commands='", stdout);
    for (const struct command *c = commands; c->name; c++) printf(" %s", c->name);
    puts("'\n_sptx_w2v_words() {\n    offered=''\n    case $1 in");
    put_cases();
    puts("    esac\n}\n_sptx_w2v_values() {\n    values=''\n    case $1 in");
    const char *choices, *name;
    for (int i = 0; (name = config_key_at(i, &choices)); i++) {
        if (!choices) continue;
        printf("        --%s) values='", name);
        for (; *choices; choices++) putchar(*choices == '|' ? ' ' : *choices);
        puts("' ;;");
    }
    puts("    esac\n}");
}

static const char of_bash[] =
    "_sptx_w2v() {\n"
    "    local offered values current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} key=\n"
    "    # Bash takes '=' for a word of its own.\n"
    "    if [ \"$current\" = = ]; then key=$before current=\n"
    "    elif [ \"$before\" = = ]; then key=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
    "    if [ -n \"$key\" ]; then\n"
    "        _sptx_w2v_values \"$key\"\n"
    "        if [ -n \"$values\" ]; then COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
    "        else compopt -o default 2>/dev/null; COMPREPLY=(); fi\n"
    "    elif [ \"$COMP_CWORD\" = 1 ] || { [ \"$COMP_CWORD\" = 2 ] && [ \"$before\" = help ]; }; then\n"
    "        COMPREPLY=($(compgen -W \"$_sptx_w2v_commands --version\" -- \"$current\"))\n"
    "    elif [[ $current == -* ]]; then\n"
    "        _sptx_w2v_words \"${COMP_WORDS[1]}\"\n"
    "        COMPREPLY=($(compgen -W \"$offered\" -- \"$current\"))\n"
    "        if [[ ${COMPREPLY-} == *= ]]; then compopt -o nospace 2>/dev/null; fi\n"
    "    else\n"
    "        compopt -o default 2>/dev/null; COMPREPLY=()\n"
    "    fi\n"
    "}\n"
    "complete -F _sptx_w2v sptx-w2v\n";

static const char of_zsh[] =
    "_sptx_w2v() {\n"
    "    local offered values typed=$words[CURRENT] command=$words[2]\n"
    "    if (( CURRENT == 2 )) || { (( CURRENT == 3 )) && [[ $command == help ]] }; then\n"
    "        compadd -- ${=_sptx_w2v_commands} --version\n"
    "    elif [[ $typed == --*=* ]]; then\n"
    "        compset -P '*='\n"
    "        _sptx_w2v_values ${typed%%=*}\n"
    "        if [[ -n $values ]]; then compadd -- ${=values}; else _files; fi\n"
    "    elif [[ $typed == -* ]]; then\n"
    "        _sptx_w2v_words $command\n"
    "        compadd -S '' -- ${(M)${=offered}:#*=}\n"
    "        compadd -- ${${=offered}:#*=}\n"
    "    else\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [[ ${funcstack[1]-} == _sptx-w2v ]]; then _sptx_w2v \"$@\"; else compdef _sptx_w2v sptx-w2v; fi\n";

static int help_bash(void) {
    puts("# Completion for bash, printed by 'sptx-w2v help bash'.");
    put_lists();
    fputs(of_bash, stdout);
    return 0;
}

static int help_zsh(void) {
    puts("#compdef sptx-w2v\n# Completion for zsh, printed by 'sptx-w2v help zsh'.");
    put_lists();
    fputs(of_zsh, stdout);
    return 0;
}

int command_list(FILE *out) {
    fputs("sptx-w2v trains embeddings of words, items, nodes, documents and triples, with tables on the GPU, in RAM or in files.\n\n",
          out);
    for (const struct command *c = commands; c->name; c++) fprintf(out, "  %-16s %s\n", c->name, c->summary);
    fputs("\nsptx-w2v help COMMAND tells a command's options, sptx-w2v help keys every key of a configuration\n"
          "(help SECTION.KEY one of them, help keys SECTION those of a section), sptx-w2v help formats what files of data may\n"
          "look like.\n"
          "--quiet before or behind a command silences stderr but for a failure; --version tells the version.\n"
          "Exit codes: 0 done, 1 failed, 2 called wrongly; a command whose reader has gone (| head) ends as SIGPIPE ends others.\n",
          out);
    return 0;
}

static int print_keys(void) {
    return config_print_help(stdout);
}

static int print_formats(void) {
    return config_print_formats(stdout);
}

static const struct {
    const char *name;
    int (*print)(void);
} topics[] = {{"keys", print_keys}, {"formats", print_formats}, {"man", help_man}, {"bash", help_bash}, {"zsh", help_zsh}};

/* sptx-w2v help [COMMAND|keys [SECTION]|SECTION[.KEY]|formats|man|bash|zsh] */
int cmd_help(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "keys")) return config_print_key(stdout, argv[2]);
    if (argc > 2) return fail_usage("help takes one command, or keys or formats; %d given", argc - 1);
    if (argc < 2) return command_list(stdout);
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        if (!strcmp(argv[1], topics[i].name)) return topics[i].print();
    const struct command *named = commands;
    while (named->name && strcmp(named->name, argv[1])) named++;
    if (strchr(argv[1], '.') || (!named->name && config_is_section(argv[1]))) return config_print_key(stdout, argv[1]);
    const struct command *command = command_find(argv[1]);
    if (command) printf("sptx-w2v %s\n\n%s\n\n%s\n", command->usage, command->summary, command->help);
    return command ? 0 : -1;
}
