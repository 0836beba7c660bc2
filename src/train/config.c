/* config: see config.h. One table of keys, made from config.def, serves every direction: in from INI and arguments, out
 * to the resolved file, and the help. */
#include "config.h"

#include "kernels/backend.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "rows/rules.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- the table of keys ---- */

enum key_type { TYPE_TEXT, TYPE_COUNT, TYPE_REAL, TYPE_BYTES, TYPE_TRUTH, TYPE_CHOICE };

struct key {
    enum key_type type;
    const char *name; /* "model.dim" */
    const char *section, *key;
    const char *fallback;
    const char *list; /* TYPE_CHOICE: "a|b|c" */
    const char *help;
    size_t offset;          /* of its value in struct config */
    uint64_t least, most;   /* TYPE_COUNT */
    double lowest, highest; /* TYPE_REAL */
};

#define BEGIN(kind, s, k, default_text, help_text)                                                                     \
    .type = kind, .name = #s "." #k, .section = #s, .key = #k, .fallback = default_text, .help = help_text,            \
    .offset = offsetof(struct config, s##_##k)
#define SECTION(name, help)
#define TEXT(s, k, fallback, help)             {BEGIN(TYPE_TEXT, s, k, fallback, help)},
#define COUNT(s, k, fallback, low, high, help) {BEGIN(TYPE_COUNT, s, k, fallback, help), .least = low, .most = high},
#define REAL(s, k, fallback, low, high, help)  {BEGIN(TYPE_REAL, s, k, fallback, help), .lowest = low, .highest = high},
#define BYTES(s, k, fallback, help)            {BEGIN(TYPE_BYTES, s, k, fallback, help)},
#define TRUTH(s, k, fallback, help)            {BEGIN(TYPE_TRUTH, s, k, fallback, help)},
#define CHOICE(s, k, fallback, choices, help)  {BEGIN(TYPE_CHOICE, s, k, fallback, help), .list = choices},
_Static_assert((int)HEADER_NO == 0 && (int)HEADER_YES == 1 && (int)HEADER_AUTO == (int)TRUTH_AUTO, "corpus.header is a truth");
_Static_assert((int)RULE_AUTO == (int)RULE_COUNT, "auto stands behind the rules");
static const struct key keys[] = {
#include "config.def"
};
#undef SECTION
#undef TEXT
#undef COUNT
#undef REAL
#undef BYTES
#undef TRUTH
#undef CHOICE

#define SECTION(section, text) {#section, text},
#define TEXT(s, k, fallback, help)
#define COUNT(s, k, fallback, low, high, help)
#define REAL(s, k, fallback, low, high, help)
#define BYTES(s, k, fallback, help)
#define TRUTH(s, k, fallback, help)
#define CHOICE(s, k, fallback, choices, help)
static const struct {
    const char *name, *help;
} sections[] = {
#include "config.def"
};
#undef SECTION
#undef TEXT
#undef COUNT
#undef REAL
#undef BYTES
#undef TRUTH
#undef CHOICE

enum { KEYS = sizeof keys / sizeof *keys, SECTIONS = sizeof sections / sizeof *sections, CHOICES = 16 };

/* The lists of the choices taken apart, once: names that config_choice_name() can hand out. */
static struct choices {
    char text[128];
    const char *name[CHOICES];
    int count;
} choices[KEYS];
static pthread_once_t choices_made = PTHREAD_ONCE_INIT;

static void make_choices(void) {
    for (int i = 0; i < KEYS; i++) {
        struct choices *c = &choices[i];
        char *rest = c->text, *name;
        if (!keys[i].list) continue;
        snprintf(c->text, sizeof c->text, "%s", keys[i].list);
        while (c->count < CHOICES && (name = strsep(&rest, "|"))) c->name[c->count++] = name;
    }
}

static const struct choices *choices_of(const struct key *key) {
    pthread_once(&choices_made, make_choices);
    return &choices[key - keys];
}

static const struct key *find_key(const char *section, const char *key) {
    for (int i = 0; i < KEYS; i++)
        if (!strcmp(keys[i].section, section) && !strcmp(keys[i].key, key)) return &keys[i];
    return NULL;
}

static int is_section(const char *name) {
    for (int i = 0; i < SECTIONS; i++)
        if (!strcmp(name, sections[i].name)) return 1;
    return 0;
}

static int has_auto(const struct key *key) {
    return !strcmp(key->fallback, "auto");
}

static char **text_at(const struct config *config, const struct key *key) {
    return (char **)((char *)config + key->offset);
}
static uint64_t *count_at(const struct config *config, const struct key *key) {
    return (uint64_t *)((char *)config + key->offset);
}
static double *real_at(const struct config *config, const struct key *key) {
    return (double *)((char *)config + key->offset);
}
static int *int_at(const struct config *config, const struct key *key) {
    return (int *)((char *)config + key->offset);
}

/* ---- texts with a form of their own ---- */

static int read_rating(const char *text, double *rating) {
    *rating = -INFINITY;
    return strcmp(text, "none") ? text_real(text, rating) : 0;
}

struct checkpoint_times {
    double seconds, share;
    uint64_t steps;
    int epochs;
};

/* run.checkpoint_every = auto: half an hour is what a kill may cost; the share keeps tables that take minutes to write from
 * slowing the run. */
static const double auto_seconds = 30 * 60, auto_share = 0.03;

/* One of "auto", "10m", "5000 steps", "epoch", "end". A bare number is refused: it could be either. */
static int read_time_of_checkpoint(char *text, struct checkpoint_times *times) {
    char *word = text_strip(text);
    size_t length = strlen(word);
    if (!strcmp(word, "end")) return 0;
    if (!strcmp(word, "auto")) {
        if (times->seconds > 0) return 0; /* a time of the user's own stands beside it */
        times->seconds = auto_seconds;
        times->share = auto_share;
        return 0;
    }
    if (!strcmp(word, "epoch")) {
        times->epochs = 1;
        return 0;
    }
    if (!length || !isalpha((unsigned char)word[length - 1])) return -1;
    size_t unit = length > 5 && !strcmp(word + length - 5, "steps")  ? 5
                  : length > 4 && !strcmp(word + length - 4, "step") ? 4
                                                                     : 0;
    if (unit) {
        word[length - unit] = 0;
        return text_count(word, &times->steps) || !times->steps ? -1 : 0;
    }
    times->share = 0;
    return text_time(word, &times->seconds) || !(times->seconds > 0) ? -1 : 0;
}

/* Several, separated by commas, may stand together. */
static int read_checkpoint_times(const char *text, struct checkpoint_times *times) {
    char copy[256], *rest = copy, *part;
    *times = (struct checkpoint_times){0};
    if (strlen(text) >= sizeof copy) return -1;
    strcpy(copy, text);
    while ((part = strsep(&rest, ",")))
        if (read_time_of_checkpoint(part, times)) return -1;
    return 0;
}

/* What a text may hold so that the INI file that it is written to reads back the same. NULL, or what it is not. */
static const char *refuse_text(const struct key *key, const char *text) {
    double rating;
    struct checkpoint_times times;
    for (const char *at = text; *at; at++)
        if (iscntrl((unsigned char)*at) && *at != '\t') return "a text of one line";
    for (const char *at = strchr(text, ';'); at; at = strchr(at + 1, ';'))
        if (at == text || isspace((unsigned char)at[-1])) return "free of ' ;', which begins a comment in an INI file";
    if (!strcmp(key->name, "corpus.path")) return NULL; /* config_paths() knows what double quotes mean */
    if (strchr(text, '"')) return "free of double quotes within it";
    if (!strcmp(key->name, "corpus.min_rating") && read_rating(text, &rating)) return "a number or none";
    if (!strcmp(key->name, "run.checkpoint_every") && read_checkpoint_times(text, &times))
        return "a time (10m), a number of steps (5000 steps), epoch, end or auto";
    return NULL;
}

/* Takes away one pair of double quotes around the whole. */
static void unquote(char *text) {
    size_t length = strlen(text);
    if (length < 2 || text[0] != '"' || text[length - 1] != '"') return;
    memmove(text, text + 1, length - 2);
    text[length - 2] = 0;
}

/* ---- one value in ---- */

/* What a key takes, for sentences and help: "a whole number from 1 to 4,096, or auto". */
static void describe(const struct key *key, char *out, size_t room) {
    char low[TEXT_ROOM], high[TEXT_ROOM];
    const char *automatic = has_auto(key) && key->type != TYPE_CHOICE ? ", or auto" : "";
    switch (key->type) {
    case TYPE_TEXT:
        snprintf(out, room, "text");
        break;
    case TYPE_COUNT:
        if (key->most > INT64_MAX / 4)
            snprintf(out, room, "a whole number from %s on%s", text_of_count(low, key->least), automatic);
        else
            snprintf(out, room, "a whole number from %s to %s%s", text_of_count(low, key->least),
                     text_of_count(high, key->most), automatic);
        break;
    case TYPE_REAL:
        snprintf(out, room, "a number from %g to %g%s", key->lowest, key->highest, automatic);
        break;
    case TYPE_BYTES:
        snprintf(out, room, "a size such as 512MB or 11GiB%s", automatic);
        break;
    case TYPE_TRUTH:
        snprintf(out, room, "yes or no%s", automatic);
        break;
    case TYPE_CHOICE: {
        const struct choices *c = choices_of(key);
        size_t used = 0;
        for (int i = 0; i < c->count && used < room; i++)
            used += (size_t)snprintf(out + used, room - used, "%s%s",
                                     i == 0             ? ""
                                     : i + 1 < c->count ? ", "
                                                        : " or ",
                                     c->name[i]);
        break;
    }
    }
}

static int set_number(struct config *config, const struct key *key, const char *value) {
    int automatic = has_auto(key) && !strcasecmp(value, "auto");
    uint64_t count = COUNT_AUTO;
    double real = NAN;
    int truth = TRUTH_AUTO;
    switch (key->type) {
    case TYPE_COUNT:
        if (!automatic && (text_count(value, &count) || count < key->least || count > key->most)) return -1;
        *count_at(config, key) = count;
        return 0;
    case TYPE_BYTES:
        if (!automatic && text_bytes(value, &count)) return -1;
        *count_at(config, key) = count;
        return 0;
    case TYPE_REAL:
        if (!automatic && (text_real(value, &real) || real < key->lowest || real > key->highest)) return -1;
        *real_at(config, key) = real;
        return 0;
    case TYPE_TRUTH:
        if (!automatic && text_truth(value, &truth)) return -1;
        *int_at(config, key) = truth;
        return 0;
    case TYPE_CHOICE:
        for (int i = 0; i < choices_of(key)->count; i++)
            if (!strcasecmp(value, choices_of(key)->name[i])) {
                *int_at(config, key) = i;
                return 0;
            }
        return -1;
    case TYPE_TEXT:
        break;
    }
    return -1;
}

/* fail() or fail_usage(): whether a wrong value is the file's fault or the command line's. */
typedef int refuser(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int refuse_value(const struct key *key, const char *value, const char *wanted, const char *where,
                        refuser *refuse) {
    const char *near =
        key->type == TYPE_CHOICE ? text_nearest(value, choices_of(key)->name, (size_t)choices_of(key)->count) : NULL;
    return refuse("%s: %s = '%.200s' is not %s%s%s%s", where, key->name, value, wanted, near ? "; did you mean '" : "",
                  near ? near : "", near ? "'?" : "");
}

static int set_text(struct config *config, const struct key *key, char *value, const char *where, refuser *refuse) {
    if (strcmp(key->name, "corpus.path")) unquote(value);
    const char *wanted = refuse_text(key, value);
    if (wanted) return refuse_value(key, value, wanted, where, refuse);
    char *copy = mem_text(value, strlen(value), "the configuration");
    if (!copy) return -1;
    free(*text_at(config, key));
    *text_at(config, key) = copy;
    return 0;
}

static int set_value(struct config *config, const struct key *key, const char *given, const char *where,
                     refuser *refuse) {
    char wanted[256], *copy = mem_text(given, strlen(given), "the configuration");
    if (!copy) return -1;
    char *value = text_strip(copy);
    int result = 0;
    if (key->type == TYPE_TEXT) {
        result = set_text(config, key, value, where, refuse);
    } else if (set_number(config, key, value)) {
        describe(key, wanted, sizeof wanted);
        result = refuse_value(key, value, wanted, where, refuse);
    }
    free(copy);
    return result;
}

/* ---- names that are not there ---- */

static int refuse_section(const char *section, const char *where, refuser *refuse) {
    const char *names[SECTIONS];
    char all[256] = "";
    for (int i = 0; i < SECTIONS; i++) {
        names[i] = sections[i].name;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = text_nearest(section, names, SECTIONS);
    if (near) return refuse("%s: there is no section '%.100s'; did you mean '%s'?", where, section, near);
    return refuse("%s: there is no section '%.100s'; the sections are %s", where, section, all);
}

static int refuse_key(const char *section, const char *key, const char *where, refuser *refuse) {
    const char *names[KEYS];
    size_t count = 0;
    if (!is_section(section)) return refuse_section(section, where, refuse);
    for (int i = 0; i < KEYS; i++)
        if (!strcmp(keys[i].section, section)) names[count++] = keys[i].key;
    const char *near = text_nearest(key, names, count);
    if (!near || strlen(key) < 3) /* perhaps it stands in another section */
        for (int i = 0; i < KEYS; i++)
            if (!strcmp(keys[i].key, key))
                return refuse("%s: [%s] has no key '%.100s'; did you mean %s?", where, section, key, keys[i].name);
    if (near) return refuse("%s: [%s] has no key '%.100s'; did you mean '%s'?", where, section, key, near);
    return refuse("%s: [%s] has no key '%.100s'; 'sptx-w2v help keys' lists them all", where, section, key);
}

static int set_named(struct config *config, const char *section, const char *key, const char *value, const char *where,
                     refuser *refuse) {
    const struct key *found = find_key(section, key);
    return found ? set_value(config, found, value, where, refuse) : refuse_key(section, key, where, refuse);
}

int config_set(struct config *config, const char *section, const char *key, const char *value, const char *where) {
    return set_named(config, section, key, value, where, fail);
}

int config_argument(struct config *config, const char *argument) {
    static const char where[] = "command line";
    char section[64], key[64];
    size_t name = strcspn(argument, "=");
    const char *dot = memchr(argument, '.', name);
    if (strncmp(argument, "--", 2) || !dot || dot == argument + 2) return 1;
    snprintf(section, sizeof section, "%.*s", (int)(dot - argument - 2), argument + 2);
    snprintf(key, sizeof key, "%.*s", (int)(argument + name - dot - 1), dot + 1);
    if (!argument[name] && find_key(section, key)) return fail_usage("%s needs a value: %s=...", argument, argument);
    return set_named(config, section, key, argument[name] ? argument + name + 1 : "", where, fail_usage);
}

/* ---- defaults ---- */

int config_init(struct config *config) {
    *config = (struct config){0};
    for (int i = 0; i < KEYS; i++)
        if (set_value(config, &keys[i], keys[i].fallback, "default", fail)) return -1;
    return 0;
}

void config_release(struct config *config) {
    for (int i = 0; i < KEYS; i++)
        if (keys[i].type == TYPE_TEXT) free(*text_at(config, &keys[i]));
    free(config->name);
    *config = (struct config){0};
}

/* ---- from a file ---- */

enum { LONGEST_FILE = 16 << 20 }; /* bytes: whatever is longer is no configuration */

/* The INI that is being read, line by line, each of any length. */
struct ini_source {
    const char *path;
    char *at;            /* what follows the current line */
    unsigned line;       /* number of the current one */
    const char *section; /* in the text; NULL before the first */
    unsigned *key_lines; /* [KEYS] where a key was set, 0: not yet */
    struct config *config;
};

/* The next line as a string without blanks at its ends, or NULL behind the last. LF, CR and CRLF end a line. */
static char *next_line(struct ini_source *source) {
    char *line = source->at, *end = line + strcspn(line, "\r\n");
    if (!*line) return NULL;
    source->at = *end ? end + 1 + (end[0] == '\r' && end[1] == '\n') : end;
    source->line++;
    *end = 0;
    return text_strip(line);
}

static int is_comment(const char *text) {
    return *text == '#' || *text == ';';
}

/* Ends the value where a comment begins: a ';' behind a blank, as in most INI files. */
static void cut_comment(char *value) {
    for (char *at = strchr(value, ';'); at; at = strchr(at + 1, ';'))
        if (at == value || isspace((unsigned char)at[-1])) {
            *at = 0;
            return;
        }
}

static int refuse_line(const char *line, const char *where) {
    return fail("%s: '%.100s' is neither [section] nor key = value", where, line);
}

static int take_section(struct ini_source *source, char *line, const char *where) {
    char *end = strchr(line, ']');
    if (!end) return refuse_line(line, where);
    char *behind = text_strip(end + 1);
    if (*behind && !is_comment(behind))
        return fail("%s: '%.100s' stands behind the section; write it on a line of its own", where, behind);
    *end = 0;
    source->section = text_strip(line + 1);
    return is_section(source->section) ? 0 : refuse_section(source->section, where, fail);
}

static int take_key(struct ini_source *source, char *line, const char *where) {
    size_t name_length = strcspn(line, "=:");
    if (!line[name_length]) return refuse_line(line, where);
    char *value = line + name_length + 1;
    line[name_length] = 0;
    const char *name = text_strip(line), *dot = strchr(name, '.');
    if (!source->section)
        return fail("%s: '%.100s' stands under no section; write [%.*s] above it", where, name,
                    dot ? (int)(dot - name) : 7, dot ? name : "section");
    cut_comment(value);
    if (config_set(source->config, source->section, name, value, where)) return -1;
    const struct key *key = find_key(source->section, name);
    unsigned *before = &source->key_lines[key - keys];
    if (*before) warn("%s: %s was set on line %u already; this line counts", where, key->name, *before);
    *before = source->line;
    return 0;
}

static int take_lines(struct ini_source *source) {
    char where[512], *line;
    while ((line = next_line(source))) {
        snprintf(where, sizeof where, "%.400s line %u", source->path, source->line);
        if (!*line || is_comment(line)) continue;
        if (*line == '[' ? take_section(source, line, where) : take_key(source, line, where)) return -1;
    }
    return 0;
}

/* ---- what a run is called ---- */

static int ends_with(const char *text, size_t length, const char *ending) {
    size_t n = strlen(ending);
    return length > n && !strncmp(text + length - n, ending, n);
}

/* Names the config by the last part of `path`, without these endings. A name that would lead out of runs/ is none. */
static int take_name(struct config *config, const char *path, const char *const *endings) {
    size_t end = strlen(path), start;
    while (end && path[end - 1] == '/') end--;
    for (start = end; start && path[start - 1] != '/';) start--;
    for (; *endings; endings++)
        if (ends_with(path + start, end - start, *endings)) end -= strlen(*endings);
    size_t length = end - start;
    if (!length || (length < 3 && strspn(path + start, ".") >= length)) return 0;
    char *name = mem_text(path + start, length, "the configuration");
    if (!name) return -1;
    free(config->name);
    config->name = name;
    return 0;
}

/* "configs/Gowalla.ini" -> "Gowalla". A pipe has a number for a name. */
static int take_file_name(struct config *config, const char *path) {
    static const char *const endings[] = {".ini", NULL};
    struct stat about;
    return stat(path, &about) || !S_ISREG(about.st_mode) ? 0 : take_name(config, path, endings);
}

/* Without a file the corpus names the run: "data/books.csv.gz" -> "books". */
static int take_corpus_name(struct config *config) {
    static const char *const endings[] = {".gz", ".zst", ".txt", ".csv", ".tsv", ".ids", NULL};
    char **paths;
    int64_t count = config_paths(config->corpus_path, &paths);
    int result = count < 0 ? -1 : 0;
    if (count > 0) result = take_name(config, paths[0], endings);
    for (int64_t i = 0; i < count; i++) free(paths[i]);
    free(paths);
    return result;
}

int config_read(struct config *config, const char *path) {
    uint64_t length;
    unsigned key_lines[KEYS] = {0};
    char *text = file_read_given(path, LONGEST_FILE, &length);
    if (!text) return -1;
    struct ini_source source = {.path = path, .at = text, .config = config, .key_lines = key_lines};
    if (!strncmp(text, "\xEF\xBB\xBF", 3)) source.at += 3; /* a byte order mark */
    int result = strlen(text) == length ? take_lines(&source)
                                        : fail("'%s' holds a NUL byte at %" PRIu64 ": it is not an INI file", path,
                                               (uint64_t)strlen(text));
    free(text);
    return result ? -1 : take_file_name(config, path);
}

/* ---- out ---- */

struct writing {
    char *text;
    uint64_t used, room;
};

static int put(struct writing *writing, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int put(struct writing *writing, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 ||
        mem_grow(&writing->text, &writing->room, writing->used + (uint64_t)length + 1, 1, "the configuration"))
        return -1;
    va_start(args, format);
    vsnprintf(writing->text + writing->used, (size_t)length + 1, format, args);
    va_end(args);
    writing->used += (uint64_t)length;
    return 0;
}

/* Words in lines of at most `width` bytes, each behind `indent`. */
static int put_wrapped(struct writing *writing, const char *indent, size_t width, const char *text) {
    size_t column = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t word = strcspn(text, " ");
        int breaks = column && column + 1 + word > width;
        if (breaks && put(writing, "\n")) return -1;
        if (breaks) column = 0;
        if (put(writing, "%s%.*s", column ? " " : indent, (int)word, text)) return -1;
        column += (column ? 1 : strlen(indent)) + word;
        text += word;
    }
    return column ? put(writing, "\n") : 0;
}

/* The shortest digits that read back to the same number. */
static void format_real(double value, char *out, size_t room) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, room, "%.*g", digits, value);
        if (strtod(out, NULL) == value) return;
    }
}

