#include "titles.h"

#include "base/memory.h"
#include "base/report.h"
#include "lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int titles_read(struct titles *titles, const struct model *model, const char *path) {
    struct lines lines;
    titles->text = lines_open(&lines, path);
    titles->title = mem_zalloc(model->rows, sizeof *titles->title, "titles");
    if (!titles->text || !titles->title) return -1;
    while (lines_next(&lines)) {
        if (lines.line == lines.stop) continue;
        char *tab = memchr(lines.line, '\t', (size_t)(lines.stop - lines.line));
        if (!tab) return fail("'%s' line %" PRIu64 " has no TAB; wanted an id, a TAB and a title", path, lines.number);
        *lines.stop = 0; /* the byte that ended the line, or the NUL behind the file */
        int64_t row = vocab_find(&model->vocab, lines.line, (uint64_t)(tab - lines.line));
        if (row >= 0 && !titles->title[row]) titles->title[row] = tab + 1;
    }
    return 0;
}

void titles_release(struct titles *titles) {
    free(titles->text);
    free(titles->title);
    *titles = (struct titles){NULL, NULL};
}

const char *titles_of(const struct titles *titles, uint64_t row) {
    return titles->title && titles->title[row] ? titles->title[row] : "";
}

int64_t titles_find(const struct titles *titles, const struct model *model, const char *title) {
    for (uint64_t row = 0; titles->title && row < model->rows; row++)
        if (titles->title[row] && !strcmp(titles->title[row], title)) return (int64_t)row;
    return -1;
}
