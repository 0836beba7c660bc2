#include "pairs.h"

#include "base/report.h"
#include "base/text.h"
#include "edges.h"

#include <inttypes.h>
#include <math.h>

int pairs_weight(enum pair_weights weights, double rating, float *weight) {
    *weight = 1;
    if (weights == PAIR_WEIGHTS_NONE) return 0;
    if (edges_weight(rating, weight)) return -1;
    if (weights == PAIR_WEIGHTS_LOG) *weight = (float)log1p((double)*weight);
    return 0;
}

int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, double min_rating, enum pair_weights weights,
               struct pair_line *pair) {
    static const struct columns_form plain = COLUMNS_PLAIN;
    const struct columns_form *form = block->form ? block->form : &plain;
    unsigned list = form->column[COLUMN_A], item = form->column[COLUMN_B];
    struct table_line columns;
    for (;;) {
        uint64_t line = cursor->line;
        double rating = NAN;
        float weight;
        if (!columns_next(cursor, form, &columns)) return 0;
        if (!columns.count) continue;
        if (columns_check(&columns, form, COLUMNS_OF_PAIRS, block->path, line)) return -1;
        unsigned rated = columns_value(&columns, form);
        if (rated == NO_COLUMN && !isinf(min_rating))
            return fail("'%s' line %" PRIu64 ": no rating, and corpus.min_rating is set", block->path, line);
        if (rated != NO_COLUMN && columns_number(form, columns.word[rated], columns.length[rated], &rating))
            return fail("'%s' line %" PRIu64 ": the rating '%.*s' is not a number%s", block->path, line,
                        text_shown(columns.length[rated]), columns.word[rated],
                        line == 1 ? "; where the line names the columns, set corpus.header = yes" : "");
        if (rated == NO_COLUMN && weights)
            return fail("'%s' line %" PRIu64 ": no rating, which corpus.weights makes the pair's weight", block->path, line);
        if (rated != NO_COLUMN && rating < min_rating) continue;
        if (pairs_weight(weights, rating, &weight))
            return fail("'%s' line %" PRIu64 ": the rating %.*s cannot be the pair's weight (corpus.weights); wanted 0 or a positive "
                        "number that 32 bits hold (1.2e-38 to 3.4e38)",
                        block->path, line, text_shown(columns.length[rated]), columns.word[rated]);
        if (weight == 0) continue;
        *pair = (struct pair_line){
            columns.word[list], columns.word[item], columns.length[list], columns.length[item], line, rating, weight};
        return 1;
    }
}
