#define _GNU_SOURCE
#include "fields.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "columns.h"
#include "corpus.h"
#include "numbered.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* Stores the weight of an edge in the line. WEIGHTS_AUTO here means that the first edges had no weights, so an edge with a weight is an error.
 * Returns 0, or -1 after fail(). */
static int read_weight(const struct table_line *columns, const struct columns_form *form, enum corpus_weights weights,
                       const char *path, uint64_t line, float *weight) {
    unsigned column = columns_value(columns, form);
    double value;
    *weight = 1;
    if (weights == WEIGHTS_NO || (weights == WEIGHTS_AUTO && column == NO_COLUMN)) return 0;
    int is_number = column != NO_COLUMN && !columns_number(form, columns->word[column], columns->length[column], &value);
    if (form->braces && column != NO_COLUMN && !is_number) return 0; /* networkx writes attributes without a weight for edges of weight 1 */
    if (column == NO_COLUMN)
        return fail("'%s' line %" PRIu64 ": the edge has no weight, and %s; graph.weights = no reads all edges without",
                    path, line,
                    form->named && form->column[COLUMN_VALUE] == NO_COLUMN ? "no column is named as one" : "edges have weights");
    const char *word = columns->word[column];
    uint64_t length = columns->length[column];
    if (weights == WEIGHTS_AUTO && !is_number) return 0;
    if (weights == WEIGHTS_AUTO)
        return fail("'%s' line %" PRIu64 ": the edge has a weight, '%.*s', and not all of the first edges have one; set graph.weights to yes or no",
                    path, line, text_shown(length), word);
    if (is_number && !edges_weight(value, weight)) return 0;
    return fail("'%s' line %" PRIu64 ": the weight '%.*s' is not a positive finite number%s%s", path, line,
                text_shown(length), word,
                is_number && value > 0 ? " that 32 bits hold (1.2e-38 to 3.4e38)"
                                       : "; graph.weights = no reads edges without",
                line == 1 && !is_number ? "; where the line names the columns, set corpus.header = yes" : "");
}

/* Returns 1 if the edge must be left out, and counts it in *left. */
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

static int look_for_weights(void *user, const struct corpus_block *block) {
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
    if (corpus_look(corpus, options, CORPUS_LOOK_FILES, look_for_weights, &looks)) return -1;
    return looks.edges && looks.weighted == looks.edges;
}

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

static const char *const names[TRIPLE_TERMS] = {"head", "relation", "tail"};

/* ---- N-Triples ---- */

static const char *pass_white(const char *at, const char *end) {
    while (at < end && token_is_white(*at)) at++;
    return at;
}

/* Returns the end of a term that ends before white space; the dot that ends the line may follow the term directly. */
static const char *end_of_word(const char *at, const char *end) {
    while (at < end && !token_is_white(*at)) at++;
    return at[-1] == '.' ? at - 1 : at;
}

/* Returns the byte after a literal: after its closing quote and its language or type. `at` is its opening quote. Returns NULL if the quote is not
 * closed. */
static const char *end_of_literal(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++) at += *at == '\\' && at + 1 < end;
    return at == end ? NULL : end_of_word(at + 1, end);
}

/* Reads one term of N-Triples. Returns the byte after it; NULL if there is no term. */
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

/* Reads the escape at the backslash text[0]. Returns its length, and stores its character; 0 if N-Triples have no such escape. */
static unsigned read_escape(const char *text, uint64_t left, int literal, unsigned long *character) {
    static const char letters[] = "tbnrf\"'\\", bytes[] = "\t\b\n\r\f\"'\\";
    const char *letter = left > 1 && text[1] && literal ? strchr(letters, text[1]) : NULL;
    if (letter) return *character = (unsigned long)bytes[letter - letters], 2;
    unsigned digits = left < 2 ? 0 : text[1] == 'u' ? 4 : text[1] == 'U' ? 8 : 0;
    char number[9] = "";
    if (!digits || left < 2 + digits) return 0;
    memcpy(number, text + 2, digits);
    if (strspn(number, "0123456789abcdefABCDEF") < digits) return 0;
    *character = strtoul(number, NULL, 16);
    return *character > 0x10FFFF || (*character >= 0xD800 && *character <= 0xDFFF) ? 0 : 2 + digits;
}

