#include "encode.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "fields.h"
#include "phrases.h"
#include "word_counts.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void encoded_release(struct encoded *encoded) {
    mem_free(encoded->memory, encoded->ends);
}

/* State of encoding one block. */
struct encoder {
    struct encoded *out;
    int adjacency;
    uint64_t line_start; /* index in out->ids of the first id of the current line */
    int line_began;      /* 1: the current line began in this block; 0: in an earlier one */
    int has_target;      /* for lines with targets: 1 if the current line's first token was read, in this block or an earlier one */
};

int encode_are_rows(const struct corpus_options *options) {
    return options->order == ORDER_GIVEN && !(options->vocab && *options->vocab);
}

static uint32_t row_of_number(const struct vocab *vocab, const char *word, uint64_t length) {
    uint64_t id;
    int known = !vocab_given_id(word, length, &id) && id < vocab->size && vocab_count(vocab, id);
    return known ? (uint32_t)id : WORDS_ABSENT;
}

void encode_rows(const struct vocab *vocab, const struct corpus_options *options, const struct word_query *queries, unsigned count,
                 uint32_t *rows) {
    if (!encode_are_rows(options)) {
        words_find_batch(&vocab->words, queries, count, rows);
        return;
    }
    for (unsigned i = 0; i < count; i++) rows[i] = row_of_number(vocab, queries[i].word, queries[i].length);
}

static int take_line_end(struct encoder *encoder) {
    struct encoded *out = encoder->out;
    uint64_t least = encoder->adjacency && encoder->line_began; /* a line that has no id, or only a target, is dropped */
    if (encoder->line_began && out->count - encoder->line_start <= least) out->count = encoder->line_start;
    if (!encoder->line_began || out->count > encoder->line_start) {
        if (mem_grow(&out->ends, &out->ends_capacity, out->lines + 1, sizeof *out->ends, "the lines of a block"))
            return -1;
        out->ends[out->lines++] = out->count;
    }
    encoder->line_start = out->count;
    encoder->line_began = 1;
    encoder->has_target = 0;
    out->target_lost = 0;
    return 0;
}

/* Handles the next id of a line. out->ids must have memory for it. */
static inline void take_id(struct encoder *encoder, uint32_t id) {
    struct encoded *out = encoder->out;
    int target = encoder->adjacency && !encoder->has_target;
    encoder->has_target = 1;
    if (target && id == WORDS_ABSENT) out->target_lost = 1;
    out->ids[out->count] = id;
    out->count += id != WORDS_ABSENT && !out->target_lost;
}

/* Prepares to encode `count` ids. */
static int encoder_start(struct encoder *encoder, const struct corpus_options *options, struct encoded *out, uint64_t count) {
    *encoder = (struct encoder){.out = out};
    encoder->adjacency = encode_has_targets(options) && !corpus_formats[options->format].scattered;
    encoder->line_began = !out->continues;
    encoder->has_target = out->continues;
    out->count = out->lines = 0;
    out->target_lost = 0;
    if (mem_grow(&out->memory, &out->memory_capacity, count + 2, sizeof *out->memory, "the ids of a block")) return -1;
    out->ids = out->memory + 1;
    return 0;
}

/* Encodes words first .. end - 1 of a numbered corpus into the arrays of `encoded`, whose earlier contents are overwritten. Not for scattered
 * lists. Returns 0, or -1 after fail(). */
static int encode_numbered(struct encoded *encoded, const struct numbered *numbered, const struct corpus_options *options, uint64_t first,
                    uint64_t end) {
    const uint32_t *numbers = numbered->numbers, *rows = numbered->items;
    struct encoder encoder;
    encoded->continues = first && numbers[first - 1] != NUMBERED_END;
    encoded->line_open = numbers[end - 1] != NUMBERED_END;
    if (encoder_start(&encoder, options, encoded, end - first)) return -1;
    for (uint64_t i = first; i < end; i++) {
        uint32_t number = numbers[i];
        if (number == NUMBERED_END) {
            if (take_line_end(&encoder)) return -1;
        } else if (options->list_rows && !encoder.has_target) {
            take_id(&encoder, numbered->lists[number]);
        } else {
            take_id(&encoder, rows ? rows[number] : number);
        }
    }
    return 0;
}

/* ---- the numbers of a corpus ---- */

/* Returns the row of a list or a relation; WORDS_ABSENT if it has none. */
static uint32_t row_of_name(const struct vocab *vocab, const struct corpus_options *options, const char *name, uint64_t length) {
    return (uint32_t)(corpus_has_relation_words(options) ? vocab_find_prefixed(vocab, VOCAB_RELATION, name, length)
                                                         : vocab_find_list(vocab, name, length)); /* as uint32_t, -1 is WORDS_ABSENT */
}

/* Returns an array with the row of each list's name, indexed by the name's number; NULL after fail(). */
static uint32_t *rows_of_lists(const struct word_counts *names, const struct vocab *vocab, const struct corpus_options *options, uint64_t size) {
    uint32_t *rows = mem_alloc(size + 1, sizeof *rows, "the rows of lists");
    char digits[WORD_DIGITS];
    uint64_t length;
    if (!rows) return NULL;
    memset(rows, 0xff, size * sizeof *rows);
    for (uint64_t number = 0; number < size; number++) {
        uint64_t other = number - names->integers.size;
        if (number < names->integers.size ? !names->integers.counts[number].count
                                          : other >> WORD_SHARD_BITS >= names->shards[other & (WORD_SHARDS - 1)].words.size)
            continue;
        const char *name = word_counts_word(names, number, digits, &length);
        rows[number] = row_of_name(vocab, options, name, length);
    }
    return rows;
}