static void format_bytes(uint64_t bytes, char *out, size_t room) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (unit < 4 && bytes && bytes % 1024 == 0) bytes /= 1024, unit++;
    snprintf(out, room, "%" PRIu64 "%s", bytes, units[unit]);
}

enum { VALUE_ROOM = 64 };

/* A key's value as config_read() takes it: in `room`, or the key's own text. */
static const char *value_of(const struct config *config, const struct key *key, char room[VALUE_ROOM]) {
    switch (key->type) {
    case TYPE_TEXT:
        return *text_at(config, key);
    case TYPE_COUNT:
    case TYPE_BYTES:
        if (*count_at(config, key) == COUNT_AUTO) return "auto";
        if (key->type == TYPE_BYTES)
            format_bytes(*count_at(config, key), room, VALUE_ROOM);
        else
            snprintf(room, VALUE_ROOM, "%" PRIu64, *count_at(config, key));
        break;
    case TYPE_REAL:
        if (isnan(*real_at(config, key))) return "auto";
        format_real(*real_at(config, key), room, VALUE_ROOM);
        break;
    case TYPE_TRUTH:
        return *int_at(config, key) == TRUTH_AUTO ? "auto" : *int_at(config, key) ? "yes" : "no";
    case TYPE_CHOICE:
        return choices_of(key)->name[*int_at(config, key)];
    }
    return room;
}

