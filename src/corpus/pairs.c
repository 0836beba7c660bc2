#include "pairs.h"

#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int read_rating(const char *word, uint64_t length, double *rating) {
    char text[64];
    if (length == 1 && *word >= '0' && *word <= '9') {
        *rating = *word - '0';
        return 0;
    }
    if (length >= sizeof text || memchr(word, 0, length)) return -1;
    memcpy(text, word, length);
    text[length] = 0;
    return text_real(text, rating);
}

static uint64_t commas(const char *from, const char *to) {
    uint64_t count = 0;
    for (; from < to; from++) count += *from == ',';
    return count;
}

enum { PAIR_FIELDS = 4 };
struct fields {
    const char *word[PAIR_FIELDS];
    uint64_t length[PAIR_FIELDS];
    uint64_t count; /* may pass PAIR_FIELDS: then those left over are not kept */
    int hole;       /* 1: two commas, or one at an end of the line, with nothing between */
};

/* The fields of one line: 1, or 0 where the block is at its end. */
static int read_fields(struct corpus_cursor *cursor, struct fields *fields) {
    const char *word, *behind = cursor->at;
    uint64_t length;
    int kind;
    fields->count = 0;
    fields->hole = 0;
    if (cursor->at == cursor->end) return 0;
    while ((kind = corpus_token(cursor, ",", &word, &length)) == TOKEN_WORD) {
        if (commas(behind, word) > (fields->count > 0)) fields->hole = 1;
        if (fields->count < PAIR_FIELDS) {
            fields->word[fields->count] = word;
            fields->length[fields->count] = length;
        }
        fields->count++;
        behind = word + length;
    }
    if (commas(behind, cursor->at)) fields->hole = 1;
    return 1;
}

int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, double min_rating,
               struct pair_line *pair) {
    struct fields fields;
    for (;;) {
        uint64_t line = cursor->line;
        double rating;
        if (!read_fields(cursor, &fields)) return 0;
        if (fields.hole)
            return fail("'%s' line %" PRIu64 ": a field is empty; wanted list, item[, rating]", block->path, line);
        if (fields.count == 0) continue;
        if (fields.count < 2 || fields.count > PAIR_FIELDS)
            return fail("'%s' line %" PRIu64 ": %" PRIu64 " field%s; wanted 2 to 4: list, item[, rating[, anything]]",
                        block->path, line, fields.count, fields.count == 1 ? "" : "s");
        if (fields.count == 2 && !isinf(min_rating))
            return fail("'%s' line %" PRIu64 ": no rating, and corpus.min_rating is set", block->path, line);
        if (fields.count > 2 && read_rating(fields.word[2], fields.length[2], &rating)) {
            if (line == 1) continue; /* the names of the columns */
            return fail("'%s' line %" PRIu64 ": the rating '%.*s' is not a number", block->path, line,
                        (int)(fields.length[2] < 60 ? fields.length[2] : 60), fields.word[2]);
        }
        if (fields.count > 2 && rating < min_rating) continue;
        *pair = (struct pair_line){fields.word[0], fields.word[1], fields.length[0], fields.length[1], line};
        return 1;
    }
}
