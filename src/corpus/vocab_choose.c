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

/* A word that may get a row. */
struct candidate {
    uint64_t count, first; /* as in struct word_count */
    uint64_t position;     /* where the word is: the number of its shard (top bits) and its number in that shard */
};

struct candidates {
    struct candidate *words;
    uint64_t size;
};

static uint64_t position_of(uint64_t shard, uint64_t number) {
    return shard << WORD_SHARD_SHIFT | number;
}

static const char *candidate_word(const struct word_counts *counts, const struct candidate *candidate, uint64_t *length) {
    const struct word_shard *shard = &counts->shards[candidate->position >> WORD_SHARD_SHIFT];
    return words_get(&shard->words, candidate->position & (((uint64_t)1 << WORD_SHARD_SHIFT) - 1), length);
}

/* ---- sorting ---- */

static int by_count(const struct candidate *a, const struct candidate *b) {
    return a->count != b->count ? a->count > b->count : a->first < b->first;
}
static int by_first(const struct candidate *a, const struct candidate *b) {
    return a->first < b->first;
}
typedef int before(const struct candidate *a, const struct candidate *b);

static inline __attribute__((always_inline)) void swap(struct candidate *a, struct candidate *b) {
    struct candidate kept = *a;
    *a = *b;
    *b = kept;
}

/* Sorts in place by quicksort: qsort() may allocate as much memory again. A hash chooses the pivot, so that no input order is
 * slow. No two words are equal, since no two are first met at the same byte. */
static void sort(struct candidate *words, uint64_t size, before *less) {
    while (size > 16) {
        uint64_t i = 0, j = size - 1, hash = size * 0x9E3779B97F4A7C15u;
        swap(&words[0], &words[(uint64_t)((unsigned __int128)hash * size >> 64)]);
        struct candidate pivot = words[0];
        for (;;) { /* Hoare's partition: the pivot itself stops both loops, so neither leaves the array */
            while (less(&words[i], &pivot)) i++;
            while (less(&pivot, &words[j])) j--;
            if (i >= j) break;
            swap(&words[i++], &words[j--]);
        }
        uint64_t left = j + 1;
        if (left < size - left) {
            sort(words, left, less);
            words += left;
            size -= left;
        } else {
            sort(words + left, size - left, less);
            size = left;
        }
    }
    for (uint64_t i = 1; i < size; i++) {
        struct candidate word = words[i];
        uint64_t j = i;
        for (; j > 0 && less(&word, &words[j - 1]); j--) words[j] = words[j - 1];
        words[j] = word;
    }
}

/* ---- which words stay ---- */

/* Returns 1 if the word stays in the vocabulary: it occurs at least `least` times, or it occurs and an older run has it too. */
static int stays(const struct word_shard *shard, uint64_t number, uint64_t least, const struct vocab *older) {
    uint64_t count = shard->counts[number].count, length;
    if (count >= least || !count || !older) return count >= least;
    const char *word = words_get(&shard->words, number, &length);
    return vocab_find(older, word, length) >= 0;
}

/* Computes vocab->tokens and vocab->distinct, the number of words that stay (*staying) and the most frequent word (*top), which
 * the message names if no word stays. */
static void add_up(const struct word_counts *counts, struct vocab *vocab, uint64_t least, const struct vocab *older,
                   uint64_t *staying, struct candidate *top) {
    *staying = 0;
    *top = (struct candidate){0};
    for (uint64_t s = 0; s < WORD_SHARDS; s++) {
        const struct word_shard *shard = &counts->shards[s];
        for (uint64_t n = 0; n < shard->words.size; n++) {
            struct candidate word = {shard->counts[n].count, shard->counts[n].first, position_of(s, n)};
            vocab->distinct += word.count > 0; /* a gathered dictionary may have words that no token of the data uses */
            vocab->tokens += word.count;
            *staying += (uint64_t)stays(shard, n, least, older);
            if (!top->count || by_count(&word, top)) *top = word;
        }
    }
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
    const char *word = candidate_word(counts, top, &length);
    return fail("no word of the corpus comes %" PRIu64 " times (corpus.min_count): the most frequent of %" PRIu64
                ", '%.*s', comes %" PRIu64 " times; lower corpus.min_count",
                options->min_count, vocab->distinct, text_shown(length), word, top->count);
}