static int put_key_help(struct writing *writing, const struct key *key, const char *indent, size_t width) {
    char kind[256], text[1024];
    describe(key, kind, sizeof kind);
    if (key->type == TYPE_TEXT)
        snprintf(text, sizeof text, "%s", key->help);
    else
        snprintf(text, sizeof text, "%s (%s)", key->help, kind);
    return put_wrapped(writing, indent, width, text);
}

static int put_keys(struct writing *writing, const struct config *config, int help, int section) {
    char room[VALUE_ROOM];
    for (int i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].section, sections[section].name)) continue;
        if (help && (put(writing, "\n") || put_key_help(writing, &keys[i], "# ", 110))) return -1;
        const char *value = value_of(config, &keys[i], room);
        if (put(writing, "%s =%s%s\n", keys[i].key, *value ? " " : "", value)) return -1;
    }
    return 0;
}

int config_format(const struct config *config, int help, char **text) {
    struct writing writing = {0};
    for (int i = 0; i < SECTIONS; i++) {
        if ((i && put(&writing, "\n")) || (help && put(&writing, "# %s\n", sections[i].help)) ||
            put(&writing, "[%s]\n", sections[i].name) || put_keys(&writing, config, help, i)) {
            free(writing.text);
            return -1;
        }
    }
    *text = writing.text;
    return 0;
}

