#include "fields.h"

#include "base/report.h"
#include "base/text.h"
#include "pairs.h"
#include "triples.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

const struct corpus_format_properties corpus_formats[CORPUS_FORMATS] = {
#define FORMAT(format, enumerator, row, help, ...) [enumerator] = {.name = #format, .rows = row, __VA_ARGS__},
#include "formats.def"
};

const char corpus_format_names[] =
#define FORMAT(format, ...) "|" #format
#include "formats.def"
    ;

const char corpus_format_help[] =
    "what a line of the corpus is"
#define FORMAT(format, enumerator, rows, help, ...) "\n  " #format ": " help
#include "formats.def"
    ;

void corpus_fields_start(struct corpus_fields *fields, const struct corpus_block *block,
                         const struct corpus_options *options) {
    *fields = (struct corpus_fields){.format = &corpus_formats[options->format],
                                     .block = block,
                                     .options = options,
                                     .index = (uint64_t)block->continues};
    corpus_cursor_start(&fields->cursor, block);
}

static int splits_at_blanks(const struct columns_form *form) {
    return !form || (*form->separator == ' ' && form->quotes == QUOTES_BYTES);
}

int fields_are_tokens(const struct corpus_block *block, const struct corpus_options *options) {
    corpus_reader *read = corpus_formats[options->format].read;
    return read == fields_of_tokens || (read == fields_of_lists && splits_at_blanks(block->form));
}

/* Prepares to read the fields of the next line. Returns 1, or 0 at the end of the block. */
static int begin_line(struct corpus_fields *fields, const struct columns_form *form) {
    struct corpus_cursor *cursor = &fields->cursor;
    if (cursor->at == cursor->end) return 0;
    char *at = (char *)cursor->at, *end = (char *)cursor->end, *newline = memchr(at, '\n', (size_t)(end - at));
    column_walk_start(&fields->walk, at, newline ? newline : end, form);
    cursor->at = newline ? newline + 1 : end;
    fields->in_line = 1;
    fields->index = 0;
    fields->line = cursor->line;
    cursor->line += newline != NULL;
    return 1;
}

static int refuse_list(const struct corpus_fields *fields, const struct column_field *field) {
    if (field->open)
        return fail("'%s' line %" PRIu64 ": a double quote is not closed in its line, or something follows it",
                    fields->block->path, fields->line);
    return fail("'%s' line %" PRIu64 ": '%.*s' has a tab or a line's end in it", fields->block->path, fields->line,
                text_shown(field->length), field->word);
}

int fields_of_lists(struct corpus_fields *fields, struct corpus_field *field) {
    const struct columns_form *form = fields->block->form;
    struct column_field column;
    if (splits_at_blanks(form)) return fields_of_tokens(fields, field);
    for (;;) {
        if (!fields->in_line && !begin_line(fields, form)) return 0;
        if (!column_walk_next(&fields->walk, form, 0, &column)) {
            fields->in_line = 0;
            *field = (struct corpus_field){.part = PART_WORD, .line = fields->line};
            return 1;
        }
        if (!column.length) continue; /* the field is empty: two separators follow each other, or one ends the line */
        if (column.open || token_has_break(column.word, column.length)) return refuse_list(fields, &column);
        *field = (struct corpus_field){corpus_part(fields->format, fields->index++), column.word, column.length, fields->line, 1};
        return 1;
    }
}

int fields_of_tokens(struct corpus_fields *fields, struct corpus_field *field) {
    int kind = corpus_token(&fields->cursor, "", &field->text, &field->length);
    if (kind == TOKEN_END) return 0;
    field->line = fields->cursor.line;
    field->part = PART_WORD;
    if (kind == TOKEN_WORD) {
        field->part = corpus_part(fields->format, fields->index++);
        if (field->part == PART_NAME && fields->block->tabs) { /* the name of a document may contain blanks */
            const char *tab = memchr(field->text, '\t', (size_t)(fields->cursor.end - field->text));
            if (tab) field->length = (uint64_t)(tab - field->text), fields->cursor.at = tab;
        }
        return 1;
    }
    fields->index = 0;
    field->text = NULL;
    field->length = 0;
    return 1;
}

/* If a field of the last line was not returned yet, stores it and returns 1; otherwise returns 0. */
static int take_later(struct corpus_fields *fields, struct corpus_field *field) {
    if (!fields->later_count) return 0;
    *field = fields->later[--fields->later_count];
    return 1;
}

static void keep_later(struct corpus_fields *fields, struct corpus_field field) {
    fields->later[fields->later_count++] = field;
}

int fields_of_pairs(struct corpus_fields *fields, struct corpus_field *field) {
    struct pair_line pair;
    if (take_later(fields, field)) return 1;
    int more = pairs_next(&fields->cursor, fields->block, fields->options, &fields->left, &pair);
    if (more <= 0) return more;
    *field = (struct corpus_field){PART_NAME, pair.list, pair.list_length, pair.line, pair.weight};
    keep_later(fields, (struct corpus_field){PART_WORD, pair.item, pair.item_length, pair.line, pair.weight});
    return 1;
}

int fields_of_edges(struct corpus_fields *fields, struct corpus_field *field) {
    struct edge_line edge;
    if (take_later(fields, field)) return 1;
    int more = edges_next(&fields->cursor, fields->block, fields->options->weights, &fields->left, &edge);
    if (more <= 0) return more;
    *field = (struct corpus_field){PART_WORD, edge.from, edge.from_length, edge.line, edge.weight};
    keep_later(fields, (struct corpus_field){PART_WORD, edge.to, edge.to_length, edge.line, edge.weight});
    return 1;
}

int fields_of_triples(struct corpus_fields *fields, struct corpus_field *field) {
    struct triple_line triple;
    if (take_later(fields, field)) return 1;
    int more = triples_next(&fields->cursor, fields->block, fields->options->look.literals, &fields->left, &triple);
    if (more <= 0) return more;
    for (int i = TRIPLE_TERMS - 1; i > 0; i--)
        keep_later(fields, (struct corpus_field){i == TRIPLE_RELATION ? PART_NAME : PART_WORD, triple.term[i], triple.length[i], triple.line, 1});
    *field = (struct corpus_field){PART_WORD, triple.term[TRIPLE_HEAD], triple.length[TRIPLE_HEAD], triple.line, 1};
    return 1;
}
