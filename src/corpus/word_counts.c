#include "word_counts.h"

#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "fields.h"
#include "gathered.h"
#include "integers.h"
#include "vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TALLY_MOST = 3 << 14 }; /* largest number of different words: three quarters of 65,536 slots, which take 512 KiB */

/* The words of a worker's block, up to as many as fit its core's cache. `counts` and `hashes` are indexed by a word's number in
 * `words`. */
struct tally {
    struct words words;
    struct word_count counts[TALLY_MOST];
    uint64_t hashes[TALLY_MOST];
    uint32_t by_shard[TALLY_MOST]; /* numbers of the words, sorted by shard */
    struct word_query asked[WORDS_BATCH]; /* [waiting]: tokens of the block that are still to be counted */
    uint64_t lines[WORDS_BATCH];          /* [waiting]: the line of each token in `asked` */
    unsigned waiting;                     /* number of tokens in `asked` */
    uint32_t integers[WORDS_BATCH];       /* [integers_waiting]: tokens that are integers and still to be counted */
    uint64_t places[WORDS_BATCH];         /* [integers_waiting]: the byte of the corpus where each of them is */
    unsigned integers_waiting;
    struct corpus_block block;
};

/* State of counting one corpus; the workers share it. */
struct counting {
    struct word_counts *counts;
    struct corpus *corpus;
    const struct corpus_options *options;
    enum token_part part; /* which fields are counted: words or names of lists */
    struct integer_counts integers;
    _Atomic uint64_t next; /* the next integer that put_integers() moves to the shards */
    struct progress progress;
    _Atomic int failed; /* 1: a worker failed, so the other workers stop */
};

/* ---- from the tally to the shards ---- */

/* Adds the counts of `count` words of the tally to the shard. known[i]: number of word i in the shard, or WORDS_ABSENT. */
static int add_batch(struct word_shard *shard, const struct tally *tally, const uint32_t *numbers, unsigned count,
                     const struct word_query *queries, const uint32_t *known) {
    for (unsigned i = 0; i < count; i++) {
        struct word_count met = tally->counts[numbers[i]];
        if (known[i] != WORDS_ABSENT) {
            struct word_count *word = &shard->counts[known[i]];
            word->count += met.count;
            if (met.first < word->first) word->first = met.first;
            continue;
        }
        /* Memory for the count is reserved before the word is added: a word in the shard must always have a count. */
        if (mem_grow(&shard->counts, &shard->counts_capacity, shard->words.size + 1, sizeof *shard->counts,
                     "the words' counts"))
            return -1;
        int64_t added = words_add(&shard->words, queries[i].hash, queries[i].word, queries[i].length);
        if (added < 0) return -1;
        shard->counts[added] = met;
    }
    return 0;
}

static int flush_shard(struct word_shard *shard, const struct tally *tally, const uint32_t *numbers, uint64_t count) {
    struct word_query queries[WORDS_BATCH];
    uint32_t known[WORDS_BATCH];
    int result = 0;
    pthread_mutex_lock(&shard->lock);
    for (uint64_t at = 0; at < count && !result; at += WORDS_BATCH) {
        unsigned batch = count - at < WORDS_BATCH ? (unsigned)(count - at) : WORDS_BATCH;
        for (unsigned i = 0; i < batch; i++) {
            uint64_t length;
            const char *word = words_get(&tally->words, numbers[at + i], &length);
            words_ask(&shard->words, &queries[i], tally->hashes[numbers[at + i]], word, length);
        }
        words_find_batch(&shard->words, queries, batch, known);
        result = add_batch(shard, tally, numbers + at, batch, queries, known);
    }
    pthread_mutex_unlock(&shard->lock);
    return result;
}

/* Adds the tally's words to the shards, one locked at a time, and empties the tally. */
static int tally_flush(struct counting *counting, struct tally *tally) {
    uint64_t starts[WORD_SHARDS + 1] = {0}, next[WORD_SHARDS], size = tally->words.size;
    for (uint64_t n = 0; n < size; n++) starts[(tally->hashes[n] >> WORD_SHARD_SHIFT) + 1]++;
    for (int s = 0; s < WORD_SHARDS; s++) {
        next[s] = starts[s];
        starts[s + 1] += starts[s];
    }
    for (uint64_t n = 0; n < size; n++) tally->by_shard[next[tally->hashes[n] >> WORD_SHARD_SHIFT]++] = (uint32_t)n;
    for (unsigned i = 0; i < WORD_SHARDS; i++) {
        unsigned s = (i + (unsigned)tally->block.number * 17) % WORD_SHARDS; /* workers begin at different shards */
        const uint32_t *numbers = tally->by_shard + starts[s];
        if (flush_shard(&counting->counts->shards[s], tally, numbers, starts[s + 1] - starts[s])) return -1;
    }
    words_clear(&tally->words);
    return 0;
}

