/* Collects the words of all shards in one list, sorted by count. The first words of the list become the vocabulary.
 *
 *   counts of all words -> the list of words that will have rows, in buckets -> each bucket sorted -> rows and counts -> the words' bytes
 *
 * All steps are done by all threads. */
#include "vocab_choose.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* State of choosing. The workers share it, and each has an equal range of the words' numbers. */
struct choosing {
    struct word_counts *counts;
    const struct corpus_options *options;
    struct vocab *vocab;
    struct pool *pool;
    uint64_t numbers;       /* word_counts_numbers() */
    uint64_t least;         /* fewest occurrences of a word that will have a row */
    int by_first;           /* 1: words are ordered by their first places alone; 0: by falling counts, then by first places */
    unsigned shift;         /* the corpus is cut into slices of 2^shift bytes */
    struct worker_sums *sums; /* [pool_threads()] */
    struct candidates candidates;
    uint32_t *rows;         /* [numbers]: the row of each word; WORDS_ABSENT: it has none */
    row_taker *take;        /* for_rows() calls it for each word that has a row */
    _Atomic uint64_t next;  /* counter of pool_take() */
};

/* Sums over one worker's words. */
struct worker_sums {
    uint64_t distinct, tokens, kept;
    struct candidate top;       /* the most frequent word, which the message names if no word stays */
    uint64_t starts[BUCKETS];   /* for each bucket: how many of the worker's words will have rows; later the index in the list where the
                                 * worker stores its next word of the bucket */
};

/* ---- sorting ---- */

/* Words are sorted in two steps, so that the list is in memory once: the workers write each word into its bucket, then sort each
 * bucket. A bucket has words of one count, or of counts from 2^n to 2^(n + 1) - 1, of the same slice of the corpus. */
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

/* Sorts words[size] by falling counts if `counts` is 1, otherwise by rising first places; words of equal keys keep their order. It is a
 * radix sort by 11 bits at a time. Bits that are the same in all keys are left out. other: scratch for `size` words. */
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

/* Sorts all words of the list by their first places. */
static int sort_by_first(struct candidates *candidates) {
    struct candidate *other = mem_alloc(candidates->size + 1, sizeof *other, "sorting words");
    if (!other) return -1;
    sort(candidates->words, candidates->size, other, 0);
    free(other);
    return 0;
}

/* Sorts the buckets that this worker takes. */
static int sort_buckets(void *context, unsigned worker) {
    enum { FEW = 48 };
    struct choosing *c = context;
    const uint64_t *ends = c->sums[pool_threads(c->pool) - 1].starts; /* the last worker's words end each bucket */
    struct candidate *other = NULL;
    uint64_t capacity = 0, bucket, end;
    int result = 0;
    (void)worker;
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
    free(other);
    return result;
}

/* ---- which words stay ---- */

/* Returns 1 if the word will be in the vocabulary: it occurs at least `least` times, or it occurs and an older run has it too. */
static int stays(const struct choosing *c, const struct candidate *word) {
    uint64_t length;
    char digits[WORD_DIGITS];
    if (word->count >= c->least || !word->count || !c->options->older) return word->count >= c->least;
    const char *text = word_counts_word(c->counts, number_of(word), digits, &length);
    return vocab_find(c->options->older, text, length) >= 0;
}

/* Returns the word of a number. Its count is 0 if no word has the number, or if it does not occur. */
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
        if (!word.count) continue; /* a gathered dictionary may have words that no token of the data uses */
        sums->distinct++;
        sums->tokens += word.count;
        if (!sums->top.count || by_count(&word, &sums->top)) sums->top = word;
        if (stays(c, &word)) sums->starts[bucket_of(c, &word)]++;
    }
    return 0;
}

/* Computes the size of the list, and where in it each worker stores its words of each bucket. */
static void begin_buckets(struct choosing *c) {
    uint64_t sum = 0;
    for (uint64_t bucket = 0; bucket < BUCKETS; bucket++)
        for (unsigned worker = 0; worker < pool_threads(c->pool); worker++) {
            uint64_t *start = &c->sums[worker].starts[bucket], count = *start;
            *start = sum;
            sum += count;
        }
    c->candidates.size = sum;
}

