#include "line_form.h"

#include "pairs.h"
#include "words.h"

#include <string.h>

enum { LOOKED_AT = 2000, FEW_NUMBERS = 20, MOST_FIELDS = 4, LEAST_RATINGS = 3 };

/* Counts of the lines that were looked at. */
struct looks {
    uint64_t lines, fields; /* fields: how many each line has; 0: lines differ */
    uint64_t joined;        /* lines without a blank that have a comma */
    uint64_t rated;         /* lines with a number as their third field */
    uint64_t shared;        /* how many of these had a number that was a second field before */
    uint64_t plain;         /* lines without a space, and without an empty field between commas */
    struct words names, seconds, numbers;
};

static int add_word(struct words *words, const char *word, uint64_t length) {
    return words_add(words, words_hash(word, length), word, length) < 0 ? -1 : 0;
}

static int take_number(struct looks *looks, const char *word, uint64_t length) {
    looks->rated++;
    looks->shared += words_find(&looks->seconds, words_hash(word, length), word, length) >= 0;
    return add_word(&looks->numbers, word, length);
}

static uint64_t count_of(char byte, const char *at, const char *end) {
    uint64_t count = 0;
    while (at < end && (at = memchr(at, byte, (size_t)(end - at)))) count++, at++;
    return count;
}

static void count_line(struct looks *looks, const char *first, const char *stop, uint64_t fields) {
    struct corpus_cursor line = {.at = first, .end = stop};
    const char *word;
    uint64_t length, commas = count_of(',', first, stop);
    looks->fields = looks->lines++ && looks->fields != fields ? 0 : fields;
    if (corpus_token(&line, "", &word, &length) == TOKEN_WORD && word + length == stop && fields > 1) looks->joined++;
    if (!count_of(' ', first, stop) && (!commas || commas == fields - 1)) looks->plain++;
}

/* Counts the next line; an empty one does not count. Returns 1, or 0 at the end, or -1 after fail(). */
static int take_line(struct looks *looks, struct corpus_cursor *cursor) {
    const char *word, *first = NULL, *stop = NULL;
    uint64_t length, fields = 0;
    double rating;
    int kind, result = 0;
    while ((kind = corpus_token(cursor, ",", &word, &length)) == TOKEN_WORD) {
        if (!fields++) first = word, result |= add_word(&looks->names, word, length);
        if (fields == 2) result |= add_word(&looks->seconds, word, length);
        if (fields == 3 && !pairs_rating(word, length, &rating)) result |= take_number(looks, word, length);
        stop = word + length;
    }
    if (!fields) return kind == TOKEN_NEWLINE ? 1 : 0;
    count_line(looks, first, stop, fields);
    return result ? -1 : 1;
}

/* Returns 1 where no further line can make these anything but lists. */
static int are_lists(const struct looks *looks) {
    if (looks->joined == looks->lines) return 0;
    int odd = looks->fields < 2 || looks->fields > MOST_FIELDS;
    return odd || (looks->fields > 2 && looks->rated < looks->lines);
}

static enum line_form form_of_pairs(const struct looks *looks) {
    int rated = looks->fields > 2 && looks->fields <= MOST_FIELDS && looks->rated == looks->lines;
    return rated && looks->plain == looks->lines && looks->lines >= LEAST_RATINGS ? LINES_RATINGS : LINES_PAIRS;
}

static enum line_form judge(const struct looks *looks) {
    uint64_t lines = looks->lines;
    if (!lines) return LINES_UNCLEAR;
    if (are_lists(looks)) return LINES_LISTS;
    if (looks->joined == lines) return form_of_pairs(looks);
    if (looks->fields == 2) return LINES_UNCLEAR;
    int again = looks->names.size < lines, many = lines > 4 * (uint64_t)FEW_NUMBERS;
    if (again || (many && looks->numbers.size <= FEW_NUMBERS)) return form_of_pairs(looks);
    /* these may be lists of two items each, or one pair of each list with its time */
    return many && looks->shared ? LINES_LISTS : LINES_UNCLEAR;
}

/* 1 where columns have names, or are parted by what parts nothing else. */
static int is_table(const struct pairs_front *front) {
    const char *separator = front->form.separator;
    return *separator && (front->names || (*separator != ',' && *separator != '\t'));
}

int line_form(const char *bytes, uint64_t length) {
    struct looks looks = {.lines = 0};
    struct pairs_front front = pairs_front(bytes, length, 1, 1, COLUMNS_OF_PAIRS);
    if (is_table(&front))
        return front.names && front.form.column[COLUMN_RATING] != NO_COLUMN ? LINES_RATINGS : LINES_PAIRS;
    struct corpus_cursor cursor = {.at = bytes + (front.is_header ? front.data : 0), .end = bytes + length};
    int more = 1;
    while (more > 0 && looks.lines < LOOKED_AT && !are_lists(&looks)) more = take_line(&looks, &cursor);
    enum line_form form = judge(&looks);
    words_release(&looks.names);
    words_release(&looks.seconds);
    words_release(&looks.numbers);
    return more < 0 ? -1 : (int)form;
}
