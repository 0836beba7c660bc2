/* Triples are grouped by their heads: a counting sort, which reads all triples once for each range of heads that fits into memory.
 * The triples of a head are then sorted by relation and tail. All threads count, place and sort. There is only one sorted order, so
 * the stream does not depend on the number of threads. */
#include "encode_triples.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TRIPLES = 1 << 16, HEADS = 1 << 10, LEAST_AT_ONCE = 32 << 20, SHARE_OF_MEMORY = 3 };

/* State of encoding; the workers share it. */
struct grouping {
    const struct triples_met *met;
    struct idstream_writer *writer;
    uint64_t *ends;      /* [entities + 1] at first the number of a head's triples; for heads of the range: where its triples end in
                          * `keys` */
    uint64_t first, end; /* heads first .. end - 1 are the current range */
    uint64_t *keys;      /* the triples of the range, by head: relation << 32 | tail */
    uint64_t *kept;      /* [heads of the range] number of a head's triples without repetitions */
    uint64_t range;      /* number of triples of the range */
    _Atomic uint64_t next, lost;
    uint64_t repeated;
};

static inline uint32_t entity_of(const struct triples_met *met, const uint32_t *terms, uint64_t i) {
    uint32_t number = terms[i * met->stride];
    return met->rows ? met->rows[number] : number;
}

/* Stores the rows of triple i. Returns 0 if one of its terms has no row. */
static inline int rows_of(const struct triples_met *met, uint64_t i, uint32_t *head, uint64_t *key) {
    uint32_t tail = entity_of(met, met->tails, i), relation = met->relation_rows[met->relations[i * met->relation_stride]];
    *head = entity_of(met, met->heads, i);
    *key = (uint64_t)relation << 32 | tail;
    return *head != WORDS_ABSENT && tail != WORDS_ABSENT && relation != WORDS_ABSENT;
}

static int count_heads(void *context, unsigned worker) {
    struct grouping *g = context;
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

/* Places the triples of the range. ends[head] is at first where the triples of a head begin, and afterwards where they end. */
static int place_triples(void *context, unsigned worker) {
    struct grouping *g = context;
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

static void insert_sorted(uint64_t *keys, uint64_t count) {
    for (uint64_t i = 1; i < count; i++) {
        uint64_t key = keys[i], at = i;
        for (; at && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Sorts by one byte after the other, from the lowest, where the keys differ in it. */
static int sort_keys(struct scratch *scratch, uint64_t *keys, uint64_t count) {
    enum { FEW = 48 };
    uint64_t varying = 0;
    if (count <= FEW) return insert_sorted(keys, count), 0;
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

static uint64_t begin_of(const struct grouping *g, uint64_t head) {
    return head > g->first ? g->ends[head - 1] : 0;
}

static int sort_heads(void *context, unsigned worker) {
    struct grouping *g = context;
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
                    keys[kept++] = keys[i]; /* kept <= i: it overwrites only keys that were compared */
            g->kept[at] = kept;
        }
    }
    free(scratch.keys);
    return result;
}

/* ---- range by range ---- */

/* Chooses the heads of the next range, at least one, and sets ends[head] to where the triples of each begin. */
static void choose_range(struct grouping *g, uint64_t most) {
    g->first = g->end;
    for (g->range = 0; g->end < g->met->entities; g->end++) {
        uint64_t count = g->ends[g->end];
        if (g->end > g->first && g->range + count > most) break;
        g->ends[g->end] = g->range;
        g->range += count;
    }
}

static int put_range(struct grouping *g) {
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

static int run(struct grouping *g, struct pool *pool, pool_job *job) {
    g->next = 0;
    return pool_run(pool, job, g);
}

static int put_all(struct grouping *g, struct pool *pool) {
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

static void say_left_out(const struct grouping *g) {
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
    struct grouping g = {.met = met, .writer = writer};
    g.ends = mem_zalloc(met->entities + 1, sizeof *g.ends, "the heads of triples");
    mem_prefer_huge(g.ends, met->entities * sizeof *g.ends);
    int result = g.ends ? put_all(&g, pool) : -1;
    if (!result) say_left_out(&g);
    free(g.ends);
    free(g.keys);
    free(g.kept);
    return result;
}
