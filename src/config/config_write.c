/* config_write: writes keys as an INI file and as help, and compares them with the keys of another config. */
#include "config_keys.h"
#include "defaults_by_size.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes a text in lines of at most `width` bytes, each after `indent`. */
static void put_wrapped(struct json *out, const char *indent, size_t width, const char *text) {
    size_t column = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t word = strcspn(text, " ");
        int breaks = column && column + 1 + word > width;
        if (breaks) json_print(out, "\n"), column = 0;
        json_print(out, "%s%.*s", column ? " " : indent, (int)word, text);
        column += (column ? 1 : strlen(indent)) + word;
        text += word;
    }
    if (column) json_print(out, "\n");
}

/* Writes the fewest digits from which the same number is read back. */
static void format_real(double value, char *out, size_t capacity) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, capacity, "%.*g", digits, value);
        if (numbers_read(out, NULL) == value) return;
    }
}

static void format_bytes(uint64_t bytes, char *out, size_t capacity) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (unit < 4 && bytes && bytes % 1024 == 0) bytes /= 1024, unit++;
    snprintf(out, capacity, "%" PRIu64 "%s", bytes, units[unit]);
}

const char *config_text_of(const struct config *config, const struct config_key *key, char text[CONFIG_BYTES]) {
    switch (key->type) {
    case TYPE_TEXT:
        return *config_text(config, key);
    case TYPE_COUNT:
    case TYPE_BYTES:
        if (*config_count(config, key) == COUNT_AUTO) return "auto";
        if (*config_count(config, key) == COUNT_ALL && config_has_all(key)) return "all";
        if (key->type == TYPE_BYTES)
            format_bytes(*config_count(config, key), text, CONFIG_BYTES);
        else
            snprintf(text, CONFIG_BYTES, "%" PRIu64, *config_count(config, key));
        break;
    case TYPE_REAL:
        if (isnan(*config_real(config, key))) return "auto";
        format_real(*config_real(config, key), text, CONFIG_BYTES);
        break;
    case TYPE_TRUTH:
        return *config_int(config, key) == TRUTH_AUTO ? "auto" : *config_int(config, key) ? "yes" : "no";
    case TYPE_CHOICE:
        return config_choices(key)->name[*config_int(config, key)];
    }
    return text;
}

/* Writes each line of a text, wrapped; changes the text. Lines that begin with two blanks are indented deeper. */
static void put_lines(struct json *out, const char *indent, size_t width, char *text) {
    char deeper[16];
    snprintf(deeper, sizeof deeper, "%s  ", indent);
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        put_wrapped(out, strncmp(line, "  ", 2) ? indent : deeper, width, line);
    }
}

/* Writes a key's help, its possible values (after the first line of the help), and its defaults by size. */
static void put_key_help(struct json *out, const struct config_key *key, const char *indent, size_t width) {
    char kind[256], text[2048], sizes[DEFAULTS_HELP];
    int first = (int)strcspn(key->help, "\n");
    config_describe(key, kind, sizeof kind);
    if (key->type == TYPE_TEXT)
        snprintf(text, sizeof text, "%s", key->help);
    else
        snprintf(text, sizeof text, "%.*s (%s)%s", first, key->help, kind, key->help + first);
    put_lines(out, indent, width, text);
    defaults_describe(key->name, sizes);
    if (*sizes) put_wrapped(out, indent, width, "auto, by the size of the data; the last line that applies counts:");
    put_lines(out, indent, width, sizes);
}

static void put_keys(struct json *out, const struct config *config, int help, int section) {
    char text[CONFIG_BYTES];
    for (int i = 0; i < CONFIG_KEYS; i++) {
        if (strcmp(config_keys[i].section, config_sections[section].name)) continue;
        if (help) json_print(out, "\n"), put_key_help(out, &config_keys[i], "# ", 110);
        const char *value = config_text_of(config, &config_keys[i], text);
        json_print(out, "%s =%s%s\n", config_keys[i].key, *value ? " " : "", value);
    }
}

int config_format(const struct config *config, int help, char **text) {
    struct json out = {.used = 0};
    for (int i = 0; i < CONFIG_SECTIONS; i++) {
        if (i) json_print(&out, "\n");
        if (help) json_print(&out, "# %s\n", config_sections[i].help);
        json_print(&out, "[%s]\n", config_sections[i].name);
        put_keys(&out, config, help, i);
    }
    int failed = out.failed;
    if (failed)
        json_release(&out);
    else
        *text = out.bytes;
    return failed ? -1 : 0;
}

int config_write(const struct config *config, int help, struct file_writer *writer) {
    char *text = NULL;
    if (config_format(config, help, &text)) return -1;
    int result = file_write(writer, text, strlen(text));
    free(text);
    return result;
}

char *config_value(const struct config *config, const char *section, const char *key) {
    char text[CONFIG_BYTES];
    const struct config_key *found = config_find_key(section, key);
    if (!found) {
        fail("there is no key %s.%s", section, key);
        return NULL;
    }
    const char *value = config_text_of(config, found, text);
    return mem_text(value, strlen(value), "the configuration");
}