/* Writes a character as 1 to 4 bytes of UTF-8, which are no more than its escape has. Returns their number. */
static unsigned put_character(char *out, unsigned long character) {
    unsigned length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {[1] = 0, [2] = 0xC0, [3] = 0xE0, [4] = 0xF0};
    for (unsigned i = length; --i; character >>= 6) out[i] = (char)(0x80 | (character & 0x3F));
    *out = (char)(first[length] | character);
    return length;
}

/* Replaces the escapes of a term by their characters, in place. No name may contain a NUL, a tab or a line's end, so their escapes stay as they are
 * written. Returns 0, or -1, and leaves the term as it is, if N-Triples have no such escape. */
static int decode_escapes(char *term, uint64_t *length, int literal) {
    const char *at = memchr(term, '\\', *length), *end = term + *length;
    unsigned long character;
    unsigned of;
    for (const char *next = at; next; next = memchr(next + of, '\\', (size_t)(end - next - of)))
        if (!(of = read_escape(next, (uint64_t)(end - next), literal, &character))) return -1;
    if (!at) return 0;
    char *out = term + (at - term);
    while (at < end) {
        of = *at == '\\' ? read_escape(at, (uint64_t)(end - at), literal, &character) : 1;
        if (of == 1 || !character || (character < 128 && token_has_break(&(char){(char)character}, 1))) {
            memmove(out, at, of);
            out += of;
        } else {
            out += put_character(out, character);
        }
        at += of;
    }
    *length = (uint64_t)(out - term);
    return 0;
}

/* Reads the terms of a line of N-Triples that is not a comment. literals: 1: literals are names, which no tab can be part of. Returns 0, or -1
 * after fail(). */
static int read_ntriple(const char *at, const char *end, const char *path, int literals, struct corpus_left *left, struct triple_line *triple) {
    const char *graph, *line = at, *shown = end;
    uint64_t length;
    int count = 0;
    while (shown > line && token_is_white(shown[-1])) shown--;
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
        return fail("'%s' line %" PRIu64 ": no triple of N-Triples: %.*s; wanted <subject> <predicate> <object> and a dot", path, triple->line,
                    text_shown((uint64_t)(shown - line)), line);
    for (int i = 0; i < TRIPLE_TERMS; i++) {
        int is_name = literals || i != TRIPLE_TAIL || *triple->term[i] != '"';
        if (!triple->length[i] || (is_name && token_has_break(triple->term[i], triple->length[i])))
            return fail("'%s' line %" PRIu64 ": its %s %s", path, triple->line, names[i],
                        triple->length[i] ? "has a tab in it" : "is empty");
        int iri = triple->term[i] > line && triple->term[i][-1] == '<', literal = !iri && *triple->term[i] == '"';
        if (is_name && (iri || literal) && decode_escapes((char *)triple->term[i], &triple->length[i], literal)) /* a blank node's label has none */
            return fail("'%s' line %" PRIu64 ": its %s has an escape that N-Triples do not have: %.*s; wanted \\uXXXX or \\UXXXXXXXX, and in "
                        "literals also \\t \\b \\n \\r \\f \\\" \\' \\\\", path, triple->line, names[i], text_shown(triple->length[i]),
                        triple->term[i]);
    }
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
        if (read_ntriple(at, stop, path, literals, left, triple)) return -1;
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
    static const struct columns_form in_order = {.separator = " ", .column = {[COLUMN_A] = 0, [COLUMN_VALUE] = 1, [COLUMN_B] = 2}};
    static const enum column_meaning meanings[TRIPLE_TERMS] = {COLUMN_A, COLUMN_VALUE, COLUMN_B};
    const struct columns_form *form = block->form ? block->form : &in_order;
    struct table_line columns;
    triple->is_true = 1;
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
    const unsigned truth = form->truth - 1u;
    if (!form->truth) return 1;
    triple->is_true = truth < columns.count ? columns_truth(columns.word[truth], columns.length[truth]) : -1;
    if (triple->is_true >= 0) return 1;
    return fail("'%s' line %" PRIu64 ": its label is '%.*s'; wanted 1 or true, or 0, -1 or false", block->path, triple->line,
                truth < columns.count ? text_shown(columns.length[truth]) : 0, truth < columns.count ? columns.word[truth] : "");
}

