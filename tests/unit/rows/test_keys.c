/* Tests the index of keys, mostly against a simple table that is searched from beginning to end. */
#include "../../testing.h"

#include "base/memory.h"
#include "rows/keys.h"

#include <inttypes.h>

enum { KEYS = 300, MOST = 64, THREADS = 3 };

struct model {
    uint64_t key[KEYS];
    struct key_row row[KEYS]; /* born = 0: the key has no row */
    uint64_t count, clock;
};

static uint64_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static uint64_t unmix(uint64_t x) { /* the inverse of the hash's mix */
    x ^= x >> 33;
    x *= 0x9CB4B2F8129337DBu;
    x ^= x >> 33;
    x *= 0x4F74430C22A54005u;
    return x ^ x >> 33;
}

/* A third of the keys have the same hash if the secret is 0. */
static void make_keys(struct model *m) {
    *m = (struct model){0};
    for (uint64_t i = 0; i < KEYS; i++) m->key[i] = i % 3 == 0 ? unmix((uint64_t)1 << 63 | i) : i % 3 == 1 ? i : UINT64_MAX - i;
    m->key[1] = 0;
    m->key[2] = UINT64_MAX;
}

static uint64_t rank_in(const struct model *m, enum keys_evict evict, int i) {
    return evict == KEYS_LFU ? m->row[i].count : evict == KEYS_AGE ? m->row[i].born : m->row[i].last;
}

/* Returns the index of the model's key that must leave first. A named key does not leave; returns -1 if all keys are named. */
static int first_to_leave(const struct model *m, enum keys_evict evict, const char *named) {
    int first = -1;
    for (int i = 0; i < KEYS; i++) {
        if (!m->row[i].born || named[i]) continue;
        uint64_t rank = rank_in(m, evict, i), least = first < 0 ? 0 : rank_in(m, evict, first);
        if (first < 0 || rank < least || (rank == least && m->key[i] < m->key[first])) first = i;
    }
    return first;
}

static void agree(const struct keys *keys, const struct model *m) {
    uint32_t *rows;
    assert_int_equal(keys->count, m->count);
    assert_int_equal(keys_list(keys, 0, &rows), m->count);
    for (uint64_t i = 1; i < m->count; i++) assert_true(keys->row[rows[i - 1]].key < keys->row[rows[i]].key);
    free(rows);
    uint32_t row[KEYS];
    keys_find(keys, NULL, m->key, KEYS, row);
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(row[i] != KEYS_NONE, m->row[i].born != 0);
        if (row[i] == KEYS_NONE) continue;
        const struct key_row *seen = &keys->row[row[i]];
        if (seen->key != m->key[i] || seen->count != m->row[i].count || seen->last != m->row[i].last || seen->born != m->row[i].born)
            fail_msg("key %" PRIu64 " has the count %" PRIu64 ", wanted %" PRIu64, seen->key, seen->count, m->row[i].count);
    }
}

/* One call of up to MOST places. */
static void call(struct keys *keys, struct model *m, struct pool *pool, uint64_t *state, enum keys_call how) {
    uint64_t count = 1 + draw(state) % MOST, range = 1 + draw(state) % KEYS, named = 0, fresh = 0, key[MOST];
    uint32_t row[MOST];
    int which[MOST];
    char here[KEYS] = {0};
    for (uint64_t i = 0; i < count; i++) key[i] = m->key[which[i] = (int)(draw(state) % range)];
    for (uint64_t i = 0; i < count; i++) {
        if (!here[which[i]]) (m->row[which[i]].born ? &named : &fresh)[0]++;
        here[which[i]] = 1;
    }
    uint64_t unused = keys->capacity - m->count, leave = fresh > unused ? fresh - unused : 0;
    int result = keys_plan(keys, pool, how, key, count, row);
    assert_int_equal(result != 0, leave > (keys->evict == KEYS_STAY ? 0 : m->count - named));
    if (result) return;
    assert_int_equal(keys->victim_count, leave);
    m->clock++;
    for (uint64_t v = 0; v < leave; v++) {
        int first = first_to_leave(m, keys->evict, here);
        assert_int_equal(keys->row[keys->victim[v]].key, m->key[first]);
        m->row[first].born = 0;
        m->count--;
    }
    keys_commit(keys, pool, how, key, count, row);
    for (uint64_t i = 0; i < count; i++) {
        struct key_row *of = &m->row[which[i]];
        if (!of->born) {
            *of = (struct key_row){.born = m->clock};
            m->count++;
        }
        of->last = m->clock;
        of->count += how == KEYS_SEE;
        assert_int_not_equal(row[i], KEYS_NONE);
        assert_int_equal(keys->row[row[i]].key, key[i]);
    }
}

