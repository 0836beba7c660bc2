#include "list_form.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/pairs.h"
#include "corpus/words.h"

#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 2000, FEW_NUMBERS = 20, MOST_FIELDS = 4, NUMBER_BYTES = 64 };

/* What the first lines of a file have. */
struct looks {
    uint64_t lines, fields; /* of each line; 0: not the same number in every one */
    uint64_t joined;        /* lines without a blank that have a comma */
    uint64_t rated;         /* lines whose third field is a number */
    uint64_t shared;        /* of these, those whose number was a second field before */
    struct words names, seconds, numbers;
};

static int is_number(const char *word, uint64_t length) {
    char text[NUMBER_BYTES];
    double value;
    if (length >= sizeof text || memchr(word, 0, length)) return 0;
    memcpy(text, word, length);
    text[length] = 0;
    return !text_real(text, &value);
}

static int add_word(struct words *words, const char *word, uint64_t length) {
    return words_add(words, words_hash(word, length), word, length) < 0 ? -1 : 0;
}

static int take_number(struct looks *looks, const char *word, uint64_t length) {
    looks->rated++;
    looks->shared += words_find(&looks->seconds, words_hash(word, length), word, length) >= 0;
    return add_word(&looks->numbers, word, length);
}

/* The next line that holds anything: 1, or 0 at the block's end, or -1. */
static int take_line(struct looks *looks, struct corpus_cursor *cursor) {
    const char *word, *first = NULL, *stop = NULL;
    uint64_t length, fields = 0;
    int kind, result = 0;
    while ((kind = corpus_token(cursor, ",", &word, &length)) == TOKEN_WORD) {
        if (!fields++) first = word, result |= add_word(&looks->names, word, length);
        if (fields == 2) result |= add_word(&looks->seconds, word, length);
        if (fields == 3 && is_number(word, length)) result |= take_number(looks, word, length);
        stop = word + length;
    }
    if (!fields) return kind == TOKEN_NEWLINE ? 1 : 0;
    looks->fields = looks->lines++ && looks->fields != fields ? 0 : fields;
    struct corpus_cursor line = {.at = first, .end = stop};
    if (corpus_token(&line, "", &word, &length) == TOKEN_WORD && word + length == stop && fields > 1) looks->joined++;
    return result ? -1 : 1;
}

static enum corpus_format judge(const struct looks *looks, enum corpus_format otherwise) {
    uint64_t lines = looks->lines;
    if (lines && looks->joined == lines) return FORMAT_PAIRS;
    if (looks->fields < 2 || looks->fields > MOST_FIELDS) return lines ? FORMAT_LISTS : otherwise;
    if (looks->fields == 2) return otherwise;
    if (looks->rated < lines) return FORMAT_LISTS;
    int again = looks->names.size < lines, few = looks->numbers.size <= FEW_NUMBERS && lines > 4 * FEW_NUMBERS;
    if (again || few) return FORMAT_PAIRS;
    /* Lists of two items each, or one pair of each list with the time at which it was made. */
    return lines > 4 * FEW_NUMBERS && looks->shared ? FORMAT_LISTS : otherwise;
}

/* What may name the columns decides nothing: the lines behind it do. */
static int look_at_block(const struct corpus_block *block, enum corpus_format otherwise, enum corpus_format *format) {
    struct looks looks = {.lines = 0};
    struct corpus_cursor cursor;
    int more = 1;
    corpus_cursor_start(&cursor, block);
    struct pairs_front front = pairs_front(cursor.at, (uint64_t)(cursor.end - cursor.at), 1);
    if (front.is_header) cursor.at += front.data;
    while (more > 0 && looks.lines < LOOKED_AT) more = take_line(&looks, &cursor);
    *format = judge(&looks, otherwise);
    words_release(&looks.names);
    words_release(&looks.seconds);
    words_release(&looks.numbers);
    return more < 0 ? -1 : 0;
}

static int look_at_files(const char *path, enum corpus_format otherwise, enum corpus_format *format) {
    char *paths[] = {(char *)path};
    struct corpus *corpus = corpus_open(paths, 1);
    struct corpus_block block = {0};
    if (!corpus) return -1;
    const struct corpus_options whole_lines = {.format = FORMAT_PAIRS, .header = HEADER_NO};
    corpus_read_as(corpus, &whole_lines);
    int more = corpus_stream(corpus) ? 0 : corpus_next(corpus, &block);
    *format = otherwise;
    if (more > 0) more = look_at_block(&block, otherwise, format);
    corpus_block_release(&block);
    corpus_close(corpus);
    return more < 0 ? -1 : 0;
}

/* Lists are read alike with every format but pairs. */
int list_form_look(struct corpus_options *reading, const char *path) {
    enum corpus_format format;
    if (look_at_files(path, reading->format, &format)) return -1;
    if ((format == FORMAT_PAIRS) == (reading->format == FORMAT_PAIRS)) return 0;
    reading->format = format;
    if (format == FORMAT_PAIRS)
        note("read       '%s' as pairs: list, item[, rating] on each line; --format=lists reads lines of lists", path);
    else
        note("read       '%s' as lists: a name and its items on each line; --format=pairs reads list, item[, rating]",
             path);
    return 0;
}
