#include "numbered.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "fields.h"
#include "tokens.h"
#include "vocab.h"
#include "word_counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

int numbered_open(struct numbered *numbered, const char *path) {
    *numbered = (struct numbered){.fd = file_open_unnamed(path), .path = path};
    pthread_mutex_init(&numbered->lock, NULL);
    pthread_cond_init(&numbered->moved, NULL);
    return numbered->fd < 0 ? -1 : 0;
}

int numbered_put(struct numbered *numbered, uint64_t block, const uint32_t *numbers, uint64_t count) {
    pthread_mutex_lock(&numbered->lock);
    while (numbered->next != block && !numbered->failed) pthread_cond_wait(&numbered->moved, &numbered->lock);
    int failed = numbered->failed;
    uint64_t at = numbered->count;
    INVARIANT(failed || numbered->next == block);
    numbered->count += count;
    numbered->next++;
    pthread_cond_broadcast(&numbered->moved);
    pthread_mutex_unlock(&numbered->lock);
    if (failed) return -1;
    int result = retry_write_at(numbered->fd, numbers, count * sizeof *numbers, at * sizeof *numbers);
    return result ? fail_system("write beside", numbered->path) : 0;
}

void numbered_give_up(struct numbered *numbered) {
    pthread_mutex_lock(&numbered->lock);
    numbered->failed = 1;
    pthread_cond_broadcast(&numbered->moved);
    pthread_mutex_unlock(&numbered->lock);
}

int numbered_finish(struct numbered *numbered) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", numbered->fd);
    if (file_map_open(&numbered->map, path)) return -1;
    numbered->numbers = (const uint32_t *)(const void *)numbered->map.data;
    numbered->complete = 1;
    return 0;
}

void numbered_close(struct numbered *numbered) {
    file_map_close(&numbered->map);
    if (numbered->fd >= 0) close(numbered->fd);
    mem_free(numbered->items, numbered->lists);
    pthread_mutex_destroy(&numbered->lock);
    pthread_cond_destroy(&numbered->moved);
    *numbered = (struct numbered){.fd = -1};
}

static void release_words(struct gathered_words *words) {
    words_release(&words->words);
    mem_free(words->counts, words->known, words->of_integer);
}

void gathered_release(struct gathered *gathered) {
    release_words(&gathered->items);
    release_words(&gathered->lists);
    free(gathered->numbers);
    ratings_release(&gathered->ratings);
    *gathered = (struct gathered){0};
}

/* ---- words ---- */

/* Fails if the token cannot be a word: it is too long, contains a tab or a line end, or is no row's number with corpus.order = given. */
static int check_word(const struct gathered *gathered, const struct gathered_words *words, const char *word,
                      uint64_t length) {
    uint64_t most = gathered->options->max_word ? gathered->options->max_word : CORPUS_WORD, id;
    int lists = words == &gathered->lists;
    const char *what = lists && corpus_formats[gathered->options->format].triples ? "relation" : lists ? "name of a list" : "token";
    if (length > most)
        return fail("the %s that begins with '%.*s' has %" PRIu64 " bytes, more than corpus.max_word = %" PRIu64, what,
                    text_shown(length), word, length, most);
    if (token_has_break(word, length))
        return fail("the %s '%.*s' has a tab or a line's end in it", what, text_shown(length), word);
    if (words == &gathered->items && gathered->options->order == ORDER_GIVEN && vocab_given_id(word, length, &id))
        return fail("the token '%.*s' is not an id; corpus.order = given wants numbers from 0 to %u",
                    text_shown(length), word, WORDS_MOST - 1);
    return 0;
}

/* returned instead of a word's number for an empty token */
enum { NO_WORD = -2 };

