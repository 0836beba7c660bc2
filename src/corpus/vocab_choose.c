/* Collects the words of all shards in one list and sorts it by count. The first words of the list become the vocabulary. */
#include "vocab_choose.h"

#include "base/debug.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word that may get a row. It has 16 bytes, since sorting holds each word twice. */
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

/* ---- sorting ---- */

static int by_count(const struct candidate *a, const struct candidate *b) {
    return a->count != b->count ? a->count > b->count : a->first < b->first;
}

/* Sorts by falling counts, or by rising first places; words of equal keys keep their order. One pass for each 11 bits in which keys
 * differ, between the list and a second one as long. Returns 0, or -1 after fail(). */
static int sort(struct candidates *candidates, int counts) {
    enum { BITS = 11, DIGITS = 1 << BITS };
    struct candidate *from = candidates->words, *to = mem_alloc(candidates->size + 1, sizeof *to, "sorting words");
    uint64_t size = candidates->size, varying = 0;
    if (!to) return -1;
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
    candidates->words = from;
    free(to);
    return 0;
}

/* ---- which words stay ---- */

/* Returns 1 if the word stays in the vocabulary: it occurs at least `least` times, or it occurs and an older run has it too. */
static int stays(const struct word_counts *counts, const struct candidate *word, uint64_t least, const struct vocab *older) {
    uint64_t length;
    char digits[WORD_DIGITS];
    if (word->count >= least || !word->count || !older) return word->count >= least;
    const char *text = word_counts_word(counts, number_of(word), digits, &length);
    return vocab_find(older, text, length) >= 0;
}

static inline struct candidate integer_candidate(const struct word_counts *counts, uint64_t i) {
    const struct integer_count *met = &counts->integers.counts[i];
    return candidate_of(met->count, ~met->after, i);
}

static inline struct candidate shard_candidate(const struct word_counts *counts, uint64_t s, uint64_t n) {
    struct word_count met = counts->shards[s].counts[n];
    return candidate_of(met.count, met.first, word_counts_number(counts, s, n));
}

/* State of add_up(). */
struct sums {
    const struct word_counts *counts;
    struct vocab *vocab;
    uint64_t least, staying; /* staying: number of words that stay */
    const struct vocab *older;
    struct candidate top; /* the most frequent word, which the message names if no word stays */
};

static void add(struct sums *sums, struct candidate word) {
    sums->vocab->distinct += word.count > 0; /* a gathered dictionary may have words that no token of the data uses */
    sums->vocab->tokens += word.count;
    sums->staying += (uint64_t)stays(sums->counts, &word, sums->least, sums->older);
    if (!sums->top.count || by_count(&word, &sums->top)) sums->top = word;
}

/* Computes vocab->tokens and vocab->distinct, and the sums above. */
static void add_up(struct sums *sums) {
    for (uint64_t i = 0; i < sums->counts->integers.size; i++)
        if (sums->counts->integers.counts[i].count) add(sums, integer_candidate(sums->counts, i));
    for (uint64_t s = 0; s < WORD_SHARDS; s++)
        for (uint64_t n = 0; n < sums->counts->shards[s].words.size; n++) add(sums, shard_candidate(sums->counts, s, n));
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

static void keep(struct candidates *candidates, const struct sums *sums, struct candidate word) {
    if (stays(sums->counts, &word, sums->least, sums->older)) candidates->words[candidates->size++] = word;
}

/* Lists the words that stay. Frees the hash table and the counts of each shard after their last use. */
static int gather(struct word_counts *counts, const struct sums *sums, struct candidates *candidates) {
    candidates->words = mem_alloc(sums->staying, sizeof *candidates->words, "the list of words");
    if (!candidates->words) return -1;
    for (uint64_t i = 0; i < counts->integers.size; i++)
        if (counts->integers.counts[i].count) keep(candidates, sums, integer_candidate(counts, i));
    free(counts->integers.counts);
    counts->integers.counts = NULL;
    for (uint64_t s = 0; s < WORD_SHARDS; s++) {
        words_drop_index(&counts->shards[s].words);
        for (uint64_t n = 0; n < counts->shards[s].words.size; n++) keep(candidates, sums, shard_candidate(counts, s, n));
        free(counts->shards[s].counts);
        counts->shards[s].counts = NULL;
    }
    mem_give_back(); /* saves 44 of 208 MB with 2.5 million words; memory is highest when the vocabulary is filled */
    return 0;
}

/* ---- filling the vocabulary ---- */

static int fill(struct vocab *vocab, const struct word_counts *counts, const struct candidates *candidates) {
    uint64_t bytes = 0, length;
    char digits[WORD_DIGITS];
    for (uint64_t i = 0; i < candidates->size; i++) {
        word_counts_word(counts, number_of(&candidates->words[i]), digits, &length);
        bytes += length + 1;
    }
    if (vocab_reserve(vocab, candidates->size, bytes)) return -1;
    for (uint64_t id = 0; id < candidates->size; id++) {
        const char *word = word_counts_word(counts, number_of(&candidates->words[id]), digits, &length);
        vocab_append(vocab, word, length, candidates->words[id].count);
        vocab->kept += vocab->counts[id];
    }
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
        vocab->counts[id] += candidates->words[i].count; /* "7" and "07" are the same number */
        vocab->kept += candidates->words[i].count;
    }
    return 0;
}

