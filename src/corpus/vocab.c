#include "vocab.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "vocab_choose.h"
#include "vocab_older.h"
#include "word_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words and ids ---- */

int64_t vocab_find(const struct vocab *vocab, const char *word, uint64_t length) {
    return words_find(&vocab->words, words_hash(word, length), word, length);
}

/* Returns the word of the list's row, of *length bytes without the NUL; the caller frees it. NULL after fail(). */
static char *word_of_list(const char *prefix, const char *name, uint64_t *length, const char *end) {
    uint64_t before = strlen(prefix), after = strlen(end), own = *length;
    char *word = mem_alloc(before + own + after + 1, 1, "the name of a list");
    if (!word) return NULL;
    memcpy(word, prefix, before);
    memcpy(word + before, name, own);
    memcpy(word + before + own, end, after + 1);
    *length = before + own + after;
    return word;
}

int64_t vocab_find_list(const struct vocab *vocab, const char *name, uint64_t length) {
    char *word = vocab->lists ? word_of_list(vocab_prefix(vocab), name, &length, "") : NULL;
    int64_t row = word ? vocab_find(vocab, word, length) : -1;
    free(word);
    return row;
}

const char *vocab_prefix(const struct vocab *vocab) {
    const char *last = vocab->lists ? vocab_word(vocab, vocab->size - 1, NULL) : "";
    return strncmp(last, VOCAB_RELATION, strlen(VOCAB_RELATION)) ? VOCAB_LIST : VOCAB_RELATION;
}

int vocab_is_reciprocal(const struct vocab *vocab) {
    uint64_t half = vocab->lists / 2, end = strlen(VOCAB_RECIPROCAL), first = vocab->size - vocab->lists, length, other;
    if (vocab->lists % 2 || strcmp(vocab_prefix(vocab), VOCAB_RELATION)) return 0;
    for (uint64_t i = 0; i < half; i++) {
        const char *word = vocab_word(vocab, first + i, &length), *back = vocab_word(vocab, first + half + i, &other);
        if (other != length + end || memcmp(word, back, length) || memcmp(back + length, VOCAB_RECIPROCAL, end)) return 0;
    }
    return 1;
}

const char *vocab_word(const struct vocab *vocab, uint64_t id, uint64_t *length) {
    return words_get(&vocab->words, id, length);
}

int vocab_given_id(const char *word, uint64_t length, uint64_t *id) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < length; i++) {
        if (word[i] < '0' || word[i] > '9') return -1;
        value = value * 10 + (uint64_t)(word[i] - '0');
        if (value >= WORDS_MOST) return -1;
    }
    *id = value;
    return length ? 0 : -1;
}

/* ---- building ---- */

int vocab_reserve(struct vocab *vocab, uint64_t size, uint64_t bytes) {
    uint64_t known = 0;
    return mem_reserve(&vocab->counts, &known, size, sizeof *vocab->counts, "the words' counts") ||
                   words_reserve(&vocab->words, size, bytes)
               ? -1
               : 0;
}

/* Returns the index in vocab->large of the first element whose id is `id` or higher. */
static uint64_t place_of_large(const struct vocab *vocab, uint64_t id) {
    uint64_t low = 0, high = vocab->large_count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (vocab->large[middle].id < id) low = middle + 1;
        else high = middle;
    }
    return low;
}

uint64_t vocab_large_count(const struct vocab *vocab, uint64_t id) {
    return vocab->large[place_of_large(vocab, id)].count;
}

int vocab_set_count(struct vocab *vocab, uint64_t id, uint64_t count) {
    vocab->counts[id] = vocab_small_count(count);
    if (count < VOCAB_LARGE) return 0;
    uint64_t at = place_of_large(vocab, id);
    if (at == vocab->large_count || vocab->large[at].id != id) {
        if (mem_grow(&vocab->large, &vocab->large_capacity, vocab->large_count + 1, sizeof *vocab->large, "the words' counts"))
            return -1;
        memmove(vocab->large + at + 1, vocab->large + at, (vocab->large_count++ - at) * sizeof *vocab->large);
    }
    vocab->large[at] = (struct vocab_large){count, (uint32_t)id};
    return 0;
}

int vocab_append(struct vocab *vocab, const char *word, uint64_t length, uint64_t count) {
    words_append(&vocab->words, word, length);
    return vocab_set_count(vocab, vocab->size++, count);
}

int vocab_index(struct vocab *vocab, const char *path, struct pool *pool) {
    uint64_t first, again, length;
    int twice = words_index(&vocab->words, pool, &first, &again);
    if (twice <= 0) return twice;
    const char *word = vocab_word(vocab, again, &length), *prefix = vocab_prefix(vocab);
    if (first < vocab->size - vocab->lists && again >= vocab->size - vocab->lists)
        return fail("the word '%.*s' is called as the row of the %s '%.*s' is; rename one of the two", text_shown(length), word,
                    strcmp(prefix, VOCAB_RELATION) ? "list" : "relation", text_shown(length - strlen(prefix)), word + strlen(prefix));
    return fail("vocabulary '%s' line %" PRIu64 ": the word '%.*s' is on line %" PRIu64 " already", path, again + 1,
                text_shown(length), word, first + 1);
}