int config_write(const struct config *config, int help, struct file_writer *writer) {
    char *text = NULL;
    if (config_format(config, help, &text)) return -1;
    int result = file_write(writer, text, strlen(text));
    free(text);
    return result;
}

char *config_value(const struct config *config, const char *section, const char *key) {
    char room[VALUE_ROOM];
    const struct key *found = find_key(section, key);
    if (!found) {
        fail("there is no key %s.%s", section, key);
        return NULL;
    }
    const char *value = value_of(config, found, room);
    return mem_text(value, strlen(value), "the configuration");
}

const char *config_choice_name(const char *section, const char *key, int value) {
    const struct key *found = find_key(section, key);
    if (!found || found->type != TYPE_CHOICE || value < 0 || value >= choices_of(found)->count) return "?";
    return choices_of(found)->name[value];
}

void config_print_help(void) {
    struct writing writing = {0};
    int result = put_wrapped(
        &writing, "", 118,
        "Keys of a configuration file, INI: [section], then key = value; '#' or ';' begins a comment. On the "
        "command line --section.key=value sets one. Numbers may be written 1e6 or 2_000_000, sizes 11GiB or "
        "512MB, yes and no also true, false, on, off.");
    for (int i = 0; !result && i < SECTIONS; i++) {
        result = put(&writing, "\n[%s]  %s\n", sections[i].name, sections[i].help);
        for (int k = 0; !result && k < KEYS; k++) {
            if (strcmp(keys[k].section, sections[i].name)) continue;
            result = put(&writing, "\n  %s = %s\n", keys[k].name, *keys[k].fallback ? keys[k].fallback : "\"\"") ||
                     put_key_help(&writing, &keys[k], "      ", 118);
        }
    }
    if (!result) fputs(writing.text, stdout);
    free(writing.text);
}

