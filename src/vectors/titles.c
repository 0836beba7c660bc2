#include "titles.h"

#include "base/memory.h"
#include "base/report.h"
#include "field_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Returns the title in the current line, ended by a NUL; NULL if the line has none. In a file separated by commas and without a
 * header, further commas of a line without quotes belong to the title: "7,Dune, revised". */
static const char *take_title(const struct field_file *file) {
    uint64_t length;
    char *title = (char *)field_file_field(file, COLUMN_B, &length);
    const struct columns_form *form = &file->look.form;
    int loose = *form->separator == ',' && !form->named && !file->line.quoted && file->line.count > 2;
    if (!title) return NULL;
    if (loose) length = (uint64_t)(file->end - title);
    while (length && token_is_white(title[length - 1])) length--;
    title[length] = 0; /* always in bounds: the byte behind a title is a separator, a quote, a line end or the NUL after the file */
    return title;
}

int titles_read(struct titles *titles, const struct model *model, const char *path) {
    struct field_file file;
    int more = 0, result = field_file_open(&file, path, LOOK_TITLES);
    titles->text = file.text;
    titles->title = mem_zalloc(model->rows, sizeof *titles->title, "titles");
    if (!titles->title) result = -1;
    while (!result && (more = field_file_next(&file)) > 0) {
        uint64_t length;
        const char *id = field_file_field(&file, COLUMN_A, &length);
        if (!id || file.line.count < 2)
            return fail("'%s' line %" PRIu64 ": %s; wanted an id and a title with a tab, a comma, ';', '|' or '::' between", path,
                        file.number, id ? "one field" : "its id is empty");
        int64_t row = vocab_find(&model->vocab, id, length);
        const char *title = row >= 0 && !titles->title[row] ? take_title(&file) : NULL;
        if (title) titles->title[row] = title;
    }
    return result || more ? -1 : 0;
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
