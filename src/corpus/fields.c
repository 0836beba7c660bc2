#include "fields.h"

#include "pairs.h"

#include <stddef.h>

void corpus_fields_start(struct corpus_fields *fields, const struct corpus_block *block,
                         const struct corpus_options *options) {
    *fields = (struct corpus_fields){.format = &corpus_formats[options->format],
                                     .block = block,
                                     .min_rating = options->min_rating,
                                     .weights = options->weights,
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

/* Gives the second field of the line that was read last. Returns 0 where it was given already. */
static int take_later(struct corpus_fields *fields, struct corpus_field *field) {
    if (!fields->has_later) return 0;
    *field = fields->later;
    fields->has_later = 0;
    return 1;
}

static void keep_later(struct corpus_fields *fields, struct corpus_field field) {
    fields->later = field;
    fields->has_later = 1;
}

int fields_of_pairs(struct corpus_fields *fields, struct corpus_field *field) {
    struct pair_line pair;
    if (take_later(fields, field)) return 1;
    int more = pairs_next(&fields->cursor, fields->block, fields->min_rating, &pair);
    if (more <= 0) return more;
    *field = (struct corpus_field){PART_NAME, pair.list, pair.list_length, pair.line};
    keep_later(fields, (struct corpus_field){PART_WORD, pair.item, pair.item_length, pair.line});
    return 1;
}

int fields_of_edges(struct corpus_fields *fields, struct corpus_field *field) {
    struct edge_line edge;
    if (take_later(fields, field)) return 1;
    int more = edges_next(&fields->cursor, fields->block, fields->weights, &fields->left, &edge);
    if (more <= 0) return more;
    *field = (struct corpus_field){PART_WORD, edge.from, edge.from_length, edge.line};
    keep_later(fields, (struct corpus_field){PART_WORD, edge.to, edge.to_length, edge.line});
    return 1;
}