/* A value of corpus.min_rating is proposed only if the numbers look like ratings: none exceeds RATING_MOST, and at least KEPT_LEAST % of the pairs
 * would be kept. Counts of plays or timestamps reach far higher values, and few are in the upper part of their range. */
enum { RATING_MOST = 1000, KEPT_LEAST = 5 };
static const double upper_part = 0.75; /* the upper part of a range of ratings begins here: at 4 of 1 to 5, at 8 of 1 to 10 */

int ratings_meet(struct ratings *ratings, double rating) {
    ratings->missing += isnan(rating);
    if (isnan(rating)) return 0;
    ratings->least = ratings->count ? fmin(ratings->least, rating) : rating;
    ratings->most = ratings->count ? fmax(ratings->most, rating) : rating;
    ratings->part |= ratings->count == RATINGS_KEPT;
    if (ratings->count == RATINGS_KEPT) return 0;
    if (mem_grow(&ratings->values, &ratings->capacity, ratings->count + 1, sizeof *ratings->values, "ratings")) return -1;
    ratings->values[ratings->count++] = rating;
    return 0;
}

void ratings_release(struct ratings *ratings) {
    free(ratings->values);
    *ratings = (struct ratings){0};
}

static int take_ratings(void *user, const struct corpus_block *block) {
    struct ratings *ratings = user;
    struct corpus_cursor cursor;
    struct pair_line pair;
    int more;
    corpus_cursor_start(&cursor, block);
    if (!ratings->count && block->value_name) snprintf(ratings->name, sizeof ratings->name, "%s", block->value_name);
    const struct corpus_options all = {.format = FORMAT_PAIRS, .min_rating = -INFINITY};
    struct corpus_left left = {0};
    ratings->part |= block->length + 1024 > FIRST_BYTES;
    while ((more = pairs_next(&cursor, block, &all, &left, &pair)) > 0)
        if (ratings_meet(ratings, pair.rating)) return -1;
    return more;
}

/* Returns the lowest rating that occurs in the upper part of the range; *kept: the percentage of ratings that are at least as high. */
static double propose(const struct ratings *ratings, double *kept) {
    double from = ratings->least + upper_part * (ratings->most - ratings->least), lowest = ratings->most;
    uint64_t count = 0;
    for (uint64_t i = 0; i < ratings->count; i++) {
        if (ratings->values[i] < from) continue;
        lowest = fmin(lowest, ratings->values[i]);
        count++;
    }
    *kept = 100.0 * (double)count / (double)ratings->count;
    return lowest;
}

/* Returns how messages call the ratings: by the column's name in the header; "ratings" if it has no name or the name contains this word. */
static const char *name_of(const struct ratings *ratings) {
    return *ratings->name && !strcasestr(ratings->name, "rating") ? ratings->name : "ratings";
}