/* Returns the number of a word, which is added if it is new; NO_WORD if the token is empty; -1 after fail(). */
static int64_t number_of_word(struct gathered *gathered, struct gathered_words *words, const struct word_query *query) {
    uint64_t before = words->words.size;
    if (!query->length) return NO_WORD;
    int64_t number = words_add(&words->words, query->hash, query->word, query->length);
    if (number < 0 || (uint64_t)number < before) return number;
    if (check_word(gathered, words, query->word, query->length) ||
        mem_grow(&words->counts, &words->counts_capacity, before + 1, sizeof *words->counts, "the words' counts"))
        return -1;
    words->counts[number] = (struct word_count){0};
    return number;
}

/* integers below this number are looked up in a table (of_integer), larger ones by the hash of their digits */
enum { INTEGERS_MOST = 1 << 26 };

static int hold_integer(struct gathered_words *words, uint64_t integer) {
    uint64_t size = words->of_integer_count ? words->of_integer_count : 1024;
    while (size <= integer) size *= 2;
    uint32_t *table = mem_zalloc(size, sizeof *table, "the table of integers");
    if (!table) return -1;
    if (words->of_integer) memcpy(table, words->of_integer, words->of_integer_count * sizeof *table);
    free(words->of_integer);
    words->of_integer = table;
    words->of_integer_count = size;
    return 0;
}

static int64_t number_of_digits(struct gathered *gathered, struct gathered_words *words, uint64_t integer) {
    char digits[24];
    uint64_t length = (uint64_t)snprintf(digits, sizeof digits, "%" PRIu64, integer);
    return number_of_word(gathered, words, &(struct word_query){digits, length, words_hash(digits, length)});
}

static int64_t number_of_integer(struct gathered *gathered, struct gathered_words *words, uint64_t integer) {
    if (integer >= INTEGERS_MOST) return number_of_digits(gathered, words, integer);
    if (integer >= words->of_integer_count && hold_integer(words, integer)) return -1;
    uint32_t known = words->of_integer[integer];
    if (known) return known - 1;
    int64_t number = number_of_digits(gathered, words, integer);
    if (number >= 0) words->of_integer[integer] = (uint32_t)number + 1;
    return number;
}

/* ---- tokens ---- */

static int64_t integer_at(const struct tokens *tokens, const void *integers, uint64_t i) {
    return tokens->bits == 32 ? ((const int32_t *)integers)[i] : ((const int64_t *)integers)[i];
}

/* Text is numbered in rounds: all threads look up its words, then one thread adds those that are new. The first round is short, since most of its
 * words are new; each round is twice as long as the one before. */
enum { FIRST_ROUND = 1 << 12, GRAIN = 1 << 12, ALONE = 1 << 14 /* a round with fewer tokens is looked up by one thread */ };

/* A round of tokens. The threads share it. */
struct round {
    const struct words *words;
    const struct tokens *tokens;
    uint64_t first, count; /* the tokens first .. first + count - 1 */
    uint32_t *out;         /* [count] the numbers of the tokens' words; WORDS_ABSENT if a word is new */
    _Atomic uint64_t next;
};

static int query_text(const struct tokens *tokens, uint64_t i, struct word_query *query) {
    int64_t begin = integer_at(tokens, tokens->offsets, i), end = integer_at(tokens, tokens->offsets, i + 1);
    if (begin < 0 || end < begin)
        return fail_usage("offsets of text fall from %" PRId64 " to %" PRId64 " at token %" PRIu64, begin, end, i);
    const char *word = (const char *)tokens->data + begin;
    *query = (struct word_query){word, (uint64_t)(end - begin), words_hash(word, (uint64_t)(end - begin))};
    return 0;
}

static int look_up_texts(void *context, unsigned worker) {
    struct round *round = context;
    struct word_query queries[WORDS_BATCH];
    uint64_t first, end;
    while (pool_take(&round->next, round->count, GRAIN, &first, &end))
        for (uint64_t i = first; i < end; i += WORDS_BATCH) {
            unsigned some = end - i < WORDS_BATCH ? (unsigned)(end - i) : WORDS_BATCH;
            for (unsigned k = 0; k < some; k++) {
                struct word_query *query = &queries[k];
                if (query_text(round->tokens, round->first + i + k, query)) return -1;
                words_ask(round->words, query, query->hash, query->word, query->length);
            }
            words_find_batch(round->words, queries, some, round->out + i);
        }
    return 0;
}