/* ---- comparing ---- */

static int changes_numbers(const struct key *key) {
    static const char *const others[] = {"train.epochs", "train.steps", "train.report_seconds", "corpus.cache"};
    if (!strcmp(key->section, "run") || !strcmp(key->section, "device") || !strcmp(key->section, "memory")) return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(key->name, others[i])) return 0;
    return 1;
}

const char *config_difference(const struct config *a, const struct config *b) {
    char room_a[VALUE_ROOM], room_b[VALUE_ROOM];
    for (int i = 0; i < KEYS; i++)
        if (changes_numbers(&keys[i]) && strcmp(value_of(a, &keys[i], room_a), value_of(b, &keys[i], room_b)))
            return keys[i].name;
    return NULL;
}

void config_settle(struct config *config, const struct config *settled) {
    char room[VALUE_ROOM];
    for (int i = 0; i < KEYS; i++) {
        const struct key *key = &keys[i];
        if (!changes_numbers(key) || key->type == TYPE_TEXT || strcmp(value_of(config, key, room), "auto")) continue;
        if (key->type == TYPE_COUNT || key->type == TYPE_BYTES) *count_at(config, key) = *count_at(settled, key);
        else if (key->type == TYPE_REAL) *real_at(config, key) = *real_at(settled, key);
        else *int_at(config, key) = *int_at(settled, key);
    }
}

