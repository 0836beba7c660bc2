#include "list_form.h"

#include "base/report.h"
#include "corpus/look.h"

#include <string.h>

enum { FILES = 8 }; /* most files of a directory whose lines are examined */

static int look_at_file(void *user, const struct corpus_block *block) {
    int *form = user;
    if (*form == LINES_UNCLEAR) *form = look_for_pairs(block->bytes + block->skip, block->length - block->skip);
    return 0;
}

/* Looks at the files until one shows its format. An encoded stream has no lines, and leaves *form unchanged. */
static int look_at_files(const char *path, int *form) {
    const struct corpus_options options = {.format = FORMAT_TEXT}; /* any line is valid as text */
    char *paths[] = {(char *)path};
    struct corpus *corpus = corpus_open(paths, 1);
    if (!corpus) return -1;
    int result = corpus_stream(corpus) ? 0 : corpus_look(corpus, &options, FILES, look_at_file, form);
    corpus_close(corpus);
    return result;
}

/* Keeps the run's format, unless the lines clearly have the other one. Only pairs and lists are distinguished: lines that are
 * not pairs are read as lists. If the format changes, keys about columns, which were meant for the old format, are set to auto. */
int list_form_look(struct corpus_options *reading, const char *path) {
    int form = LINES_UNCLEAR;
    if (!strcmp(path, CORPUS_INPUT))
        return fail("standard input comes once, so that nobody can look at it first: say --format=lists or --format=pairs");
    if (look_at_files(path, &form)) return -1;
    int pairs = form == LINES_PAIRS || form == LINES_RATINGS;
    if (form == LINES_UNCLEAR || pairs == corpus_formats[reading->format].scattered) return 0;
    reading->format = pairs ? FORMAT_PAIRS : FORMAT_LISTS;
    reading->look = LOOK_AUTO;
    if (pairs)
        note("read       '%s' as pairs: list, item[, rating] on each line; --format=lists reads lines of lists", path);
    else
        note("read       '%s' as lists: a name and its items on each line; --format=pairs reads list, item[, rating]", path);
    return 0;
}