/* Stores in `out` the word numbers of tokens first .. first + count - 1, which are text; WORDS_ABSENT for an empty token. */
static int number_texts(struct gathered *gathered, struct gathered_words *words, const struct tokens *tokens, uint64_t first,
                        uint64_t count, uint32_t *out) {
    for (uint64_t done = 0, most = FIRST_ROUND; done < count; most *= 2) {
        struct round round = {.words = &words->words, .tokens = tokens, .first = first + done, .out = out + done};
        round.count = count - done < most ? count - done : most;
        if (interrupt_check() || pool_run(round.count < ALONE ? NULL : gathered->pool, look_up_texts, &round)) return -1;
        for (uint64_t i = 0; i < round.count; i++) {
            struct word_query query;
            if (round.out[i] != WORDS_ABSENT) continue;
            int64_t number = query_text(tokens, round.first + i, &query) ? -1 : number_of_word(gathered, words, &query);
            if (number == -1) return -1;
            if (number != NO_WORD) round.out[i] = (uint32_t)number;
        }
        done += round.count;
    }
    return 0;
}

/* Returns the number of the word of token i, which is an integer; NO_WORD if the token is empty; -1 after fail(). */
static inline int64_t number_at(struct gathered *gathered, struct gathered_words *words, const struct tokens *tokens,
                                uint64_t i) {
    int64_t integer = integer_at(tokens, tokens->data, i);
    if (tokens->kind == TOKENS_NUMBERS)
        return integer >= 0 ? number_of_integer(gathered, words, (uint64_t)integer)
                            : fail_usage("token %" PRIu64 " is %" PRId64 "; integers from 0 are wanted", i, integer);
    if ((uint64_t)integer >= words->known_count)
        return fail_usage("token %" PRIu64 " is word %" PRId64 " of a dictionary of %" PRIu64, i, integer,
                          words->known_count);
    return words->known[integer] == WORDS_ABSENT ? NO_WORD : (int64_t)words->known[integer];
}

static inline __attribute__((always_inline)) int number_all(struct gathered *gathered, struct gathered_words *words,
                                                            struct tokens tokens, uint64_t first, uint64_t count,
                                                            uint32_t *out) {
    for (uint64_t i = 0; i < count; i++) {
        int64_t number = number_at(gathered, words, &tokens, first + i);
        if (number == -1) return -1;
        out[i] = number == NO_WORD ? WORDS_ABSENT : (uint32_t)number;
    }
    return 0;
}

/* Stores in `out` the word numbers of tokens first .. first + count - 1; WORDS_ABSENT for an empty token. number_all() is
 * compiled once for each kind of integer, since this loop handles every token. */
static int numbers_of(struct gathered *gathered, struct gathered_words *words, const struct tokens *in, uint64_t first,
                      uint64_t count, uint32_t *out) {
    int known = in->kind == TOKENS_KNOWN, wide = in->bits == 64;
    struct tokens known32 = {TOKENS_KNOWN, 32, in->data, NULL, in->count},
                  known64 = {TOKENS_KNOWN, 64, in->data, NULL, in->count},
                  numbers32 = {TOKENS_NUMBERS, 32, in->data, NULL, in->count},
                  numbers64 = {TOKENS_NUMBERS, 64, in->data, NULL, in->count};
    if (in->kind == TOKENS_TEXT) return number_texts(gathered, words, in, first, count, out);
    if (known)
        return wide ? number_all(gathered, words, known64, first, count, out)
                    : number_all(gathered, words, known32, first, count, out);
    return wide ? number_all(gathered, words, numbers64, first, count, out)
                : number_all(gathered, words, numbers32, first, count, out);
}

