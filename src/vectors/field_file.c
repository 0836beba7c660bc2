#include "field_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/kind.h"

#include <inttypes.h>
#include <stdlib.h>

/* Replaces each CR that is not followed by LF by an LF. Lines that end in LF or CR LF are not changed. */
static void end_lines_with_lf(char *text, uint64_t length) {
    for (uint64_t i = 0; i < length; i++)
        if (text[i] == '\r' && (i + 1 == length || text[i + 1] != '\n')) text[i] = '\n';
}

int field_file_open(struct field_file *file, const char *path, enum look_rows rows) {
    const struct look_keys keys = LOOK_AUTO;
    uint64_t length = 0;
    *file = (struct field_file){.path = path, .text = file_read_given(path, mem_available(), &length)};
    if (!file->text || kind_check_format(path, file->text, length, 0)) return -1;
    end_lines_with_lf(file->text, length);
    char *at = file->text + text_mark(file->text, length), *end = file->text + length;
    if (look_at_lines(&file->look, at, (uint64_t)(end - at), 1, rows, &keys, path)) return -1;
    if (*file->look.said) remark("%s ('%s')", file->look.said, path);
    file->cursor = (struct corpus_cursor){at + file->look.skip, end, 1};
    for (char *byte = at; byte < at + file->look.skip; byte++) file->cursor.line += *byte == '\n';
    return 0;
}

void field_file_close(struct field_file *file) {
    free(file->text);
    file->text = NULL;
}

int field_file_next(struct field_file *file) {
    do {
        file->number = file->cursor.line;
        if (!columns_next(&file->cursor, &file->look.form, &file->line)) return 0;
    } while (!file->line.count);
    file->end = (char *)file->cursor.at;
    if (file->end > file->text && file->end[-1] == '\n') file->end--;
    if (!file->line.open) return 1;
    return fail("'%s' line %" PRIu64 ": a double quote is not closed in its line, or something follows it", file->path, file->number);
}

const char *field_file_field(const struct field_file *file, enum column_meaning meaning, uint64_t *length) {
    unsigned column = file->look.form.column[meaning];
    *length = column < file->line.count && column < COLUMNS_READ ? file->line.length[column] : 0;
    return *length ? file->line.word[column] : NULL;
}
