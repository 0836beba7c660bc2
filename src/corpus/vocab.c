#include "vocab.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "first_bytes.h"
#include "word_counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words and ids ---- */

int64_t vocab_find(const struct vocab *vocab, const char *word, uint64_t length) {
    return words_find(&vocab->words, words_hash(word, length), word, length);
}

/* Returns the word of a list's row: prefix, name and end joined. *length: its bytes without the NUL. The caller frees it. NULL after fail(). */
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

int64_t vocab_find_prefixed(const struct vocab *vocab, const char *prefix, const char *name, uint64_t length) {
    OWNED char *word = word_of_list(prefix, name, &length, "");
    return word ? vocab_find(vocab, word, length) : -1;
}

int64_t vocab_find_list(const struct vocab *vocab, const char *name, uint64_t length) {
    return vocab->lists ? vocab_find_prefixed(vocab, vocab_prefix(vocab), name, length) : -1;
}

const char *vocab_prefix_of(const struct corpus_options *options) {
    return corpus_formats[options->format].triples ? VOCAB_RELATION : VOCAB_LIST;
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

/* Returns the index in vocab->large of the first element with this id or a higher one. */
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

/* Appends a row for each list. Its word is prefix, name and end joined. */
static int append_lists(struct vocab *vocab, const struct vocab *lists, const char *prefix, const char *end) {
    for (uint64_t id = 0; id < lists->size; id++) {
        uint64_t length;
        const char *name = vocab_word(lists, id, &length);
        OWNED char *word = word_of_list(prefix, name, &length, end);
        if (!word) return -1;
        vocab_append(vocab, word, length, 0); /* cannot fail: the count is not large */
    }
    vocab->lists += lists->size;
    return 0;
}

/* Adds a row for each list after the items' rows. With triples, adds a row for each relation and then, if wanted, one for each relation's
 * reciprocal. */
static int join_lists(struct vocab *vocab, const struct vocab *lists, const struct corpus_options *options) {
    int triples = corpus_formats[options->format].triples, twice = triples && options->reciprocal;
    const char *prefix = vocab_prefix_of(options);
    uint64_t rows = lists->size * (twice ? 2 : 1), size = vocab->size + rows;
    uint64_t bytes = (lists->words.used + lists->size * strlen(prefix)) * (twice ? 2 : 1) + rows * strlen(VOCAB_RECIPROCAL);
    if (size > WORDS_MOST) return fail("%" PRIu64 " items and lists are more than the %u that ids can name", size, WORDS_MOST);
    if (vocab_reserve(vocab, size, vocab->words.used + bytes)) return -1;
    return append_lists(vocab, lists, prefix, "") || (twice && append_lists(vocab, lists, prefix, VOCAB_RECIPROCAL)) ? -1 : 0;
}

/* Fails if a relation's name ends like that of a reciprocal. */
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

/* Fails if an entity has the name that is the word of a relation. */
static int check_relation_words(const struct vocab *vocab, const struct vocab *relations) {
    uint64_t length, mark = strlen(VOCAB_RELATION);
    for (uint64_t id = 0; id < vocab->size; id++) {
        const char *word = vocab_word(vocab, id, &length);
        if (length > mark && !memcmp(word, VOCAB_RELATION, mark) && vocab_find(relations, word + mark, length - mark) >= 0)
            return fail("the entity '%.*s' has the name that walks need for the relation '%.*s'; rename one of the two", text_shown(length),
                        word, text_shown(length - mark), word + mark);
    }
    return 0;
}

/* Puts relations, as words with their counts, among the entities, and sets moved[] to the new rows: first of all entities, then of all relations. */
static int mix_relations(struct vocab *vocab, const struct vocab *relations, const struct corpus_options *options, uint32_t *moved) {
    struct vocab mixed = {.tokens = vocab->tokens + relations->tokens, .distinct = vocab->distinct + relations->distinct,
                          .kept = vocab->kept + relations->kept};
    uint64_t entities = vocab->size, size = entities + relations->size, length;
    int result = vocab_reserve(&mixed, size, vocab->words.used + relations->words.used + relations->size * strlen(VOCAB_RELATION));
    for (uint64_t entity = 0, relation = 0; !result && mixed.size < size;) {
        int is_entity = entity < entities && (relation == relations->size || options->order != ORDER_FREQUENCY ||
                                              vocab_count(vocab, entity) >= vocab_count(relations, relation));
        const char *name = is_entity ? vocab_word(vocab, entity, &length) : vocab_word(relations, relation, &length);
        OWNED char *word = is_entity ? NULL : word_of_list(VOCAB_RELATION, name, &length, "");
        moved[is_entity ? entity : entities + relation] = (uint32_t)mixed.size;
        result = is_entity ? vocab_append(&mixed, name, length, vocab_count(vocab, entity))
                 : word    ? vocab_append(&mixed, word, length, vocab_count(relations, relation))
                           : -1;
        entity += (uint64_t)is_entity, relation += !is_entity;
    }
    if (!result) {
        struct vocab entities_alone = *vocab;
        *vocab = mixed;
        mixed = entities_alone;
    }
    vocab_release(&mixed);
    return result;
}

/* Adds relations to the vocabulary as words. `items`: how many numbers the entities' words have. */
static int add_relation_words(struct vocab *vocab, struct vocab *relations, const struct corpus_options *options, struct pool *pool,
                              struct numbered *numbered, uint64_t items, uint64_t names) {
    uint64_t entities = vocab->size, size = entities + relations->size;
    if (size > WORDS_MOST) return fail("%" PRIu64 " entities and relations are more than the %u that ids can name", size, WORDS_MOST);
    OWNED uint32_t *moved = mem_alloc(size + 1, sizeof *moved, "the rows of relations");
    if (!moved || vocab_index(relations, options->path, pool) || check_relation_words(vocab, relations) ||
        mix_relations(vocab, relations, options, moved))
        return -1;
    for (uint64_t i = 0; numbered && i < items; i++)
        if (numbered->items[i] != WORDS_ABSENT) numbered->items[i] = moved[numbered->items[i]];
    for (uint64_t i = 0; numbered && i < names; i++)
        if (numbered->lists[i] != WORDS_ABSENT) numbered->lists[i] = moved[entities + numbered->lists[i]];
    return 0;
}

/* Adds to the vocabulary the lists whose names were counted. `items`: how many numbers the words of `vocab` have. */
static int add_lists(struct vocab *vocab, struct word_counts *names, const struct corpus_options *options, uint64_t corpus_bytes,
                     struct pool *pool, struct numbered *numbered, uint64_t items) {
    struct corpus_options of_lists = *options;
    struct vocab lists = {0};
    uint64_t numbers = word_counts_numbers(names), before = vocab->size;
    int words = corpus_has_relation_words(options);
    of_lists.order = words && options->order == ORDER_FREQUENCY ? ORDER_FREQUENCY : ORDER_FIRST_SEEN;
    of_lists.min_count = 1;
    of_lists.max_vocab = 0;
    int result = vocab_choose(&lists, names, &of_lists, corpus_bytes, pool, numbered ? &numbered->lists : NULL);
    if (!result && corpus_formats[options->format].triples && options->reciprocal) result = check_reciprocals(&lists);
    if (!result) result = words ? add_relation_words(vocab, &lists, options, pool, numbered, items, numbers) : join_lists(vocab, &lists, options);
    vocab_release(&lists);
    for (uint64_t i = 0; !result && !words && numbered && i < numbers; i++)
        if (numbered->lists[i] != WORDS_ABSENT) numbered->lists[i] += (uint32_t)before;
    return result;
}

/* Counts the corpus and chooses the rows. If the vocabulary already contains the items, only lists are counted. */
static int count_corpus(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool) {
    int lists = options->list_rows, given = vocab->size > 0;
    struct word_counts items = {0}, names = {0};
    struct numbered *numbered = given || options->older || corpus_gathered(corpus) ? NULL : corpus_numbered(corpus);
    int named = lists || (numbered && numbered_has_names(options));
    struct word_counts_wanted wanted = {given ? NULL : &items, named ? &names : NULL, NULL, numbered};
    uint64_t bytes = corpus_size(corpus), numbers = 0;
    int result = word_counts_read(&wanted, corpus, options, pool);
    if (!result && !given) result = vocab_choose(vocab, &items, options, bytes, pool, numbered ? &numbered->items : NULL);
    if (!result && numbered && named) numbered->list_numbers = word_counts_numbers(&names);
    if (wanted.items) numbers = word_counts_numbers(&items);
    if (wanted.items) word_counts_release(&items);
    if (!result && lists) result = add_lists(vocab, &names, options, bytes, pool, numbered, numbers);
    if (wanted.names) word_counts_release(&names);
    mem_give_back(); /* the counts were in many blocks of some megabytes; with 20 million names, 300 MB of them would stay unused */
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

/* Reads the vocabulary of an id stream that sptx-w2v generate --out=FILE.ids wrote: the file FILE.ids.vocab.tsv beside it. */
static int read_beside(struct vocab *vocab, const char *stream, struct pool *pool) {
    OWNED char *path = mem_alloc(strlen(stream) + sizeof ".vocab.tsv", 1, "a path");
    if (!path) return -1;
    sprintf(path, "%s.vocab.tsv", stream);
    return read_by(vocab, path, 0, pool);
}

/* Returns 1 if the vocabulary needs its hash table: its words will be looked up, or two of them may be equal (a list may have the same name as an
 * item). */
static int is_looked_up(const struct vocab *vocab, const struct corpus *corpus, const struct corpus_options *options) {
    return vocab->lists || options->older || corpus_gathered(corpus) || !corpus_numbered(corpus);
}

int vocab_build(struct vocab *vocab, struct corpus *corpus, const struct corpus_options *options, struct pool *pool) {
    *vocab = (struct vocab){0};
    int given = options->vocab && *options->vocab;
    if (corpus_stream(corpus) && options->forget != FORGET_NO)
        return fail("corpus.forget lets words leave, and the corpus '%s' is an id stream, whose words have their rows already: leave the key out",
                    options->path);
    if (corpus_stream(corpus) && !given) return read_beside(vocab, corpus_stream(corpus), pool);
    if (!given && options->grown) return read_by(vocab, options->grown, 0, pool);
    if (given && read_by(vocab, options->vocab, 1, pool)) return -1;
    if (given && (!options->list_rows || options->walked || vocab->lists || corpus_stream(corpus))) return 0;
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
    mem_free(vocab->counts, vocab->large, vocab->age);
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

/* Returns the count of the last of the NEAR_WORDS most frequent words; 0 if the vocabulary has no more words than that. */
static uint64_t near_count(const struct vocab *vocab) {
    if (vocab->size <= NEAR_WORDS) return 0;
    OWNED uint64_t *counts = mem_alloc(vocab->size, sizeof *counts, "a search for the nearest word");
    if (!counts) {
        report_clear(); /* memory is short: no suggestion, but no error either */
        return UINT64_MAX;
    }
    for (uint64_t i = 0; i < vocab->size; i++) counts[i] = vocab_count(vocab, i);
    int sorted = 1;
    for (uint64_t i = 1; i < vocab->size && sorted; i++) sorted = counts[i - 1] >= counts[i];
    if (!sorted) qsort(counts, vocab->size, sizeof *counts, by_falling);
    return counts[NEAR_WORDS - 1];
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

/* Collects the words of all shards in one list, sorted by count. The first words of the list become the vocabulary.
 *
 *   counts of all words -> the list of words that will have rows, in buckets -> each bucket sorted -> rows and counts -> the words' bytes
 *
 * All steps are done by all threads. */

/* A word that may get a row. */
struct candidate {
    uint64_t count : 48, number_low : 16;  /* count, first: as in struct word_count */
    uint64_t first : 48, number_high : 16; /* number: of the word (word_counts.h) */
};

static inline struct candidate candidate_of(uint64_t count, uint64_t first, uint64_t number) {
    return (struct candidate){count, number & UINT16_MAX, first, number >> 16};
}

static inline uint64_t number_of(const struct candidate *word) {
    return (uint64_t)word->number_high << 16 | word->number_low;
}

struct candidates {
    struct candidate *words;
    uint64_t size;
};

enum { SINGLE_COUNTS = 64, SLICES = 256, LARGE_COUNTS = 42, BUCKETS = LARGE_COUNTS + SINGLE_COUNTS * SLICES };

typedef void row_taker(struct words *words, uint64_t row, const char *word, uint64_t length);

/* State of choosing the vocabulary's words. The workers share it; each has an equal range of the words' numbers. */
struct choosing {
    struct word_counts *counts;
    const struct corpus_options *options;
    struct vocab *vocab;
    struct pool *pool;
    uint64_t numbers;       /* word_counts_numbers() */
    uint64_t least;         /* a word must occur this often to get a row */
    uint64_t most;          /* so many words get rows; 0: all */
    int by_first;           /* 1: words are ordered by their first places alone; 0: by falling counts, and by first places if counts are equal */
    unsigned shift;         /* the corpus is cut into slices of 2^shift bytes */
    struct worker_sums *sums; /* [pool_threads()] */
    struct candidates candidates;
    uint32_t *rows;         /* [numbers] row of each word; WORDS_ABSENT: no row */
    row_taker *take;        /* called by for_rows() for each word that has a row */
    _Atomic uint64_t next;  /* counter of pool_take() */
};

/* Sums over one worker's words. */
struct worker_sums {
    uint64_t distinct, tokens, kept;
    struct candidate top;       /* the most frequent word; the message names it if no word is left */
    uint64_t starts[BUCKETS];   /* for each bucket: how many of the worker's words will have rows; later the index in the list where the worker
                                 * stores its next word */
};

/* ---- sorting ---- */

/* Words are sorted in two steps, so that the list is in memory once: the workers write each word into its bucket, then sort each bucket. All words
 * of a bucket are from the same slice of the corpus, and have the same count or counts from 2^n to 2^(n + 1) - 1. */
static inline uint64_t bucket_of(const struct choosing *c, const struct candidate *word) {
    uint64_t count = c->by_first ? SINGLE_COUNTS - 1 : word->count, slice = word->first >> c->shift;
    if (count >= SINGLE_COUNTS) return (uint64_t)(LARGE_COUNTS + 5 - (63 - __builtin_clzll(count)));
    return LARGE_COUNTS + (SINGLE_COUNTS - 1 - count) * SLICES + (slice < SLICES ? slice : SLICES - 1);
}

static int by_count(const struct candidate *a, const struct candidate *b) {
    return a->count != b->count ? a->count > b->count : a->first < b->first;
}

static int comes_before(const struct candidate *a, const struct candidate *b, int by_first) {
    return by_first ? a->first < b->first : by_count(a, b);
}

static void sort_few(struct candidate *words, uint64_t size, int by_first) {
    for (uint64_t i = 1; i < size; i++) {
        struct candidate word = words[i];
        uint64_t to = i;
        for (; to && comes_before(&word, &words[to - 1], by_first); to--) words[to] = words[to - 1];
        words[to] = word;
    }
}

/* Sorts words[size] by falling counts if `counts` is 1, otherwise by rising first places; words with equal keys keep their order. Radix sort, 11
 * bits at a time; skips bits that are the same in all keys. other: scratch for `size` words. */
static void sort(struct candidate *words, uint64_t size, struct candidate *other, int counts) {
    enum { BITS = 11, DIGITS = 1 << BITS };
    struct candidate *from = words, *to = other;
    uint64_t varying = 0;
#define KEY(word) (counts ? ~(uint64_t)(word).count : (uint64_t)(word).first)
    for (uint64_t i = 1; i < size; i++) varying |= KEY(from[i]) ^ KEY(from[0]);
    for (unsigned shift = 0; shift < 64; shift += BITS) {
        uint64_t next[DIGITS] = {0}, sum = 0;
        if (!(varying >> shift & (DIGITS - 1))) continue;
        for (uint64_t i = 0; i < size; i++) next[KEY(from[i]) >> shift & (DIGITS - 1)]++;
        for (int d = 0; d < DIGITS; d++) sum += next[d], next[d] = sum - next[d];
        for (uint64_t i = 0; i < size; i++) to[next[KEY(from[i]) >> shift & (DIGITS - 1)]++] = from[i];
        struct candidate *sorted = to;
        to = from;
        from = sorted;
    }
#undef KEY
    if (from != words) memcpy(words, from, size * sizeof *words);
}

/* Sorts the buckets that this worker takes. */
static int sort_buckets(void *context, unsigned worker) {
    enum { FEW = 48 };
    struct choosing *c = context;
    const uint64_t *ends = c->sums[pool_threads(c->pool) - 1].starts; /* the last worker's words end each bucket */
    OWNED struct candidate *other = NULL;
    uint64_t capacity = 0, bucket, end;
    int result = 0;
    while (!result && pool_take(&c->next, BUCKETS, 1, &bucket, &end)) {
        uint64_t first = bucket ? ends[bucket - 1] : 0, size = ends[bucket] - first;
        struct candidate *words = c->candidates.words + first;
        if (interrupt_check()) {
            result = -1;
        } else if (size <= FEW) {
            sort_few(words, size, c->by_first);
        } else if (!(result = mem_grow(&other, &capacity, size, sizeof *other, "sorting words"))) {
            sort(words, size, other, 0);
            if (!c->by_first) sort(words, size, other, 1);
        }
    }
    return result;
}

/* ---- which words stay ---- */

/* Returns 1 if the word will be in the vocabulary: it occurs at least `least` times, or it occurs and an older run has a row for it. */
static int stays(const struct choosing *c, const struct candidate *word) {
    uint64_t length;
    char digits[WORD_DIGITS];
    if (word->count >= c->least || !word->count || !c->options->older) return word->count >= c->least;
    const char *text = word_counts_word(c->counts, number_of(word), digits, &length);
    return vocab_find(c->options->older, text, length) >= 0;
}

/* Returns the word with this number. Its count is 0 if no word has the number, or if the word does not occur. */
static inline struct candidate candidate_at(const struct word_counts *counts, uint64_t number) {
    if (number < counts->integers.size) {
        const struct integer_count *met = &counts->integers.counts[number];
        return candidate_of(met->count, ~met->after, number);
    }
    const struct word_shard *shard = word_counts_shard(counts, number);
    uint64_t n = word_counts_in_shard(counts, number);
    struct word_count met = n < shard->words.size ? shard->counts[n] : (struct word_count){0};
    return candidate_of(met.count, met.first, number);
}

/* Computes struct worker_sums for a worker's words. */
static int add_up(void *context, unsigned worker) {
    struct choosing *c = context;
    struct worker_sums *sums = &c->sums[worker];
    uint64_t number, end;
    pool_share(c->numbers, worker, pool_threads(c->pool), &number, &end);
    for (; number < end; number++) {
        struct candidate word = candidate_at(c->counts, number);
        if (!word.count) continue; /* a dictionary that a program has given may contain words that its data does not use */
        sums->distinct++;
        sums->tokens += word.count;
        if (!sums->top.count || by_count(&word, &sums->top)) sums->top = word;
        if (stays(c, &word)) sums->starts[bucket_of(c, &word)]++;
    }
    return 0;
}

/* Stores the worker's words that will have rows in the list, each in its bucket. */
static int put_in_buckets(void *context, unsigned worker) {
    struct choosing *c = context;
    uint64_t number, end;
    pool_share(c->numbers, worker, pool_threads(c->pool), &number, &end);
    for (; number < end; number++) {
        struct candidate word = candidate_at(c->counts, number);
        if (word.count && stays(c, &word)) c->candidates.words[c->sums[worker].starts[bucket_of(c, &word)]++] = word;
    }
    return 0;
}

static int no_word(const struct word_counts *counts, const struct vocab *vocab, const struct corpus_options *options,
                   uint64_t corpus_bytes, const struct candidate *top) {
    const char *format = corpus_formats[options->format].name;
    uint64_t length;
    if (!vocab->tokens && !isinf(options->min_rating))
        return fail("the corpus '%s' has no pair with a rating of at least %g (corpus.min_rating) in its %" PRIu64 " bytes",
                    options->path, options->min_rating, corpus_bytes);
    if (!vocab->tokens && !*options->path) /* a program's data, which has no name */
        return fail("the corpus that was given is empty: %s", corpus_formats[options->format].edges
                                                                  ? "no edge (from a node to itself, or of weight 0, is none)"
                                                                  : "not one word");
    if (!vocab->tokens && corpus_formats[options->format].edges)
        return fail("the corpus '%s' has no edge in its %" PRIu64 " bytes (from a node to itself, or of weight 0, is none)",
                    options->path, corpus_bytes);
    if (!vocab->tokens)
        return fail("the corpus '%s' is empty: not one word, read as %s, in its %" PRIu64 " bytes", options->path,
                    format, corpus_bytes);
    const char *word = word_counts_word(counts, number_of(top), (char[WORD_DIGITS]){0}, &length);
    return fail("no word of the corpus comes %" PRIu64 " times (corpus.min_count): the most frequent of %" PRIu64
                ", '%.*s', comes %" PRIu64 " times; lower corpus.min_count",
                options->min_count, vocab->distinct, text_shown(length), word, (uint64_t)top->count);
}

/* Sums up all words' counts. Fails if no word is left. */
static int add_up_all(struct choosing *c, uint64_t corpus_bytes) {
    struct candidate top = {0};
    while (corpus_bytes >> c->shift >= SLICES) c->shift++;
    for (int s = 0; s < WORD_SHARDS; s++) words_drop_index(&c->counts->shards[s].words);
    mem_give_back();
    if (pool_run(c->pool, add_up, c)) return -1;
    for (unsigned worker = 0; worker < pool_threads(c->pool); worker++) {
        const struct worker_sums *sums = &c->sums[worker];
        c->vocab->distinct += sums->distinct;
        c->vocab->tokens += sums->tokens;
        if (sums->top.count && (!top.count || by_count(&sums->top, &top))) top = sums->top;
    }
    /* Computes the size of the list, and where in it each worker stores its words of each bucket. */
    uint64_t sum = 0;
    for (uint64_t bucket = 0; bucket < BUCKETS; bucket++)
        for (unsigned worker = 0; worker < pool_threads(c->pool); worker++) {
            uint64_t *start = &c->sums[worker].starts[bucket], count = *start;
            *start = sum;
            sum += count;
        }
    c->candidates.size = sum;
    return c->candidates.size ? 0 : no_word(c->counts, c->vocab, c->options, corpus_bytes, &top);
}

/* Makes the list of words that will have rows, in the order of rows, and frees the shards' counts. */
static int list_words(struct choosing *c) {
    c->candidates.words = mem_alloc(c->candidates.size, sizeof *c->candidates.words, "the list of words");
    if (!c->candidates.words || pool_run(c->pool, put_in_buckets, c)) return -1;
    free(c->counts->integers.counts);
    c->counts->integers.counts = NULL;
    for (int s = 0; s < WORD_SHARDS; s++) {
        free(c->counts->shards[s].counts);
        c->counts->shards[s].counts = NULL;
    }
    mem_give_back();
    return pool_run(c->pool, sort_buckets, c);
}

/* ---- filling the vocabulary ---- */

enum { GRAIN = 1 << 14 }; /* words that a worker takes at once */

/* Allocates c->rows, with no row for any word. */
static int open_rows(struct choosing *c) {
    c->rows = mem_alloc(c->numbers + 1, sizeof *c->rows, "the rows of words");
    if (c->rows) memset(c->rows, 0xff, c->numbers * sizeof *c->rows);
    return c->rows ? 0 : -1;
}

/* Stores the row of each word of the list in c->rows, and the row's count in the vocabulary. */
static int set_rows(void *context, unsigned worker) {
    struct choosing *c = context;
    uint64_t row, end;
    pool_share(c->candidates.size, worker, pool_threads(c->pool), &row, &end);
    for (; row < end; row++) {
        const struct candidate *word = &c->candidates.words[row];
        c->rows[number_of(word)] = (uint32_t)row;
        c->vocab->counts[row] = vocab_small_count(word->count);
        c->sums[worker].kept += word->count;
    }
    return 0;
}

static int take_rows(void *context, unsigned worker) {
    struct choosing *c = context;
    uint64_t number, end, length;
    char digits[WORD_DIGITS];
    while (pool_take(&c->next, c->numbers, GRAIN, &number, &end))
        for (; number < end; number++)
            if (c->rows[number] != WORDS_ABSENT) {
                const char *word = word_counts_word(c->counts, number, digits, &length);
                c->take(&c->vocab->words, c->rows[number], word, length);
            }
    return 0;
}

static void put_length(struct words *words, uint64_t row, const char *word, uint64_t length) {
    words_set_offset(words, row, length + 1);
}

static void put_word(struct words *words, uint64_t row, const char *word, uint64_t length) {
    char *to = words->bytes + words_offset(words, row);
    memcpy(to, word, length);
    to[length] = 0;
}

/* Calls `take` for all words that have rows. */
static int for_rows(struct choosing *c, row_taker *take) {
    c->take = take;
    c->next = 0;
    return pool_run(c->pool, take_rows, c);
}

/* Fills the vocabulary. The list is freed before memory for the words' bytes is reserved; then each counted word is copied to its row. */
static int fill(struct choosing *c) {
    struct vocab *vocab = c->vocab;
    uint64_t size = c->candidates.size;
    if (open_rows(c) || vocab_reserve(vocab, size, 0) || pool_run(c->pool, set_rows, c)) return -1;
    for (uint64_t row = 0; row < size; row++)
        if (vocab->counts[row] == VOCAB_LARGE && vocab_set_count(vocab, row, c->candidates.words[row].count)) return -1;
    for (unsigned worker = 0; worker < pool_threads(c->pool); worker++) vocab->kept += c->sums[worker].kept;
    free(c->candidates.words);
    c->candidates.words = NULL;
    if (for_rows(c, put_length) || words_place(&vocab->words, size) || for_rows(c, put_word)) return -1;
    vocab->size = size;
    return 0;
}

/* Returns the bytes that the numbers 0 .. highest need as decimal text, each with a NUL. */
static uint64_t bytes_of_numbers(uint64_t highest) {
    uint64_t bytes = highest + 1 + 1; /* the NULs, and the digit of 0 */
    for (uint64_t power = 1; power <= highest; power *= 10) bytes += highest - power + 1; /* how many of the numbers have a digit at this power of
                                                                                           * ten */
    return bytes;
}

/* Fills the vocabulary for corpus.order = given: each number up to the highest gets a row. The count is 0 for numbers that do not occur or were
 * left out. */
static int fill_given(struct vocab *vocab, const struct word_counts *counts, const struct candidates *candidates) {
    uint64_t highest = 0, length, id = 0;
    char digits[WORD_DIGITS];
    for (uint64_t i = 0; i < candidates->size; i++) {
        const char *word = word_counts_word(counts, number_of(&candidates->words[i]), digits, &length);
        vocab_given_id(word, length, &id);
        if (id > highest) highest = id;
    }
    if (vocab_reserve(vocab, highest + 1, bytes_of_numbers(highest))) return -1;
    for (id = 0; id <= highest; id++)
        vocab_append(vocab, digits, (uint64_t)snprintf(digits, sizeof digits, "%" PRIu64, id), 0);
    for (uint64_t i = 0; i < candidates->size; i++) {
        const char *word = word_counts_word(counts, number_of(&candidates->words[i]), digits, &length);
        vocab_given_id(word, length, &id);
        /* "7" and "07" are the same number */
        if (vocab_set_count(vocab, id, vocab_count(vocab, id) + candidates->words[i].count)) return -1;
        vocab->kept += candidates->words[i].count;
    }
    return 0;
}

/* ---- the rows of all words ---- */

static void set_given(uint32_t *rows, const struct vocab *vocab, const struct word_counts *counts, uint64_t number) {
    char digits[WORD_DIGITS];
    uint64_t length, id;
    const char *word = word_counts_word(counts, number, digits, &length);
    if (!vocab_given_id(word, length, &id) && id < vocab->size && vocab_count(vocab, id)) rows[number] = (uint32_t)id;
}

static int find_given_rows(struct choosing *c) {
    const struct word_counts *counts = c->counts;
    if (open_rows(c)) return -1;
    for (uint64_t number = 0; number < c->numbers; number++)
        if (word_counts_has(counts, number)) set_given(c->rows, c->vocab, counts, number);
    return 0;
}

/* ---- all of it ---- */

static int choose_rows(struct choosing *c, uint64_t corpus_bytes, int wants_rows) {
    const struct corpus_options *options = c->options;
    struct candidates *candidates = &c->candidates;
    if (add_up_all(c, corpus_bytes) || list_words(c)) return -1;
    if (c->most && candidates->size > c->most) candidates->size = c->most;
    if (candidates->size > WORDS_MOST)
        return fail("%" PRIu64 " words are more than the %u that ids can name; raise corpus.min_count or set corpus.max_vocab",
                    candidates->size, WORDS_MOST);
    if (options->order == ORDER_FIRST_SEEN && !c->by_first) {
        OWNED struct candidate *other = mem_alloc(candidates->size + 1, sizeof *other, "sorting words");
        if (!other) return -1;
        sort(candidates->words, candidates->size, other, 0);
    }
    INVARIANT(candidates->size < 2 || comes_before(&candidates->words[0], &candidates->words[candidates->size - 1],
                                                   options->order == ORDER_FIRST_SEEN));
    if (options->order != ORDER_GIVEN) return fill(c);
    return fill_given(c->vocab, c->counts, candidates) || (wants_rows && find_given_rows(c)) ? -1 : 0;
}

int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options, uint64_t corpus_bytes,
                 struct pool *pool, uint32_t **rows) {
    uint64_t most = options->older && options->forget != FORGET_NO ? 0 : options->max_vocab; /* then vocab_keep_older() lets words leave */
    struct choosing c = {.counts = counts,
                         .options = options,
                         .vocab = vocab,
                         .pool = pool,
                         .numbers = word_counts_numbers(counts),
                         .least = options->min_count ? options->min_count : 1,
                         .most = most,
                         .by_first = options->order == ORDER_FIRST_SEEN && !most,
                         .sums = mem_zalloc(pool_threads(pool), sizeof *c.sums, "choosing words")};
    int result = c.sums ? choose_rows(&c, corpus_bytes, rows != NULL) : -1;
    mem_free(c.sums, c.candidates.words);
    if (rows && !result) *rows = c.rows;
    else free(c.rows);
    return result;
}

/* Reads and writes vocab.tsv: line n is the word of id n, a TAB, its count and an LF. Files of other programs are read too: they
 * may have blanks instead of the TAB, CR LF, or no LF at the end. */

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- reading ---- */

/* A line of the file: its word and its count. */
struct line {
    const char *word;
    uint64_t length, count;
};

/* Returns 1 for bytes that may separate a word from its count. VT and FF may not: words in other programs' files may contain them. */
static int separates(char byte) {
    return byte == ' ' || byte == '\t';
}

/* Parses a line of the form in which this program writes it: a word, the line's only TAB, at most 19 digits. Returns 0 if it has another form. */
static int read_own_line(struct line *out, const char *text, uint64_t length) {
    const char *tab = memchr(text, '\t', length), *end = text + length;
    uint64_t count = 0;
    if (!tab || tab == text || tab + 1 == end || end - tab > 20) return 0;
    for (const char *at = tab + 1; at < end; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit > 9) return 0;
        count = count * 10 + digit;
    }
    *out = (struct line){text, (uint64_t)(tab - text), count};
    return 1;
}

/* Parses a line without its LF: "word TAB count" or "word blank count". Only before a TAB may a word contain spaces or begin or end with them, as
 * quoted names and a program's tokens do. */
static int read_line(struct line *out, const char *path, uint64_t number, const char *text, uint64_t length) {
    if (read_own_line(out, text, length)) return 0; /* nearly all lines */
    uint64_t stop = length, digits, end; /* text[0 .. end) is the word, text[digits .. stop) the count */
    while (stop && (separates(text[stop - 1]) || text[stop - 1] == '\r')) stop--;
    for (digits = stop; digits && !separates(text[digits - 1]); digits--) continue;
    for (end = digits; end && separates(text[end - 1]); end--) continue;
    const char *tab = memchr(text + end, '\t', digits - end); /* before a TAB the word may contain spaces */
    int ours = tab && tab + 1 == text + digits;               /* the only TAB, directly before the count, as this program writes it */
    if (ours) end = digits - 1;
    if (!stop) return fail("vocabulary '%s' line %" PRIu64 " is empty; wanted word TAB count", path, number);
    if (*text == '\t' || (*text == ' ' && !ours))
        return fail("vocabulary '%s' line %" PRIu64 " has no word; wanted word TAB count", path, number);
    if (!end)
        return fail("vocabulary '%s' line %" PRIu64 ": '%.*s' has no count; wanted word TAB count", path, number,
                    text_shown(stop), text);
    *out = (struct line){text, end, 0};
    for (uint64_t i = digits; i < stop; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(out->count, 10, &out->count) ||
            __builtin_add_overflow(out->count, digit, &out->count))
            return fail("vocabulary '%s' line %" PRIu64 ": the count '%.*s' is not a whole number below 2^64", path,
                        number, text_shown(stop - digits), text + digits);
    }
    for (uint64_t i = 0; i < end; i++)
        if (text[i] == '\t' || (text[i] == ' ' && !tab))
            return fail("vocabulary '%s' line %" PRIu64 ": the word '%.*s' has a blank in it; wanted word TAB count",
                        path, number, text_shown(end), text);
    return 0;
}

/* Returns 1 if the row is a list or a relation: only these have both such a prefix and a count of 0. */
static int is_list(const struct vocab *vocab, uint64_t id) {
    const char *word = vocab_word(vocab, id, NULL);
    return !vocab_count(vocab, id) &&
           (!strncmp(word, VOCAB_LIST, strlen(VOCAB_LIST)) || !strncmp(word, VOCAB_RELATION, strlen(VOCAB_RELATION)));
}

/* The lines of a vocabulary file that are not read yet, after its byte order mark. */
struct lines {
    const char *path, *at, *end;
    uint64_t number; /* number of the next line: from 1 in the file, or, for a worker, from the first line of its chunk */
};

/* Most bytes of a line. A longer line cannot be one of a vocabulary, so its end is not searched for. */
enum { LINE_MOST = CORPUS_WORD_MOST + 64 };

/* Stores the next line, without its LF. Returns 1, 0 at the end of the file, -1 after fail(). */
static int next_line(struct lines *lines, const char **text, uint64_t *length) {
    uint64_t left = (uint64_t)(lines->end - lines->at), looked = left < LINE_MOST ? left : LINE_MOST;
    const char *newline = left ? memchr(lines->at, '\n', looked) : NULL;
    if (!left) return 0;
    if (!newline && looked < left)
        return fail("vocabulary '%s' line %" PRIu64 " has more than %d bytes; wanted word TAB count", lines->path,
                    lines->number, LINE_MOST);
    *text = lines->at;
    *length = (uint64_t)((newline ? newline : lines->end) - lines->at);
    lines->at = newline ? newline + 1 : lines->end;
    lines->number++;
    return 1;
}

/* Reads the next line, and adds its count to *sum. Returns 1, 0 at the end of the file, -1 after fail(). */
static int take_counted_line(struct lines *lines, struct line *line, uint64_t *sum) {
    const char *text = "";
    uint64_t length = 0;
    int more = next_line(lines, &text, &length);
    if (more <= 0) return more;
    if (read_line(line, lines->path, lines->number - 1, text, length)) return -1;
    if (__builtin_add_overflow(*sum, line->count, sum))
        return fail("vocabulary '%s' line %" PRIu64 ": the counts add up to more than 2^64", lines->path, lines->number - 1);
    return 1;
}

/* A part of the file. Its lines are those that begin within it. */
struct chunk {
    uint64_t words, bytes, tokens; /* of the chunk before this one; after count_file() of all chunks before it: numbers of words and of their bytes
                                    * with NULs, and the sum of their counts */
    int large;                     /* 1: a count is VOCAB_LARGE or more */
};
enum { CHUNK = 1 << 20 };

/* State of reading a vocabulary file by all threads. Each chunk is read twice: to count its words, and to store them. */
struct reading {
    struct vocab *vocab;
    struct lines all;
    struct chunk *chunks; /* [chunk_count + 1] the counts of chunk i are in chunks[i + 1] */
    uint64_t chunk_count;
    int (*take)(const struct reading *reading, uint64_t chunk);
    _Atomic uint64_t next;
    _Atomic int failed;   /* 1: a line cannot be read */
};

/* Returns the beginning of the first line that begins at `at` or later; NULL if none begins within LINE_MOST bytes. */
static const char *next_begin(const struct lines *all, const char *at) {
    if (at <= all->at || at >= all->end) return at <= all->at ? all->at : all->end;
    uint64_t left = (uint64_t)(all->end - at);
    const char *newline = memchr(at - 1, '\n', left < LINE_MOST ? left + 1 : LINE_MOST);
    return newline ? newline + 1 : left < LINE_MOST ? all->end : NULL;
}

/* Returns the lines of a chunk; their `at` is NULL if a line is too long. */
static struct lines lines_of(const struct reading *reading, uint64_t chunk) {
    struct lines lines = reading->all;
    const char *begin = lines.at + chunk * CHUNK;
    uint64_t left = (uint64_t)(lines.end - begin);
    lines.at = next_begin(&reading->all, begin);
    lines.end = next_begin(&reading->all, begin + (left < CHUNK ? left : CHUNK));
    if (!lines.end) lines.at = NULL;
    return lines;
}

static int count_chunk(const struct reading *reading, uint64_t number) {
    struct chunk *chunk = &reading->chunks[number + 1];
    struct lines lines = lines_of(reading, number);
    struct line line;
    int more;
    if (!lines.at) return -1;
    while ((more = take_counted_line(&lines, &line, &chunk->tokens)) > 0) {
        chunk->words++;
        chunk->bytes += line.length + 1;
        chunk->large |= line.count >= VOCAB_LARGE;
    }
    return more;
}

static int store_chunk(const struct reading *reading, uint64_t number) {
    const struct chunk *chunk = &reading->chunks[number], *after = chunk + 1;
    struct words *words = &reading->vocab->words;
    struct lines lines = lines_of(reading, number);
    struct line line;
    uint64_t at = chunk->bytes, tokens = 0;
    for (uint64_t id = chunk->words; id < after->words; id++) {
        if (!lines.at || take_counted_line(&lines, &line, &tokens) <= 0 || line.length + 1 > after->bytes - at) return -1;
        words_set_offset(words, id, at);
        memcpy(words->bytes + at, line.word, line.length);
        words->bytes[at + line.length] = 0;
        at += line.length + 1;
        reading->vocab->counts[id] = vocab_small_count(line.count);
    }
    return at == after->bytes ? 0 : -1;
}

/* Fails at the first line that cannot be read. Threads may find another bad line first, so one thread reads the lines again. */
static int refuse_lines(struct lines lines) {
    struct line line;
    uint64_t tokens = 0;
    int more;
    report_clear();
    while ((more = take_counted_line(&lines, &line, &tokens)) > 0) continue;
    return more < 0 ? -1 : fail("vocabulary '%s' changed while it was read", lines.path);
}

/* Stores the counts of a chunk that are too large for 32 bits; the others are stored already. */
static int store_large(const struct reading *reading, uint64_t number) {
    struct lines lines = lines_of(reading, number);
    struct line line;
    uint64_t tokens = 0;
    for (uint64_t id = reading->chunks[number].words; id < reading->chunks[number + 1].words; id++) {
        if (!lines.at || take_counted_line(&lines, &line, &tokens) <= 0) return refuse_lines(reading->all);
        if (line.count >= VOCAB_LARGE && vocab_set_count(reading->vocab, id, line.count)) return -1;
    }
    return 0;
}

static int take_chunks(void *context, unsigned worker) {
    struct reading *reading = context;
    uint64_t chunk, end;
    while (!reading->failed && pool_take(&reading->next, reading->chunk_count, 1, &chunk, &end)) {
        if (interrupt_check()) return -1;
        if (reading->take(reading, chunk)) reading->failed = 1;
    }
    return 0;
}

/* Calls `take` for each chunk, by all threads. Fails if `take` failed, or if the user has pressed Ctrl-C. */
static int for_chunks(struct reading *reading, struct pool *pool, int (*take)(const struct reading *, uint64_t chunk)) {
    reading->take = take;
    reading->next = 0;
    if (pool_run(pool, take_chunks, reading)) return -1;
    return reading->failed ? refuse_lines(reading->all) : 0;
}

/* Counts the words of all chunks. Fails if the file is not a vocabulary. */
static int count_file(struct reading *reading, struct pool *pool) {
    if (for_chunks(reading, pool, count_chunk)) return -1;
    for (uint64_t i = 0; i < reading->chunk_count; i++) {
        struct chunk *chunk = &reading->chunks[i];
        chunk[1].words += chunk->words;
        chunk[1].bytes += chunk->bytes;
        if (__builtin_add_overflow(chunk[1].tokens, chunk->tokens, &chunk[1].tokens)) return refuse_lines(reading->all);
    }
    uint64_t count = reading->chunks[reading->chunk_count].words;
    if (!count) return fail("vocabulary '%s' is empty; wanted lines of word TAB count", reading->all.path);
    if (count <= WORDS_MOST) return 0;
    return fail("vocabulary '%s' has %" PRIu64 " words, more than the %u that ids can name", reading->all.path, count, WORDS_MOST);
}

/* Stores the words of all chunks in the vocabulary. */
static int store_words(struct reading *reading, struct pool *pool) {
    const struct chunk *all = &reading->chunks[reading->chunk_count];
    struct vocab *vocab = reading->vocab;
    if (vocab_reserve(vocab, all->words, all->bytes)) return -1;
    if (for_chunks(reading, pool, store_chunk)) return -1;
    for (uint64_t i = 0; i < reading->chunk_count; i++)
        if (reading->chunks[i + 1].large && store_large(reading, i)) return -1;
    vocab->size = vocab->words.size = vocab->distinct = all->words;
    vocab->words.used = all->bytes;
    words_set_offset(&vocab->words, all->words, all->bytes);
    vocab->kept = vocab->tokens = all->tokens;
    while (vocab->lists < vocab->size && is_list(vocab, vocab->size - 1 - vocab->lists)) vocab->lists++;
    return 0;
}

static int read_chunks(struct reading *reading, struct pool *pool) {
    uint64_t bytes = (uint64_t)(reading->all.end - reading->all.at);
    reading->chunk_count = bytes / CHUNK + (bytes % CHUNK > 0);
    reading->chunks = mem_zalloc(reading->chunk_count + 1, sizeof *reading->chunks, "a vocabulary");
    int result = reading->chunks ? count_file(reading, pool) || store_words(reading, pool) : -1;
    free(reading->chunks);
    return result ? -1 : 0;
}

int vocab_read_words(struct vocab *vocab, const char *path, int given, struct pool *pool) {
    ENDED_BY(file_map_close) struct file_map map = {0};
    *vocab = (struct vocab){0};
    if (file_map_open(&map, path)) return -1;
    uint64_t mark = given ? text_mark(map.data, map.size) : 0;
    struct reading reading = {.vocab = vocab, .all = {path, map.data, map.data, 1}}; /* map.data is NULL if the file is empty */
    if (map.size) reading.all = (struct lines){path, map.data + mark, map.data + map.size, 1};
    int result = (given && kind_check_format(path, map.data, map.size, 0)) || read_chunks(&reading, pool) ? -1 : 0;
    if (result) vocab_release(vocab);
    return result;
}

/* ---- writing ---- */

enum { TAIL_MOST = 22, BLOCK = 1 << 16 };

/* Writes "TAB count LF" and returns its end. */
static char *put_tail(char *at, uint64_t count) {
    char digits[TAIL_MOST], *first = digits + TAIL_MOST;
    do *--first = (char)('0' + count % 10);
    while (count /= 10);
    *at++ = '\t';
    for (; first < digits + TAIL_MOST; first++) *at++ = *first;
    *at++ = '\n';
    return at;
}

/* Passes the bytes of vocab.tsv to `take`, in blocks. Stops if `take` does not return 0, and returns its value. */
static int for_blocks(const struct vocab *vocab, int (*take)(void *user, const void *bytes, uint64_t count), void *user) {
    char block[BLOCK], *at = block;
    uint64_t length;
    int result = 0;
    for (uint64_t id = 0; id < vocab->size && !result; id++) {
        const char *word = vocab_word(vocab, id, &length);
        if (length + TAIL_MOST > (uint64_t)(block + BLOCK - at)) {
            result = take(user, block, (uint64_t)(at - block));
            at = block;
        }
        if (length + TAIL_MOST > BLOCK) result = result ? result : take(user, word, length);
        else at = (char *)memcpy(at, word, length) + length;
        at = put_tail(at, vocab_count(vocab, id));
    }
    return result ? result : take(user, block, (uint64_t)(at - block));
}

static int write_block(void *writer, const void *bytes, uint64_t count) {
    return file_write(writer, bytes, count);
}

int vocab_write(const struct vocab *vocab, const char *path) {
    ENDED_BY(file_abandon) struct file_writer writer = {.fd = -1};
    return file_writer_open(&writer, path) || for_blocks(vocab, write_block, &writer) ? -1 : file_commit(&writer);
}

static int hash_block(void *state, const void *bytes, uint64_t count) {
    XXH3_64bits_update(state, bytes, count);
    return 0;
}

uint64_t vocab_fingerprint(const struct vocab *vocab) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    for_blocks(vocab, hash_block, &state);
    return XXH3_64bits_digest(&state);
}