/* Counts an occurrence of a word; `before` is the number of all tokens before it. */
static void meet(struct gathered_words *words, int64_t number, uint64_t before) {
    struct word_count *met = &words->counts[number];
    if (!met->count++) met->first = before;
}

/* How many tokens ahead a word's count is prefetched; without this most of the time is spent waiting for counts. */
enum { AHEAD = 16 };
static inline void prefetch_count(const struct gathered_words *words, uint32_t number) {
    if (number != WORDS_ABSENT) __builtin_prefetch(&words->counts[number], 1);
}

int gathered_learn(struct gathered *gathered, int lists, const struct tokens *tokens) {
    struct gathered_words *words = lists ? &gathered->lists : &gathered->items;
    uint64_t need = words->known_count + tokens->count;
    if (mem_grow(&words->known, &words->known_capacity, need, sizeof *words->known, "a dictionary") ||
        numbers_of(gathered, words, tokens, 0, tokens->count, words->known + words->known_count))
        return -1;
    words->known_count = need;
    return 0;
}

/* Reserves memory for `count` more numbers. */
static int grow(struct gathered *gathered, uint64_t count) {
    return mem_grow(&gathered->numbers, &gathered->capacity, gathered->count + count, sizeof *gathered->numbers, "the numbers of words");
}

/* ---- sentences ---- */

/* Begins a line, for which memory is reserved, with the name of its list if lists have rows. name: the name's number; WORDS_ABSENT: the list is
 * named by its number among all lists, from 0. */
static int begin_line(struct gathered *gathered, uint32_t name) {
    gathered->line_open = 1;
    if (!gathered->options->list_rows) return 0;
    int64_t number = name == WORDS_ABSENT ? number_of_integer(gathered, &gathered->lists, gathered->named) : name;
    if (number < 0) return -1;
    meet(&gathered->lists, number, gathered->named++);
    gathered->numbers[gathered->count++] = (uint32_t)number;
    return 0;
}

static void end_line(struct gathered *gathered) {
    gathered->numbers[gathered->count++] = NUMBERED_END;
    gathered->sentences++;
    gathered->line_open = 0;
}

/* Appends the words numbers[count], and counts them. No number may be WORDS_ABSENT. `numbers` may point into gathered->numbers, behind the place
 * where they are stored. */
static void keep_words(struct gathered *gathered, const uint32_t *numbers, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (i + AHEAD < count) prefetch_count(&gathered->items, numbers[i + AHEAD]);
        meet(&gathered->items, numbers[i], gathered->tokens++);
        gathered->numbers[gathered->count++] = numbers[i];
    }
}

int gathered_end_line(struct gathered *gathered) {
    if (!gathered->line_open) return 0;
    if (grow(gathered, 1)) return -1;
    end_line(gathered);
    return 0;
}

int gathered_take_sentences(struct gathered *gathered, const struct tokens *tokens, const uint64_t *starts,
                            uint64_t count, const struct tokens *names) {
    if (!count) return 0;
    if (gathered_end_line(gathered)) return -1;
    uint64_t first = starts[0], all = starts[count] - first;
    for (uint64_t i = 0; i < count; i++)
        if (starts[i + 1] < starts[i] || starts[i + 1] > tokens->count)
            return fail_usage("sentence %" PRIu64 " goes from token %" PRIu64 " to %" PRIu64 " of %" PRIu64, i,
                              starts[i], starts[i + 1], tokens->count);
    if (!gathered->options->list_rows) names = NULL;
    if (interrupt_check() || grow(gathered, all + 3 * count)) return -1;
    /* `words` are stored at the end of the reserved memory, where the lines, which need two more numbers each, never overwrite a word before it is
     * read */
    uint32_t *words = gathered->numbers + gathered->count + 2 * count, *called = words + all;
    if ((names && numbers_of(gathered, &gathered->lists, names, 0, count, called)) ||
        numbers_of(gathered, &gathered->items, tokens, first, all, words))
        return -1;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length = starts[i + 1] - starts[i];
        if (names && called[i] == WORDS_ABSENT) return fail("the name of list %" PRIu64 " is empty", gathered->named);
        for (uint64_t at = 0; at < length; at++)
            if (words[at] == WORDS_ABSENT)
                return fail("token %" PRIu64 " of sentence %" PRIu64 " is empty: leave empty tokens out (in Python, text.split() makes "
                            "none, and text.split(' ') does)",
                            at, gathered->sentences);
        if (begin_line(gathered, names ? called[i] : WORDS_ABSENT)) return -1;
        keep_words(gathered, words, length);
        end_line(gathered);
        words += length;
        INVARIANT(gathered->numbers + gathered->count <= words); /* lines overwrite only words that were read */
    }
    return 0;
}

