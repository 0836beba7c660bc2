#include "look_said.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

const char *looked_name(const struct looking *l, uint64_t column, uint64_t *length) {
    int there = column < l->first.count && column < COLUMNS_READ;
    *length = there ? l->first.length[column] : 0;
    return there ? l->first.word[column] : "";
}

static size_t say_column(const struct looking *l, size_t at, const char *meaning, unsigned column) {
    struct look *look = l->look;
    uint64_t length, shift = (uint64_t)l->is_shifted;
    const char *name = looked_name(l, column - (l->has_header ? shift : 0), &length);
    if (column >= COLUMNS_READ) {
        at = text_add(look->said, sizeof look->said, at, "%s = none", meaning);
        if (l->has_times) return text_add(look->said, sizeof look->said, at, " (the third column holds times)");
        return l->columns.most > 2 ? text_add(look->said, sizeof look->said, at, " of %" PRIu64, l->columns.most) : at;
    }
    if (l->has_header && length)
        return text_add(look->said, sizeof look->said, at, "%s = %.*s", meaning, length < 30 ? (int)length : 30, name);
    return text_add(look->said, sizeof look->said, at, "%s = column %u", meaning, column + 1);
}

void looked_say(const struct looking *l) {
    struct look *look = l->look;
    const struct columns_form *form = &look->form;
    const struct columns_words *words = &columns_words[l->set];
    char *out = look->said;
    size_t room = sizeof look->said, at = text_add(out, room, 0, "columns    ");
    if (form->ntriples) {
        text_add(out, room, at, "head, relation, tail = subject, predicate, object of N-Triples, without < and >");
        return;
    }
    if (l->rows == LOOK_ADJACENCY) {
        at = text_add(out, room, at, "target = the first, contexts = the others");
    } else if (l->rows == LOOK_LISTS && form->unnamed) {
        at = text_add(out, room, at, "items = all, and each list is named by its line's number (corpus.names = yes: by its first)");
    } else if (l->rows == LOOK_LISTS) {
        uint64_t lines = l->lines.count - (uint64_t)l->has_header;
        at = text_add(out, room, at, "list = the first, items = the others");
        if (l->names && l->names < lines)
            at = text_add(out, room, at, " (%" PRIu64 " names in %" PRIu64 " lines: lines of one name are one list)", l->names, lines);
    } else {
        at = say_column(l, at, words->a, form->column[COLUMN_A]);
        at = text_add(out, room, at, ", ");
        if (l->rows == LOOK_TRIPLES) at = say_column(l, at, words->value, form->column[COLUMN_VALUE]);
        if (l->rows == LOOK_TRIPLES) at = text_add(out, room, at, ", ");
        at = say_column(l, at, words->b, form->column[COLUMN_B]);
        if (looked_has_values(l->rows)) at = text_add(out, room, at, ", ");
        if (looked_has_values(l->rows) && form->braces && form->column[COLUMN_VALUE] != NO_COLUMN)
            at = text_add(out, room, at, "%s = networkx' attributes", words->value);
        else if (looked_has_values(l->rows))
            at = say_column(l, at, words->value, form->column[COLUMN_VALUE]);
    }
    at = text_add(out, room, at, "; %s, %s", columns_separator_name(form->separator), l->has_header ? "a header" : "no header");
    if (form->decimal_comma) text_add(out, room, at, ", decimal commas");
    uint64_t length;
    const char *value = looked_name(l, form->column[COLUMN_VALUE], &length);
    if (l->has_header && looked_has_values(l->rows)) snprintf(look->value, sizeof look->value, "%.*s", text_shown(length), value);
}
