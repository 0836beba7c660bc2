#include "group_pairs.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "integers.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUCKET_IDS = 1 << 18,  /* usual number of ids of a bucket, whose sorting then stays within a core's cache */
    ROUND_LEAST = 1 << 24, /* lowest limit for the ids of a round, even if memory is short */
    PAIRS = 1 << 20,       /* pairs between two checks whether the user has interrupted the program */
    AHEAD = 16             /* pairs between the prefetch of a list's numbers and their use */
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

/* State of grouping; the workers share it. A bucket has 1 << bucket_bits consecutive lists. Each round groups some buckets: the
 * workers read all pairs, and store the pairs of these buckets, bucket by bucket, in the order of the corpus. Then they sort each
 * bucket by list, and write it. */
struct grouping {
    const struct pairs_met *met;
    struct idstream_writer *writer;
    struct pool *pool;
    int weighed;
    struct integer_counts counts; /* by number of a list: its items, and its first pair */
    uint32_t *numbers;            /* [met->list_numbers] index in `lists` of each list that has items */
    _Atomic uint64_t *marks; /* [met->count / 64 + 1] a bit for each pair; 1: it is the first pair of its list */
    uint64_t *marks_before;  /* [met->count / 64 + 1] number of marks before each element of `marks` */
    struct list *lists; /* [list_count] */
    uint64_t list_count;

    unsigned bucket_bits;
    uint64_t first, end;   /* the buckets of this round */
    uint64_t *places;      /* [threads][end - first] where the worker stores its next pair of each bucket */
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

/* Computes marks_before. Returns the number of all marks, which is the number of lists. */
static uint64_t count_marks(struct grouping *g) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= g->met->count / 64; i++) {
        g->marks_before[i] = sum;
        sum += (uint64_t)__builtin_popcountll(g->marks[i]);
    }
    return sum;
}

/* Numbers the lists of the worker's share in the order of their first pairs. */
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
    g->list_count = count_marks(g);
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

/* Counts the pairs of each bucket in the worker's share, or stores them. */
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

/* Turns counts of pairs into places: bucket by bucket, in a bucket worker by worker, so that pairs keep their order. */
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
    uint64_t *next; /* [lists of the bucket] where the list's next item belongs */
    uint64_t ids_capacity, weights_capacity, next_capacity;
};

/* Sets where the lists of a bucket begin, and stores their own ids. Returns the number of the bucket's ids, or -1 after fail(). */
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
    free(sorted.ids);
    free(sorted.weights);
    free(sorted.next);
    return result;
}

/* ---- rounds ---- */

/* Chooses the buckets of the next round: as many as memory allows, at least one. `before`: number of ids of earlier buckets.
 * Returns the number of the buckets' ids. */
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
    free(g->places);
    free(g->ends);
    free(g->kept);
    free(g->weights);
    return result;
}

/* Returns the limit for the ids of a round: their pairs may take a quarter of the free memory. */
static uint64_t most_of_round(const struct grouping *g) {
    if (g->met->round_ids) return g->met->round_ids;
    uint64_t most = mem_available() / 4 / (sizeof *g->kept + sizeof *g->weights);
    return most > ROUND_LEAST ? most : ROUND_LEAST;
}

static int group_all(struct grouping *g, uint64_t ids) {
    uint64_t most = most_of_round(g), usual = g->met->bucket_ids ? g->met->bucket_ids : BUCKET_IDS, before = 0;
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

/* Ends a sentence after each list. Returns 0, or -1 after fail(). */
static int end_sentences(struct grouping *g) {
    uint64_t *tokens = &g->writer->tokens;
    for (uint64_t list = 0; list < g->list_count; list++)
        if (idstream_end_sentence(g->writer, *tokens += ids_of(g, &g->lists[list]))) return -1;
    return 0;
}

int group_pairs(struct idstream_writer *writer, const struct pairs_met *met, int weighed, struct pool *pool) {
    struct grouping g = {.met = met, .writer = writer, .pool = pool, .weighed = weighed};
    int result = number_lists(&g) || end_sentences(&g) || (g.list_count && group_all(&g, writer->tokens)) ? -1 : 0;
    integer_counts_release(&g.counts);
    free(g.numbers);
    free(g.marks);
    free(g.marks_before);
    free(g.lists);
    free(g.begins);
    return result;
}