/* Appends the rows of lists, whose words are prefix, name, end. */
static int append_lists(struct vocab *vocab, const struct vocab *lists, const char *prefix, const char *end) {
    for (uint64_t id = 0; id < lists->size; id++) {
        uint64_t length;
        const char *name = vocab_word(lists, id, &length);
        char *word = word_of_list(prefix, name, &length, end);
        if (!word) return -1;
        vocab_append(vocab, word, length, 0); /* cannot fail: the count is not large */
        free(word);
    }
    vocab->lists += lists->size;
    return 0;
}

/* Adds a row for each list behind the items' rows. With triples, adds a row for each relation and then, if wanted, a second row for each
 * relation's reciprocal. */
static int join_lists(struct vocab *vocab, const struct vocab *lists, const struct corpus_options *options) {
    int triples = corpus_formats[options->format].triples, twice = triples && options->reciprocal;
    const char *prefix = triples ? VOCAB_RELATION : VOCAB_LIST;
    uint64_t rows = lists->size * (twice ? 2 : 1), size = vocab->size + rows;
    uint64_t bytes = (lists->words.used + lists->size * strlen(prefix)) * (twice ? 2 : 1) + rows * strlen(VOCAB_RECIPROCAL);
    if (size > WORDS_MOST) return fail("%" PRIu64 " items and lists are more than the %u that ids can name", size, WORDS_MOST);
    if (vocab_reserve(vocab, size, vocab->words.used + bytes)) return -1;
    return append_lists(vocab, lists, prefix, "") || (twice && append_lists(vocab, lists, prefix, VOCAB_RECIPROCAL)) ? -1 : 0;
}

/* Fails if a relation has a name that only the reciprocal of a relation may have. */
static int check_reciprocals(const struct vocab *relations) {
    uint64_t length, end = strlen(VOCAB_RECIPROCAL);
    for (uint64_t id = 0; id < relations->size; id++) {
        const char *name = vocab_word(relations, id, &length);
        if (length > end && !memcmp(name + length - end, VOCAB_RECIPROCAL, end))
            return fail("the relation '%.*s' ends with " VOCAB_RECIPROCAL ", the mark of rows for triples that are trained backwards; "
                        "rename it, or set triples.reciprocal = no", text_shown(length), name);
    }
    return 0;
}

/* Appends the lists that `names` counted to the vocabulary. */
static int add_lists(struct vocab *vocab, struct word_counts *names, const struct corpus_options *options, uint64_t corpus_bytes,
                     struct pool *pool, struct numbered *numbered) {
    struct corpus_options of_lists = *options;
    struct vocab lists = {0};
    uint64_t numbers = word_counts_numbers(names), items = vocab->size;
    of_lists.order = ORDER_FIRST_SEEN;
    of_lists.min_count = 1;
    of_lists.max_vocab = 0;
    int result = vocab_choose(&lists, names, &of_lists, corpus_bytes, pool, numbered ? &numbered->lists : NULL);
    if (!result && corpus_formats[options->format].triples && options->reciprocal) result = check_reciprocals(&lists);
    if (!result) result = join_lists(vocab, &lists, options);
    vocab_release(&lists);
    for (uint64_t i = 0; !result && numbered && i < numbers; i++)
        if (numbered->lists[i] != WORDS_ABSENT) numbered->lists[i] += (uint32_t)items;
    return result;
}

/* Counts the corpus and chooses the rows. The vocabulary of the items may be filled already: then only lists are counted. */
static int count_corpus(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool) {
    int lists = options->list_rows, given = vocab->size > 0;
    struct word_counts items = {0}, names = {0};
    struct numbered *numbered = given || options->older || corpus_gathered(corpus) ? NULL : corpus_numbered(corpus);
    int named = lists || (numbered && corpus_formats[options->format].scattered);
    struct word_counts_wanted wanted = {given ? NULL : &items, named ? &names : NULL, NULL, numbered};
    uint64_t bytes = corpus_size(corpus);
    int result = word_counts_read(&wanted, corpus, options, pool);
    if (!result && !given) result = vocab_choose(vocab, &items, options, bytes, pool, numbered ? &numbered->items : NULL);
    if (!result && numbered && named) numbered->list_numbers = word_counts_numbers(&names);
    if (wanted.items) word_counts_release(&items);
    if (!result && lists) result = add_lists(vocab, &names, options, bytes, pool, numbered);
    if (wanted.names) word_counts_release(&names);
    mem_give_back(); /* the counted words had many blocks of some megabytes: with 20 million names, 300 MB would stay unused */
    return result;
}