/* ---- "auto" ---- */

static void choose(int *value, int automatic, int chosen) {
    if (*value == automatic) *value = chosen;
}
static void choose_count(uint64_t *value, uint64_t chosen) {
    if (*value == COUNT_AUTO) *value = chosen;
}
static void choose_real(double *value, double chosen) {
    if (isnan(*value)) *value = chosen;
}

static void resolve_examples(struct config *c) {
    int text = c->corpus_format == FORMAT_TEXT;
    choose_count(&c->corpus_min_count, text ? 5 : 1);
    choose(&c->examples_mode, MODE_AUTO,
           text                                   ? MODE_WINDOW
           : c->corpus_format == FORMAT_ADJACENCY ? MODE_ADJACENCY
                                                  : MODE_LIST);
    int window = c->examples_mode == MODE_WINDOW;
    choose_real(&c->examples_subsample, text && window ? 1e-4 : 0);
    choose(&c->examples_targets, TARGETS_AUTO,
           c->corpus_format == FORMAT_LISTS || c->corpus_format == FORMAT_PAIRS ? TARGETS_ALL : TARGETS_ONE);
    choose(&c->examples_short, SHORT_AUTO, c->corpus_format == FORMAT_ADJACENCY ? SHORT_REPEAT : SHORT_SKIP);
    choose(&c->examples_shuffle, TRUTH_AUTO, !window);
    choose(&c->examples_shuffle_items, TRUTH_AUTO, window && !text);
    choose(&c->negatives_per, PER_AUTO, window ? PER_PAIR : PER_EXAMPLE);
}

/* What makes a good model of items without any key: chosen by experiment, README has the figures. The rate and its fall
 * belong to the rule that stands here: who names a rule gets that rule's own. */
static void resolve_items(struct config *c) {
    int items = c->corpus_format != FORMAT_TEXT, adjacency = c->corpus_format == FORMAT_ADJACENCY;
    int own_rule = c->optimizer_rule == RULE_AUTO;
    choose_count(&c->train_epochs, adjacency ? 50 : items ? 10 : 5);
    choose(&c->optimizer_rule, RULE_AUTO, items ? RULE_ADAGRAD : RULE_SGD);
    if (!items || !own_rule) return;
    choose_real(&c->optimizer_lr, adjacency ? 0.05 : 0.25);
    choose(&c->optimizer_schedule, SCHEDULE_AUTO, SCHEDULE_LINEAR);
}

