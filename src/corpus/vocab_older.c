#include "vocab_older.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One word or list of the joined vocabulary. */
struct kept_word {
    uint64_t count, number; /* number: its id in `vocab`, or in `older` if of_older is 1 */
    int of_older;           /* 1: only the older run has this word */
};

/* State of joining two vocabularies. */
struct joining {
    const struct vocab *vocab, *older;
    const struct corpus_options *options;
    struct kept_word *words; /* [items + lists] */
    uint64_t items, lists;
};

static uint64_t items_of(const struct vocab *vocab) {
    return vocab->size - vocab->lists;
}

static const char *word_of(const struct joining *joining, const struct kept_word *word, uint64_t *length) {
    return vocab_word(word->of_older ? joining->older : joining->vocab, word->number, length);
}

/* Returns the count of a word (not of a list) in a vocabulary. *found: 1 if the vocabulary has it; if not, 0 and the count is 0. */
static uint64_t count_in(const struct vocab *vocab, const char *word, uint64_t length, int *found) {
    int64_t row = vocab_find(vocab, word, length);
    *found = row >= 0 && (uint64_t)row < items_of(vocab);
    return *found ? vocab_count(vocab, row) : 0;
}

static void join_items(struct joining *joining) {
    const struct vocab *vocab = joining->vocab, *older = joining->older;
    uint64_t length;
    int found;
    for (uint64_t id = 0; id < items_of(vocab); id++) {
        const char *word = vocab_word(vocab, id, &length);
        joining->words[joining->items++] = (struct kept_word){vocab_count(vocab, id) + count_in(older, word, length, &found), id, 0};
    }
    for (uint64_t id = 0; id < items_of(older); id++) {
        const char *word = vocab_word(older, id, &length);
        count_in(vocab, word, length, &found);
        if (!found) joining->words[joining->items++] = (struct kept_word){vocab_count(older, id), id, 1};
    }
}

static void join_lists(struct joining *joining) {
    const struct vocab *vocab = joining->vocab, *older = joining->older;
    struct kept_word *lists = joining->words + joining->items;
    uint64_t ways = vocab_is_reciprocal(vocab) ? 2 : 1, own = vocab->lists / ways, others = older->lists / ways, length;
    for (uint64_t way = 0; way < ways; way++) { /* all relations, then all reciprocals */
        uint64_t first = items_of(vocab) + way * own, from = items_of(older) + way * others;
        for (uint64_t id = first; id < first + own; id++) lists[joining->lists++] = (struct kept_word){0, id, 0};
        for (uint64_t id = from; id < from + others && joining->options->list_rows; id++) {
            const char *word = vocab_word(older, id, &length);
            if (vocab_find(vocab, word, length) < 0) lists[joining->lists++] = (struct kept_word){0, id, 1};
        }
    }
}

/* Fails if both vocabularies have relations, and only one of them has reciprocals. */
static int check_relations(const struct vocab *vocab, const struct vocab *older) {
    int ways = vocab_is_reciprocal(vocab), relations = older->lists && !strcmp(vocab_prefix(older), VOCAB_RELATION);
    if (!relations || !vocab->lists || vocab_is_reciprocal(older) == ways) return 0;
    return fail("train.from was trained with triples.reciprocal = %s, and this run has %s: give this run the same value, "
                "or set train.from_words = drop",
                ways ? "no" : "yes", ways ? "yes" : "no");
}

static int by_frequency(const void *a, const void *b) {
    const struct kept_word *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    if (x->of_older != y->of_older) return x->of_older - y->of_older;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Checks, if corpus.order = given, that the word of each added row is the row's number. */
static int check_given(const struct joining *joining) {
    uint64_t length, id;
    for (uint64_t row = items_of(joining->vocab); row < joining->items; row++) {
        const char *word = word_of(joining, &joining->words[row], &length);
        if (vocab_given_id(word, length, &id) || id != row)
            return fail("train.from has the word '%.*s', which cannot be row %" PRIu64
                        " where rows are numbers (corpus.order = given): set train.from_words = drop",
                        text_shown(length), word, row);
    }
    return 0;
}

static int fill(struct vocab *out, const struct joining *joining) {
    uint64_t size = joining->items + joining->lists, length;
    if (size > WORDS_MOST)
        return fail("%" PRIu64 " words of the corpus and of train.from are more than the %u that ids can name; "
                    "set train.from_words = drop",
                    size, WORDS_MOST);
    if (vocab_reserve(out, size, joining->vocab->words.used + joining->older->words.used)) return -1;
    for (uint64_t row = 0; row < size; row++) {
        const char *word = word_of(joining, &joining->words[row], &length);
        if (vocab_append(out, word, length, joining->words[row].count)) return -1;
        out->kept += joining->words[row].count;
    }
    out->tokens = joining->vocab->tokens + joining->older->tokens;
    out->lists = joining->lists;
    out->older = size - joining->vocab->size;
    out->distinct = joining->vocab->distinct + out->older;
    return 0;
}

int vocab_keep_older(struct vocab *vocab, const struct vocab *older, const struct corpus_options *options) {
    struct joining joining = {.vocab = vocab, .older = older, .options = options};
    struct vocab joined = {0};
    if (check_relations(vocab, older)) return -1;
    joining.words = mem_alloc(vocab->size + older->size, sizeof *joining.words, "the words of the older run");
    if (!joining.words) return -1;
    join_items(&joining);
    join_lists(&joining);
    if (options->order == ORDER_FREQUENCY) qsort(joining.words, joining.items, sizeof *joining.words, by_frequency);
    int result = (options->order == ORDER_GIVEN && check_given(&joining)) || fill(&joined, &joining) ||
                         vocab_index(&joined, options->path, NULL)
                     ? -1
                     : 0;
    free(joining.words);
    if (result) {
        vocab_release(&joined);
        return -1;
    }
    vocab_release(vocab);
    *vocab = joined;
    return 0;
}
