#include "titles.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"

#include <stdlib.h>
#include <string.h>

void titles_release(struct titles *titles) {
    free(titles->text);
    free(titles->title);
    *titles = (struct titles){NULL, NULL};
}

int titles_read(struct titles *titles, const struct model *model, const char *path) {
    uint64_t length, line_number = 0;
    titles->text = file_read_given(path, mem_available(), &length);
    titles->title = mem_zalloc(model->rows, sizeof *titles->title, "titles");
    if (!titles->text || !titles->title) return -1;
    for (char *line = titles->text, *end = titles->text + length, *next; line < end; line = next) {
        size_t n = (size_t)(end - line);
        char *stop = memchr(line, '\n', n), *tab;
        line_number++;
        next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        if (stop > line && stop[-1] == '\r') stop--;
        *stop = 0;
        if (stop == line) continue;
        if (!(tab = memchr(line, '\t', (size_t)(stop - line))))
            return fail("'%s' line %llu has no TAB; wanted an id, a TAB and a title", path,
                        (unsigned long long)line_number);
        int64_t row = vocab_find(&model->vocab, line, (uint64_t)(tab - line));
        if (row >= 0 && !titles->title[row]) titles->title[row] = tab + 1;
    }
    return 0;
}

int64_t titles_find(const struct titles *titles, const struct model *model, const char *title) {
    for (uint64_t row = 0; titles->title && row < model->rows; row++)
        if (titles->title[row] && !strcmp(titles->title[row], title)) return (int64_t)row;
    return -1;
}
