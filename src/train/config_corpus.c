/* config_corpus: the keys of [corpus] as the corpus' own modules take them. */
#include "config_keys.h"

#include "base/memory.h"
#include "base/report.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

/* ---- lists of paths ---- */

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

struct corpus_options config_corpus(const struct config *config) {
    double min_rating = -INFINITY;
    config_read_rating(config->corpus_min_rating, &min_rating); /* set_text() has taken nothing else */
    return (struct corpus_options){.path = config->corpus_path,
                                   .vocab = config->corpus_vocab,
                                   .format = config->corpus_format,
                                   .order = config->corpus_order,
                                   .header = config->corpus_header,
                                   .max_sentence = config->corpus_max_sentence,
                                   .min_count = config->corpus_min_count,
                                   .max_vocab = config->corpus_max_vocab,
                                   .min_rating = min_rating,
                                   .list_rows = config->examples_mode == MODE_USER,
                                   .report_seconds = config->train_report_seconds};
}

int64_t config_paths(const char *key, const char *text, char ***paths) {
    int64_t count = 0;
    *paths = NULL;
    if (!split_paths(key, text, paths, &count)) return count;
    while (count > 0) free((*paths)[--count]);
    free(*paths);
    *paths = NULL;
    return -1;
}