static void remove_some(struct keys *keys, struct model *m, uint64_t *state) {
    uint64_t wanted = draw(state) % 8;
    assert_int_equal(keys_reserve(keys, wanted), 0);
    m->clock = ++keys->clock;
    while (wanted--) {
        uint32_t row;
        int i = (int)(draw(state) % KEYS);
        keys_find(keys, NULL, &m->key[i], 1, &row);
        if (row == KEYS_NONE) continue;
        keys_remove(keys, row);
        m->row[i].born = 0;
        m->count--;
    }
}

/* Environment: KEYS_OPERATIONS: number of keys that the calls of a run name in all; KEYS_SEED: another seed. */
static void run(enum keys_evict evict, uint64_t capacity, uint64_t secret) {
    const char *wanted = getenv("KEYS_OPERATIONS"), *seed = getenv("KEYS_SEED");
    uint64_t operations = wanted ? strtoull(wanted, NULL, 10) : 20000, state = 12345 + capacity + (seed ? strtoull(seed, NULL, 10) : 0);
    struct pool *pool = pool_open(THREADS);
    struct model m;
    struct keys keys;
    make_keys(&m);
    assert_int_equal(keys_init(&keys, capacity, 1, evict, 1), 0);
    if (!secret) keys.secret = 0;
    for (uint64_t n = 0; n < operations; n += MOST / 2) {
        uint64_t what = draw(&state) % 8;
        if (what == 0) remove_some(&keys, &m, &state);
        else call(&keys, &m, pool, &state, what < 5 ? KEYS_SEE : what < 7 ? KEYS_CHANGE : KEYS_PUT);
        if (n % 1024 == 0) agree(&keys, &m);
    }
    agree(&keys, &m);
    keys_release(&keys);
    pool_close(pool);
}

static void keys_and_evictions_are_those_of_a_plain_table(void **state) {
    for (int evict = KEYS_STAY; evict < KEYS_EVICTS; evict++)
        for (uint64_t capacity = 1; capacity < 2 * KEYS; capacity = capacity * 3 + 7)
            for (uint64_t secret = 0; secret < 2; secret++) run((enum keys_evict)evict, capacity, secret);
}

static void see(struct keys *keys, uint64_t key, uint64_t times) {
    uint64_t many[300];
    uint32_t row[300];
    for (uint64_t i = 0; i < times; i++) many[i] = key;
    assert_int_equal(keys_plan(keys, NULL, KEYS_SEE, many, times, row), 0);
    keys_commit(keys, NULL, KEYS_SEE, many, times, row);
    for (uint64_t i = 1; i < times; i++) assert_int_equal(row[i], row[0]);
}

static uint64_t count_of(const struct keys *keys, uint64_t key) {
    uint32_t row;
    keys_find(keys, NULL, &key, 1, &row);
    return row == KEYS_NONE ? 0 : keys->row[row].count;
}

static void a_key_gets_a_row_at_its_third_sight(void **state) {
    struct keys keys;
    assert_int_equal(keys_init(&keys, 100, 1, KEYS_STAY, 3), 0);
    see(&keys, 7, 1);
    see(&keys, 7, 1);
    assert_int_equal(keys.count, 0);
    see(&keys, 7, 1);
    assert_int_equal(count_of(&keys, 7), 1);
    see(&keys, 8, 300); /* all in one call */
    assert_int_equal(count_of(&keys, 8), 300);
    assert_int_equal(keys.count, 2);
    keys_release(&keys);
}