/* One word or list of the joined vocabulary. */
struct kept_word {
    uint64_t count, number; /* number: its id in `vocab`, or in `older` if of_older is 1 */
    uint32_t age;           /* number of runs, up to this one, in which the word has not occurred */
    uint8_t of_older, known; /* of_older: 1: only the older run has this word; known: 1: the older run has it */
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

/* Returns the count of a word (not of a list) in a vocabulary. Sets *found to 1; to 0, and returns 0, if it does not contain the word. */
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
        uint64_t count = vocab_count(vocab, id) + count_in(older, word, length, &found);
        joining->words[joining->items++] = (struct kept_word){count, id, 0, 0, (uint8_t)found};
    }
    for (uint64_t id = 0; id < items_of(older); id++) {
        const char *word = vocab_word(older, id, &length);
        count_in(vocab, word, length, &found);
        uint32_t age = 1 + (older->age ? older->age[id] : 0);
        if (!found) joining->words[joining->items++] = (struct kept_word){vocab_count(older, id), id, age ? age : UINT32_MAX, 1, 1};
    }
}

static void join_older_lists(struct joining *joining) {
    const struct vocab *vocab = joining->vocab, *older = joining->older;
    struct kept_word *lists = joining->words + joining->items;
    uint64_t ways = vocab_is_reciprocal(vocab) ? 2 : 1, own = vocab->lists / ways, others = older->lists / ways, length;
    for (uint64_t way = 0; way < ways; way++) { /* all relations, then all reciprocals */
        uint64_t first = items_of(vocab) + way * own, from = items_of(older) + way * others;
        for (uint64_t id = first; id < first + own; id++) lists[joining->lists++] = (struct kept_word){.number = id};
        for (uint64_t id = from; id < from + others && joining->options->list_rows; id++) {
            const char *word = vocab_word(older, id, &length);
            if (vocab_find(vocab, word, length) < 0) lists[joining->lists++] = (struct kept_word){.number = id, .of_older = 1};
        }
    }
}