/* ---- lines of text ---- */

/* A part of a text: whole words. */
struct text_part {
    const char *begin, *end;
    uint32_t *numbers; /* [count] numbers of the words; WORDS_ABSENT if a word is new */
    uint64_t count, numbers_capacity;
    const char **new_words; /* [new_count] where each new word begins */
    uint64_t new_count, new_capacity;
    uint64_t *ends; /* [lines] number of the part's words before the end of each line */
    uint64_t lines, ends_capacity;
};
enum { PARTS = 64, PART_BYTES = 1 << 14, PART_BYTES_MOST = 1 << 20 };

/* Parts of a text in which threads look up words at the same time. */
struct text_round {
    const struct words *words;
    struct text_part parts[PARTS];
    unsigned count;
    _Atomic uint64_t next;
};

static const char *word_end(const char *at, const char *end) {
    while (at < end && !token_is_white(*at)) at++;
    return at;
}

/* Looks up the words of the last `count` queries of the part, and stores their numbers. */
static int look_up_words(const struct words *words, struct text_part *part, const struct word_query *queries, unsigned count) {
    if (mem_grow(&part->numbers, &part->numbers_capacity, part->count + count, sizeof *part->numbers, "the words of a text") ||
        mem_grow(&part->new_words, &part->new_capacity, part->new_count + count, sizeof *part->new_words, "the new words of a text"))
        return -1;
    uint32_t *numbers = part->numbers + part->count;
    words_find_batch(words, queries, count, numbers);
    for (unsigned i = 0; i < count; i++)
        if (numbers[i] == WORDS_ABSENT) part->new_words[part->new_count++] = queries[i].word;
    part->count += count;
    return 0;
}

static int look_up_part(const struct words *words, struct text_part *part) {
    struct word_query queries[WORDS_BATCH];
    unsigned asked = 0;
    part->count = part->new_count = part->lines = 0;
    for (const char *at = part->begin; at < part->end;) {
        if (*at == '\n') {
            if (mem_grow(&part->ends, &part->ends_capacity, part->lines + 1, sizeof *part->ends, "the lines of a text")) return -1;
            part->ends[part->lines++] = part->count + asked;
        }
        if (token_is_white(*at)) {
            at++;
            continue;
        }
        const char *end = word_end(at, part->end);
        words_ask(words, &queries[asked++], words_hash(at, (uint64_t)(end - at)), at, (uint64_t)(end - at));
        at = end;
        if (asked < WORDS_BATCH) continue;
        if (look_up_words(words, part, queries, asked)) return -1;
        asked = 0;
    }
    return look_up_words(words, part, queries, asked);
}

static int look_up_parts(void *context, unsigned worker) {
    struct text_round *round = context;
    uint64_t first, end;
    while (pool_take(&round->next, round->count, 1, &first, &end))
        if (look_up_part(round->words, &round->parts[first])) return -1;
    return 0;
}

