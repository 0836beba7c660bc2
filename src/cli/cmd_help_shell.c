/* `help bash`, `help zsh`: completion scripts. Options are read from each command's usage and help; keys and their choices from
 * config.def. */
#include "cmd_help.h"
#include "commands.h"

#include <ctype.h>
#include <string.h>

/* ---- what a command takes ---- */

enum { OPTIONS_MOST = 40, OPTION_BYTES = 32 };

struct shown {
    char name[OPTIONS_MOST][OPTION_BYTES]; /* "--k=" if a value follows, "--json" if none does */
    int count;
};

static void add_text(struct shown *shown, const char *name, size_t length) {
    if (length + 1 > OPTION_BYTES || shown->count == OPTIONS_MOST) return;
    for (int i = 0; i < shown->count; i++)
        if (strlen(shown->name[i]) == length && !strncmp(shown->name[i], name, length)) return;
    snprintf(shown->name[shown->count++], OPTION_BYTES, "%.*s", (int)length, name);
}

/* Adds the option that begins at `at`, but not the placeholder for keys ("--section.key=value"). An option with an optional
 * value ("--overwrite[=now]") is added with and without it. */
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

/* Adds the options in a usage text, or (lines = 1) the options that begin a line of a help text. */
static void look(struct shown *shown, const char *text, int lines) {
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *end = line + strcspn(line, "\n"), *at = line + strspn(line, " ");
        if (lines && strncmp(at, "--", 2)) continue;
        if (lines) end = strstr(at, "  ") && strstr(at, "  ") < end ? strstr(at, "  ") : end;
        for (; (at = strstr(at, "--")) && at < end; at += 2) add_at(shown, at);
    }
}

static struct shown options_of(const struct command *command) {
    struct shown shown = {0};
    look(&shown, command->usage, 0);
    look(&shown, command->help, 1);
    add_text(&shown, "--help", 6);
    add_text(&shown, "--quiet", 7);
    return shown;
}

/* Returns the section whose keys a command accepts: "": all sections; NULL: no keys. */
static const char *section_of(const struct command *command) {
    if (strstr(command->usage, "--section.key=")) return "";
    return strstr(command->help, "keys of [device]") ? "device." : NULL;
}

/* ---- the lists that both shells read ---- */

static void put_names(void) {
    for (const struct command *c = commands; c->name; c++) printf(" %s", c->name);
}

static void put_keys(const char *section) {
    const char *choices, *name;
    for (int i = 0; (name = config_key_at(i, &choices)); i++)
        if (!strncmp(name, section, strlen(section))) printf(" --%s=", name);
}

static void put_cases(void) {
    for (const struct command *c = commands; c->name; c++) {
        struct shown shown = options_of(c);
        const char *section = section_of(c);
        printf("        %s) offered='", c->name);
        for (int i = 0; i < shown.count; i++) printf("%s%s", i ? " " : "", shown.name[i]);
        if (section) put_keys(section);
        puts("' ;;");
    }
}

static void put_choices(void) {
    const char *choices, *name;
    for (int i = 0; (name = config_key_at(i, &choices)); i++) {
        if (!choices) continue;
        printf("        --%s) values='", name);
        for (; *choices; choices++) putchar(*choices == '|' ? ' ' : *choices);
        puts("' ;;");
    }
}

/* Prints the shell functions that both scripts use: the words that a command accepts, and the values of a key. The rest of each
 * script is its own. */
static void put_lists(void) {
    fputs("_sptx_w2v_commands='", stdout);
    put_names();
    puts("'\n_sptx_w2v_words() {\n    offered=''\n    case $1 in");
    put_cases();
    puts("    esac\n}\n_sptx_w2v_values() {\n    values=''\n    case $1 in");
    put_choices();
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

int help_bash(void) {
    puts("# Completion for bash, printed by 'sptx-w2v help bash'.");
    put_lists();
    fputs(of_bash, stdout);
    return 0;
}

int help_zsh(void) {
    puts("#compdef sptx-w2v\n# Completion for zsh, printed by 'sptx-w2v help zsh'.");
    put_lists();
    fputs(of_zsh, stdout);
    return 0;
}