/* Numbers a corpus whose vocabulary is known. */
static int number_known(struct numbered *numbered, struct corpus *corpus, const struct corpus_options *options,
                        const struct vocab *vocab, struct pool *pool) {
    struct word_counts names = {0};
    int named = numbered_has_names(options);
    struct word_counts_wanted wanted = {NULL, named ? &names : NULL, vocab, numbered};
    int result = word_counts_read(&wanted, corpus, options, pool);
    if (!result && named) numbered->list_numbers = word_counts_numbers(&names);
    if (!result && options->list_rows) result = (numbered->lists = rows_of_lists(&names, vocab, options, numbered->list_numbers)) ? 0 : -1;
    if (named) word_counts_release(&names);
    return result;
}

/* Makes *own from gathered data, whose words are numbered already: finds the row of each number. */
static int give_rows(struct numbered *own, const struct gathered *data, const struct corpus_options *options, const struct vocab *vocab) {
    const struct words *items = &data->items.words, *lists = &data->lists.words;
    uint64_t length;
    own->numbers = data->numbers;
    own->count = data->count;
    own->left = data->left;
    own->list_numbers = lists->size;
    own->items = mem_alloc(items->size + 1, sizeof *own->items, "the rows of words");
    own->lists = options->list_rows ? mem_alloc(lists->size + 1, sizeof *own->lists, "the rows of lists") : NULL;
    if (!own->items || (options->list_rows && !own->lists)) return -1;
    for (uint64_t n = 0; n < items->size; n++) {
        const char *word = words_get(items, n, &length);
        own->items[n] = encode_are_rows(options) ? row_of_number(vocab, word, length) : (uint32_t)vocab_find(vocab, word, length);
    }
    for (uint64_t n = 0; own->lists && n < lists->size; n++) {
        const char *name = words_get(lists, n, &length);
        own->lists[n] = row_of_name(vocab, options, name, length);
    }
    return 0;
}

int encode_numbers(const struct numbered **numbered, struct numbered *own, struct corpus *corpus,
                         const struct corpus_options *options, const struct vocab *vocab, const char *path, struct pool *pool) {
    *own = (struct numbered){.fd = -1};
    *numbered = corpus_numbered(corpus);
    if (*numbered && (*numbered)->complete) return 0;
    *numbered = own;
    if (corpus_gathered(corpus)) return give_rows(own, corpus_gathered(corpus), options, vocab);
    return numbered_open(own, path) || number_known(own, corpus, options, vocab, pool) ? -1 : 0;
}

/* Sorts triples by head: a counting sort, which reads all triples once for each range of heads whose triples fit into memory. The triples of a
 * head are then sorted by relation and tail. All threads count, place and sort. Equal input has only one sorted order, so the stream does not
 * depend on the number of threads. */

enum { TRIPLES = 1 << 16, HEADS = 1 << 10, LEAST_AT_ONCE = 32 << 20, SHARE_OF_MEMORY = 3 };

/* State of encoding; the workers share it. */
struct sorting {
    const struct triples_met *met;
    struct idstream_writer *writer;
    uint64_t *ends;      /* [entities + 1] first the number of a head's triples; for heads of the current range, the index in `keys` where its
                          * triples end */
    uint64_t first, end; /* heads first .. end - 1 are the current range */
    uint64_t *keys;      /* the range's triples, ordered by head: relation << 32 | tail */
    uint64_t *kept;      /* [heads of the range] number of a head's distinct triples */
    uint64_t range;      /* number of triples of the range */
    _Atomic uint64_t next, lost;
    uint64_t repeated;
};

static inline uint32_t entity_of(const struct triples_met *met, const uint32_t *terms, uint64_t i) {
    uint32_t number = terms[i * met->stride];
    return met->rows ? met->rows[number] : number;
}

/* Computes triple i as rows: its head, and its key of relation and tail. Returns 0 if one of its terms has no row. */
static inline int rows_of(const struct triples_met *met, uint64_t i, uint32_t *head, uint64_t *key) {
    uint32_t tail = entity_of(met, met->tails, i), relation = met->relation_rows[met->relations[i * met->stride]];
    *head = entity_of(met, met->heads, i);
    *key = (uint64_t)relation << 32 | tail;
    return *head != WORDS_ABSENT && tail != WORDS_ABSENT && relation != WORDS_ABSENT;
}

static int count_heads(void *context, unsigned worker) {
    struct sorting *g = context;
    uint64_t i, end, key, lost = 0;
    uint32_t head;
    while (pool_take(&g->next, g->met->count, TRIPLES, &i, &end)) {
        if (interrupt_check()) return -1;
        for (; i < end; i++) {
            if (rows_of(g->met, i, &head, &key))
                __atomic_fetch_add(&g->ends[head], 1, __ATOMIC_RELAXED);
            else
                lost++;
        }
    }
    g->lost += lost;
    return 0;
}

/* Stores the range's triples in `keys`. ends[head] is at first where the triples of a head begin, and afterwards where they end. */
static int place_triples(void *context, unsigned worker) {
    struct sorting *g = context;
    uint64_t i, end, key;
    uint32_t head;
    while (pool_take(&g->next, g->met->count, TRIPLES, &i, &end)) {
        if (interrupt_check()) return -1;
        for (; i < end; i++) {
            if (!rows_of(g->met, i, &head, &key) || head - g->first >= g->end - g->first) continue;
            g->keys[__atomic_fetch_add(&g->ends[head], 1, __ATOMIC_RELAXED)] = key;
        }
    }
    return 0;
}

/* ---- sorting a head's triples ---- */