/* Reads a vocabulary and builds its hash table. */
static int read_by(struct vocab *vocab, const char *path, int given, struct pool *pool) {
    if (vocab_read_words(vocab, path, given, pool)) return -1;
    if (!vocab_index(vocab, path, pool)) return 0;
    vocab_release(vocab);
    return -1;
}

int vocab_read(struct vocab *vocab, const char *path) {
    return read_by(vocab, path, 0, NULL);
}

int vocab_read_given(struct vocab *vocab, const char *path) {
    return read_by(vocab, path, 1, NULL);
}

/* Reads the vocabulary of an id stream (sptx-w2v generate --out=FILE.ids): the file FILE.ids.vocab.tsv beside it. */
static int read_beside(struct vocab *vocab, const char *stream, struct pool *pool) {
    char *path = mem_alloc(strlen(stream) + sizeof ".vocab.tsv", 1, "a path");
    if (!path) return -1;
    sprintf(path, "%s.vocab.tsv", stream);
    int result = read_by(vocab, path, 0, pool);
    free(path);
    return result;
}

/* Returns 1 if the vocabulary needs its hash table: its words will be looked up, or two of them may be equal (the row of a list may be
 * called as an item is). */
static int is_looked_up(const struct vocab *vocab, const struct corpus *corpus, const struct corpus_options *options) {
    return vocab->lists || options->older || corpus_gathered(corpus) || !corpus_numbered(corpus);
}

int vocab_build(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool) {
    *vocab = (struct vocab){0};
    int given = options->vocab && *options->vocab;
    if (corpus_stream(corpus) && !given) return read_beside(vocab, corpus_stream(corpus), pool);
    if (!given && options->grown) return read_by(vocab, options->grown, 0, pool);
    if (given && read_by(vocab, options->vocab, 1, pool)) return -1;
    if (given && (!options->list_rows || vocab->lists || corpus_stream(corpus))) return 0;
    if (count_corpus(vocab, corpus, options, pool) ||
        (is_looked_up(vocab, corpus, options) && vocab_index(vocab, options->path, pool)) ||
        (!given && options->older && vocab_keep_older(vocab, options->older, options))) {
        vocab_release(vocab);
        return -1;
    }
    return 0;
}

void vocab_release(struct vocab *vocab) {
    words_release(&vocab->words);
    subwords_release(&vocab->subwords);
    free(vocab->counts);
    free(vocab->large);
    *vocab = (struct vocab){0};
}

uint64_t vocab_bytes(const struct vocab *vocab) {
    return vocab->size * sizeof *vocab->counts + vocab->large_count * sizeof *vocab->large + words_bytes(&vocab->words) +
           subwords_bytes(&vocab->subwords);
}

int vocab_check_size(const struct vocab *vocab) {
    if (vocab->size >= 2) return 0;
    if (vocab->distinct > vocab->size)
        return fail("the vocabulary has %" PRIu64 " word, and training needs two, to tell one from another: corpus.min_count or "
                    "corpus.max_vocab left out the other %" PRIu64 " words of the corpus",
                    vocab->size, vocab->distinct - vocab->size);
    return fail("the vocabulary has %" PRIu64 " word, and training needs two, to tell one from another; words are separated by blanks, "
                "so that a text without blanks is one word",
                vocab->size);
}

/* ---- the nearest word ---- */

enum { NEAR_WORDS = 100000 };

static int by_falling(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Returns the count of the least frequent of the NEAR_WORDS most frequent words; 0 if the vocabulary has no more words than
 * that. */
static uint64_t near_count(const struct vocab *vocab) {
    if (vocab->size <= NEAR_WORDS) return 0;
    uint64_t *counts = mem_alloc(vocab->size, sizeof *counts, "a search for the nearest word");
    if (!counts) {
        report_clear(); /* without memory there is no suggestion, which is no error */
        return UINT64_MAX;
    }
    for (uint64_t i = 0; i < vocab->size; i++) counts[i] = vocab_count(vocab, i);
    int sorted = 1;
    for (uint64_t i = 1; i < vocab->size && sorted; i++) sorted = counts[i - 1] >= counts[i];
    if (!sorted) qsort(counts, vocab->size, sizeof *counts, by_falling);
    uint64_t least = counts[NEAR_WORDS - 1];
    free(counts);
    return least;
}

const char *vocab_near(const struct vocab *vocab, const char *word) {
    uint64_t least = near_count(vocab), count = 0;
    const char **names = mem_alloc(NEAR_WORDS, sizeof *names, "a search for the nearest word");
    if (!names) {
        report_clear();
        return NULL;
    }
    for (int equal = 0; equal < 2; equal++)
        for (uint64_t id = 0; id < vocab->size && count < NEAR_WORDS; id++)
            if (equal ? vocab_count(vocab, id) == least : vocab_count(vocab, id) > least)
                names[count++] = vocab_word(vocab, id, NULL);
    const char *near = text_nearest(word, names, count);
    free(names);
    return near;
}