/* Defaults of torch.optim; sgd's rate is word2vec's. */
static void resolve_optimizer(struct config *c) {
    int rule = c->optimizer_rule;
    struct rule_options usual = rules_defaults(rule);
    choose_real(&c->optimizer_lr, rule == RULE_SGD ? 0.025 : usual.lr);
    choose(&c->optimizer_schedule, SCHEDULE_AUTO, rule == RULE_SGD ? SCHEDULE_LINEAR : SCHEDULE_CONSTANT);
    choose_real(&c->optimizer_weight_decay, usual.weight_decay);
    choose_real(&c->optimizer_eps, usual.eps);
    choose_real(&c->optimizer_alpha, usual.alpha);
}

static int resolve_run(struct config *c) {
    struct checkpoint_times times;
    int lock_free = c->corpus_format == FORMAT_TEXT && c->optimizer_rule == RULE_SGD && c->optimizer_momentum == 0 &&
                    c->train_reduction == REDUCTION_SUM && c->optimizer_clip == 0;
    choose(&c->train_update, UPDATE_AUTO, lock_free ? UPDATE_HOGWILD : UPDATE_BATCH);
    if (read_checkpoint_times(c->run_checkpoint_every, &times))
        return fail("run.checkpoint_every = '%s' is not a time (10m), a number of steps (5000 steps), epoch, end or auto",
                    c->run_checkpoint_every);
    c->checkpoint_seconds = times.seconds;
    c->checkpoint_share = times.share;
    c->checkpoint_steps = times.steps;
    c->checkpoint_epochs = times.epochs;
    if (*c->run_dir) return 0;
    if (!c->name && take_corpus_name(c)) return -1;
    char *directory = file_join("runs", c->name ? c->name : "run");
    if (!directory) return -1;
    free(c->run_dir);
    c->run_dir = directory;
    return 0;
}

/* ---- what cannot work ---- */

static int check_examples(const struct config *c) {
    const char *format = config_choice_name("corpus", "format", c->corpus_format);
    const char *mode = config_choice_name("examples", "mode", c->examples_mode);
    if (strcmp(c->corpus_min_rating, "none") && c->corpus_format != FORMAT_PAIRS)
        return fail("corpus.min_rating = %s needs corpus.format = pairs, the only one with ratings, and it is %s",
                    c->corpus_min_rating, format);
    if (c->corpus_header == HEADER_YES && c->corpus_format != FORMAT_PAIRS)
        return fail("corpus.header = yes needs corpus.format = pairs, the only one with columns, and it is %s", format);
    if (c->examples_mode == MODE_ADJACENCY && c->corpus_format == FORMAT_TEXT)
        return fail("examples.mode = adjacency needs lines of a target and its contexts, and corpus.format is text; "
                    "set corpus.format = adjacency, or examples.mode = window");
    if (c->examples_subsample > 0 && c->examples_mode != MODE_WINDOW)
        return fail(
            "examples.subsample = %g works with examples.mode = window only, and it is %s; set examples.subsample = 0",
            c->examples_subsample, mode);
    if (c->examples_replacement && c->examples_positives == 0 && c->examples_mode != MODE_WINDOW)
        return fail("examples.replacement = yes draws a number of positives, and examples.positives = 0 takes all; set "
                    "one of the two");
    return 0;
}

static int check_optimizer(const struct config *c) {
    const char *rule = config_choice_name("optimizer", "rule", c->optimizer_rule);
    int adam = c->optimizer_rule >= RULE_ADAM && c->optimizer_rule <= RULE_ADAMAX;
    if (c->optimizer_rule == RULE_SGD && c->optimizer_nesterov && c->optimizer_momentum == 0)
        return fail("optimizer.nesterov = yes needs optimizer.momentum above 0");
    if (adam && (c->optimizer_beta1 == 1 || c->optimizer_beta2 == 1))
        return fail("optimizer.beta1 = %g and beta2 = %g: %s divides by 1 - beta, so both must be below 1",
                    c->optimizer_beta1, c->optimizer_beta2, rule);
    if (c->optimizer_rule == RULE_SPARSE_ADAM && c->optimizer_weight_decay != 0)
        return fail(
            "optimizer.weight_decay = %g: sparse-adam has no weight decay, as in PyTorch; set it to 0, or use adam",
            c->optimizer_weight_decay);
    if (c->optimizer_rule == RULE_RPROP && c->optimizer_step_min > c->optimizer_step_max)
        return fail("optimizer.step_min = %g is above optimizer.step_max = %g", c->optimizer_step_min,
                    c->optimizer_step_max);
    return 0;
}

static int check_train(const struct config *c) {
    const char *rule = config_choice_name("optimizer", "rule", c->optimizer_rule);
    if (c->train_epochs == 0 && c->train_steps == 0)
        return fail("train.epochs = 0 and train.steps = 0 leave the run without an end; set one of the two");
    if (c->train_update != UPDATE_HOGWILD) return 0;
    if (c->optimizer_rule != RULE_SGD && c->optimizer_rule != RULE_ADAGRAD)
        return fail(
            "train.update = hogwild works with optimizer.rule = sgd or adagrad, and it is %s; set train.update = batch",
            rule);
    if (c->optimizer_rule == RULE_SGD && c->optimizer_momentum != 0)
        return fail(
            "train.update = hogwild works without momentum, and optimizer.momentum is %g; set train.update = batch",
            c->optimizer_momentum);
    if (c->optimizer_clip != 0)
        return fail(
            "optimizer.clip = %g bounds what a row's places in a batch sum up to, and train.update = hogwild has no "
            "batch; set it to 0, or train.update = batch",
            c->optimizer_clip);
    if (c->train_reduction == REDUCTION_MEAN)
        return fail(
            "train.update = hogwild has no batch to average over; set train.reduction = sum, or train.update = batch");
    return 0;
}