/* ---- from a block to the tally ---- */

/* Counts a token whose word was not in the tally when the batch was looked up. An earlier token of the batch may have added it
 * since. */
static int count_new(struct counting *counting, struct tally *tally, const struct word_query *query, uint64_t line) {
    uint64_t before = tally->words.size, id;
    int64_t number = words_add(&tally->words, query->hash, query->word, query->length);
    if (number < 0) return -1;
    if ((uint64_t)number < before) {
        tally->counts[number].count++;
        return 0;
    }
    tally->counts[number] = (struct word_count){1, tally->block.offset + (uint64_t)(query->word - tally->block.bytes)};
    tally->hashes[number] = query->hash;
    if (counting->part == PART_WORD && counting->options->order == ORDER_GIVEN && vocab_given_id(query->word, query->length, &id))
        return fail("'%s' line %" PRIu64 ": '%.*s' is not an id; corpus.order = given wants numbers from 0 to %u",
                    tally->block.path, line, text_shown(query->length), query->word, WORDS_MOST - 1);
    return 0;
}

/* Counts the tokens in tally->asked. If the tally might become too full, it is emptied into the shards first. */
static int count_waiting(struct counting *counting, struct tally *tally) {
    uint32_t numbers[WORDS_BATCH];
    unsigned waiting = tally->waiting;
    if (tally->words.size + waiting > TALLY_MOST && tally_flush(counting, tally)) return -1;
    tally->waiting = 0;
    words_find_batch(&tally->words, tally->asked, waiting, numbers);
    for (unsigned i = 0; i < waiting; i++) {
        if (numbers[i] != WORDS_ABSENT) tally->counts[numbers[i]].count++;
        else if (count_new(counting, tally, &tally->asked[i], tally->lines[i])) return -1;
    }
    return 0;
}

static void count_integers(struct counting *counting, struct tally *tally) {
    for (unsigned i = 0; i < tally->integers_waiting; i++)
        integer_counts_add(&counting->integers, tally->integers[i], tally->places[i]);
    tally->integers_waiting = 0;
}

static void count_integer(struct counting *counting, struct tally *tally, uint32_t integer, const char *word) {
    __builtin_prefetch(&counting->integers.counts[integer], 1);
    tally->places[tally->integers_waiting] = tally->block.offset + (uint64_t)(word - tally->block.bytes);
    tally->integers[tally->integers_waiting++] = integer;
    if (tally->integers_waiting == WORDS_BATCH) count_integers(counting, tally);
}

static int count_word(struct counting *counting, struct tally *tally, const char *word, uint64_t length,
                      uint64_t line) {
    uint32_t integer = counting->integers.size ? integer_of(word, length) : NO_INTEGER;
    if (integer < counting->integers.size) {
        count_integer(counting, tally, integer, word);
        return 0;
    }
    tally->lines[tally->waiting] = line;
    words_ask(&tally->words, &tally->asked[tally->waiting++], words_hash(word, length), word, length);
    return tally->waiting == WORDS_BATCH ? count_waiting(counting, tally) : 0;
}

static int count_fields(struct counting *counting, struct tally *tally) {
    struct corpus_fields fields;
    struct corpus_field field;
    int more;
    corpus_fields_start(&fields, &tally->block, counting->options);
    while ((more = corpus_fields_next(&fields, &field)) > 0)
        if (field.text && field.part == counting->part &&
            count_word(counting, tally, field.text, field.length, field.line))
            return -1;
    return more;
}