/* Appends a part's words and lines to the data, and adds its new words to the dictionary. */
static int keep_part(struct gathered *gathered, const struct text_part *part, const char *end) {
    const char **new_word = part->new_words;
    for (uint64_t i = 0; i < part->count; i++) {
        if (part->numbers[i] != WORDS_ABSENT) continue;
        const char *word = *new_word++;
        uint64_t length = (uint64_t)(word_end(word, end) - word);
        int64_t number = number_of_word(gathered, &gathered->items, &(struct word_query){word, length, words_hash(word, length)});
        if (number < 0) return -1;
        part->numbers[i] = (uint32_t)number;
    }
    if (grow(gathered, part->count + 2 * part->lines + 2)) return -1;
    for (uint64_t line = 0, at = 0; line <= part->lines; line++) {
        uint64_t stop = line < part->lines ? part->ends[line] : part->count;
        if ((stop > at || line < part->lines) && !gathered->line_open && begin_line(gathered, WORDS_ABSENT)) return -1;
        keep_words(gathered, part->numbers + at, stop - at);
        if (line < part->lines) end_line(gathered);
        at = stop;
    }
    return 0;
}

int gathered_take_text(struct gathered *gathered, const char *text, uint64_t bytes) {
    struct text_round round = {.words = &gathered->items.words};
    const char *end = text + bytes;
    int result = 0;
    for (uint64_t most = PART_BYTES; !result && text < end; most = most < PART_BYTES_MOST ? 2 * most : most) {
        round.next = 0;
        for (round.count = 0; round.count < PARTS && text < end; round.count++) {
            struct text_part *part = &round.parts[round.count];
            part->begin = text;
            part->end = text = word_end((uint64_t)(end - text) < most ? end : text + most, end);
        }
        result = interrupt_check() || pool_run(gathered->pool, look_up_parts, &round) ? -1 : 0;
        for (unsigned i = 0; !result && i < round.count; i++) result = keep_part(gathered, &round.parts[i], round.parts[i].end);
    }
    for (unsigned i = 0; i < PARTS; i++) {
        mem_free(round.parts[i].numbers, round.parts[i].new_words, round.parts[i].ends);
    }
    return result;
}

/* ---- pairs ---- */

/* Fails if a rating that is used is missing (NaN) or cannot be a weight. Ratings are used to keep pairs or to weigh them. */
static int check_ratings(const struct gathered *gathered, const double *ratings, uint64_t count) {
    const char *key = gathered->options->pair_weights ? "weights" : "min_rating";
    float weight;
    if (!ratings) return fail("the pairs have no ratings, and corpus.%s is set", key);
    for (uint64_t i = 0; i < count; i++) {
        if (isnan(ratings[i]))
            return fail("pair %" PRIu64 " of the data, counted from 0, has no rating, and corpus.%s is set", gathered->left.rows + i, key);
        if (!(ratings[i] < gathered->options->min_rating) && pairs_weight(gathered->options->pair_weights, ratings[i], &weight))
            return fail("the rating %g of pair %" PRIu64 " of the data, counted from 0, cannot be its weight (corpus.weights); wanted 0 or a "
                        "positive number that 32 bits hold (1.2e-38 to 3.4e38)",
                        ratings[i], gathered->left.rows + i);
    }
    return 0;
}

/* Collects ratings that the options do not use, so that ratings_note() can report that they have no effect. */
static int meet_ratings(struct gathered *gathered, const double *ratings, uint64_t count) {
    for (uint64_t i = 0; ratings && i < count; i++)
        if (!(gathered->zeros_out && ratings[i] == 0) && ratings_meet(&gathered->ratings, ratings[i])) return -1;
    return 0;
}

/* Adds a pair, unless it has no list or no item. */
static void keep_pair(struct gathered *gathered, uint32_t list, uint32_t item, float weight) {
    if (list == WORDS_ABSENT || item == WORDS_ABSENT) {
        gathered->left.missing++;
        return;
    }
    meet(&gathered->items, item, gathered->tokens);
    meet(&gathered->lists, list, gathered->tokens++);
    gathered->named++;
    gathered->numbers[gathered->count++] = list;
    gathered->numbers[gathered->count++] = item;
    if (gathered->options->pair_weights) memcpy(&gathered->numbers[gathered->count++], &weight, sizeof weight);
}