/* Keys share counters, so some keys may get rows too early, but most do not, and no key gets its row late. */
static void the_sketch_counts_no_sight_too_few(void **state) {
    enum { MANY = 1000, CAPACITY = 4000 };
    struct keys keys;
    assert_int_equal(keys_init(&keys, CAPACITY, 1, KEYS_STAY, 2), 0);
    for (uint64_t key = 0; key < MANY; key++) see(&keys, key * key * 7919, 1);
    assert_true(keys.count < MANY / 100);
    for (uint64_t key = 0; key < MANY; key++) see(&keys, key * key * 7919, 1);
    assert_int_equal(keys.count, MANY);
    keys_release(&keys);
}

static void counters_are_halved_after_many_sights(void **state) {
    struct keys keys;
    assert_int_equal(keys_init(&keys, 1, 1, KEYS_LRU, 200), 0);
    for (uint64_t key = 1; key <= KEYS_BLOCK - 1; key++) see(&keys, key, 1);
    uint64_t before = 0, after = 0;
    for (int i = 0; i < KEYS_BLOCK; i++) before += keys.sketch[i];
    see(&keys, 1000, 1);
    for (int i = 0; i < KEYS_BLOCK; i++) after += keys.sketch[i];
    assert_true(after < before && after > before / 4 && keys.sights == 0);
    keys_release(&keys);
}

/* Calls large enough to be shared out. */
static void threads_change_nothing(void **state) {
    enum { MANY = 30000, CALLS = 6 };
    uint64_t *key = mem_alloc(MANY, sizeof *key, "keys"), draws = 5;
    uint32_t *row[2] = {mem_alloc(MANY, sizeof **row, "rows"), mem_alloc(MANY, sizeof **row, "rows")};
    struct pool *pool = pool_open(THREADS);
    struct keys keys[2];
    for (int i = 0; i < 2; i++) assert_int_equal(keys_init(&keys[i], 20000, 1, KEYS_LFU, 2), 0);
    for (int n = 0; n < CALLS; n++) {
        for (uint64_t i = 0; i < MANY; i++) key[i] = draw(&draws) % 18000 * 0x9E3779B97F4A7C15u + (uint64_t)n / 2;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(keys_plan(&keys[i], i ? pool : NULL, KEYS_SEE, key, MANY, row[i]), 0);
            keys_commit(&keys[i], i ? pool : NULL, KEYS_SEE, key, MANY, row[i]);
        }
        assert_memory_equal(row[0], row[1], MANY * sizeof **row);
    }
    assert_true(keys[0].count == keys[1].count && keys[0].count > 15000);
    for (uint64_t i = 0; i < keys[0].used; i++) assert_memory_equal(&keys[0].row[i], &keys[1].row[i], sizeof *keys->row);
    for (int i = 0; i < 2; i++) {
        keys_release(&keys[i]);
        free(row[i]);
    }
    free(key);
    pool_close(pool);
}

static void keys_that_left_since_a_mark_are_listed_once(void **state) {
    struct keys keys;
    uint64_t *gone;
    assert_int_equal(keys_init(&keys, 2, 1, KEYS_LRU, 1), 0);
    see(&keys, 1, 1);
    see(&keys, 2, 1);
    keys_mark(&keys, keys.clock);
    uint64_t mark = keys.clock;
    see(&keys, 3, 1); /* 1 leaves */
    see(&keys, 1, 1); /* 2 leaves, 1 is back */
    see(&keys, 2, 1); /* 3 leaves, 2 is back */
    see(&keys, 3, 1); /* 1 leaves again */
    assert_int_equal(keys_list_gone(&keys, mark, &gone), 1);
    assert_int_equal(gone[0], 1);
    free(gone);
    keys_release(&keys);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_evictions_are_those_of_a_plain_table), cmocka_unit_test(a_key_gets_a_row_at_its_third_sight),
        cmocka_unit_test(the_sketch_counts_no_sight_too_few), cmocka_unit_test(counters_are_halved_after_many_sights), cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(keys_that_left_since_a_mark_are_listed_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
