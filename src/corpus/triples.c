#include "triples.h"

#include "base/report.h"
#include "base/text.h"
#include "columns.h"

#include <inttypes.h>
#include <string.h>

static const char *const names[TRIPLE_TERMS] = {"head", "relation", "tail"};

/* ---- N-Triples ---- */

static const char *pass_white(const char *at, const char *end) {
    while (at < end && token_is_white(*at)) at++;
    return at;
}

/* Returns the end of a term that ends before white space: the dot of the line may follow it at once. */
static const char *end_of_word(const char *at, const char *end) {
    while (at < end && !token_is_white(*at)) at++;
    return at[-1] == '.' ? at - 1 : at;
}

/* Returns the byte after a literal, whose first byte is its opening quote: after the closing quote and a language or type. Returns
 * NULL if the quote is not closed. */
static const char *end_of_literal(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++) at += *at == '\\' && at + 1 < end;
    return at == end ? NULL : end_of_word(at + 1, end);
}

/* Reads one term. Returns the byte after it; NULL if no term is there. */
static const char *read_term(const char *at, const char *end, const char **term, uint64_t *length) {
    const char *stop = at;
    int bracket = at < end && *at == '<';
    if (bracket) {
        stop = memchr(at, '>', (size_t)(end - at));
    } else if (at < end && *at == '"') {
        stop = end_of_literal(at, end);
    } else if (end - at > 1 && at[0] == '_' && at[1] == ':') {
        stop = end_of_word(at, end);
    }
    if (!stop || stop == at) return NULL;
    *term = at + bracket;
    *length = (uint64_t)(stop - *term);
    return stop + bracket;
}

/* Reads the terms of a line that is no comment. Returns 0, or -1 after fail(). */
static int read_ntriple(const char *at, const char *end, const char *path, struct corpus_left *left, struct triple_line *triple) {
    const char *graph;
    uint64_t length;
    int count = 0;
    for (; count < TRIPLE_TERMS; count++) {
        const char *after = read_term(pass_white(at, end), end, &triple->term[count], &triple->length[count]);
        if (!after) break;
        at = after;
    }
    const char *after = count == TRIPLE_TERMS ? read_term(pass_white(at, end), end, &graph, &length) : NULL;
    left->graphs += after != NULL;
    at = pass_white(after ? after : at, end);
    const char *rest = at < end && *at == '.' ? pass_white(at + 1, end) : NULL;
    if (count < TRIPLE_TERMS || !rest || (rest < end && *rest != '#'))
        return fail("'%s' line %" PRIu64 ": no triple of N-Triples; wanted <subject> <predicate> <object> and a dot", path,
                    triple->line);
    for (int i = 0; i < TRIPLE_TERMS; i++)
        if (!triple->length[i] || token_has_break(triple->term[i], triple->length[i]))
            return fail("'%s' line %" PRIu64 ": its %s %s", path, triple->line, names[i],
                        triple->length[i] ? "has a tab in it" : "is empty");
    return 0;
}

static int next_ntriple(struct corpus_cursor *cursor, const char *path, int literals, struct corpus_left *left,
                        struct triple_line *triple) {
    while (cursor->at < cursor->end) {
        const char *at = cursor->at, *end = cursor->end, *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        triple->line = cursor->line;
        cursor->at = newline ? newline + 1 : end;
        cursor->line += newline != NULL;
        at = pass_white(at, stop);
        if (at == stop || *at == '#') continue;
        if (read_ntriple(at, stop, path, left, triple)) return -1;
        const char *head = triple->term[TRIPLE_HEAD], *tail = triple->term[TRIPLE_TAIL];
        int literal = *head == '"' || *tail == '"';
        left->rows++;
        if (literal && !literals) {
            left->literals++;
            continue;
        }
        left->blanks += (head[0] == '_' && head[-1] != '<') || (tail[0] == '_' && tail[-1] != '<');
        return 1;
    }
    return 0;
}

/* ---- rows of fields ---- */

int triples_next(struct corpus_cursor *cursor, const struct corpus_block *block, int literals, struct corpus_left *left,
                 struct triple_line *triple) {
    static const struct columns_form plain = {.separator = " ", .column = {[COLUMN_A] = 0, [COLUMN_VALUE] = 1, [COLUMN_B] = 2}};
    static const enum column_meaning meanings[TRIPLE_TERMS] = {COLUMN_A, COLUMN_VALUE, COLUMN_B};
    const struct columns_form *form = block->form ? block->form : &plain;
    struct table_line columns;
    if (form->ntriples) return next_ntriple(cursor, block->path, literals, left, triple);
    do {
        triple->line = cursor->line;
        if (!columns_next(cursor, form, &columns)) return 0;
    } while (!columns.count);
    left->rows++;
    if (columns_check(&columns, form, LOOK_TRIPLES, block->path, triple->line)) return -1;
    for (int i = 0; i < TRIPLE_TERMS; i++) {
        triple->term[i] = columns.word[form->column[meanings[i]]];
        triple->length[i] = columns.length[form->column[meanings[i]]];
    }
    return 1;
}
