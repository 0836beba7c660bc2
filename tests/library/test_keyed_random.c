/* Random calls on tables by key, compared with a plain dictionary: an array over all keys that are ever named, searched from end to end.
 *
 *   test_keyed_random [OPERATIONS [SEED]]     default: 400,000 operations; a place of a key in a call is one, and so is a save
 *
 * The calls are fetch, find, update, store, remove, counts, keys and evicted; saves, with loading the table again; marks, changes that a second
 * table applies, changes that are applied twice; calls that are refused and must change nothing. Weights are compared bit for bit.
 */
#include "../testing.h"

#include "sptx.h"

#include "open_cpu.h"

#include <time.h>
#include <unistd.h>

enum { DIM = 3, MOST = 64, KEYS_MOST = 2003 };

static uint64_t operations = 400000, state = 1;

static uint64_t random_below(uint64_t end) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) % end;
}

/* The dictionary. `last`, `born`: numbers of calls, as in sptx.h. */
struct entry {
    uint64_t key, count, last, born; /* born = 0: the key has no row */
    float first[DIM], row[DIM];
    uint64_t named;                  /* number of the last call of the test that named the key */
};

struct world {
    struct sptx_context *context;
    struct sptx_keyed *table, *copy; /* copy: brought up to date by changes */
    struct sptx_table_options rows;
    struct sptx_keyed_options options;
    struct entry entry[KEYS_MOST]; /* [keys] by rising key */
    uint64_t keys, capacity, present, clock, named, done;
    struct sptx_mark mark;
    char path[3][128];               /* a whole save; changes; a save to compare with */
};

static int by_key(const void *a, const void *b) {
    uint64_t x = ((const struct entry *)a)->key, y = ((const struct entry *)b)->key;
    return (x > y) - (x < y);
}

static struct sptx_keyed *open_table(struct world *w) {
    struct sptx_keyed *keyed;
    if (sptx_keyed_open(w->context, &w->rows, &w->options, &keyed)) fail_msg("%s", sptx_error(w->context));
    return keyed;
}

static uint64_t rank(const struct world *w, const struct entry *e) {
    return w->options.evict == SPTX_EVICT_LRU ? e->last : w->options.evict == SPTX_EVICT_LFU ? e->count : e->born;
}

/* Takes the row from the key that must leave first, and compares that key and its row with the next ones of sptx_keyed_evicted(). */
static void leave(struct world *w) {
    struct entry *least = NULL;
    uint64_t key, count;
    float row[DIM];
    for (struct entry *e = w->entry; e < w->entry + w->keys; e++)
        if (e->born && e->named != w->named && (!least || rank(w, e) < rank(w, least))) least = e; /* of equal ones the least key is first */
    assert_non_null(least);
    assert_int_equal(sptx_keyed_evicted(w->table, &key, row, 1, &count), SPTX_OK);
    assert_int_equal(count, 1);
    assert_true(key == least->key);
    assert_memory_equal(row, least->row, sizeof row);
    least->born = least->count = least->last = 0;
    w->present--;
}

static void compare_saves(struct world *w, const char *one, const char *other) {
    static char bytes[2][1 << 20];
    size_t length[2];
    const char *paths[] = {one, other};
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(paths[i], "rb");
        assert_non_null(file);
        length[i] = fread(bytes[i], 1, sizeof bytes[i], file);
        fclose(file);
    }
    assert_true(length[0] == length[1] && length[0] < sizeof bytes[0]);
    assert_memory_equal(bytes[0], bytes[1], length[0]);
    w->done++;
}

static void save(struct world *w, struct sptx_keyed *keyed, const char *path, const struct sptx_mark *since) {
    if (sptx_keyed_save(keyed, path, since)) fail_msg("%s", sptx_error(w->context));
    w->done++;
}

/* Saves the changes since the last mark, brings the copy up to date, and compares the two; sometimes goes on with a table that is loaded. */
static void save_and_apply(struct world *w) {
    save(w, w->table, w->path[1], &w->mark);
    if (sptx_keyed_load(w->copy, w->path[1])) fail_msg("%s", sptx_error(w->context));
    save(w, w->table, w->path[0], NULL);
    save(w, w->copy, w->path[2], NULL);
    compare_saves(w, w->path[0], w->path[2]);
    struct sptx_mark before = w->mark;
    assert_int_equal(sptx_keyed_mark(w->table, &w->mark), SPTX_OK);
    if (w->mark.call != before.call) { /* the changes cannot be applied twice */
        assert_int_equal(sptx_keyed_load(w->copy, w->path[1]), SPTX_FAILED);
        save(w, w->copy, w->path[2], NULL);
        compare_saves(w, w->path[0], w->path[2]);
    }
    if (random_below(2)) return;
    sptx_keyed_close(w->table);
    w->table = open_table(w);
    if (sptx_keyed_load(w->table, w->path[0])) fail_msg("%s", sptx_error(w->context));
    assert_int_equal(sptx_keyed_mark(w->table, &w->mark), SPTX_OK);
}

