#include "cooccur.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    POSITIONS = 1 << 14,   /* positions of the text that a thread counts before it asks for more */
    DIGIT = 11,            /* bits of a digit of the sort */
    EVENTS_FIRST = 1 << 16, /* events for which a thread allocates memory at first; its limit is never set lower */
    BUFFERED = 4096,       /* number of pairs that are read from or written to a run at once */
    BLOCKS_A_THREAD = 4,   /* blocks of rows per thread that one round merges */
};

/* A pair in a sorted run on disk. The key is row << bits | column. */
struct counted {
    uint64_t key, units;
};

/* A sorted source of pairs: events in memory, or a run on disk. `head` is its next pair; a source that has ended is not in the heap. */
struct source {
    struct counted head;
    const uint64_t *events;  /* [count] sorted; NULL: a run on disk */
    uint64_t at, count;
    uint64_t offset;         /* offset in the file of the run's next byte */
    struct counted *buffer;  /* [BUFFERED] pairs of the run, of which `filled` are read */
    uint64_t filled;
};

/* Events that one thread has collected. An event is a pair seen at a distance: key << distance_bits | distance. Distance 0 marks 2^32 units. */
struct events {
    uint64_t *keys, *other; /* [capacity] other: scratch of the sort */
    uint64_t count, capacity, other_capacity;
};

/* State of merging, for a range of rows, the triangle with the sorted sources. */
struct merge {
    const struct cooccur *cooccur;
    struct source *source; /* [sources] */
    uint64_t sources;
    uint32_t *heap; /* [heaped] binary heap of source numbers; the source with the smallest head is first */
    uint64_t heaped;
    uint64_t row, column, end; /* row, column: the triangle's next pair; end: first row after the merged range */
};

/* A range of rows whose pairs one thread merges. */
struct block {
    uint64_t first, end; /* rows */
    struct cooccur_pair *pairs;
    uint64_t count, capacity;
};

struct cooccur {
    struct cooccur_text text;
    struct cooccur_wanted wanted;
    uint64_t unit, most_events; /* most_events: events in a thread's memory at which it writes a run */
    uint64_t *weight;           /* [window + 1] by distance: the units that a pair adds */
    unsigned bits, distance_bits;
    uint32_t *triangle; /* count of the pair of rows a >= b at triangle[a (a + 1) / 2 + b] */
    uint64_t frequent;
    struct events *events; /* [threads] */
    unsigned threads;
    int shared;         /* 1: several threads add to the triangle */
    int fd;             /* the file of runs; -1: none was written */
    uint64_t end;       /* bytes of that file */
    struct source *source; /* [sources]: runs, then the threads' events */
    uint64_t sources, source_capacity, runs;
    pthread_mutex_t lock; /* held while a thread adds a run */
    _Atomic uint64_t taken;
    struct pool *pool;    /* NULL (also if a run is on disk): one merge, `all`, gives the pairs; otherwise threads merge blocks ahead */
    struct merge all;
    struct block *block; /* [blocks] of the current round; allocated: BLOCKS_A_THREAD for each thread */
    uint64_t blocks, given, at, next_row; /* block `given`, pair `at`: the next pair to return; next_row: first row of the next round */
};

uint64_t cooccur_unit(const struct cooccur *c) {
    return c->unit;
}

uint64_t cooccur_runs(const struct cooccur *c) {
    return c->runs;
}

/* ---- the sort ---- */

/* Sorts the events by radix, from the lowest digit on; skips a digit that is the same in all events. */
static int sort_events(struct events *e) {
    uint64_t all = ~(uint64_t)0, some = 0;
    if (mem_reserve(&e->other, &e->other_capacity, e->count, sizeof *e->other, "sorting pairs of words")) return -1;
    for (uint64_t i = 0; i < e->count; i++) all &= e->keys[i], some |= e->keys[i];
    for (unsigned shift = 0; shift < 64; shift += DIGIT) {
        uint64_t begin[1 << DIGIT] = {0}, sum = 0, mask = (1 << DIGIT) - 1;
        if (!((all ^ some) >> shift & mask)) continue;
        for (uint64_t i = 0; i < e->count; i++) begin[e->keys[i] >> shift & mask]++;
        for (uint64_t d = 0; d <= mask; d++) {
            uint64_t count = begin[d];
            begin[d] = sum;
            sum += count;
        }
        for (uint64_t i = 0; i < e->count; i++) e->other[begin[e->keys[i] >> shift & mask]++] = e->keys[i];
        uint64_t *keys = e->keys, capacity = e->capacity;
        e->keys = e->other, e->capacity = e->other_capacity;
        e->other = keys, e->other_capacity = capacity;
    }
    return 0;
}

