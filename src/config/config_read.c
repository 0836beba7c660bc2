/* config_read: reads the text of an INI file, if it looks like one, and names a run that has no run.dir. */
#include "config_keys.h"

#include "base/directory.h"
#include "base/memory.h"
#include "base/report.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what a run is called ---- */

static int ends_with(const char *text, size_t length, const char *ending) {
    size_t n = strlen(ending);
    return length > n && !strncmp(text + length - n, ending, n);
}

/* Sets config->name to the last part of `path` without these endings. A name such as "..", which leads out of runs/, is not
 * used. */
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

/* Names the config after its file: "configs/Gowalla.ini" gives "Gowalla". A pipe has no useful name. */
static int take_file_name(struct config *config, const char *path) {
    static const char *const endings[] = {".ini", NULL};
    struct stat about;
    return stat(path, &about) || !S_ISREG(about.st_mode) ? 0 : take_name(config, path, endings);
}

/* Names the config after its corpus: "data/books.csv.gz" gives "books". */
int config_take_corpus_name(struct config *config) {
    static const char *const endings[] = {".gz", ".zst", ".xz", ".bz2", ".txt", ".csv", ".tsv", ".ids", NULL};
    char **paths;
    int64_t count = config_paths("corpus.path", config->corpus_path, &paths);
    int result = count < 0 ? -1 : 0;
    if (count > 0 && strcmp(paths[0], CORPUS_INPUT)) result = take_name(config, paths[0], endings);
    mem_free_texts(paths, count);
    return result;
}

/* ---- from a file ---- */

enum { LONGEST_FILE = 16 << 20 }; /* bytes; a longer file is no configuration */

/* Returns 1 if a line may set a key: if one word precedes its '=' or ':'. */
static int is_key_line(const char *line, size_t length) {
    size_t name = strcspn(line, "=:");
    if (name >= length) return 0;
    while (name && isspace((unsigned char)line[name - 1])) name--;
    for (size_t i = 0; i < name; i++)
        if (isspace((unsigned char)line[i]) || iscntrl((unsigned char)line[i])) return 0;
    return name > 0;
}

/* Returns 1 if the first line that is neither empty nor a comment may be a line of an INI file, or if there is no such line in
 * `head`. */
static int begins_as_ini(const char *head) {
    if (!strncmp(head, "\xEF\xBB\xBF", 3)) head += 3;
    for (;;) {
        head += strspn(head, " \t\v\f\r\n");
        size_t length = strcspn(head, "\r\n");
        if (!*head || *head == '[') return 1;
        if (!config_is_comment(head)) return is_key_line(head, length);
        head += length;
    }
}

/* Refuses a file that does not look like a configuration. The likeliest mistake is to name the corpus here, which may be long
 * and compressed. */
static int check_head(const char *path) {
    char head[4096] = "";
    int kind = file_head(path, head, sizeof head);
    if (kind == 2 && directory_exists(path) == 1)
        return fail("'%s' is a directory and no configuration; if its files are what is to be trained, write --corpus.path=%s",
                    path, path);
    if (kind != 1 || begins_as_ini(head)) return kind < 0 ? -1 : 0;
    return fail("'%s' is no configuration: it does not begin with [section]; if it is what is to be trained, write "
                "--corpus.path=%s",
                path, path);
}

char *config_file(const char *path) {
    uint64_t length;
    if (check_head(path)) return NULL;
    char *text = file_read_given(path, LONGEST_FILE, &length);
    if (!text || strlen(text) == length) return text;
    fail("'%s' holds a NUL byte at %" PRIu64 ": it is not an INI file", path, (uint64_t)strlen(text));
    free(text);
    return NULL;
}

int config_read(struct config *config, const char *path) {
    char *text = config_file(path);
    int result = text ? config_read_text(config, text, path) : -1;
    free(text);
    return result ? -1 : take_file_name(config, path);
}