static void compare_all(struct world *w) {
    static uint64_t keys[KEYS_MOST], given[KEYS_MOST], counts[KEYS_MOST];
    uint64_t count, at = 0;
    assert_int_equal(sptx_keyed_keys(w->table, keys, KEYS_MOST, &count), SPTX_OK);
    assert_true(count == w->present);
    for (uint64_t i = 0; i < w->keys; i++) {
        given[i] = w->entry[i].key;
        if (w->entry[i].born) assert_true(keys[at++] == w->entry[i].key);
    }
    assert_int_equal(sptx_keyed_counts(w->table, given, w->keys, counts), SPTX_OK);
    for (uint64_t i = 0; i < w->keys; i++) assert_true(counts[i] == w->entry[i].count);
    w->done += w->keys;
}

static void call(struct world *w) {
    enum { FETCH, UPDATE, STORE, FIND, REMOVE, KINDS };
    struct entry *which[MOST];
    uint64_t most = w->capacity < MOST && random_below(8) ? w->capacity : MOST; /* a call of more keys than rows is mostly refused */
    uint64_t key[MOST], count = random_below(most + 1), fresh = 0, distinct = 0, removed = 0, left = 0;
    float values[MOST * DIM], rows[MOST * DIM];
    uint8_t found[MOST];
    int kind = (int)random_below(KINDS + 3);
    kind = kind == KINDS ? FETCH : kind == KINDS + 1 ? FETCH : kind == KINDS + 2 ? UPDATE : kind;
    if (kind == REMOVE) count = random_below(4);
    w->named++;
    for (uint64_t i = 0; i < count; i++) { /* low numbers are named more often */
        uint64_t one = random_below(w->keys), other = random_below(w->keys);
        which[i] = i && !random_below(4) ? which[i - 1] : &w->entry[(one < other ? one : other) * 7919 % w->keys];
        key[i] = which[i]->key;
        if (which[i]->named != w->named) {
            fresh += !which[i]->born;
            distinct++;
        }
        which[i]->named = w->named;
        for (int c = 0; c < DIM; c++) values[i * DIM + c] = (float)((int)random_below(9) - 4) / 64;
    }
    w->done += count + 1;
    if (kind == FIND || kind == REMOVE) {
        enum sptx_status status = kind == FIND ? sptx_keyed_find(w->table, key, count, rows, found, SPTX_HOST, NULL)
                                               : sptx_keyed_remove(w->table, key, count, &removed);
        if (status) fail_msg("%s", sptx_error(w->context));
        for (uint64_t i = 0; i < count; i++) {
            struct entry *e = which[i];
            if (kind == FIND) {
                assert_int_equal(found[i], e->born != 0);
                assert_memory_equal(rows + i * DIM, e->born ? e->row : e->first, sizeof e->row);
            } else if (e->born) {
                e->born = e->count = e->last = 0;
                left++;
            }
        }
        w->present -= left;
        w->clock += left > 0;
        if (kind == REMOVE) assert_true(removed == left);
        return;
    }
    uint64_t unused = w->capacity - w->present, leaving = fresh > unused ? fresh - unused : 0, others = w->present - (distinct - fresh);
    int refused = leaving > (w->options.evict == SPTX_EVICT_NONE ? 0 : others);
    enum sptx_status status = kind == FETCH    ? sptx_keyed_fetch(w->table, key, count, rows, SPTX_HOST, NULL)
                              : kind == UPDATE ? sptx_keyed_update(w->table, key, count, values, SPTX_HOST, NULL)
                                               : sptx_keyed_store(w->table, key, count, values, SPTX_HOST, NULL);
    if (status != (refused ? SPTX_USAGE : SPTX_OK)) fail_msg("%s", sptx_error(w->context));
    if (refused || !count) return;
    w->clock++;
    while (leaving--) leave(w);
    for (uint64_t i = 0; i < count; i++) {
        struct entry *e = which[i];
        if (!e->born) {
            e->born = w->clock;
            memcpy(e->row, e->first, sizeof e->row);
            w->present++;
        }
        e->last = w->clock;
        if (kind == FETCH) {
            e->count++;
            assert_memory_equal(rows + i * DIM, e->row, sizeof e->row);
        } else if (kind == STORE) {
            memcpy(e->row, values + i * DIM, sizeof e->row);
        }
    }
    for (uint64_t i = 0; kind == UPDATE && i < count; i++) { /* sums are exact: gradients are few multiples of 1 / 64 */
        uint64_t before = 0;
        while (before < i && which[before] != which[i]) before++;
        if (before < i) continue;
        for (int c = 0; c < DIM; c++) {
            float sum = 0;
            for (uint64_t j = i; j < count; j++) sum += which[j] == which[i] ? values[j * DIM + c] : 0;
            which[i]->row[c] -= sum;
        }
    }
}