/* Goes through a worker's words. A word that will have a row is written into the list, in its bucket. */
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

/* Fails if a program gave no tokens at all. Such data has no file that the message could name. */
static int nothing_given(const struct corpus_options *options) {
    return fail("the corpus that was given is empty: %s",
                corpus_formats[options->format].edges ? "no edge (from a node to itself, or of weight 0, is none)"
                                                      : "not one word");
}

static int no_word(const struct word_counts *counts, const struct vocab *vocab, const struct corpus_options *options,
                   uint64_t corpus_bytes, const struct candidate *top) {
    const char *format = corpus_formats[options->format].name;
    uint64_t length;
    if (!vocab->tokens && !isinf(options->min_rating))
        return fail("the corpus '%s' has no pair with a rating of at least %g (corpus.min_rating) in its %" PRIu64
                    " bytes",
                    options->path, options->min_rating, corpus_bytes);
    if (!vocab->tokens && !*options->path) return nothing_given(options);
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

/* Adds up all words. Fails if none stays. */
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
    begin_buckets(c);
    return c->candidates.size ? 0 : no_word(c->counts, c->vocab, c->options, corpus_bytes, &top);
}

/* Makes the list of the words that will have rows, in the order of their rows, and frees the counts of the shards. */
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

/* Allocates c->rows. No word has a row yet. */
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
    (void)worker;
    while (pool_take(&c->next, c->numbers, GRAIN, &number, &end))
        for (; number < end; number++)
            if (c->rows[number] != WORDS_ABSENT) {
                const char *word = word_counts_word(c->counts, number, digits, &length);
                c->take(&c->vocab->words, c->rows[number], word, length);
            }
    return 0;
}

static void put_length(struct words *words, uint64_t row, const char *word, uint64_t length) {
    (void)word;
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

/* Returns the bytes of all numbers 0 .. highest, written in decimal, each with a NUL. */
static uint64_t bytes_of_numbers(uint64_t highest) {
    uint64_t bytes = highest + 1 + 1; /* the NULs, and the digit of 0 */
    for (uint64_t power = 1; power <= highest; power *= 10) bytes += highest - power + 1; /* the numbers with a digit at this
                                                                                           * power of ten */
    return bytes;
}

/* Fills the vocabulary if corpus.order = given: each number up to the highest gets a row. The count of a row is 0 if its number
 * was left out or does not occur. */
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
    if (options->max_vocab && candidates->size > options->max_vocab) candidates->size = options->max_vocab;
    if (candidates->size > WORDS_MOST)
        return fail("%" PRIu64 " words are more than the %u that ids can name; raise corpus.min_count or set corpus.max_vocab",
                    candidates->size, WORDS_MOST);
    if (options->order == ORDER_FIRST_SEEN && !c->by_first && sort_by_first(candidates)) return -1;
    INVARIANT(candidates->size < 2 || comes_before(&candidates->words[0], &candidates->words[candidates->size - 1],
                                                   options->order == ORDER_FIRST_SEEN));
    if (options->order != ORDER_GIVEN) return fill(c);
    return fill_given(c->vocab, c->counts, candidates) || (wants_rows && find_given_rows(c)) ? -1 : 0;
}

int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options, uint64_t corpus_bytes,
                 struct pool *pool, uint32_t **rows) {
    struct choosing c = {.counts = counts,
                         .options = options,
                         .vocab = vocab,
                         .pool = pool,
                         .numbers = word_counts_numbers(counts),
                         .least = options->min_count ? options->min_count : 1,
                         .by_first = options->order == ORDER_FIRST_SEEN && !options->max_vocab,
                         .sums = mem_zalloc(pool_threads(pool), sizeof *c.sums, "choosing words")};
    int result = c.sums ? choose_rows(&c, corpus_bytes, rows != NULL) : -1;
    free(c.sums);
    free(c.candidates.words);
    if (rows && !result) *rows = c.rows;
    else free(c.rows);
    return result;
}
