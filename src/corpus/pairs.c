#include "pairs.h"

#include "base/report.h"
#include "base/text.h"
#include "edges.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

int pairs_weight(enum pair_weights weights, double rating, float *weight) {
    *weight = 1;
    if (weights == PAIR_WEIGHTS_NONE) return 0;
    if (edges_weight(rating, weight)) return -1;
    if (weights == PAIR_WEIGHTS_LOG) *weight = (float)log1p((double)*weight);
    return 0;
}

/* Returns 1 if the word is one of corpus.events. */
static int is_wanted(const char *events, const char *word, uint64_t length) {
    while (*events) {
        while (*events == ',' || text_is_blank(*events)) events++;
        uint64_t end = strcspn(events, ","), one = end;
        while (one && text_is_blank(events[one - 1])) one--;
        if (one == length && !strncasecmp(events, word, length)) return 1;
        events += end;
    }
    return 0;
}

static int read_rating(const struct columns_form *form, const char *word, uint64_t length, double *rating) {
    int truth = form->zeros_out && (length == 4 ? !strncasecmp(word, "true", 4) : length == 5 && !strncasecmp(word, "false", 5));
    if (!truth) return columns_number(form, word, length, rating);
    *rating = length == 4;
    return 0;
}

int pairs_next(struct corpus_cursor *cursor, const struct corpus_block *block, const struct corpus_options *options,
               struct corpus_left *left, struct pair_line *pair) {
    static const struct columns_form plain = COLUMNS_PLAIN;
    const struct columns_form *form = block->form ? block->form : &plain;
    unsigned list = form->column[COLUMN_A], item = form->column[COLUMN_B];
    const char *events = options->look.events ? options->look.events : "";
    int ranked = !isinf(options->min_rating), weighted = options->pair_weights != PAIR_WEIGHTS_NONE;
    struct table_line columns;
    for (;;) {
        uint64_t line = cursor->line;
        double rating = NAN;
        float weight;
        if (!columns_next(cursor, form, &columns)) return 0;
        if (!columns.count) continue;
        left->rows++;
        if (!columns.open && list < columns.count && item < columns.count && (!columns.length[list] || !columns.length[item])) {
            left->missing++;
            continue;
        }
        if (columns_check(&columns, form, LOOK_PAIRS, block->path, line)) return -1;
        unsigned rated = columns_value(&columns, form);
        const char *word = rated == NO_COLUMN ? "" : columns.word[rated];
        uint64_t length = rated == NO_COLUMN ? 0 : columns.length[rated];
        if (form->events && *events && !is_wanted(events, word, length)) {
            left->events++;
            continue;
        }
        if (form->events && !(ranked || weighted)) rated = NO_COLUMN;
        if (rated == NO_COLUMN && ranked) return fail("'%s' line %" PRIu64 ": no rating, and corpus.min_rating is set", block->path, line);
        if (rated != NO_COLUMN && read_rating(form, word, length, &rating))
            return fail("'%s' line %" PRIu64 ": the rating '%.*s' is not a number%s", block->path, line, text_shown(length), word,
                        line == 1 ? "; where the line names the columns, set corpus.header = yes" : "");
        if (rated == NO_COLUMN && weighted)
            return fail("'%s' line %" PRIu64 ": no rating, which corpus.weights makes the pair's weight", block->path, line);
        if (rated != NO_COLUMN && rating < options->min_rating) {
            left->low++;
            continue;
        }
        if (pairs_weight(options->pair_weights, rating, &weight))
            return fail("'%s' line %" PRIu64 ": the rating %.*s cannot be the pair's weight (corpus.weights); wanted 0 or a positive "
                        "number that 32 bits hold (1.2e-38 to 3.4e38)",
                        block->path, line, text_shown(length), word);
        if (weight == 0 || (form->zeros_out && rating == 0 && !ranked)) {
            left->zeros++;
            continue;
        }
        *pair = (struct pair_line){
            columns.word[list], columns.word[item], columns.length[list], columns.length[item], line, rating, weight};
        return 1;
    }
}