/* ---- sources ---- */

/* Moves a source to its next pair. Returns 1; 0 at its end; -1 after fail(). */
static int advance(const struct cooccur *c, struct source *s) {
    if (s->at == s->count) return 0;
    if (s->events) {
        uint64_t key = s->events[s->at] >> c->distance_bits, units = 0;
        do units += c->weight[s->events[s->at++] & (((uint64_t)1 << c->distance_bits) - 1)];
        while (s->at < s->count && s->events[s->at] >> c->distance_bits == key);
        s->head = (struct counted){key, units};
        return 1;
    }
    if (s->at % BUFFERED == 0) {
        uint64_t left = s->count - s->at, wanted = (left < BUFFERED ? left : BUFFERED) * sizeof *s->buffer;
        if (!s->buffer && !(s->buffer = mem_alloc(BUFFERED, sizeof *s->buffer, "merging pairs of words"))) return -1;
        if (retry_read_at(c->fd, s->buffer, wanted, s->offset) != (int64_t)wanted) return fail_system("read a file beside", c->wanted.path);
        s->offset += wanted;
    }
    s->head = s->buffer[s->at++ % BUFFERED];
    return 1;
}

/* Writes a thread's events to the file as a sorted run, and empties them. */
static int write_run(struct cooccur *c, struct events *e) {
    if (sort_events(e)) return -1;
    struct source run = {0}, from = {.events = e->keys, .count = e->count};
    struct counted *pairs = (struct counted *)(void *)e->other;
    uint64_t most = e->other_capacity / 2 < e->count ? e->other_capacity / 2 : e->count, bytes = 0, held = 0;
    while (advance(c, &from) > 0) run.count++;
    pthread_mutex_lock(&c->lock);
    int result = c->fd >= 0 || (c->fd = file_open_unnamed(c->wanted.path)) >= 0 ? 0 : -1;
    if (!result) result = mem_grow(&c->source, &c->source_capacity, c->sources + 1, sizeof *c->source, "merging pairs of words");
    run.offset = c->end;
    if (!result) c->source[c->sources++] = run, c->runs++, c->end += run.count * sizeof *pairs;
    pthread_mutex_unlock(&c->lock);
    from = (struct source){.events = e->keys, .count = e->count};
    for (int more = 1; more && !result;) {
        more = advance(c, &from);
        if (more) pairs[held++] = from.head;
        if (held < most && more) continue;
        if (retry_write_at(c->fd, pairs, held * sizeof *pairs, run.offset + bytes)) result = fail_system("write beside", c->wanted.path);
        bytes += held * sizeof *pairs;
        held = 0;
    }
    e->count = 0;
    return result;
}

/* ---- counting ---- */

static int push(struct cooccur *c, struct events *e, uint64_t row, uint64_t column, uint64_t distance) {
    if (e->count == e->capacity) {
        uint64_t twice = e->capacity < EVENTS_FIRST / 2 ? EVENTS_FIRST : 2 * e->capacity, most = c->most_events;
        if (e->count >= most) {
            if (write_run(c, e)) return -1;
        } else if (mem_reserve(&e->keys, &e->capacity, twice < most ? twice : most, sizeof *e->keys, "pairs of words")) {
            return -1;
        }
    }
    e->keys[e->count++] = (row << c->bits | column) << c->distance_bits | distance;
    return 0;
}

/* Counts one occurrence of a pair at this distance. */
static inline int count_pair(struct cooccur *c, struct events *e, uint32_t before, uint32_t after, uint32_t distance) {
    uint32_t high = before > after ? before : after, low = before > after ? after : before;
    if (high >= c->frequent)
        return push(c, e, before, after, distance) || (!c->wanted.one_sided && push(c, e, after, before, distance)) ? -1 : 0;
    uint32_t *cell = c->triangle + ((uint64_t)high * (high + 1) / 2 + low), add = (uint32_t)c->weight[distance], old;
    if (high == low) add *= 2;
    if (c->shared) old = __atomic_fetch_add(cell, add, __ATOMIC_RELAXED);
    else old = *cell, *cell += add;
    if (old <= UINT32_MAX - add) return 0;
    return push(c, e, high, low, 0) || (high != low && push(c, e, low, high, 0)) ? -1 : 0;
}