/* Returns 1 if a row of a list or relation in `vocab` is the row of a word in `older`. */
static int lists_are_words(const struct vocab *vocab, const struct vocab *older) {
    uint64_t length;
    int found = 0;
    for (uint64_t id = items_of(vocab); id < vocab->size && !found; id++) {
        const char *word = vocab_word(vocab, id, &length);
        count_in(older, word, length, &found);
    }
    return found;
}

/* Fails if both vocabularies have relations, and these are words in only one of them, or only one of them has reciprocals. */
static int check_relations(const struct vocab *vocab, const struct vocab *older) {
    int ways = vocab_is_reciprocal(vocab), relations = older->lists && !strcmp(vocab_prefix(older), VOCAB_RELATION);
    if (lists_are_words(vocab, older) || lists_are_words(older, vocab))
        return fail("relations are words of walks over triples and rows of their own with examples.mode = triple, and train.from and this run differ "
                    "in this: set train.from_words = drop");
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

static int by_age(const void *a, const void *b) {
    const struct kept_word *x = a, *y = b;
    return x->age != y->age ? x->age < y->age ? -1 : 1 : by_frequency(a, b);
}

static int by_place(const void *a, const void *b) {
    const struct kept_word *x = a, *y = b;
    return x->of_older != y->of_older ? x->of_older - y->of_older : x->number < y->number ? -1 : x->number > y->number;
}

/* Lets items leave until max_vocab are left, and says which. Returns how many words of the older run have left. */
static uint64_t forget(struct joining *joining) {
    const struct corpus_options *options = joining->options;
    uint64_t most = options->max_vocab, forgot = 0, length;
    char names[256] = "", number[TEXT_BYTES];
    if (options->forget == FORGET_NO || joining->items <= most) return 0;
    qsort(joining->words, joining->items, sizeof *joining->words, options->forget == FORGET_AGE ? by_age : by_frequency);
    for (uint64_t i = most; i < joining->items; i++) {
        if (!joining->words[i].known) continue;
        const char *word = word_of(joining, &joining->words[i], &length);
        if (forgot++ < 3) text_add(names, sizeof names, strlen(names), "%s'%.*s'", *names ? ", " : "", text_shown(length), word);
    }
    joining->items = most;
    qsort(joining->words, most, sizeof *joining->words, by_place);
    if (forgot)
        note("forgot     %s word%s: %s%s (corpus.forget = %s leaves %" PRIu64 ")", text_of_count(number, forgot), text_plural(forgot), names,
             forgot > 3 ? " .." : "", options->forget == FORGET_AGE ? "age" : "count", most);
    return forgot;
}

/* With corpus.order = given, checks that the word of each added row is the row's number. */
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

static int fill_joined(struct vocab *out, const struct joining *joining) {
    uint64_t size = joining->items + joining->lists, length;
    int aged = 0;
    if (size > WORDS_MOST)
        return fail("%" PRIu64 " words of the corpus and of train.from are more than the %u that ids can name; set train.from_words = drop",
                    size, WORDS_MOST);
    if (vocab_reserve(out, size, joining->vocab->words.used + joining->older->words.used)) return -1;
    for (uint64_t row = 0; row < size; row++) {
        const char *word = word_of(joining, &joining->words[row], &length);
        if (vocab_append(out, word, length, joining->words[row].count)) return -1;
        out->kept += joining->words[row].count;
        out->older += joining->words[row].of_older;
        aged |= joining->words[row].age > 0;
    }
    if (aged && !(out->age = mem_alloc(size, sizeof *out->age, "the ages of words"))) return -1;
    for (uint64_t row = 0; aged && row < size; row++) out->age[row] = joining->words[row].age;
    out->tokens = joining->vocab->tokens + joining->older->tokens;
    out->lists = joining->lists;
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
    joined.forgot = forget(&joining);
    join_older_lists(&joining);
    if (options->order == ORDER_FREQUENCY) qsort(joining.words, joining.items, sizeof *joining.words, by_frequency);
    int result = (options->order == ORDER_GIVEN && check_given(&joining)) || fill_joined(&joined, &joining) ||
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