/* The keys that nearly every run sets, in the order in which a newcomer asks for them. */
static const char *const matter_most[] = {"corpus.path",      "corpus.format",    "run.dir",         "model.dim",
                                          "train.epochs",     "optimizer.lr",     "examples.window", "negatives.count",
                                          "corpus.min_count", "memory.gpu_budget"};
enum { MATTER_MOST = sizeof matter_most / sizeof *matter_most };

static int matters_most(const struct config_key *key) {
    for (int i = 0; i < MATTER_MOST; i++)
        if (!strcmp(key->name, matter_most[i])) return 1;
    return 0;
}

static void put_key(struct json *out, const struct config_key *key) {
    json_print(out, "\n  %s = %s\n", key->name, *key->fallback ? key->fallback : "\"\"");
    put_key_help(out, key, "      ", 118);
}

static void put_matter_most(struct json *out) {
    json_print(out, "\nThe ten that matter most\n");
    for (int i = 0; i < MATTER_MOST; i++)
        for (int k = 0; k < CONFIG_KEYS; k++)
            if (!strcmp(config_keys[k].name, matter_most[i])) put_key(out, &config_keys[k]);
}

static void put_group(struct json *out, const struct config_section *section) {
    json_print(out, "\n[%s]  %s\n", section->name, section->help);
    for (int k = 0; k < CONFIG_KEYS; k++) {
        const struct config_key *key = &config_keys[k];
        if (strcmp(key->section, section->name)) continue;
        if (matters_most(key))
            json_print(out, "\n  %s: above\n", key->name);
        else
            put_key(out, key);
    }
}

int config_print_help(FILE *file) {
    struct json out = {.used = 0};
    put_wrapped(&out, "", 118,
                "Keys of a configuration file, INI: [section], then key = value; a value continues in lines that are indented "
                "deeper; '#' or ';' begins a comment. On the command line --section.key=value sets a key. Numbers may be written "
                "1e6 or 2_000_000, sizes 11GiB or 512MB, yes and no also true, false, on, off. The value after '=' here is the "
                "default; auto is chosen by the other keys or by the machine. In what is said of auto, window, cbow, list, "
                "adjacency, user (without documents) and walk are values of examples.mode; documents is corpus.format = documents; "
                "subwords is window with examples.subwords. The ten keys that matter most are first, then all others by section.");
    put_matter_most(&out);
    for (int i = 0; i < CONFIG_SECTIONS; i++) put_group(&out, &config_sections[i]);
    int failed = out.failed;
    if (!failed) fputs(out.bytes, file);
    json_release(&out);
    return failed ? -1 : 0;
}

/* ---- comparing ---- */

static int changes_numbers(const struct config_key *key) {
    static const char *const others[] = {"train.epochs", "train.steps", "train.report_seconds", "train.merge_every", "corpus.cache", "corpus.max_word"};
    if (!strcmp(key->section, "run") || !strcmp(key->section, "device") || !strcmp(key->section, "memory")) return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(key->name, others[i])) return 0;
    return 1;
}

const char *config_difference(const struct config *a, const struct config *b) {
    char text_a[CONFIG_BYTES], text_b[CONFIG_BYTES];
    for (int i = 0; i < CONFIG_KEYS; i++)
        if (changes_numbers(&config_keys[i]) &&
            strcmp(config_text_of(a, &config_keys[i], text_a), config_text_of(b, &config_keys[i], text_b)))
            return config_keys[i].name;
    return NULL;
}

int config_differences(const struct config *a, const struct config *b, char *out, size_t capacity) {
    char text_a[CONFIG_BYTES], text_b[CONFIG_BYTES];
    size_t used = 0;
    *out = 0;
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const char *of_a = config_text_of(a, &config_keys[i], text_a), *of_b = config_text_of(b, &config_keys[i], text_b);
        if (changes_numbers(&config_keys[i]) && strcmp(of_a, of_b))
            used = text_add(out, capacity, used, "%s%s = %s (%s)", used ? ", " : "", config_keys[i].name, of_a, of_b);
    }
    return used > 0;
}

void config_copy_number(struct config *to, const struct config *from, const struct config_key *key) {
    if (key->type == TYPE_COUNT || key->type == TYPE_BYTES)
        *config_count(to, key) = *config_count(from, key);
    else if (key->type == TYPE_REAL)
        *config_real(to, key) = *config_real(from, key);
    else
        *config_int(to, key) = *config_int(from, key);
}

void config_settle(struct config *config, const struct config *settled) {
    char text[CONFIG_BYTES];
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_key *key = &config_keys[i];
        if (!changes_numbers(key) || key->type == TYPE_TEXT || strcmp(config_text_of(config, key, text), "auto")) continue;
        config_copy_number(config, settled, key);
    }
}