int gathered_take_pairs(struct gathered *gathered, const struct tokens *lists, const struct tokens *items,
                        const double *ratings) {
    double least = gathered->options->min_rating;
    if (lists->count != items->count)
        return fail_usage("%" PRIu64 " lists and %" PRIu64 " items are no pairs", lists->count, items->count);
    enum pair_weights weights = gathered->options->pair_weights;
    int needed = !isinf(least) || weights;
    if (needed ? check_ratings(gathered, ratings, items->count) : meet_ratings(gathered, ratings, items->count)) return -1;
    unsigned fields = numbered_fields(gathered->options);
    if (interrupt_check() || grow(gathered, (fields + 1) * items->count)) return -1;
    uint32_t *names = gathered->numbers + gathered->count + fields * items->count, *ids = names - items->count; /* stored behind the memory that
                                                                                                                 * the pairs will fill, so that no
                                                                                                                 * name is overwritten before it is
                                                                                                                 * read */
    if (numbers_of(gathered, &gathered->items, items, 0, items->count, ids) ||
        numbers_of(gathered, &gathered->lists, lists, 0, lists->count, names))
        return -1;
    for (uint64_t i = 0; i < items->count; i++) {
        float weight = 1;
        if (i + AHEAD < items->count) {
            prefetch_count(&gathered->items, ids[i + AHEAD]);
            prefetch_count(&gathered->lists, names[i + AHEAD]);
        }
        gathered->left.rows++;
        if (ratings && ratings[i] < least) {
            gathered->left.low++;
            continue;
        }
        if (weights) pairs_weight(weights, ratings[i], &weight);
        if (weight == 0 || (gathered->zeros_out && !needed && ratings && ratings[i] == 0))
            gathered->left.zeros++;
        else
            keep_pair(gathered, names[i], ids[i], weight);
    }
    return 0;
}

/* ---- edges ---- */

/* Stores the weight of edge i of a block; 1 if edges have no weights. Returns 0, or -1 after fail(). */
static int weight_at(const struct gathered *gathered, const double *weights, uint64_t i, float *weight) {
    *weight = 1;
    if (!weights || gathered->options->weights == WEIGHTS_NO || !edges_weight(weights[i], weight)) return 0;
    return fail("the weight %g of edge %" PRIu64 " of the data, counted from 0, is not a positive finite number that 32 bits hold (1.2e-38 to "
                "3.4e38); graph.weights = no counts all edges alike",
                weights[i], gathered->tokens / 2 + gathered->left.loops + gathered->left.zeros);
}

int gathered_take_edges(struct gathered *gathered, const struct tokens *from, const struct tokens *to, const double *weights) {
    uint64_t count = from->count;
    if (count != to->count) return fail_usage("%" PRIu64 " nodes and %" PRIu64 " nodes are no edges", count, to->count);
    if (!count) return 0;
    if (gathered->tokens && !weights != !gathered->weighted) return fail_usage("some edges have weights, and others have none");
    gathered->weighted = weights != NULL;
    unsigned kept = gathered->options->weights != WEIGHTS_NO && weights ? 3 : 2;
    if (interrupt_check() || grow(gathered, (kept + 1) * count)) return -1;
    uint32_t *others = gathered->numbers + gathered->count + kept * count, *ends = others - count; /* stored behind the memory that the edges will
                                                                                                    * fill, so that none is overwritten before it
                                                                                                    * is read */
    if (numbers_of(gathered, &gathered->items, from, 0, count, ends) ||
        numbers_of(gathered, &gathered->items, to, 0, count, others))
        return -1;
    for (uint64_t i = 0; i < count; i++) {
        float weight;
        const uint32_t edge[] = {ends[i], others[i]};
        if (weight_at(gathered, weights, i, &weight)) return -1;
        if (edge[0] == WORDS_ABSENT || edge[1] == WORDS_ABSENT) return fail("a node of edge %" PRIu64 " is empty", gathered->tokens / 2);
        gathered->left.loops += edge[0] == edge[1];
        gathered->left.zeros += edge[0] != edge[1] && weight == 0;
        if (edge[0] == edge[1] || weight == 0) continue;
        keep_words(gathered, edge, 2);
        if (kept == 3) memcpy(&gathered->numbers[gathered->count++], &weight, sizeof weight);
    }
    return 0;
}

