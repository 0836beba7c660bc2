/* config_paths: splits a key's text into paths. */
#include "config.h"

#include "base/memory.h"
#include "base/report.h"

#include <ctype.h>
#include <stddef.h>

static int add_path(char ***paths, uint64_t *capacity, int64_t count, const char *text, uint64_t length) {
    if (mem_grow(paths, capacity, (uint64_t)count + 1, sizeof **paths, "the corpus paths")) return -1;
    (*paths)[count] = mem_text(text, length, "the corpus paths");
    return (*paths)[count] ? 0 : -1;
}

static int separates(char c) {
    return c == ',' || isspace((unsigned char)c);
}

static int split_paths(const char *key, const char *text, char ***paths, int64_t *count) {
    uint64_t capacity = 0;
    for (const char *at = text;;) {
        while (separates(*at)) at++;
        if (!*at) return 0;
        int there = at == text ? file_exists(text) : 0, whole = there == 1, quoted = !whole && *at == '"';
        if (there < 0) return -1;
        const char *first = at + quoted, *end = first;
        while (*end && (whole || (quoted ? *end != '"' : !separates(*end)))) end++;
        if (quoted && !*end) return fail("%s = '%.200s': a double quote is not closed", key, text);
        if (quoted && end == first) return fail("%s = '%.200s': a path between double quotes is empty", key, text);
        if (add_path(paths, &capacity, *count, first, (uint64_t)(end - first))) return -1;
        ++*count;
        at = end + quoted;
    }
}

int64_t config_paths(const char *key, const char *text, char ***paths) {
    int64_t count = 0;
    *paths = NULL;
    if (!split_paths(key, text, paths, &count)) return count;
    mem_free_texts(*paths, count);
    *paths = NULL;
    return -1;
}