/* If ratings differ, prints their range, that they have no effect, and which key would use them. */
static void ratings_say(const struct ratings *ratings) {
    if (ratings->count && !ratings->least && !ratings->most) remark("%s are all 0: all count alike", name_of(ratings));
    if (!ratings->count || ratings->least == ratings->most) return;
    if (ratings->least < 0) { /* in data of sales, a negative quantity means that the item was returned */
        uint64_t below = 0;
        double lowest = ratings->most;
        for (uint64_t i = 0; i < ratings->count; i++) {
            below += ratings->values[i] < 0;
            if (ratings->values[i] > 0) lowest = fmin(lowest, ratings->values[i]);
        }
        char count[TEXT_BYTES], all[TEXT_BYTES];
        remark("%s %.10g to %.10g found, %s of the first %s below 0 (returns?): all count alike; corpus.min_rating = %g leaves those out",
               name_of(ratings), ratings->least, ratings->most, text_of_count(count, below), text_of_count(all, ratings->count), lowest);
        return;
    }
    char first[TEXT_BYTES], advice[160] = "corpus.min_rating leaves lower ones out, corpus.weights = log weighs by them";
    double kept, from = propose(ratings, &kept);
    if (fmax(fabs(ratings->least), fabs(ratings->most)) <= RATING_MOST && kept >= KEPT_LEAST)
        snprintf(advice, sizeof advice, "corpus.min_rating = %g keeps the higher ones, about %.0f in 100%s%s", from, kept,
                 ratings->part ? " of the first " : "", ratings->part ? text_of_count(first, ratings->count) : "");
    remark("%s %.10g to %.10g found: all count alike; %s", name_of(ratings), ratings->least, ratings->most, advice);
}

static int look_at_files(const struct corpus *corpus, const struct corpus_options *options, struct ratings *ratings) {
    if (!corpus_formats[options->format].ratings || corpus_stream(corpus)) return 0;
    return corpus_look(corpus, options, CORPUS_LOOK_FILES, take_ratings, ratings);
}

int ratings_may_weigh(const struct corpus *corpus, const struct corpus_options *options) {
    struct ratings ratings = {0};
    int result = corpus_gathered(corpus) ? 0 : look_at_files(corpus, options, &ratings);
    int may = ratings.count && !ratings.missing && ratings.least > 0 && ratings.least < ratings.most;
    ratings_release(&ratings);
    return result ? -1 : may;
}

int ratings_note(const struct corpus *corpus, const struct corpus_options *options) {
    struct ratings ratings = {0};
    if (options->pair_weights) return 0;
    if (corpus_gathered(corpus)) {
        ratings_say(&corpus_gathered(corpus)->ratings);
        return 0;
    }
    int result = isinf(options->min_rating) ? look_at_files(corpus, options, &ratings) : 0;
    if (!result) ratings_say(&ratings);
    ratings_release(&ratings);
    return result;
}

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
        if (!column.length) continue; /* an empty field: between two separators, or after the last separator of a line */
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

/* If the last line has a field that was not returned yet, stores it and returns 1; otherwise returns 0. */
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
        keep_later(fields, (struct corpus_field){i == TRIPLE_RELATION ? PART_NAME : PART_WORD, triple.term[i], triple.length[i], triple.line,
                                                 (float)triple.is_true});
    *field = (struct corpus_field){PART_WORD, triple.term[TRIPLE_HEAD], triple.length[TRIPLE_HEAD], triple.line, (float)triple.is_true};
    return 1;
}

int fields_read_file(const char *path, const struct corpus_options *options, gathered_take *take, void *user) {
    char *paths[] = {(char *)path};
    ENDED_BY(corpus_end) struct corpus *corpus = corpus_open(paths, 1);
    ENDED_BY(corpus_block_release) struct corpus_block block = {0};
    struct corpus_left left = {0};
    struct corpus_fields fields;
    struct corpus_field field;
    int more = !corpus ? -1
               : corpus_stream(corpus) ? fail("'%s' is an id stream; wanted a file of %s", path, corpus_formats[options->format].lines)
                                       : corpus_read_as(corpus, options);
    while (!more && (more = corpus_next(corpus, &block)) > 0) {
        corpus_fields_start(&fields, &block, options);
        do
            more = corpus_fields_next(&fields, &field);
        while (more > 0 && !(field.text && take(user, &field)));
        more = more ? -1 : 0; /* take() has failed, or the reader */
        corpus_left_add(&left, &fields.left);
    }
    return more ? -1 : corpus_left_say(&left, options);
}