/* Lists the words that stay. Frees the hash table and the counts of each shard after their last use. */
static int gather(struct word_counts *counts, uint64_t least, const struct vocab *older, uint64_t staying,
                  struct candidates *candidates) {
    candidates->words = mem_alloc(staying, sizeof *candidates->words, "the list of words");
    if (!candidates->words) return -1;
    for (uint64_t s = 0; s < WORD_SHARDS; s++) {
        struct word_shard *shard = &counts->shards[s];
        words_drop_index(&shard->words);
        for (uint64_t n = 0; n < shard->words.size; n++) {
            struct word_count word = shard->counts[n];
            if (!stays(shard, n, least, older)) continue;
            candidates->words[candidates->size++] = (struct candidate){word.count, word.first, position_of(s, n)};
        }
        free(shard->counts);
        shard->counts = NULL;
    }
    mem_give_back(); /* saves 44 of 208 MB with 2.5 million words; memory is highest when the vocabulary is filled */
    return 0;
}

/* ---- filling the vocabulary ---- */

static int fill(struct vocab *vocab, const struct word_counts *counts, const struct candidates *candidates) {
    uint64_t bytes = 0, length;
    for (uint64_t i = 0; i < candidates->size; i++) {
        candidate_word(counts, &candidates->words[i], &length);
        bytes += length + 1;
    }
    if (vocab_reserve(vocab, candidates->size, bytes)) return -1;
    for (uint64_t id = 0; id < candidates->size; id++) {
        const char *word = candidate_word(counts, &candidates->words[id], &length);
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
    char digits[24];
    for (uint64_t i = 0; i < candidates->size; i++) {
        const char *word = candidate_word(counts, &candidates->words[i], &length);
        vocab_given_id(word, length, &id);
        if (id > highest) highest = id;
    }
    if (vocab_reserve(vocab, highest + 1, bytes_of_numbers(highest))) return -1;
    for (id = 0; id <= highest; id++)
        vocab_append(vocab, digits, (uint64_t)snprintf(digits, sizeof digits, "%" PRIu64, id), 0);
    for (uint64_t i = 0; i < candidates->size; i++) {
        const char *word = candidate_word(counts, &candidates->words[i], &length);
        vocab_given_id(word, length, &id);
        vocab->counts[id] += candidates->words[i].count; /* "7" and "07" are the same number */
        vocab->kept += candidates->words[i].count;
    }
    return 0;
}

int vocab_choose(struct vocab *vocab, struct word_counts *counts, const struct corpus_options *options,
                 uint64_t corpus_bytes) {
    uint64_t least = options->min_count ? options->min_count : 1, staying;
    struct candidates candidates = {0};
    struct candidate top;
    int given = options->order == ORDER_GIVEN, result = -1;
    add_up(counts, vocab, least, options->older, &staying, &top);
    if (!staying) return no_word(counts, vocab, options, corpus_bytes, &top);
    if (gather(counts, least, options->older, staying, &candidates)) goto out;
    sort(candidates.words, candidates.size, by_count);
    if (options->max_vocab && candidates.size > options->max_vocab) candidates.size = options->max_vocab;
    if (candidates.size > WORDS_MOST) {
        fail("%" PRIu64 " words are more than the %u that ids can name; raise corpus.min_count or set corpus.max_vocab",
             candidates.size, WORDS_MOST);
        goto out;
    }
    if (options->order == ORDER_FIRST_SEEN) sort(candidates.words, candidates.size, by_first);
    else INVARIANT(candidates.size < 2 || by_count(&candidates.words[0], &candidates.words[candidates.size - 1]));
    result = given ? fill_given(vocab, counts, &candidates) : fill(vocab, counts, &candidates);
out:
    free(candidates.words);
    return result;
}
