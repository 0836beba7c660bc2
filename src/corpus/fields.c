#include "fields.h"

#include "pairs.h"

#include <stddef.h>

void corpus_fields_start(struct corpus_fields *fields, const struct corpus_block *block,
                         const struct corpus_options *options) {
    *fields = (struct corpus_fields){.format = &corpus_formats[options->format],
                                     .block = block,
                                     .min_rating = options->min_rating,
                                     .index = (uint64_t)block->continues};
    corpus_cursor_start(&fields->cursor, block);
}

int fields_of_tokens(struct corpus_fields *fields, struct corpus_field *field) {
    int kind = corpus_token(&fields->cursor, "", &field->text, &field->length);
    if (kind == TOKEN_END) return 0;
    field->line = fields->cursor.line;
    field->part = PART_WORD;
    if (kind == TOKEN_WORD) {
        field->part = corpus_part(fields->format, fields->index++);
        return 1;
    }
    fields->index = 0;
    field->text = NULL;
    field->length = 0;
    return 1;
}

int fields_of_pairs(struct corpus_fields *fields, struct corpus_field *field) {
    struct pair_line pair;
    if (fields->has_later) {
        *field = fields->later;
        fields->has_later = 0;
        return 1;
    }
    int more = pairs_next(&fields->cursor, fields->block, fields->min_rating, &pair);
    if (more <= 0) return more;
    *field = (struct corpus_field){PART_NAME, pair.list, pair.list_length, pair.line};
    fields->later = (struct corpus_field){PART_WORD, pair.item, pair.item_length, pair.line};
    fields->has_later = 1;
    return 1;
}