static int count_blocks(void *context, unsigned worker) {
    struct counting *counting = context;
    struct tally *tally = mem_zalloc(1, sizeof *tally, "counting");
    int more = -1;
    if (!tally) return -1;
    while (!counting->failed && (more = corpus_next(counting->corpus, &tally->block)) > 0) {
        more = count_fields(counting, tally);
        count_integers(counting, tally);
        if (!more) more = count_waiting(counting, tally) || tally_flush(counting, tally) ? -1 : 0;
        if (more) break;
        progress_show(&counting->progress, corpus_done(counting->corpus), corpus_size(counting->corpus), "B");
    }
    if (more) counting->failed = 1;
    words_release(&tally->words);
    corpus_block_release(&tally->block);
    free(tally);
    return more;
}

/* ---- from integers to the shards ---- */

enum { INTEGERS_AT_ONCE = 1 << 16 };

static int put_integer(struct counting *counting, struct tally *tally, uint64_t integer) {
    const struct integer_count *met = &counting->integers.counts[integer];
    char digits[24];
    if (!met->count) return 0;
    if (tally->words.size == TALLY_MOST && tally_flush(counting, tally)) return -1;
    uint64_t length = (uint64_t)snprintf(digits, sizeof digits, "%" PRIu64, integer), hash = words_hash(digits, length);
    int64_t number = words_add(&tally->words, hash, digits, length);
    if (number < 0) return -1;
    tally->counts[number] = (struct word_count){met->count, ~met->after};
    tally->hashes[number] = hash;
    return 0;
}

static int put_integers(void *context, unsigned worker) {
    struct counting *counting = context;
    struct tally *tally = mem_zalloc(1, sizeof *tally, "counting");
    uint64_t integer, end;
    int result = tally ? 0 : -1;
    while (!result && pool_take(&counting->next, counting->integers.size, INTEGERS_AT_ONCE, &integer, &end)) {
        for (; integer < end && !result; integer++) result = put_integer(counting, tally, integer);
        tally->block.number++; /* makes tally_flush() begin at another shard */
    }
    if (!result) result = tally_flush(counting, tally);
    if (tally) words_release(&tally->words);
    free(tally);
    return result;
}

/* ---- the whole corpus ---- */

/* Uses the counts that gathered data already has. The words are borrowed from it (counts->lent); the counts are copied, since
 * vocab_choose() frees them. */
static int take_gathered(struct word_counts *counts, struct gathered_words *words) {
    struct word_shard *shard = &counts->shards[0];
    uint64_t size = words->words.size;
    shard->counts = mem_alloc(size ? size : 1, sizeof *shard->counts, "the words' counts");
    if (!shard->counts) return -1;
    if (size) memcpy(shard->counts, words->counts, size * sizeof *shard->counts);
    counts->lent = words;
    shard->words = words->words;
    return 0;
}

/* Returns 1 if most words are likely to be integers. In text few words are, and a table of integers would be spread thinly over
 * its memory. */
static int has_integers(const struct corpus_options *options) {
    return corpus_formats[options->format].edges || options->order == ORDER_GIVEN;
}

int word_counts_init(struct word_counts *counts, struct corpus *corpus, const struct corpus_options *options,
                     enum token_part part, struct pool *pool) {
    struct counting counting = {.counts = counts, .corpus = corpus, .options = options, .part = part};
    *counts = (struct word_counts){0};
    for (int s = 0; s < WORD_SHARDS; s++) pthread_mutex_init(&counts->shards[s].lock, NULL);
    struct gathered *gathered = corpus_gathered(corpus);
    if (gathered) return take_gathered(counts, part == PART_WORD ? &gathered->items : &gathered->lists);
    corpus_read_as(corpus, options);
    corpus_rewind(corpus);
    progress_start(&counting.progress, "counting", options->report_seconds);
    if (has_integers(options)) integer_counts_make(&counting.integers, corpus_size(corpus));
    int result = pool_run(pool, count_blocks, &counting);
    progress_end(&counting.progress);
    if (!result) result = pool_run(pool, put_integers, &counting);
    integer_counts_release(&counting.integers);
    return result;
}

void word_counts_release(struct word_counts *counts) {
    if (counts->lent) counts->lent->words = counts->shards[0].words, counts->shards[0].words = (struct words){0};
    for (int s = 0; s < WORD_SHARDS; s++) {
        words_release(&counts->shards[s].words);
        free(counts->shards[s].counts);
        pthread_mutex_destroy(&counts->shards[s].lock);
    }
}
