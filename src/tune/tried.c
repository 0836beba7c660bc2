#include "tried.h"

#include "base/file.h"
#include "base/numbers.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024 };
const char tried_name[] = "tried.tsv";
static const char mark[] = "# sptx-w2v tune ";

static int begin_file(struct tried *t, const char *first) {
    free(t->lines);
    t->lines = NULL;
    return file_replace(t->path, first, strlen(first));
}

/* Returns 1 if tune has written the file, 0 if there is no file, -1 after fail(), also if the file is not tune's. */
static int is_own(const char *path) {
    char head[sizeof mark] = "";
    int kind = file_head(path, head, sizeof head);
    if (kind <= 0 || (kind == 1 && !strcmp(head, mark))) return kind;
    return fail("'%s' is in the way: tune keeps what it has tried in a file of this name, and has not written this one; move it "
                "away, or choose another run.dir",
                path);
}

int tried_open(struct tried *t, const char *directory, uint64_t fingerprint, int anew) {
    char first[LINE];
    *t = (struct tried){.path = file_join(directory, tried_name)};
    if (!t->path) return -1;
    size_t n = text_add(first, sizeof first, 0, "%s%016" PRIx64 "\n", mark, fingerprint);
    int there = is_own(t->path);
    if (there < 0 || (there && !(t->lines = file_read(t->path, NULL)))) return -1;
    if (t->lines && !anew && !strncmp(t->lines, first, n)) return 0;
    if (t->lines && !anew) note("tried      '%s' is of other data or keys, and begins anew", t->path);
    return begin_file(t, first);
}

void tried_close(struct tried *t) {
    free(t->path);
    free(t->lines);
    *t = (struct tried){.path = NULL};
}

/* Returns 1 if the line is of a training with these epochs and keys, with its score and seconds. */
static int line_is(const char *line, uint64_t epochs, const char *keys, double *score, double *seconds) {
    char *end;
    size_t length = strlen(keys);
    if (strtoull(line, &end, 10) != epochs || *end != '\t') return 0;
    *score = numbers_read(end + 1, &end);
    if (*end != '\t') return 0;
    *seconds = numbers_read(end + 1, &end);
    return isfinite(*score) && isfinite(*seconds) && *end == '\t' && !strncmp(end + 1, keys, length) && end[1 + length] == '\n';
}

int tried_find(const struct tried *t, uint64_t epochs, const char *keys, double *score, double *seconds) {
    for (const char *line = t->lines; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (line_is(line, epochs, keys, score, seconds)) return 1;
    return 0;
}

int tried_add(const struct tried *t, uint64_t epochs, const char *keys, double score, double seconds) {
    char line[LINE];
    size_t n = text_add(line, sizeof line, 0, "%" PRIu64 "\t%.17g\t%.3f\t%s\n", epochs, score, seconds, keys);
    return file_append(t->path, line, n);
}