/* ---- the rows of all words ---- */

static void set_given(uint32_t *rows, const struct vocab *vocab, const struct word_counts *counts, uint64_t number) {
    char digits[WORD_DIGITS];
    uint64_t length, id;
    const char *word = word_counts_word(counts, number, digits, &length);
    if (!vocab_given_id(word, length, &id) && id < vocab->size && vocab->counts[id]) rows[number] = (uint32_t)id;
}

static uint32_t *find_rows(const struct vocab *vocab, const struct word_counts *counts, const struct candidates *candidates,
                           int given) {
    uint64_t size = word_counts_numbers(counts);
    uint32_t *rows = mem_alloc(size + 1, sizeof *rows, "the rows of words");
    if (!rows) return NULL;
    memset(rows, 0xff, size * sizeof *rows);
    for (uint64_t row = 0; row < candidates->size && !given; row++) rows[number_of(&candidates->words[row])] = (uint32_t)row;
    for (uint64_t i = 0; i < counts->integers.size && given; i++) set_given(rows, vocab, counts, i);
    for (uint64_t s = 0; s < WORD_SHARDS && given; s++)
        for (uint64_t n = 0; n < counts->shards[s].words.size; n++) set_given(rows, vocab, counts, word_counts_number(counts, s, n));
    return rows;
}

int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options, uint64_t corpus_bytes,
                 uint32_t **rows) {
    struct sums sums = {
        .counts = counts, .vocab = vocab, .least = options->min_count ? options->min_count : 1, .older = options->older};
    struct candidates candidates = {0};
    int given = options->order == ORDER_GIVEN, result = -1;
    add_up(&sums);
    if (!sums.staying) return no_word(counts, vocab, options, corpus_bytes, &sums.top);
    if (gather(counts, &sums, &candidates)) goto out;
    if (sort(&candidates, 0) || sort(&candidates, 1)) goto out;
    if (options->max_vocab && candidates.size > options->max_vocab) candidates.size = options->max_vocab;
    if (candidates.size > WORDS_MOST) {
        fail("%" PRIu64 " words are more than the %u that ids can name; raise corpus.min_count or set corpus.max_vocab",
             candidates.size, WORDS_MOST);
        goto out;
    }
    if (options->order == ORDER_FIRST_SEEN && sort(&candidates, 0)) goto out;
    INVARIANT(options->order == ORDER_FIRST_SEEN || candidates.size < 2 ||
              by_count(&candidates.words[0], &candidates.words[candidates.size - 1]));
    result = given ? fill_given(vocab, counts, &candidates) : fill(vocab, counts, &candidates);
    if (!result && rows) result = (*rows = find_rows(vocab, counts, &candidates, given)) ? 0 : -1;
out:
    free(candidates.words);
    return result;
}