static void use(uint64_t capacity, uint32_t evict, uint64_t wanted) {
    static struct world world;
    struct world *w = &world;
    char directory[96];
    const char *base = getenv("TMPDIR");
    uint64_t key[KEYS_MOST];
    float rows[KEYS_MOST * DIM];
    *w = (struct world){.context = open_cpu(1), .capacity = capacity, .keys = 4 * capacity + 3};
    snprintf(directory, sizeof directory, "%s/sptx-keyed-XXXXXX", base && *base && strlen(base) < 64 ? base : "/tmp");
    assert_non_null(mkdtemp(directory));
    for (int i = 0; i < 3; i++) snprintf(w->path[i], sizeof w->path[i], "%s/%d", directory, i);
    sptx_table_defaults(&w->rows, sizeof w->rows);
    sptx_keyed_defaults(&w->options, sizeof w->options);
    w->rows.rows = capacity;
    w->rows.dim = DIM;
    w->rows.lr = 1;
    w->options.evict = evict;
    for (uint64_t i = 0; i < w->keys; i++) /* the edges, neighbours, and keys whose low or high halves are equal */
        w->entry[i].key = i < 2 ? 0 - i : i < 4 ? (uint64_t)1 << 63 >> (i - 2) * 31 : i % 3 ? i : i << 32 | (uint64_t)i % 2;
    qsort(w->entry, w->keys, sizeof *w->entry, by_key);
    w->table = open_table(w);
    w->copy = open_table(w);
    for (uint64_t i = 0; i < w->keys; i++) {
        key[i] = w->entry[i].key;
        assert_true(!i || key[i - 1] < key[i]);
    }
    assert_int_equal(sptx_keyed_find(w->table, key, w->keys, rows, NULL, SPTX_HOST, NULL), SPTX_OK);
    for (uint64_t i = 0; i < w->keys; i++) memcpy(w->entry[i].first, rows + i * DIM, sizeof w->entry[i].first);
    save(w, w->table, w->path[0], NULL);
    if (sptx_keyed_load(w->copy, w->path[0])) fail_msg("%s", sptx_error(w->context));
    assert_int_equal(sptx_keyed_mark(w->table, &w->mark), SPTX_OK);
    while (w->done < wanted) {
        uint64_t what = random_below(2048);
        if (what < 2) save_and_apply(w);
        else if (what < 12) compare_all(w);
        else call(w);
    }
    compare_all(w);
    save_and_apply(w);
    struct sptx_keyed_numbers numbers = {.size = sizeof numbers};
    assert_int_equal(sptx_keyed_about(w->table, &numbers), SPTX_OK);
    assert_true(numbers.keys == w->present && numbers.calls == w->clock && !numbers.lost && !numbers.evicted);
    sptx_close(w->context);
    for (int i = 0; i < 3; i++) unlink(w->path[i]);
    assert_int_equal(rmdir(directory), 0);
}

static void all_calls_agree_with_a_dictionary(void **unused) {
    const uint64_t capacities[] = {1, 7, 100, 500};
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 4; i++)
        for (uint32_t evict = SPTX_EVICT_NONE; evict <= SPTX_EVICT_AGE; evict++) use(capacities[i], evict, operations / 16);
    clock_gettime(CLOCK_MONOTONIC, &end);
    print_message("%llu operations in %.0f s, no difference\n", (unsigned long long)operations,
                  (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_calls_agree_with_a_dictionary)};
    if (argc > 1) operations = strtoull(argv[1], NULL, 10);
    if (argc > 2) state = strtoull(argv[2], NULL, 10) | 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
