#include "keys.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    FEW = 1 << 13, /* so few keys are found by one thread, because waking the others would take longer */
    AHEAD = 16,    /* each key's place in the index is loaded into the CPU's cache this many keys before it is read */
    COUNTERS = 4   /* number of counters that a key has in its block of the sketch */
};

struct key_place {
    uint64_t key;
    uint32_t after; /* 1 + the row of the key here; 0: no key is here */
    uint32_t nothing;
};

struct key_rank {
    uint64_t rank, key, born; /* rank: the number that decides when the key leaves, as it was when this entry was made */
    uint32_t row;
};

static inline uint64_t home_of(const struct keys *keys, uint64_t key) {
    return key_mix(key ^ keys->secret) >> (64 - keys->bits);
}

/* ---- opening ---- */

int keys_init(struct keys *keys, uint64_t capacity, uint64_t spare, enum keys_evict evict, uint32_t admit) {
    const char *what = "the index of a table's keys";
    char needed[32], unused[32];
    *keys = (struct keys){.capacity = capacity, .evict = evict, .admit = admit, .gone_from = UINT64_MAX};
    keys->blocks = admit > 1 ? capacity / 16 + 1 : 0;
    keys->bits = 4;
    while ((uint64_t)1 << keys->bits < capacity + capacity / 2) keys->bits++;
    uint64_t bytes = (sizeof *keys->place << keys->bits) + capacity * (sizeof *keys->row + sizeof *keys->draw) + keys->blocks * KEYS_BLOCK;
    uint64_t most = mem_available(); /* if memory is short, the system would still allocate it, and kill the process when it writes there */
    if (most && bytes > most)
        return fail("not enough memory for %s: %" PRIu64 " keys need %s, and %s are free", what, capacity, text_of_bytes(needed, bytes),
                    text_of_bytes(unused, most));
    if (getrandom(&keys->secret, sizeof keys->secret, GRND_NONBLOCK) < 0) keys->secret = (uintptr_t)keys;
    keys->place = mem_zalloc((uint64_t)1 << keys->bits, sizeof *keys->place, what);
    keys->row = mem_zalloc(capacity, sizeof *keys->row, what);
    keys->draw = mem_zalloc(capacity + spare, sizeof *keys->draw, what);
    keys->sketch = mem_zalloc(keys->blocks + 1, KEYS_BLOCK, what);
    keys->sketch_call = mem_zalloc(keys->blocks + 1, sizeof *keys->sketch_call, what);
    if (keys->place && keys->row && keys->draw && keys->sketch && keys->sketch_call) {
        mem_prefer_huge(keys->place, ((uint64_t)1 << keys->bits) * sizeof *keys->place);
        mem_prefer_huge(keys->row, capacity * sizeof *keys->row);
        return 0;
    }
    keys_release(keys);
    return -1;
}

