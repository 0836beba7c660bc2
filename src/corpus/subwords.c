#include "subwords.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "vocab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the form ---- */

static int read_length(const char *text, const char *end, uint32_t *out) {
    uint64_t value = 0;
    if (text == end) return -1;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || (value = value * 10 + (uint64_t)(*text - '0')) > SUBWORDS_LONGEST) return -1;
    }
    *out = (uint32_t)value;
    return value ? 0 : -1;
}

int subwords_read_lengths(const char *text, struct subword_form *form) {
    const char *dash = strchr(text, '-');
    form->min = form->max = 0;
    if (!strcmp(text, "none")) return 0;
    if (!dash || read_length(text, dash, &form->min) || read_length(dash + 1, text + strlen(text), &form->max)) return -1;
    return form->min <= form->max ? 0 : -1;
}

enum { USUAL_BUCKETS = 2000000 };

int subwords_read_buckets(const char *text, struct subword_form *form) {
    uint64_t buckets;
    form->used = !strcmp(text, "used");
    form->buckets = USUAL_BUCKETS;
    if (form->used) return 0;
    if (text_count(text, &buckets) || buckets < 1 || buckets > SUBWORDS_MOST_BUCKETS) return -1;
    form->buckets = (uint32_t)buckets;
    return 0;
}

/* ---- n-grams ---- */

/* Bytes from 128 on are cast to negative numbers, as fastText's signed chars are; so they also change the hash's upper bits. */
uint32_t subwords_hash(const char *ngram, uint64_t length) {
    uint32_t hash = 2166136261u;
    for (uint64_t i = 0; i < length; i++) {
        hash ^= (uint32_t)(int8_t)ngram[i];
        hash *= 16777619u;
    }
    return hash;
}

