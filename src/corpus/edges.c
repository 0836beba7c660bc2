#include "edges.h"

#include "base/report.h"
#include "base/text.h"
#include "columns.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

static const struct columns_form plain = COLUMNS_PLAIN;

static const struct columns_form *form_of(const struct corpus_block *block) {
    return block->form ? block->form : &plain;
}

/* If the cursor is at a comment line, skips the line and returns 1; otherwise returns 0. */
static int pass_comment(struct corpus_cursor *cursor) {
    const char *at = cursor->at, *end = cursor->end;
    while (at < end && *at != '\n' && token_is_white(*at)) at++;
    if (at == end || !columns_comment(*at)) return 0;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    cursor->at = newline ? newline + 1 : end;
    cursor->line += newline != NULL;
    return 1;
}

/* Stores the fields of the next line that has fields. Returns 1; 0 at the end of the block. */
static int next_line(struct corpus_cursor *cursor, const struct columns_form *form, struct table_line *columns,
                     uint64_t *line) {
    for (;;) {
        if (pass_comment(cursor)) continue;
        *line = cursor->line;
        if (!columns_next(cursor, form, columns)) return 0;
        if (columns->count) return 1;
    }
}

int edges_weight(double value, float *weight) {
    if (!(value >= 0) || value > FLT_MAX || (value && value < FLT_MIN)) return -1;
    *weight = (float)value;
    return 0;
}

/* Stores the weight of an edge. WEIGHTS_AUTO means that the first edges had no weights; an edge with a weight is then an error.
 * Returns 0, or -1 after fail(). */
static int read_weight(const struct table_line *columns, const struct columns_form *form, enum corpus_weights weights,
                       const char *path, uint64_t line, float *weight) {
    unsigned column = columns_value(columns, form);
    double value;
    *weight = 1;
    if (weights == WEIGHTS_NO || (weights == WEIGHTS_AUTO && column == NO_COLUMN)) return 0;
    int is_number = column != NO_COLUMN && !columns_number(form, columns->word[column], columns->length[column], &value);
    if (form->braces && column != NO_COLUMN && !is_number) return 0; /* attributes of networkx without a weight: the weight is 1 */
    if (column == NO_COLUMN)
        return fail("'%s' line %" PRIu64 ": the edge has no weight, and %s; graph.weights = no reads all edges without",
                    path, line,
                    form->named && form->column[COLUMN_VALUE] == NO_COLUMN ? "no column is named as one" : "edges have weights");
    const char *word = columns->word[column];
    uint64_t length = columns->length[column];
    if (weights == WEIGHTS_AUTO && !is_number) return 0;
    if (weights == WEIGHTS_AUTO)
        return fail("'%s' line %" PRIu64
                    ": the edge has a weight, '%.*s', and not all of the first edges have one; set "
                    "graph.weights to yes or no",
                    path, line, text_shown(length), word);
    if (is_number && !edges_weight(value, weight)) return 0;
    return fail("'%s' line %" PRIu64 ": the weight '%.*s' is not a positive finite number%s%s", path, line,
                text_shown(length), word,
                is_number && value > 0 ? " that 32 bits hold (1.2e-38 to 3.4e38)"
                                       : "; graph.weights = no reads edges without",
                line == 1 && !is_number ? "; where the line names the columns, set corpus.header = yes" : "");
}

/* Returns 1 if the edge must be left out, and counts it. */
static int leave_out(const struct edge_line *edge, struct corpus_left *left) {
    int loop = edge->from_length == edge->to_length && !memcmp(edge->from, edge->to, edge->from_length);
    left->loops += (uint64_t)loop;
    left->zeros += !loop && edge->weight == 0;
    return loop || edge->weight == 0;
}

int edges_next(struct corpus_cursor *cursor, const struct corpus_block *block, enum corpus_weights weights,
               struct corpus_left *left, struct edge_line *edge) {
    const struct columns_form *form = form_of(block);
    unsigned from = form->column[COLUMN_A], to = form->column[COLUMN_B];
    struct table_line columns;
    while (next_line(cursor, form, &columns, &edge->line)) {
        if (columns_check(&columns, form, LOOK_EDGES, block->path, edge->line) ||
            read_weight(&columns, form, weights, block->path, edge->line, &edge->weight))
            return -1;
        edge->from = columns.word[from];
        edge->to = columns.word[to];
        edge->from_length = columns.length[from];
        edge->to_length = columns.length[to];
        if (!leave_out(edge, left)) return 1;
    }
    return 0;
}

/* ---- are there weights? ---- */

struct looks {
    uint64_t edges, weighted;
};

static int take(void *user, const struct corpus_block *block) {
    struct looks *looks = user;
    struct corpus_cursor cursor;
    struct table_line columns;
    uint64_t line;
    double value;
    corpus_cursor_start(&cursor, block);
    while (next_line(&cursor, form_of(block), &columns, &line)) {
        unsigned column = columns_value(&columns, form_of(block));
        looks->edges++;
        looks->weighted += column != NO_COLUMN &&
                           (form_of(block)->braces ||
                            !columns_number(form_of(block), columns.word[column], columns.length[column], &value));
    }
    return 0;
}

int edges_look_weighted(const struct corpus *corpus, const struct corpus_options *options) {
    struct looks looks = {0};
    if (corpus_look(corpus, options, CORPUS_LOOK_FILES, take, &looks)) return -1;
    return looks.edges && looks.weighted == looks.edges;
}