void keys_release(struct keys *keys) {
    void *owned[] = {keys->place, keys->row,   keys->draw, keys->sketch, keys->sketch_call, keys->missed,
                     keys->fresh, keys->victim, keys->gone, keys->unused, keys->heap,        keys->spare};
    for (unsigned i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
    *keys = (struct keys){0};
}

/* ---- the index ---- */

static inline uint32_t row_of(const struct keys *keys, uint64_t key) {
    uint64_t mask = ((uint64_t)1 << keys->bits) - 1, at = home_of(keys, key);
    for (; keys->place[at].after; at = (at + 1) & mask)
        if (keys->place[at].key == key) return keys->place[at].after - 1;
    return KEYS_NONE;
}

/* Removes a key, and moves later keys back into the gap, so that no search ends before it has reached its key. */
static void remove_place(struct keys *keys, uint64_t key) {
    uint64_t mask = ((uint64_t)1 << keys->bits) - 1, hole = home_of(keys, key);
    while (keys->place[hole].key != key || !keys->place[hole].after) hole = (hole + 1) & mask;
    for (uint64_t at = (hole + 1) & mask; keys->place[at].after; at = (at + 1) & mask) {
        uint64_t home = home_of(keys, keys->place[at].key);
        if (((at - home) & mask) < ((at - hole) & mask)) continue; /* the key's search begins after the gap */
        keys->place[hole] = keys->place[at];
        hole = at;
    }
    keys->place[hole].after = 0;
}

/* ---- a call's keys, divided among threads ---- */

struct finding {
    struct keys *keys;
    const uint64_t *key;
    uint64_t count;
    uint32_t *row;
    unsigned workers;
    int sights, finds;      /* in keys_commit(): sights: 1 if each place of a key is a sight; finds: not 0 if the call has given rows to keys */
    _Atomic uint64_t named; /* in keys_plan(): number of different keys that have a row */
};

static int share_out(struct finding *finding, struct pool *pool, pool_job *job) {
    finding->workers = pool && finding->count > FEW ? pool_threads(pool) : 1;
    return finding->workers > 1 ? pool_run(pool, job, finding) : job(finding, 0);
}

static int find_share(void *context, unsigned worker) {
    struct finding *f = context;
    uint64_t first, end;
    pool_share(f->count, worker, f->workers, &first, &end);
    for (uint64_t i = first; i < first + AHEAD && i < end; i++) __builtin_prefetch(&f->keys->place[home_of(f->keys, f->key[i])]);
    for (uint64_t i = first; i < end; i++) {
        if (i + AHEAD < end) __builtin_prefetch(&f->keys->place[home_of(f->keys, f->key[i + AHEAD])]);
        f->row[i] = row_of(f->keys, f->key[i]);
    }
    return 0;
}

void keys_find(const struct keys *keys, struct pool *pool, const uint64_t *key, uint64_t count, uint32_t *row) {
    struct finding finding = {.keys = (struct keys *)(uintptr_t)keys, .key = key, .count = count, .row = row};
    share_out(&finding, pool, find_share);
}

static int name_share(void *context, unsigned worker) {
    struct finding *f = context;
    uint64_t first, end, named = 0, plan = f->keys->plans;
    find_share(context, worker);
    pool_share(f->count, worker, f->workers, &first, &end);
    for (uint64_t i = first; i < end; i++) {
        if (i + AHEAD < end && f->row[i + AHEAD] != KEYS_NONE) __builtin_prefetch(&f->keys->row[f->row[i + AHEAD]], 1);
        if (f->row[i] != KEYS_NONE) named += __atomic_exchange_n(&f->keys->row[f->row[i]].named, plan, __ATOMIC_RELAXED) != plan;
    }
    f->named += named;
    return 0;
}

static int count_share(void *context, unsigned worker) {
    struct finding *f = context;
    uint64_t first, end;
    pool_share(f->count, worker, f->workers, &first, &end);
    for (uint64_t i = first; i < end; i++) {
        if (i + AHEAD < end && f->row[i + AHEAD] != KEYS_NONE) __builtin_prefetch(&f->keys->row[f->row[i + AHEAD]], 1);
        if (f->row[i] == KEYS_NONE && f->finds) f->row[i] = row_of(f->keys, f->key[i]);
        if (f->row[i] == KEYS_NONE) continue;
        struct key_row *row = &f->keys->row[f->row[i]];
        if (f->sights) __atomic_fetch_add(&row->count, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&row->last, f->keys->clock, __ATOMIC_RELAXED);
    }
    return 0;
}

/* Sorts numbers in rising order, by radix sort over bytes; bytes that are equal in all numbers are skipped. */
static void sort_numbers(uint64_t *numbers, uint64_t *spare, uint64_t count) {
    uint64_t *from = numbers, *to = spare;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        uint64_t at[256] = {0}, sum = 0;
        for (uint64_t i = 0; i < count; i++) at[from[i] >> shift & 255]++;
        if (at[from[0] >> shift & 255] == count) continue;
        for (int i = 0; i < 256; i++) {
            uint64_t here = at[i];
            at[i] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < count; i++) to[at[from[i] >> shift & 255]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != numbers) memcpy(numbers, from, count * sizeof *numbers);
}

/* ---- the sketch ---- */

/* Sets counter[] to the four counters of a key; returns the number of the block that contains them. */
static uint64_t sketch_of(const struct keys *keys, uint64_t key, uint8_t *counter[COUNTERS]) {
    uint64_t hash = key_mix(key + 0x9E3779B97F4A7C15u), block = (hash >> 32) * keys->blocks >> 32;
    for (unsigned i = 0; i < COUNTERS; i++) /* the key has one of 16 counters in each quarter of its block */
        counter[i] = keys->sketch + block * KEYS_BLOCK + i * (KEYS_BLOCK / COUNTERS) + (hash >> (4 * i) & (KEYS_BLOCK / COUNTERS - 1));
    return block;
}

static unsigned sights_of(const struct keys *keys, uint64_t key) {
    uint8_t *counter[COUNTERS];
    unsigned least = UINT8_MAX;
    if (!keys->blocks) return 0;
    sketch_of(keys, key, counter);
    for (unsigned i = 0; i < COUNTERS; i++) least = *counter[i] < least ? *counter[i] : least;
    return least;
}

static void add_sights(struct keys *keys, uint64_t key, uint64_t sights) {
    uint8_t *counter[COUNTERS];
    keys->sketch_call[sketch_of(keys, key, counter)] = keys->clock;
    for (unsigned i = 0; i < COUNTERS; i++) *counter[i] = sights + *counter[i] < UINT8_MAX ? (uint8_t)(*counter[i] + sights) : UINT8_MAX;
    keys->sights += sights;
}

static void halve_sketch(struct keys *keys) {
    for (uint64_t i = 0; i < keys->blocks * KEYS_BLOCK; i++) keys->sketch[i] /= 2;
    for (uint64_t i = 0; i < keys->blocks; i++) keys->sketch_call[i] = keys->clock;
    keys->sights = 0;
}

/* ---- which key leaves ----
 *
 * A heap has an entry for each key, with the rank that the key had when the entry was made. Ranks only rise. So if the first entry still has its
 * key's present rank, that rank is the least of all; otherwise the entry is put back with the present rank. */

static struct key_rank entry_of(const struct keys *keys, uint32_t row) {
    return (struct key_rank){key_rank_of(&keys->row[row], keys->evict), keys->row[row].key, keys->row[row].born, row};
}

static inline int is_before(const struct key_rank *a, const struct key_rank *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->key < b->key;
}

static void sift_down(struct keys *keys, uint64_t at) {
    struct key_rank *heap = keys->heap, moved = heap[at];
    for (uint64_t child; (child = 2 * at + 1) < keys->heap_count; at = child) {
        if (child + 1 < keys->heap_count && is_before(&heap[child + 1], &heap[child])) child++;
        if (!is_before(&heap[child], &moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Adds an entry, unless there is no heap yet. If memory is short, frees the heap; it is made again when it is needed. */
static void push(struct keys *keys, uint32_t row) {
    if (!keys->heap_count) return;
    if (keys->heap_count == keys->heap_capacity) {
        keys->heap_count = 0;
        return;
    }
    uint64_t at = keys->heap_count++;
    struct key_rank entry = entry_of(keys, row);
    for (; at && is_before(&entry, &keys->heap[(at - 1) / 2]); at = (at - 1) / 2) keys->heap[at] = keys->heap[(at - 1) / 2];
    keys->heap[at] = entry;
}

static int make_heap(struct keys *keys) {
    uint64_t most = keys->capacity + keys->capacity / 2 + 1024;
    if (mem_reserve(&keys->heap, &keys->heap_capacity, most, sizeof *keys->heap, "which keys leave")) return -1;
    keys->heap_count = 0;
    for (uint64_t i = 0; i < keys->used; i++)
        if (keys->row[i].born) keys->heap[keys->heap_count++] = entry_of(keys, (uint32_t)i);
    for (uint64_t at = keys->heap_count / 2; at-- > 0;) sift_down(keys, at);
    return 0;
}

/* Takes the rows of the `wanted` keys that leave first off the heap; keys that this plan names stay. There are always enough keys. */
static int choose_victims(struct keys *keys, uint64_t wanted, uint64_t named) {
    if (keys->choose) {
        if (mem_grow(&keys->victim, &keys->victim_capacity, wanted, sizeof *keys->victim, "keys that leave") ||
            keys->choose(keys->chooser, wanted, keys->victim))
            return -1;
        keys->victim_count = wanted;
        return 0;
    }
    if ((!keys->heap_count && make_heap(keys)) ||
        mem_grow(&keys->victim, &keys->victim_capacity, wanted, sizeof *keys->victim, "keys that leave") ||
        mem_grow(&keys->spare, &keys->spare_capacity, (named + 1) * sizeof(uint32_t), 1, "keys that leave"))
        return -1;
    uint32_t *aside = keys->spare;
    uint64_t put_aside = 0;
    while (keys->victim_count < wanted) {
        INVARIANT(keys->heap_count > 0);
        struct key_rank top = keys->heap[0];
        const struct key_row *row = &keys->row[top.row];
        int is_there = row->born == top.born && row->key == top.key;
        if (is_there && key_rank_of(row, keys->evict) != top.rank) {
            keys->heap[0].rank = key_rank_of(row, keys->evict);
            sift_down(keys, 0);
            continue;
        }
        keys->heap[0] = keys->heap[--keys->heap_count];
        if (keys->heap_count) sift_down(keys, 0);
        if (!is_there) continue;
        if (row->named != keys->plans) keys->victim[keys->victim_count++] = top.row;
        else aside[put_aside++] = top.row;
    }
    if (!keys->heap_count && put_aside) return make_heap(keys); /* the victims are entries of the heap, and leave before it is used again */
    while (put_aside) push(keys, aside[--put_aside]);
    return 0;
}

/* ---- a call ---- */

/* Fails because there is no free row. The message names the first key of the call that would need one, if the call's keys are known. */
static int refuse_fresh(const struct keys *keys, const uint64_t *key, uint64_t count, const uint32_t *row, uint64_t named) {
    uint64_t i = 0;
    while (i < count && (row[i] != KEYS_NONE || !bsearch(&key[i], keys->fresh, keys->fresh_count, sizeof *key, mem_by_number))) i++;
    uint64_t first = i < count ? key[i] : keys->fresh[0];
    if (keys->evict != KEYS_STAY)
        return fail_usage("key %" PRIu64 " gets no row: this call names %" PRIu64 " keys, more than the capacity of %" PRIu64 " rows", first,
                          named + keys->fresh_count, keys->capacity);
    return fail_usage("key %" PRIu64 " gets no row: of %" PRIu64 " rows %" PRIu64 " are free, and this call brings %" PRIu64
                      " new keys; take a larger capacity, remove keys, or let some leave (evict)",
                      first, keys->capacity, keys->capacity - keys->count, keys->fresh_count);
}

static int reserve_missed(struct keys *keys, uint64_t missed) {
    keys->missed_count = keys->fresh_count = keys->fresh_places = keys->victim_count = 0;
    return missed && (mem_grow(&keys->missed, &keys->missed_capacity, missed, sizeof *keys->missed, "new keys") ||
                      mem_grow(&keys->fresh, &keys->fresh_capacity, missed, sizeof *keys->fresh, "new keys") ||
                      mem_grow(&keys->spare, &keys->spare_capacity, missed * sizeof *keys->missed, 1, "new keys"))
               ? -1
               : 0;
}

/* Sorts `missed`, writes the keys that get a row to `fresh`, and chooses the keys that leave for them. key, count, row: for the message if there is
 * no free row. */
static int plan_fresh(struct keys *keys, enum keys_call call, const uint64_t *key, uint64_t count, const uint32_t *row, uint64_t named) {
    uint64_t missed = keys->missed_count, unused = keys->capacity - keys->count, others = keys->count - named;
    if (missed) sort_numbers(keys->missed, keys->spare, missed);
    for (uint64_t i = 0, end; i < missed; i = end) {
        for (end = i + 1; end < missed && keys->missed[end] == keys->missed[i];) end++;
        if (call == KEYS_PUT || keys->admit == 1 || (call == KEYS_SEE && end - i + sights_of(keys, keys->missed[i]) >= keys->admit)) {
            keys->fresh[keys->fresh_count++] = keys->missed[i];
            keys->fresh_places += end - i;
        }
    }
    uint64_t leave = keys->fresh_count > unused ? keys->fresh_count - unused : 0;
    if (leave > (keys->evict == KEYS_STAY ? 0 : others)) return refuse_fresh(keys, key, count, row, named);
    if (!leave || (!keys_reserve(keys, leave) && !choose_victims(keys, leave, named))) return 0;
    keys_forget_plan(keys);
    return -1;
}

int keys_plan(struct keys *keys, struct pool *pool, enum keys_call call, const uint64_t *key, uint64_t count, uint32_t *row) {
    struct finding finding = {.keys = keys, .key = key, .count = count, .row = row};
    uint64_t missed = 0;
    keys->plans++;
    share_out(&finding, pool, name_share);
    for (uint64_t i = 0; i < count; i++) missed += row[i] == KEYS_NONE;
    if (reserve_missed(keys, missed)) return -1;
    for (uint64_t i = 0; missed && i < count; i++)
        if (row[i] == KEYS_NONE) keys->missed[keys->missed_count++] = key[i];
    return plan_fresh(keys, call, key, count, row, finding.named);
}

int keys_plan_missed(struct keys *keys, enum keys_call call, const uint64_t *missed, uint64_t missed_count, uint64_t named) {
    if (reserve_missed(keys, missed_count)) return -1;
    if (missed_count) memcpy(keys->missed, missed, missed_count * sizeof *missed);
    keys->missed_count = missed_count;
    return plan_fresh(keys, call, NULL, 0, NULL, named);
}

void keys_commit(struct keys *keys, struct pool *pool, enum keys_call call, const uint64_t *key, uint64_t count, uint32_t *row) {
    struct finding finding = {.keys = keys, .key = key, .count = count, .row = row, .sights = call == KEYS_SEE, .finds = keys->fresh_count > 0};
    keys->clock++;
    for (uint64_t i = 0; i < keys->victim_count; i++) keys_remove(keys, keys->victim[i]);
    for (uint64_t i = 0; i < keys->fresh_count; i++) {
        if (i + AHEAD < keys->fresh_count) __builtin_prefetch(&keys->place[home_of(keys, keys->fresh[i + AHEAD])], 1);
        keys_take(keys, &(struct key_row){.key = keys->fresh[i], .last = keys->clock, .born = keys->clock});
    }
    if (row) share_out(&finding, pool, count_share);
    for (uint64_t i = 0, end; call == KEYS_SEE && keys->blocks && i < keys->missed_count; i = end) {
        for (end = i + 1; end < keys->missed_count && keys->missed[end] == keys->missed[i];) end++;
        add_sights(keys, keys->missed[i], end - i);
    }
    if (keys->sights >= keys->blocks * KEYS_BLOCK && keys->blocks) halve_sketch(keys);
}

void keys_forget_plan(struct keys *keys) {
    keys->heap_count = keys->fresh_count = keys->missed_count = keys->victim_count = 0;
}

/* ---- one key ---- */

int keys_reserve(struct keys *keys, uint64_t removed) {
    if (mem_grow(&keys->unused, &keys->unused_capacity, keys->unused_count + removed, sizeof *keys->unused, "rows without a key")) return -1;
    if (keys->gone_from == UINT64_MAX) return 0;
    return mem_grow(&keys->gone, &keys->gone_capacity, keys->gone_count + removed, sizeof *keys->gone, "keys that have left");
}

void keys_remove(struct keys *keys, uint32_t row) {
    if (keys->gone_from != UINT64_MAX) keys->gone[keys->gone_count++] = (struct key_gone){keys->row[row].key, keys->clock};
    remove_place(keys, keys->row[row].key);
    keys->row[row] = (struct key_row){0};
    keys->unused[keys->unused_count++] = row;
    keys->count--;
}

uint32_t keys_take(struct keys *keys, const struct key_row *about) {
    INVARIANT(keys->count < keys->capacity && about->born && row_of(keys, about->key) == KEYS_NONE);
    uint32_t row = keys->unused_count ? keys->unused[--keys->unused_count] : (uint32_t)keys->used++;
    keys->row[row] = *about;
    keys->draw[row] = (uint32_t)(key_mix(about->key) >> 32);
    uint64_t mask = ((uint64_t)1 << keys->bits) - 1, at = home_of(keys, about->key);
    while (keys->place[at].after) at = (at + 1) & mask;
    keys->place[at] = (struct key_place){about->key, row + 1, 0};
    keys->count++;
    push(keys, row);
    return row;
}

/* ---- lists ---- */

int64_t keys_list(const struct keys *keys, uint64_t since, uint32_t **rows) {
    uint64_t count = 0, *key = mem_alloc(2 * keys->count + 1, sizeof *key, "a list of keys"); /* the system gives only the pages that are used */
    for (uint64_t i = 0; key && i < keys->used; i++) /* of a free row `last` is 0 */
        if (keys->row[i].last > since) key[count++] = keys->row[i].key;
    *rows = key ? mem_alloc(count + 1, sizeof **rows, "a list of keys") : NULL;
    if (*rows && count) sort_numbers(key, key + count, count);
    if (*rows) keys_find(keys, NULL, key, count, *rows);
    free(key);
    return *rows ? (int64_t)count : -1;
}

int64_t keys_list_gone(const struct keys *keys, uint64_t since, uint64_t **gone) {
    uint64_t count = 0, distinct = 0, *key = mem_alloc(2 * keys->gone_count + 1, sizeof *key, "keys that have left");
    INVARIANT(since >= keys->gone_from);
    *gone = key;
    if (!key) return -1;
    for (uint64_t i = 0; i < keys->gone_count; i++)
        if (keys->gone[i].call > since && row_of(keys, keys->gone[i].key) == KEYS_NONE) key[count++] = keys->gone[i].key;
    if (count) sort_numbers(key, key + count, count);
    for (uint64_t i = 0; i < count; i++)
        if (!distinct || key[i] != key[distinct - 1]) key[distinct++] = key[i];
    return (int64_t)distinct;
}

void keys_mark(struct keys *keys, uint64_t before) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < keys->gone_count; i++)
        if (keys->gone[i].call > before) keys->gone[kept++] = keys->gone[i];
    keys->gone_count = kept;
    keys->gone_from = before;
}