/* An option that another rule reads is a slip that would otherwise go unseen; only once, since configs are resolved
 * anew. */
static int warn_without_effect(const struct config *config) {
    enum { ADAMS = 1 << RULE_ADAM | 1 << RULE_ADAMW, ALL_ADAMS = ADAMS | 1 << RULE_SPARSE_ADAM | 1 << RULE_ADAMAX };
    static const struct {
        const char *key;
        unsigned rules;
    } options[] = {{"momentum", 1 << RULE_SGD | 1 << RULE_RMSPROP},
                   {"nesterov", 1 << RULE_SGD},
                   {"lr_decay", 1 << RULE_ADAGRAD},
                   {"initial_accumulator", 1 << RULE_ADAGRAD},
                   {"rho", 1 << RULE_ADADELTA},
                   {"centered", 1 << RULE_RMSPROP},
                   {"beta1", ALL_ADAMS},
                   {"beta2", ALL_ADAMS},
                   {"amsgrad", ADAMS},
                   {"lambd", 1 << RULE_ASGD},
                   {"t0", 1 << RULE_ASGD},
                   {"eta_minus", 1 << RULE_RPROP},
                   {"eta_plus", 1 << RULE_RPROP},
                   {"step_min", 1 << RULE_RPROP},
                   {"step_max", 1 << RULE_RPROP}};
    static atomic_uint warned;
    struct config defaults;
    int result = config_init(&defaults);
    const char *rule = config_choice_name("optimizer", "rule", config->optimizer_rule);
    for (size_t i = 0; !result && i < sizeof options / sizeof *options; i++) {
        char now[VALUE_ROOM], usual[VALUE_ROOM];
        const struct key *key = find_key("optimizer", options[i].key);
        const char *value = value_of(config, key, now);
        if (options[i].rules >> config->optimizer_rule & 1 || !strcmp(value, value_of(&defaults, key, usual))) continue;
        if (!(atomic_fetch_or(&warned, 1u << i) >> i & 1))
            warn("%s = %s has no effect with optimizer.rule = %s", key->name, value, rule);
    }
    config_release(&defaults);
    return result;
}

int config_resolve(struct config *config) {
    resolve_examples(config);
    resolve_items(config);
    resolve_optimizer(config);
    if (resolve_run(config)) return -1;
    if (check_examples(config) || check_optimizer(config) || check_train(config)) return -1;
    return warn_without_effect(config);
}

/* ---- corpus.path ---- */

static int add_path(char ***paths, uint64_t *room, int64_t count, const char *text, uint64_t length) {
    if (mem_grow(paths, room, (uint64_t)count + 1, sizeof **paths, "the corpus paths")) return -1;
    (*paths)[count] = mem_text(text, length, "the corpus paths");
    return (*paths)[count] ? 0 : -1;
}

static int separates(char c) {
    return c == ',' || isspace((unsigned char)c);
}

static int split_paths(const char *text, char ***paths, int64_t *count) {
    uint64_t room = 0;
    for (const char *at = text;;) {
        while (separates(*at)) at++;
        if (!*at) return 0;
        int there = at == text ? file_exists(text) : 0, whole = there == 1, quoted = !whole && *at == '"';
        if (there < 0) return -1;
        const char *first = at + quoted, *end = first;
        while (*end && (whole || (quoted ? *end != '"' : !separates(*end)))) end++;
        if (quoted && !*end) return fail("corpus.path = '%.200s': a double quote is not closed", text);
        if (quoted && end == first) return fail("corpus.path = '%.200s': a path between double quotes is empty", text);
        if (add_path(paths, &room, *count, first, (uint64_t)(end - first))) return -1;
        ++*count;
        at = end + quoted;
    }
}

struct corpus_options config_corpus(const struct config *config) {
    double min_rating = -INFINITY;
    read_rating(config->corpus_min_rating, &min_rating); /* set_text() has taken nothing else */
    return (struct corpus_options){.path = config->corpus_path,
                                   .vocab = config->corpus_vocab,
                                   .format = config->corpus_format,
                                   .order = config->corpus_order,
                                   .header = config->corpus_header,
                                   .max_sentence = config->corpus_max_sentence,
                                   .min_count = config->corpus_min_count,
                                   .max_vocab = config->corpus_max_vocab,
                                   .min_rating = min_rating,
                                   .report_seconds = config->train_report_seconds};
}

int64_t config_paths(const char *text, char ***paths) {
    int64_t count = 0;
    *paths = NULL;
    if (!split_paths(text, paths, &count)) return count;
    while (count > 0) free((*paths)[--count]);
    free(*paths);
    *paths = NULL;
    return -1;
}