static int continues(char byte) {
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* Calls found() for the n-grams that begin at byte `from` of `bounded`, the word with its bounds ("<where>"). */
static int visit_from(const struct subword_form *form, const char *bounded, uint64_t length, uint64_t from,
                      int (*found)(void *user, const char *ngram, uint64_t length, uint32_t bucket), void *user) {
    uint64_t end = from;
    for (uint32_t n = 1; end < length && n <= form->max; n++) {
        for (end++; end < length && continues(bounded[end]);) end++;
        int bound = n == 1 && (from == 0 || end == length); /* < or > alone is no n-gram */
        if (n < form->min || bound) continue;
        const char *ngram = bounded + from;
        int result = found(user, ngram, end - from, subwords_hash(ngram, end - from) % form->buckets);
        if (result) return result;
    }
    return 0;
}

int subwords_visit(const struct subword_form *form, const char *word, uint64_t length,
                   int (*found)(void *user, const char *ngram, uint64_t length, uint32_t bucket), void *user) {
    char small[256], *bounded = small;
    int result = 0;
    if (length == strlen(SUBWORDS_END) && !memcmp(word, SUBWORDS_END, length)) return 0;
    if (length + 2 > sizeof small && !(bounded = mem_alloc(length + 2, 1, "the n-grams of a word"))) return -1;
    bounded[0] = '<';
    memcpy(bounded + 1, word, length);
    bounded[length + 1] = '>';
    for (uint64_t i = 0; i < length + 2 && !result; i++)
        if (!continues(bounded[i])) result = visit_from(form, bounded, length + 2, i, found, user);
    if (bounded != small) free(bounded);
    return result;
}

/* ---- the rows of all words ---- */

/* The rows of a word's n-grams while they are collected. Until buckets have rows, `row` contains numbers of buckets. */
struct gathering {
    uint32_t *row;
    uint64_t count, capacity;
};

static int gather(void *user, const char *ngram, uint64_t length, uint32_t bucket) {
    struct gathering *to = user;
    if (to->count == to->capacity && mem_grow(&to->row, &to->capacity, to->count + 1, sizeof *to->row, "the rows of n-grams"))
        return -1;
    to->row[to->count++] = bucket;
    return 0;
}

static int gather_words(struct subwords *s, const struct vocab *vocab) {
    struct gathering all = {.row = NULL};
    int result = 0;
    for (uint64_t i = 0; i < s->words && !result; i++) {
        uint64_t length;
        const char *word = vocab_word(vocab, i, &length);
        s->starts[i] = all.count;
        result = gather(&all, NULL, 0, (uint32_t)i);
        if (!result) result = subwords_visit(&s->form, word, length, gather, &all);
        if (all.count - s->starts[i] > s->most) s->most = all.count - s->starts[i];
    }
    s->starts[s->words] = all.count;
    s->row = all.row;
    return result;
}

/* A bucket that contains n-grams of words in the vocabulary. count: how often its n-grams occur in the corpus; words: how often they occur in the
 * distinct words. */
struct named {
    uint64_t count;
    uint32_t bucket, words;
};

/* Compares buckets for sorting: by falling `count`, then by falling `words`, then by the bucket's number. */
static int compare_named(const void *left, const void *right) {
    const struct named *a = left, *b = right;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    if (a->words != b->words) return a->words > b->words ? -1 : 1;
    return a->bucket < b->bucket ? -1 : a->bucket > b->bucket;
}

/* Sets s->row_of to 0, 1, 2.. for buckets that contain an n-gram of a word, in bucket order, and to WORDS_ABSENT for the others. all = 1: numbers
 * every bucket. Returns how many buckets are numbered. */
static uint64_t number_named(struct subwords *s, int all) {
    uint64_t named = 0;
    for (uint64_t bucket = 0; bucket < s->form.buckets; bucket++) s->row_of[bucket] = WORDS_ABSENT;
    for (uint64_t i = 0; !all && i < s->words; i++)
        for (uint64_t j = s->starts[i] + 1; j < s->starts[i + 1]; j++) s->row_of[s->row[j]] = 0;
    for (uint64_t bucket = 0; bucket < s->form.buckets; bucket++)
        if (all || s->row_of[bucket] != WORDS_ABSENT) s->row_of[bucket] = (uint32_t)named++;
    return named;
}

/* Gives rows to buckets: first to those in named[], in that order, then, if all buckets have rows, to the others in bucket order. Replaces the
 * bucket numbers in s->row by rows. */
static int number_rows(struct subwords *s, const struct named *named) {
    uint64_t next = s->words + s->named;
    s->counts = mem_zalloc(s->rows ? s->rows : 1, sizeof *s->counts, "the rows of n-grams");
    if (!s->counts) return -1;
    if (s->rows > s->named)
        for (uint64_t bucket = 0; bucket < s->form.buckets; bucket++)
            if (s->row_of[bucket] == WORDS_ABSENT) s->row_of[bucket] = (uint32_t)next++;
    for (uint64_t i = 0; i < s->named; i++) {
        s->row_of[named[i].bucket] = (uint32_t)(s->words + i);
        s->counts[i] = named[i].count;
    }
    for (uint64_t i = 0; i < s->words; i++)
        for (uint64_t j = s->starts[i] + 1; j < s->starts[i + 1]; j++) s->row[j] = s->row_of[s->row[j]];
    return 0;
}

/* Sorts the buckets by how often they are used, unless form.in_order is set. named[] contains only numbered buckets, to save memory: a small
 * vocabulary uses few of 2,000,000 buckets. */
static int order_buckets(struct subwords *s, const struct vocab *vocab) {
    s->named = number_named(s, s->form.in_order);
    s->rows = s->form.used ? s->named : s->form.buckets;
    if (s->words + s->rows > WORDS_MOST)
        return fail("%" PRIu64 " words and %" PRIu64 " rows of n-grams are more than %u rows; lower model.buckets", s->words, s->rows,
                    WORDS_MOST);
    OWNED struct named *named = mem_alloc(s->named ? s->named : 1, sizeof *named, "the order of n-grams");
    if (!named) return -1;
    for (uint64_t bucket = 0; bucket < s->form.buckets; bucket++)
        if (s->row_of[bucket] != WORDS_ABSENT) named[s->row_of[bucket]] = (struct named){0, (uint32_t)bucket, 0};
    for (uint64_t i = 0; i < s->words; i++)
        for (uint64_t j = s->starts[i] + 1; j < s->starts[i + 1]; j++) {
            struct named *one = &named[s->row_of[s->row[j]]];
            one->count += vocab_count(vocab, i);
            one->words++;
        }
    if (!s->form.in_order) qsort(named, s->named, sizeof *named, compare_named);
    return number_rows(s, named);
}

int subwords_make(struct subwords *s, const struct subword_form *form, const struct vocab *vocab) {
    *s = (struct subwords){.form = *form, .words = vocab->size};
    if (!form->max) return 0;
    s->starts = mem_alloc(s->words + 1, sizeof *s->starts, "the rows of n-grams");
    s->row_of = mem_alloc(form->buckets, sizeof *s->row_of, "the rows of n-grams");
    return !s->starts || !s->row_of || gather_words(s, vocab) || order_buckets(s, vocab) ? -1 : 0;
}

void subwords_release(struct subwords *s) {
    mem_free(s->starts, s->row, s->row_of, s->counts);
    *s = (struct subwords){.words = 0};
}

uint64_t subwords_making_bytes(const struct subwords *s) {
    return s->starts ? subwords_bytes(s) + s->named * sizeof(struct named) : 0;
}

uint64_t subwords_bytes(const struct subwords *s) {
    if (!s->starts) return 0;
    return (s->words + 1) * sizeof *s->starts + s->starts[s->words] * sizeof *s->row +
           s->form.buckets * sizeof *s->row_of + s->rows * sizeof *s->counts;
}

/* ---- the rows of one word ---- */

int64_t subwords_of(const struct subwords *s, const char *word, uint64_t length, uint32_t **rows, uint64_t *capacity) {
    struct gathering found = {.row = *rows, .capacity = *capacity};
    int result = subwords_visit(&s->form, word, length, gather, &found);
    *rows = found.row;
    *capacity = found.capacity;
    for (uint64_t i = 0; i < found.count; i++) found.row[i] = s->row_of[found.row[i]];
    return result ? -1 : (int64_t)found.count;
}