/* Counts the pairs whose later word is at positions first .. end - 1, which are in the sentence that begins at `start`. */
static int count_positions(struct cooccur *c, struct events *e, uint64_t start, uint64_t first, uint64_t end) {
    const uint32_t *ids = c->text.ids;
    for (uint64_t at = first; at < end; at++) {
        uint64_t most = at - start < c->wanted.window ? at - start : c->wanted.window;
        for (uint64_t d = 1; d <= most; d++)
            if (count_pair(c, e, ids[at - d], ids[at], (uint32_t)d)) return -1;
    }
    return 0;
}

static int count_text(void *context, unsigned worker) {
    struct cooccur *c = context;
    const uint64_t *starts = c->text.starts;
    uint64_t first, end;
    while (!interrupt_check() && pool_take(&c->taken, c->text.tokens, POSITIONS, &first, &end)) {
        for (uint64_t i = mem_first_from(starts, c->text.sentences, sizeof *starts, first + 1) - 1; first < end; i++) { /* the sentence of `first` */
            uint64_t stop = starts[i + 1] < end ? starts[i + 1] : end;
            if (count_positions(c, &c->events[worker], starts[i], first, stop)) return -1;
            first = stop;
        }
    }
    return interrupt_check();
}

static int sort_rest(void *context, unsigned worker) {
    struct cooccur *c = context;
    int result = sort_events(&c->events[worker]);
    free(c->events[worker].other);
    c->events[worker].other = NULL;
    return result;
}

/* ---- opening ---- */

static uint64_t bits_of(uint64_t number) {
    uint64_t bits = 0;
    for (; number >> bits; bits++) continue;
    return bits;
}

/* Sets the units of each distance. */
static int make_weights(struct cooccur *c) {
    uint64_t window = c->wanted.window, unit = 1;
    if (!(c->weight = mem_alloc(window + 1, sizeof *c->weight, "the weights of distances"))) return -1;
    for (uint64_t d = 2; d <= window && d <= COOCCUR_EXACT && !c->wanted.flat; d++) {
        uint64_t a = unit, b = d;
        while (b) {
            uint64_t rest = a % b;
            a = b, b = rest;
        }
        unit *= d / a;
    }
    c->unit = unit;
    c->weight[0] = (uint64_t)1 << 32;
    for (uint64_t d = 1; d <= window; d++) c->weight[d] = c->wanted.flat ? 1 : (unit + d / 2) / d;
    return 0;
}

static int prepare_counts(struct cooccur *c) {
    uint64_t words = c->text.words, memory = c->wanted.memory ? c->wanted.memory : mem_available() / 2;
    c->bits = (unsigned)bits_of(words ? words - 1 : 0), c->distance_bits = (unsigned)bits_of(c->wanted.window);
    if (2 * c->bits + c->distance_bits > 64)
        return fail("pairs of %" PRIu64 " words in windows of %" PRIu32 " need %u bits, and have 64; lower examples.window, or raise "
                    "corpus.min_count",
                    words, c->wanted.window, 2 * c->bits + c->distance_bits);
    if (make_weights(c)) return -1;
    if (c->text.tokens > UINT64_MAX / 32 / c->unit)
        return fail("%" PRIu64 " words in windows of %" PRIu32 " may count beyond 64 bits; lower examples.window", c->text.tokens, c->wanted.window);
    uint64_t most = c->wanted.frequent ? c->wanted.frequent : COOCCUR_FREQUENT;
    for (most = most < words ? most : words; !c->wanted.frequent && most * (most + 1) * 2 > memory / 4;) most = most / 8 * 7;
    c->frequent = c->wanted.one_sided ? 0 : most;
    uint64_t cells = c->frequent * (c->frequent + 1) / 2, left = memory > cells * 4 ? memory - cells * 4 : 0;
    c->most_events = left / c->threads / (2 * sizeof(uint64_t));
    if (c->most_events < EVENTS_FIRST) c->most_events = EVENTS_FIRST;
    c->triangle = mem_zalloc(cells + 1, sizeof *c->triangle, "counts of frequent words");
    c->events = mem_zalloc(c->threads, sizeof *c->events, "pairs of words");
    if (c->triangle) mem_prefer_huge(c->triangle, cells * sizeof *c->triangle);
    return c->triangle && c->events ? 0 : -1;
}

