#include "labels.h"

#include "base/report.h"
#include "field_file.h"

#include <inttypes.h>
#include <string.h>

static int is_label(const struct token *token) {
    static const char *const others[] = {"train", "val", "test", "-"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i]) == token->length && !memcmp(others[i], token->text, token->length)) return 0;
    return token->length > 0;
}

static int are_numbers(const struct table_line *parts) {
    static const struct columns_form plain = COLUMNS_PLAIN;
    double value;
    for (uint64_t i = 0; i < parts->count && i < COLUMNS_READ; i++)
        if (columns_number(&plain, parts->word[i], parts->length[i], &value)) return 0;
    return parts->count <= COLUMNS_READ;
}

/* Passes the labels of a field to take(): each number, if the field consists of numbers with blanks between; otherwise the whole
 * field, such as "Neural networks". */
static int take_field(const struct token *name, const char *field, uint64_t length, labels_take *take, void *user) {
    static const struct columns_form blanks = COLUMNS_PLAIN;
    struct table_line parts;
    struct token label = {(char *)field, length};
    int result = 0;
    columns_part(&parts, (char *)field, (char *)field + length, &blanks, 1);
    if (parts.count < 2 || !are_numbers(&parts)) return is_label(&label) ? take(user, name, &label) : 0;
    for (uint64_t i = 0; i < parts.count && !result; i++) {
        label = (struct token){(char *)parts.word[i], parts.length[i]};
        result = take(user, name, &label);
    }
    return result;
}

static int take_line(const struct field_file *file, labels_take *take, void *user) {
    struct token name;
    unsigned own = file->look.form.column[COLUMN_A], only = file->look.form.named ? file->look.form.column[COLUMN_B] : NO_COLUMN;
    int result = 0;
    name.text = (char *)field_file_field(file, COLUMN_A, &name.length);
    if (file->line.count > COLUMNS_READ)
        return fail("'%s' line %" PRIu64 ": %" PRIu64 " fields; wanted a name and %d labels at most", file->path, file->number,
                    file->line.count, COLUMNS_READ - 1);
    for (unsigned c = 0; name.text && c < file->line.count && !result; c++)
        if (c != own && (only == NO_COLUMN || c == only))
            result = take_field(&name, file->line.word[c], file->line.length[c], take, user);
    return result;
}

int labels_read(const char *path, labels_take *take, void *user) {
    struct field_file file;
    int result = field_file_open(&file, path, LOOK_LABELS), more = 0;
    while (!result && (more = field_file_next(&file)) > 0) result = take_line(&file, take, user);
    field_file_close(&file);
    return result || more ? -1 : 0;
}