/* ---- triples ---- */

int gathered_take_triples(struct gathered *gathered, const struct tokens *heads, const struct tokens *relations,
                          const struct tokens *tails) {
    uint64_t count = heads->count;
    if (count != relations->count || count != tails->count)
        return fail_usage("%" PRIu64 " heads, %" PRIu64 " relations and %" PRIu64 " tails; wanted the same number of each", count,
                          relations->count, tails->count);
    if (!count) return 0;
    if (interrupt_check() || grow(gathered, 5 * count)) return -1;
    uint32_t *from = gathered->numbers + gathered->count + 2 * count, *to = from + count, *over = to + count; /* stored behind the memory that the
                                                                                                               * triples will fill, so that none is
                                                                                                               * overwritten before it is read */
    if (numbers_of(gathered, &gathered->items, heads, 0, count, from) || numbers_of(gathered, &gathered->items, tails, 0, count, to) ||
        numbers_of(gathered, &gathered->lists, relations, 0, count, over))
        return -1;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t head = from[i], tail = to[i];
        if (head == WORDS_ABSENT || over[i] == WORDS_ABSENT || tail == WORDS_ABSENT)
            return fail("the %s of triple %" PRIu64 " is empty", head == WORDS_ABSENT ? "head" : tail == WORDS_ABSENT ? "tail" : "relation",
                        gathered->named);
        keep_words(gathered, &head, 1);
        meet(&gathered->lists, over[i], gathered->named++);
        gathered->numbers[gathered->count++] = over[i];
        keep_words(gathered, &tail, 1);
    }
    return 0;
}

/* ---- all data ---- */

static uint64_t hash_words(const struct gathered_words *words, uint64_t sum) {
    return words->words.used ? XXH3_64bits_withSeed(words->words.bytes, words->words.used, sum) : sum;
}

uint64_t gathered_fingerprint(const struct gathered *g) {
    uint64_t sum = hash_words(&g->lists, hash_words(&g->items, g->sentences));
    return g->count ? XXH3_64bits_withSeed(g->numbers, g->count * sizeof *g->numbers, sum) : sum;
}

int gathered_fields(const struct gathered *data, gathered_take *take, void *user) {
    const struct corpus_format_properties *format = &corpus_formats[data->options->format];
    int lines = !format->edges && !format->scattered && !format->triples;
    int weighed = format->edges ? data->weighted && data->options->weights != WEIGHTS_NO : data->options->pair_weights != PAIR_WEIGHTS_NONE;
    uint64_t terms = lines ? UINT64_MAX : format->triples ? TRIPLE_TERMS : 2, index = 0;
    for (uint64_t i = 0; i < data->count; i++) {
        uint32_t number = data->numbers[i];
        if (index == terms || (lines && number == NUMBERED_END)) { /* a weight, or a line's end */
            index = 0;
            continue;
        }
        int named = lines ? data->options->list_rows && !index : corpus_part(format, index) == PART_NAME;
        if (lines && named && data->numbers[i + 1] == NUMBERED_END) continue; /* a list without items */
        struct corpus_field field = {.part = named || (lines && !index) ? PART_NAME : PART_WORD, .weight = 1};
        field.text = words_get(named ? &data->lists.words : &data->items.words, number, &field.length);
        if (take(user, &field)) return -1;
        index = index + 1 < terms || weighed ? index + 1 : 0;
    }
    return 0;
}