/* ---- the merge ---- */

/* Puts source number i into the heap, at place `at` or below. */
static void sift(struct merge *m, uint64_t at, uint32_t i) {
    for (uint64_t child; (child = 2 * at + 1) < m->heaped; at = child) {
        if (child + 1 < m->heaped && m->source[m->heap[child + 1]].head.key < m->source[m->heap[child]].head.key) child++;
        if (m->source[m->heap[child]].head.key >= m->source[i].head.key) break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = i;
}

/* Begins to merge rows first .. end - 1. source [count]: the events and runs of these rows; the merge owns the array. */
static int begin_merge(struct merge *m, const struct cooccur *c, struct source *source, uint64_t count, uint64_t first, uint64_t end) {
    *m = (struct merge){.cooccur = c, .source = source, .sources = count, .row = first, .end = end < c->frequent ? end : c->frequent};
    if (!source || !(m->heap = mem_alloc(count + 1, sizeof *m->heap, "merging pairs of words"))) return -1;
    for (uint64_t i = 0; i < count; i++) {
        int more = advance(c, &source[i]);
        if (more < 0) return -1;
        if (more) m->heap[m->heaped++] = (uint32_t)i;
    }
    for (uint64_t at = m->heaped; at-- > 0;) sift(m, at, m->heap[at]);
    return 0;
}

static void end_merge(struct merge *m) {
    for (uint64_t i = 0; m->source && i < m->sources; i++) free(m->source[i].buffer);
    mem_free(m->source, m->heap);
    *m = (struct merge){.sources = 0};
}

/* Adds to *sum the units of all sources whose next pair is `key`, and moves these sources on. Returns 0, or -1 after fail(). */
static int take_heads(struct merge *m, uint64_t key, uint64_t *sum) {
    while (m->heaped && m->source[m->heap[0]].head.key == key) {
        uint32_t first = m->heap[0];
        *sum += m->source[first].head.units;
        int more = advance(m->cooccur, &m->source[first]);
        if (more < 0) return -1;
        if (!more) first = m->heap[--m->heaped];
        if (m->heaped) sift(m, 0, first);
    }
    return 0;
}

/* Moves m->row and m->column to the triangle's next pair with a count above 0, and returns its units; 0 at the end. */
static uint32_t next_frequent(struct merge *m) {
    const uint32_t *triangle = m->cooccur->triangle;
    for (; m->row < m->end; m->row++, m->column = 0) {
        uint64_t row = m->row, own = row * (row + 1) / 2;
        for (; m->column < m->cooccur->frequent; m->column++) {
            uint64_t column = m->column;
            uint32_t units = triangle[column <= row ? own + column : column * (column + 1) / 2 + row];
            if (units) return units;
        }
    }
    return 0;
}

static int next_pair(struct merge *m, struct cooccur_pair *pair) {
    unsigned bits = m->cooccur->bits;
    uint32_t units = next_frequent(m);
    uint64_t of_triangle = units ? m->row << bits | m->column : UINT64_MAX;
    uint64_t of_events = m->heaped ? m->source[m->heap[0]].head.key : UINT64_MAX;
    uint64_t key = of_triangle < of_events ? of_triangle : of_events, sum = 0;
    if (key == UINT64_MAX) return 0;
    if (of_triangle == key) sum = units, m->column++;
    if (of_events == key && take_heads(m, key, &sum)) return -1;
    *pair = (struct cooccur_pair){(uint32_t)(key >> bits), (uint32_t)(key & (((uint64_t)1 << bits) - 1)), sum};
    return 1;
}

/* ---- blocks of rows, by all threads ---- */

/* Returns the index of the first event in this row or a later one. */
static uint64_t first_event(const struct cooccur *c, const struct events *e, uint64_t row) {
    if (row >> c->bits) return e->count; /* past the last row, whose key has no room in 64 bits */
    return mem_first_from(e->keys, e->count, sizeof *e->keys, row << (c->bits + c->distance_bits));
}

static int merge_block(const struct cooccur *c, struct block *b) {
    struct merge m;
    struct source *source = mem_zalloc(c->threads, sizeof *source, "merging pairs of words");
    for (unsigned t = 0; source && t < c->threads; t++) {
        uint64_t from = first_event(c, &c->events[t], b->first);
        source[t].events = c->events[t].keys + from;
        source[t].count = first_event(c, &c->events[t], b->end) - from;
    }
    int more = begin_merge(&m, c, source, c->threads, b->first, b->end) ? -1 : 1;
    for (b->count = 0; more > 0; b->count += more > 0) {
        more = mem_grow(&b->pairs, &b->capacity, b->count + 1, sizeof *b->pairs, "merged pairs of words") ? -1 : next_pair(&m, &b->pairs[b->count]);
    }
    end_merge(&m);
    return more;
}

static int merge_blocks(void *context, unsigned worker) {
    struct cooccur *c = context;
    uint64_t at, end;
    while (pool_take(&c->taken, c->blocks, 1, &at, &end))
        if (interrupt_check() || merge_block(c, &c->block[at])) return -1;
    return 0;
}

/* All threads merge the next blocks (ranges of rows). Frequent words have the most pairs, so each of the first 256 rows is a block of one row. */
static int begin_round(struct cooccur *c) {
    c->blocks = c->given = c->at = c->taken = 0;
    for (uint64_t row = c->next_row; row < c->text.words && c->blocks < (uint64_t)BLOCKS_A_THREAD * c->threads; row = c->next_row) {
        uint64_t rows = row < 256 ? 1 : row / 64;
        c->next_row = row + rows < c->text.words ? row + rows : c->text.words;
        c->block[c->blocks].first = row, c->block[c->blocks++].end = c->next_row;
    }
    return pool_run(c->pool, merge_blocks, c);
}

/* ---- opened and closed ---- */

/* Prepares the merge: by all threads in blocks of rows, or, if runs are on disk, as one merge of all sources. */
static int prepare_merge(struct cooccur *c, struct pool *pool) {
    c->pool = c->threads > 1 && !c->runs ? pool : NULL;
    if (c->pool) return (c->block = mem_zalloc((uint64_t)BLOCKS_A_THREAD * c->threads, sizeof *c->block, "merging pairs of words")) ? 0 : -1;
    if (mem_grow(&c->source, &c->source_capacity, c->sources + c->threads, sizeof *c->source, "merging pairs of words")) return -1;
    for (unsigned t = 0; t < c->threads; t++)
        c->source[c->sources++] = (struct source){.events = c->events[t].keys, .count = c->events[t].count};
    struct source *source = c->source;
    c->source = NULL;
    return begin_merge(&c->all, c, source, c->sources, 0, c->text.words);
}

struct cooccur *cooccur_open(const struct cooccur_text *text, const struct cooccur_wanted *wanted, struct pool *pool) {
    struct cooccur *c = mem_zalloc(1, sizeof *c, "counts of pairs");
    if (!c) return NULL;
    c->text = *text, c->wanted = *wanted;
    c->threads = pool ? pool_threads(pool) : 1;
    c->shared = c->threads > 1;
    c->fd = -1;
    pthread_mutex_init(&c->lock, NULL);
    if (prepare_counts(c) || pool_run(pool, count_text, c) || pool_run(pool, sort_rest, c) || prepare_merge(c, pool)) {
        cooccur_close(c);
        return NULL;
    }
    return c;
}

void cooccur_close(struct cooccur *c) {
    if (!c) return;
    for (unsigned t = 0; c->events && t < c->threads; t++) free(c->events[t].keys), free(c->events[t].other);
    for (uint64_t i = 0; c->block && i < (uint64_t)BLOCKS_A_THREAD * c->threads; i++) free(c->block[i].pairs);
    end_merge(&c->all);
    if (c->fd >= 0) retry_close(c->fd);
    pthread_mutex_destroy(&c->lock);
    mem_free(c->events, c->source, c->block, c->triangle, c->weight, c);
}

int cooccur_next(struct cooccur *c, struct cooccur_pair *pair) {
    if (!c->pool) return next_pair(&c->all, pair);
    while (c->given == c->blocks || c->at == c->block[c->given].count) {
        if (c->given < c->blocks) c->given++, c->at = 0;
        else if (c->next_row == c->text.words) return 0;
        else if (begin_round(c)) return -1;
    }
    *pair = c->block[c->given].pairs[c->at++];
    return 1;
}