struct scratch {
    uint64_t *keys, capacity;
};

/* Sorts the keys by radix, one byte at a time from the lowest on; skips bytes that are the same in all keys. */
static int sort_keys(struct scratch *scratch, uint64_t *keys, uint64_t count) {
    enum { FEW = 48 };
    uint64_t varying = 0;
    for (uint64_t i = 1; count <= FEW && i < count; i++) {
        uint64_t key = keys[i], at = i;
        for (; at && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
        keys[at] = key;
    }
    if (count <= FEW) return 0;
    if (mem_grow(&scratch->keys, &scratch->capacity, count, sizeof *keys, "sorting triples")) return -1;
    uint64_t *from = keys, *to = scratch->keys;
    for (uint64_t i = 1; i < count; i++) varying |= keys[i] ^ keys[0];
    for (unsigned shift = 0; shift < 64; shift += 8) {
        uint64_t next[256] = {0}, sum = 0;
        if (!(varying >> shift & 255)) continue;
        for (uint64_t i = 0; i < count; i++) next[from[i] >> shift & 255]++;
        for (int d = 0; d < 256; d++) sum += next[d], next[d] = sum - next[d];
        for (uint64_t i = 0; i < count; i++) to[next[from[i] >> shift & 255]++] = from[i];
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != keys) memcpy(keys, from, count * sizeof *keys);
    return 0;
}

static uint64_t begin_of(const struct sorting *g, uint64_t head) {
    return head > g->first ? g->ends[head - 1] : 0;
}

static int sort_heads(void *context, unsigned worker) {
    struct sorting *g = context;
    struct scratch scratch = {0};
    uint64_t at, end;
    int result = 0;
    while (!result && pool_take(&g->next, g->end - g->first, HEADS, &at, &end)) {
        if (interrupt_check()) result = -1;
        for (; at < end && !result; at++) {
            uint64_t begin = begin_of(g, g->first + at), count = g->ends[g->first + at] - begin, *keys = g->keys + begin, kept = 0;
            result = sort_keys(&scratch, keys, count);
            for (uint64_t i = 0; i < count; i++)
                if (!i || keys[i] != keys[i - 1])
                    keys[kept++] = keys[i]; /* kept <= i, so only keys that were already compared are overwritten */
            g->kept[at] = kept;
        }
    }
    free(scratch.keys);
    return result;
}

/* ---- range by range ---- */

/* Chooses the heads of the next range, at least one, and sets ends[head] to where each head's triples begin. */
static void choose_range(struct sorting *g, uint64_t most) {
    g->first = g->end;
    for (g->range = 0; g->end < g->met->entities; g->end++) {
        uint64_t count = g->ends[g->end];
        if (g->end > g->first && g->range + count > most) break;
        g->ends[g->end] = g->range;
        g->range += count;
    }
}

static int put_range(struct sorting *g) {
    enum { BUFFER = 3 * 4096 };
    uint32_t buffer[BUFFER];
    uint64_t used = 0;
    for (uint64_t head = g->first; head < g->end; head++) {
        const uint64_t *keys = g->keys + begin_of(g, head);
        uint64_t kept = g->kept[head - g->first];
        g->repeated += g->ends[head] - begin_of(g, head) - kept;
        for (uint64_t i = 0; i < kept; i++) {
            buffer[used++] = (uint32_t)head;
            buffer[used++] = (uint32_t)(keys[i] >> 32);
            buffer[used++] = (uint32_t)keys[i];
            if (used < BUFFER) continue;
            if (idstream_put(g->writer, buffer, used)) return -1;
            used = 0;
        }
    }
    return idstream_put(g->writer, buffer, used);
}

static int run(struct sorting *g, struct pool *pool, pool_job *job) {
    g->next = 0;
    return pool_run(pool, job, g);
}

static int put_all(struct sorting *g, struct pool *pool) {
    uint64_t most = mem_available() / SHARE_OF_MEMORY / sizeof *g->keys, capacity = 0, heads_capacity = 0;
    if (most < LEAST_AT_ONCE) most = LEAST_AT_ONCE;
    if (g->met->at_once) most = g->met->at_once;
    if (run(g, pool, count_heads)) return -1;
    while (g->end < g->met->entities) {
        choose_range(g, most);
        if (mem_reserve(&g->keys, &capacity, g->range + 1, sizeof *g->keys, "the triples") ||
            mem_reserve(&g->kept, &heads_capacity, g->end - g->first, sizeof *g->kept, "the triples"))
            return -1;
        mem_prefer_huge(g->keys, g->range * sizeof *g->keys);
        if (run(g, pool, place_triples) || run(g, pool, sort_heads) || put_range(g)) return -1;
    }
    return 0;
}

static void say_left_out(const struct sorting *g) {
    char count[TEXT_BYTES], all[TEXT_BYTES];
    uint64_t lost = g->lost;
    if (lost)
        remark("left out   %s of %s triples, whose head or tail is not in the vocabulary", text_of_count(count, lost),
               text_of_count(all, g->met->count));
    if (g->repeated)
        remark("repeated   %s of %s triples, each of which counts once", text_of_count(count, g->repeated),
               text_of_count(all, g->met->count - lost));
}

int encode_triples(struct idstream_writer *writer, const struct triples_met *met, struct pool *pool) {
    struct sorting g = {.met = met, .writer = writer};
    g.ends = mem_zalloc(met->entities + 1, sizeof *g.ends, "the heads of triples");
    mem_prefer_huge(g.ends, met->entities * sizeof *g.ends);
    int result = g.ends ? put_all(&g, pool) : -1;
    if (!result) say_left_out(&g);
    mem_free(g.ends, g.keys, g.kept);
    return result;
}

/* ==== pairs, grouped by list ==== */

enum {
    BUCKET_IDS = 1 << 18,  /* usual number of ids of a bucket: small enough to be sorted within a core's cache */
    ROUND_LEAST = 1 << 24, /* fewest ids of a round, even if memory is short */
    PAIRS = 1 << 20,       /* number of pairs after which a thread checks whether the user has pressed Ctrl-C */
    AHEAD = 16             /* how many pairs ahead a list's number is prefetched */
};

/* A list of pairs. */
struct list {
    uint64_t items;
    uint32_t row; /* row of the list; WORDS_ABSENT: lists have no rows */
};

/* A pair whose item has a row. */
struct kept {
    uint32_t list, row;
};

/* State of grouping pairs by list; the workers share it. A bucket is 1 << bucket_bits consecutive lists. Each round groups some buckets: the
 * workers read all pairs, and store the pairs of these buckets, bucket by bucket, in the order of the corpus. Then they sort each bucket by list,
 * and write it. */
struct grouping {
    const struct pairs_met *met;
    struct idstream_writer *writer;
    struct pool *pool;
    int weighed;
    struct integer_counts counts; /* for each list's number: how many items the list has, and which pair is its first */
    uint32_t *numbers;            /* [met->list_numbers] index in `lists` of each list that has items */
    _Atomic uint64_t *marks; /* [met->count / 64 + 1] one bit for each pair: 1 if it is the first pair of its list */
    uint64_t *marks_before;  /* [met->count / 64 + 1] number of 1 bits in `marks` before each element */
    struct list *lists; /* [list_count] */
    uint64_t list_count;

    unsigned bucket_bits;
    uint64_t first, end;   /* the buckets of this round */
    uint64_t *places;      /* [threads][end - first] index at which the worker stores its next pair of each bucket */
    uint64_t *ends;        /* [end - first] where each bucket's pairs end */
    uint64_t *begins;      /* [end - first] first id of each bucket in the stream */
    struct kept *kept;     /* [pairs of the round] */
    float *weights;        /* [pairs of the round]; NULL: pairs have no weights */
    _Atomic uint64_t next; /* the next bucket to sort */
};

static inline uint32_t list_number_of(const struct pairs_met *met, uint64_t i) {
    return met->names[i * met->stride];
}

static inline uint32_t row_of(const struct pairs_met *met, uint64_t i) {
    uint32_t item = met->ids[i * met->stride];
    return met->rows ? met->rows[item] : item;
}

/* ---- numbering lists ---- */

static int count_items(void *context, unsigned worker) {
    struct grouping *g = context;
    const struct pairs_met *met = g->met;
    unsigned workers = pool_threads(g->pool);
    uint64_t i, end;
    pool_share(met->count, worker, workers, &i, &end);
    for (; i < end; i++) {
        if (i % PAIRS == 0 && interrupt_check()) return -1;
        if (i + AHEAD < end) __builtin_prefetch(&g->counts.counts[list_number_of(met, i + AHEAD)], 1);
        if (row_of(met, i) != WORDS_ABSENT) integer_counts_add(&g->counts, list_number_of(met, i), i, workers == 1);
    }
    return 0;
}

/* Marks the first pair of each list in the worker's share of the lists. */
static int mark_firsts(void *context, unsigned worker) {
    struct grouping *g = context;
    uint64_t name, end;
    pool_share(g->met->list_numbers, worker, pool_threads(g->pool), &name, &end);
    for (; name < end; name++) {
        uint64_t first = ~g->counts.counts[name].after;
        if (g->counts.counts[name].count)
            atomic_fetch_or_explicit(&g->marks[first / 64], (uint64_t)1 << first % 64, memory_order_relaxed);
    }
    return 0;
}

/* Gives numbers to the lists in the worker's share of the pairs, in the order of the lists' first pairs. */
static int make_lists(void *context, unsigned worker) {
    struct grouping *g = context;
    const struct pairs_met *met = g->met;
    uint64_t name, end;
    pool_share(met->list_numbers, worker, pool_threads(g->pool), &name, &end);
    for (; name < end; name++) {
        const struct integer_count *list = &g->counts.counts[name];
        uint64_t first = ~list->after, before = ((uint64_t)1 << first % 64) - 1;
        if (!list->count) continue;
        uint64_t number = g->marks_before[first / 64] + (uint64_t)__builtin_popcountll(g->marks[first / 64] & before);
        g->lists[number] = (struct list){.items = list->count, .row = met->list_rows ? met->list_rows[name] : WORDS_ABSENT};
        g->numbers[name] = (uint32_t)number;
    }
    return 0;
}

static int number_lists(struct grouping *g) {
    uint64_t words = g->met->count / 64 + 1;
    g->counts.counts = mem_zalloc(g->met->list_numbers + 1, sizeof *g->counts.counts, "the lists");
    g->numbers = mem_alloc(g->met->list_numbers + 1, sizeof *g->numbers, "the lists");
    g->marks = mem_zalloc(words, sizeof *g->marks, "the lists");
    g->marks_before = mem_alloc(words, sizeof *g->marks_before, "the lists");
    if (!g->counts.counts || !g->numbers || !g->marks || !g->marks_before) return -1;
    if (pool_run(g->pool, count_items, g) || pool_run(g->pool, mark_firsts, g)) return -1;
    g->list_count = 0; /* one list a mark */
    for (uint64_t i = 0; i < words; i++) {
        g->marks_before[i] = g->list_count;
        g->list_count += (uint64_t)__builtin_popcountll(g->marks[i]);
    }
    g->lists = mem_alloc(g->list_count + 1, sizeof *g->lists, "the lists");
    if (!g->lists || pool_run(g->pool, make_lists, g)) return -1;
    integer_counts_release(&g->counts);
    return 0;
}

/* ---- storing pairs by bucket ---- */

/* Returns the number of ids of a list's sentence: its items and, if lists have rows, the list's id. */
static uint64_t ids_of(const struct grouping *g, const struct list *list) {
    return list->items + (g->met->list_rows != NULL);
}

static uint64_t lists_before(const struct grouping *g, uint64_t bucket) {
    uint64_t lists = bucket << g->bucket_bits;
    return lists < g->list_count ? lists : g->list_count;
}

/* Goes through the pairs in the worker's share: counts each bucket's pairs (store = 0), or stores them (store = 1). */
static inline __attribute__((always_inline)) int each_kept(struct grouping *g, unsigned worker, int store) {
    const struct pairs_met *met = g->met;
    uint64_t i, end, *places = g->places + worker * (g->end - g->first);
    pool_share(met->count, worker, pool_threads(g->pool), &i, &end);
    for (; i < end; i++) {
        if (i % PAIRS == 0 && interrupt_check()) return -1;
        uint32_t row = row_of(met, i);
        if (row == WORDS_ABSENT) continue;
        uint32_t list = g->numbers[list_number_of(met, i)];
        uint64_t bucket = (list >> g->bucket_bits) - g->first;
        if (bucket >= g->end - g->first) continue;
        uint64_t place = places[bucket]++;
        if (!store) continue;
        INVARIANT(place < g->ends[bucket]); /* no bucket gets more pairs than were counted for it */
        g->kept[place] = (struct kept){list, row};
        if (g->weighed) g->weights[place] = met->weights ? met->weights[i * met->stride] : 1;
    }
    return 0;
}

static int count_kept(void *context, unsigned worker) {
    return each_kept(context, worker, 0);
}

static int store_kept(void *context, unsigned worker) {
    return each_kept(context, worker, 1);
}

/* Turns the workers' counts of pairs into the indices at which they store pairs: bucket by bucket, and in a bucket worker by worker, so that pairs
 * keep their order. */
static void set_places(struct grouping *g) {
    uint64_t sum = 0, buckets = g->end - g->first;
    for (uint64_t bucket = 0; bucket < buckets; bucket++) {
        for (unsigned t = 0; t < pool_threads(g->pool); t++) {
            uint64_t here = g->places[t * buckets + bucket];
            g->places[t * buckets + bucket] = sum;
            sum += here;
        }
        g->ends[bucket] = sum;
    }
}

/* ---- sorting a bucket by list ---- */

/* Memory of a worker. */
struct sorted {
    uint32_t *ids;
    float *weights;
    uint64_t *next; /* [lists of the bucket] index at which the list's next item is stored */
    uint64_t ids_capacity, weights_capacity, next_capacity;
};

/* Computes where each list of a bucket begins, and stores there the list's own id. Returns the bucket's number of ids, or -1 after fail(). */
static int64_t begin_lists(const struct grouping *g, uint64_t first, uint64_t end, struct sorted *out) {
    uint64_t ids = 0;
    for (uint64_t list = first; list < end; list++) ids += ids_of(g, &g->lists[list]);
    if (mem_grow(&out->ids, &out->ids_capacity, ids, sizeof *out->ids, "the items of lists") ||
        mem_grow(&out->next, &out->next_capacity, end - first, sizeof *out->next, "the items of lists") ||
        (g->weighed && mem_grow(&out->weights, &out->weights_capacity, ids, sizeof *out->weights, "the weights of items")))
        return -1;
    for (uint64_t list = first, at = 0; list < end; list++) {
        out->next[list - first] = at;
        at += ids_of(g, &g->lists[list]);
        if (!g->met->list_rows) continue;
        uint64_t own = out->next[list - first]++;
        out->ids[own] = g->lists[list].row;
        if (g->weighed) out->weights[own] = 0; /* the list's own id has no weight */
    }
    return (int64_t)ids;
}

static int sort_bucket(const struct grouping *g, uint64_t bucket, struct sorted *out) {
    uint64_t first = lists_before(g, g->first + bucket), end = lists_before(g, g->first + bucket + 1);
    int64_t ids = begin_lists(g, first, end, out);
    if (ids < 0) return -1;
    for (uint64_t i = bucket ? g->ends[bucket - 1] : 0; i < g->ends[bucket]; i++) {
        uint64_t place = out->next[g->kept[i].list - first]++;
        INVARIANT(place < (uint64_t)ids);
        out->ids[place] = g->kept[i].row;
        if (g->weighed) out->weights[place] = g->weights[i];
    }
    if (idstream_put_at(g->writer, g->begins[bucket], out->ids, (uint64_t)ids)) return -1;
    return g->weighed ? idstream_put_weights_at(g->writer, g->begins[bucket], out->weights, (uint64_t)ids) : 0;
}

static int sort_buckets(void *context, unsigned worker) {
    struct grouping *g = context;
    struct sorted sorted = {.ids = NULL};
    uint64_t bucket, end;
    int result = 0;
    while (!result && pool_take(&g->next, g->end - g->first, 1, &bucket, &end))
        result = interrupt_check() || sort_bucket(g, bucket, &sorted) ? -1 : 0;
    mem_free(sorted.ids, sorted.weights, sorted.next);
    return result;
}

/* ---- rounds ---- */

/* Chooses the buckets of the next round: as many as fit into memory, at least one. `before`: number of ids of earlier buckets. Returns the number
 * of ids of the chosen buckets. */
static uint64_t choose_buckets(struct grouping *g, uint64_t most, uint64_t before, uint64_t *begins) {
    uint64_t ids = 0, buckets = ((g->list_count - 1) >> g->bucket_bits) + 1;
    for (g->end = g->first; g->end < buckets; g->end++) {
        uint64_t here = 0;
        for (uint64_t list = lists_before(g, g->end); list < lists_before(g, g->end + 1); list++)
            here += ids_of(g, &g->lists[list]);
        if (g->end > g->first && ids + here > most) break;
        begins[g->end - g->first] = before + ids;
        ids += here;
    }
    return ids;
}

static int group_round(struct grouping *g, uint64_t ids) {
    uint64_t buckets = g->end - g->first;
    g->places = mem_zalloc(pool_threads(g->pool) * buckets, sizeof *g->places, "the items of lists");
    g->ends = mem_alloc(buckets, sizeof *g->ends, "the items of lists");
    g->kept = mem_alloc(ids, sizeof *g->kept, "the items of lists");
    g->weights = g->weighed ? mem_alloc(ids, sizeof *g->weights, "the weights of items") : NULL;
    mem_prefer_huge(g->kept, ids * sizeof *g->kept);
    int result = !g->places || !g->ends || !g->kept || (g->weighed && !g->weights) || pool_run(g->pool, count_kept, g) ? -1 : 0;
    if (!result) set_places(g);
    g->next = 0;
    if (!result) result = pool_run(g->pool, store_kept, g) || pool_run(g->pool, sort_buckets, g) ? -1 : 0;
    mem_free(g->places, g->ends, g->kept, g->weights);
    return result;
}

static int group_all(struct grouping *g, uint64_t ids) {
    uint64_t most = mem_available() / 4 / (sizeof *g->kept + sizeof *g->weights); /* most ids of a round: for a quarter of the free memory */
    if (most < ROUND_LEAST) most = ROUND_LEAST;
    if (g->met->round_ids) most = g->met->round_ids;
    uint64_t usual = g->met->bucket_ids ? g->met->bucket_ids : BUCKET_IDS, before = 0;
    int result = 0;
    while (g->list_count >> g->bucket_bits > 1 && ids / (g->list_count >> g->bucket_bits) < usual) g->bucket_bits++;
    g->begins = mem_alloc((g->list_count >> g->bucket_bits) + 1, sizeof *g->begins, "the items of lists");
    if (!g->begins) return -1;
    while (lists_before(g, g->first) < g->list_count && !result) {
        uint64_t here = choose_buckets(g, most, before, g->begins);
        result = group_round(g, here);
        before += here;
        g->first = g->end;
    }
    return result;
}

int group_pairs(struct idstream_writer *writer, const struct pairs_met *met, int weighed, struct pool *pool) {
    struct grouping g = {.met = met, .writer = writer, .pool = pool, .weighed = weighed};
    int result = number_lists(&g);
    for (uint64_t list = 0; list < g.list_count && !result; list++) /* a sentence ends after each list */
        result = idstream_end_sentence(writer, writer->tokens += ids_of(&g, &g.lists[list]));
    if (!result && g.list_count) result = group_all(&g, writer->tokens);
    integer_counts_release(&g.counts);
    mem_free(g.numbers, g.marks, g.marks_before, g.lists, g.begins);
    return result ? -1 : 0;
}

/* Workers encode blocks of the numbered corpus in any order. A worker that has encoded a block waits until the offsets of all earlier blocks in
 * the file are known, computes its own offset, and writes its block while others write theirs. So the file does not depend on the number of
 * threads. What spans several blocks is handled in this step, which runs in the corpus' order: the length of an unfinished sentence, and whether
 * an unfinished line has its target. */

enum { ENCODING = 2 }; /* version of the encoding; to be raised when the same corpus would give different ids or sentences than before */
enum { LOOK = 3 << 8 }; /* version of look.h; to be raised when the same file would give different words than before */

uint64_t encode_fingerprint(const struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options) {
    if (corpus_stream(corpus)) return vocab_fingerprint(vocab);
    const struct corpus_format_properties *format = &corpus_formats[options->format];
    int grown = options->older || options->grown, has_vocab = grown || (options->vocab && *options->vocab);
    const struct look_keys *look = corpus_keys(corpus) ? corpus_keys(corpus) : &options->look;
    const char *events = look->events ? look->events : "";
    const char *columns = format->columns && look->columns ? look->columns : "";
    uint64_t keys = XXH3_64bits_withSeed(columns, strlen(columns), (uint64_t)look->separator * 16 + (uint64_t)look->names);
    keys = XXH3_64bits_withSeed(events, strlen(events), keys ^ (uint64_t)look->literals);
    uint64_t facts[] = {format->rows == LOOK_TEXT ? ENCODING : (ENCODING + LOOK) ^ keys,
                        corpus_fingerprint(corpus),
                        vocab_fingerprint(vocab),
                        (uint64_t)options->format,
                        format->sentences ? options->max_sentence : 0,
                        (uint64_t)(options->order == ORDER_GIVEN && !has_vocab),
                        grown ? UINT64_MAX : has_vocab ? 0 : options->min_count, /* UINT64_MAX cannot be a min_count */
                        has_vocab ? 0 : options->max_vocab,
                        has_vocab ? 0 : (uint64_t)options->order,
                        format->rows == LOOK_TEXT ? 0 : (uint64_t)look->header,
                        0,
                        (uint64_t)(options->list_rows + 2 * (format->triples && options->reciprocal))};
    uint64_t known = sizeof facts - (options->list_rows ? 0 : sizeof *facts); /* without list_rows if it is 0, so that fingerprints of older
                                                                               * streams stay valid */
    if (format->ratings) memcpy(&facts[10], &options->min_rating, sizeof options->min_rating);
    uint64_t sum = XXH3_64bits_withSeed(facts, known, (uint64_t)options->pair_weights);
    return options->phrases.joins ? sum ^ phrases_fingerprint(&options->phrases) : sum;
}

/* ---- the places of blocks ---- */

/* State of encoding one corpus; the workers share it. */
struct encoding {
    struct corpus *corpus;
    const struct vocab *vocab;
    const struct corpus_options *options;
    const struct numbered *numbered;
    struct pool *pool;
    _Atomic uint64_t next;           /* index of the next number to encode */
    struct progress progress;
    struct idstream_writer writer;
    uint64_t open_start; /* index in the stream of the first token of the unfinished sentence */
    int line_lost;       /* adjacency: 1 if the unfinished line's target is not in the vocabulary, so its contexts are dropped */
    int held;            /* adjacency: 1 if only the target of the unfinished line is known so far; it is written when a context follows */
    uint32_t held_id;

    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t placed; /* number of blocks that have their places */
    int failed;
};

/* Ids of a block, and the offset in the stream where they belong. */
struct placed {
    const uint32_t *ids; /* [count] */
    uint64_t count, at;
};

/* Ends sentences that reach max_sentence tokens, up to token `end`. line_ends = 1: also ends the sentence at `end`. */
static int cut_sentences(struct encoding *encoding, uint64_t end, int line_ends) {
    int cuts = corpus_formats[encoding->options->format].sentences && !encoding->options->list_rows;
    uint64_t most = cuts ? encoding->options->max_sentence : UINT64_MAX;
    while (end - encoding->open_start >= most) {
        encoding->open_start += most;
        if (idstream_end_sentence(&encoding->writer, encoding->open_start)) return -1;
    }
    if (!line_ends || end == encoding->open_start) return 0;
    encoding->open_start = end;
    return idstream_end_sentence(&encoding->writer, end);
}

static int place_lines(struct encoding *encoding, const struct encoded *block, struct placed *placed) {
    uint64_t before = encoding->writer.tokens;
    INVARIANT(!block->lines || block->ends[block->lines - 1] <= block->count);
    for (uint64_t i = 0; i < block->lines; i++)
        if (cut_sentences(encoding, before + block->ends[i], 1)) return -1;
    if (cut_sentences(encoding, before + block->count, 0)) return -1;
    *placed = (struct placed){block->ids, block->count, before};
    encoding->writer.tokens += block->count;
    return 0;
}

/* Gives offsets to ids of a line that began in an earlier block. If the line's target is not written yet, it is placed before them. If the target
 * is not in the vocabulary, the ids are dropped. */
static void place_rest_of_line(struct encoding *encoding, const struct encoded *block, uint64_t count, struct placed *placed) {
    if (encoding->line_lost || !count) return;
    unsigned held = (unsigned)encoding->held;
    if (held) block->ids[-1] = encoding->held_id;
    encoding->held = 0;
    *placed = (struct placed){block->ids - held, count + held, encoding->writer.tokens};
    encoding->writer.tokens += count + held;
}

static int place_adjacency(struct encoding *encoding, const struct encoded *block, struct placed *placed) {
    uint64_t from = 0, line = 0;
    if (block->continues) {
        from = block->lines ? block->ends[0] : block->count;
        place_rest_of_line(encoding, block, from, placed);
        if (!block->lines && block->line_open) return 0;
        if (cut_sentences(encoding, encoding->writer.tokens, 1)) return -1;
        line = 1;
    }
    encoding->held = 0;
    uint64_t base = encoding->writer.tokens - from;
    for (; line < block->lines; line++)
        if (cut_sentences(encoding, base + block->ends[line], 1)) return -1;
    encoding->line_lost = block->target_lost;
    uint64_t closed = block->lines ? block->ends[block->lines - 1] : from, end = block->count;
    if (end - closed == 1) {
        encoding->held = 1;
        encoding->held_id = block->ids[--end];
    }
    if (!placed->count) *placed = (struct placed){block->ids + from, 0, encoding->writer.tokens};
    placed->count += end - from;
    encoding->writer.tokens += end - from;
    return 0;
}

/* Waits until all earlier blocks have their offsets in the stream, gives the block its own, and writes it. */
static int put_block(struct encoding *encoding, const struct encoded *block) {
    struct placed placed = {.count = 0};
    pthread_mutex_lock(&encoding->lock);
    while (!encoding->failed && encoding->placed != block->number) pthread_cond_wait(&encoding->moved, &encoding->lock);
    int result = encoding->failed                          ? -1
                 : encode_has_targets(encoding->options) ? place_adjacency(encoding, block, &placed)
                                                         : place_lines(encoding, block, &placed);
    encoding->placed++;
    pthread_cond_broadcast(&encoding->moved);
    pthread_mutex_unlock(&encoding->lock);
    return result || idstream_put_at(&encoding->writer, placed.at, placed.ids, placed.count) ? -1 : 0;
}

static int encode_blocks(void *context, unsigned worker) {
    struct encoding *encoding = context;
    struct encoded mine = {0};
    uint64_t first, end, numbers = corpus_block_bytes(encoding->corpus) / sizeof(uint32_t); /* numbers that one worker encodes at a time: as many
                                                                                             * bytes as a block of the corpus */
    if (!numbers) numbers = 1;
    int result = 0;
    while (!result && pool_take(&encoding->next, encoding->numbered->count, numbers, &first, &end)) {
        mine.number = first / numbers;
        result = interrupt_check() || encode_numbered(&mine, encoding->numbered, encoding->options, first, end) ||
                         put_block(encoding, &mine)
                     ? -1
                     : 0;
        progress_show(&encoding->progress, end, encoding->numbered->count, "tok");
    }
    if (result) {
        pthread_mutex_lock(&encoding->lock);
        encoding->failed = 1;
        pthread_cond_broadcast(&encoding->moved);
        pthread_mutex_unlock(&encoding->lock);
    }
    encoded_release(&mine);
    return result;
}

/* ---- pairs ---- */

static int group_numbered(struct encoding *encoding) {
    const struct numbered *numbered = encoding->numbered;
    unsigned fields = numbered_fields(encoding->options);
    struct pairs_met met = {.count = numbered->count / fields,
                            .stride = fields,
                            .ids = numbered->numbers + 1,
                            .names = numbered->numbers,
                            .weights = fields == 3 ? (const float *)(const void *)(numbered->numbers + 2) : NULL,
                            .rows = numbered->items,
                            .list_rows = numbered->lists,
                            .list_numbers = numbered->list_numbers};
    return met.count ? group_pairs(&encoding->writer, &met, fields == 3, encoding->pool) : 0;
}

/* ---- triples ---- */

static int put_triples(struct encoding *encoding) {
    const struct numbered *numbered = encoding->numbered;
    struct triples_met met = {.count = numbered->count / TRIPLE_TERMS,
                              .stride = TRIPLE_TERMS,
                              .entities = encoding->vocab->size - encoding->vocab->lists,
                              .heads = numbered->numbers + TRIPLE_HEAD,
                              .relations = numbered->numbers + TRIPLE_RELATION,
                              .tails = numbered->numbers + TRIPLE_TAIL,
                              .rows = numbered->items,
                              .relation_rows = numbered->lists};
    encoding->writer.triples = met.count > 0;
    return met.count ? encode_triples(&encoding->writer, &met, encoding->pool) : 0;
}

/* ---- the whole corpus ---- */

static int encode_numbers_as(struct encoding *encoding) {
    const struct corpus_format_properties *format = &corpus_formats[encoding->options->format];
    if (format->triples) return put_triples(encoding);
    if (format->scattered) return group_numbered(encoding);
    progress_start(&encoding->progress, "encoding", encoding->options->report_seconds);
    int result = pool_run(encoding->pool, encode_blocks, encoding);
    progress_end(&encoding->progress);
    return result;
}

static int nothing_left(const struct encoding *encoding) {
    if (corpus_formats[encoding->options->format].triples)
        return fail("no triple of the corpus '%s' is left: none has its head and its tail in the vocabulary of %" PRIu64 " words",
                    encoding->options->path, encoding->vocab->size);
    if (corpus_formats[encoding->options->format].targets)
        return fail(
            "no line of the corpus '%s' is left: none has its target and a context in the vocabulary of %" PRIu64 " words",
            encoding->options->path, encoding->vocab->size);
    return fail("no token of the corpus '%s' is in the vocabulary of %" PRIu64 " words", encoding->options->path,
                encoding->vocab->size);
}

static int encode(const char *path, struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options,
                  struct pool *pool, uint64_t fingerprint) {
    struct encoding encoding = {.corpus = corpus, .vocab = vocab, .options = options, .pool = pool};
    struct idstream_writer *writer = &encoding.writer;
    struct numbered own;
    pthread_mutex_init(&encoding.lock, NULL);
    pthread_cond_init(&encoding.moved, NULL);
    int result = encode_numbers(&encoding.numbered, &own, corpus, options, vocab, path, pool) || idstream_writer_open(writer, path) ? -1 : 0;
    if (!result) {
        writer->pool = corpus_formats[options->format].triples ? NULL : pool;
        result = encode_numbers_as(&encoding) || corpus_check_unchanged(corpus) || (!writer->tokens && nothing_left(&encoding)) ? -1 : 0;
        writer->weighed = options->pair_weights;
        if (!result) result = idstream_writer_commit(writer, fingerprint);
        else idstream_writer_abandon(writer);
    }
    pthread_cond_destroy(&encoding.moved);
    pthread_mutex_destroy(&encoding.lock);
    numbered_close(&own);
    return result;
}

/* End of the name of a temporary file, PATH.<process>.pairs, that earlier versions wrote. */
static const char places_end[] = ".pairs";

int encode_is_leftover(const char *name, const char *of) {
    size_t length = strlen(of), digits;
    char places[NAME_MAX + 1];
    if (strlen(name) > NAME_MAX || strncmp(name, of, length) || name[length] != '.') return 0;
    digits = strspn(name + length + 1, "0123456789");
    if (!digits) return 0;
    snprintf(places, sizeof places, "%.*s%s", (int)(length + 1 + digits), name, places_end);
    return !strcmp(name, places) || file_is_partial(name, places);
}

int encode_open(struct idstream *stream, const char *path, struct corpus *corpus, const struct vocab *vocab,
                  const struct corpus_options *options, struct pool *pool, int *reused) {
    *stream = (struct idstream){0};
    *reused = 1;
    if (corpus_stream(corpus)) return idstream_open(stream, corpus_stream(corpus), vocab_fingerprint(vocab), vocab->size, pool);
    uint64_t fingerprint = encode_fingerprint(corpus, vocab, options);
    if (idstream_reuse(stream, path, fingerprint, vocab->size, pool)) return 0;
    *reused = 0;
    if (encode(path, corpus, vocab, options, pool, fingerprint)) return -1;
    return idstream_open(stream, path, fingerprint, vocab->size, pool);
}
