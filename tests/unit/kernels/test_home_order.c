/* The order in which rows come home, with the GPU and the host's threads played by this program: a queue of what the GPU
 * has to do, which it does when it likes, and batches that the host finishes, the oldest first. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/home_order.h"

#include <cmocka.h>

enum { ROWS = 24, DEPTH = 8, STRIDE = 1 << 20, NO_BATCH = -1 };

struct batch {
    int number;
    enum home_way way;
    int rows[ROWS], count;
    int copied; /* direct: its rows are in their places; staged: in staging */
};

struct store {
    struct batch flight[DEPTH]; /* the oldest first */
    int in_flight, depth, made;
    int home[ROWS];   /* the batch whose value lies in the row's place */
    int newest[ROWS]; /* the newest batch that has changed the row */
    int mixed;        /* batches that went the other way than the one before */
    enum home_way last;
};

static uint64_t random_state;
static int below(int end) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int)((random_state >> 20) % (uint64_t)end);
}

static void put_home(struct store *s, const struct batch *b) {
    for (int i = 0; i < b->count; i++) s->home[b->rows[i]] = b->number;
}

/* The next thing in the GPU's queue: one stream, so in the order of the batches. */
static int gpu_goes_on(struct store *s) {
    for (int i = 0; i < s->in_flight; i++) {
        struct batch *b = &s->flight[i];
        if (b->copied) continue;
        b->copied = 1;
        if (b->way == HOME_DIRECT) put_home(s, b);
        return 1;
    }
    return 0;
}

static void finish_oldest(struct store *s) {
    while (!s->flight[0].copied) gpu_goes_on(s);
    if (s->flight[0].way == HOME_STAGED) put_home(s, &s->flight[0]);
    memmove(s->flight, s->flight + 1, (size_t)--s->in_flight * sizeof *s->flight);
}

/* A row that no batch in flight holds is read from its place: the newest value must lie there. */
static void check_rows(const struct store *s) {
    int held[ROWS] = {0};
    for (int i = 0; i < s->in_flight; i++)
        for (int j = 0; j < s->flight[i].count; j++) held[s->flight[i].rows[j]] = s->flight[i].way != HOME_NOTHING;
    for (int row = 0; row < ROWS; row++)
        if (!held[row]) assert_int_equal(s->newest[row], s->home[row]);
}

/* Of 0 to ROWS rows that count as 1 MiB each: on both sides of the threshold. */
static void start_batch(struct store *s, unsigned threads, int one_target) {
    enum home_way in_flight[DEPTH];
    for (int i = 0; i < s->in_flight; i++) in_flight[i] = s->flight[i].way;
    struct batch *b = &s->flight[s->in_flight];
    *b = (struct batch){.number = s->made++, .count = 0};
    int some = 2 + below(6);
    for (int row = 0; row < ROWS; row++)
        if (!below(some)) b->rows[b->count++] = row;
    struct home_load load = {.bytes = below(8) ? (uint64_t)b->count * STRIDE : 0,
                             .stride = HOME_STAGING_STRIDE,
                             .threads = threads,
                             .one_target = one_target};
    b->way = home_way(home_wanted(&load), in_flight, (unsigned)s->in_flight);
    if (b->way == HOME_NOTHING)
        b->count = 0; /* as if it were only measured */
    else if (b->way != s->last)
        s->mixed++, s->last = b->way;
    for (int i = 0; i < b->count; i++) s->newest[b->rows[i]] = b->number;
    s->in_flight++;
}

static void rows_land_in_the_order_of_their_batches(void **state) {
    int mixed = 0;
    for (int round = 0; round < 2000; round++) {
        struct store s = {.depth = 1 + round % DEPTH, .last = HOME_DIRECT};
        random_state = 1 + (uint64_t)round * 0x9E3779B97F4A7C15u;
        for (int row = 0; row < ROWS; row++) s.home[row] = s.newest[row] = NO_BATCH;
        for (int event = 0; event < 120; event++) {
            if (s.in_flight == s.depth || (s.in_flight && !below(3))) finish_oldest(&s);
            check_rows(&s);
            start_batch(&s, 8, 1);
            while (below(3) && gpu_goes_on(&s)) continue;
        }
        while (s.in_flight) finish_oldest(&s);
        check_rows(&s);
        mixed += s.mixed;
    }
    assert_in_range(mixed, 10000, 1000000); /* the ways do change */
}

static void few_threads_bytes_or_distinct_rows_and_wide_rows_go_directly(void **state) {
    struct home_load load = {.bytes = HOME_STAGING_BYTES,
                             .stride = HOME_STAGING_STRIDE,
                             .threads = HOME_STAGING_THREADS,
                             .one_target = 1},
                     less;
    assert_int_equal(HOME_STAGED, home_wanted(&load));
    less = load, less.stride++;
    assert_int_equal(HOME_DIRECT, home_wanted(&less));
    less = load, less.bytes--;
    assert_int_equal(HOME_DIRECT, home_wanted(&less));
    less = load, less.threads--;
    assert_int_equal(HOME_DIRECT, home_wanted(&less));
    less = load, less.one_target = 0;
    assert_int_equal(HOME_DIRECT, home_wanted(&less));
    less.in_file = 1, less.threads = 1, less.bytes = 1;
    assert_int_equal(HOME_STAGED, home_wanted(&less));
    less.bytes = 0;
    assert_int_equal(HOME_NOTHING, home_wanted(&less));
}

static void a_store_goes_on_by_staging_while_a_staged_batch_is_in_flight(void **state) {
    const enum home_way none[1] = {HOME_NOTHING}, direct[2] = {HOME_DIRECT, HOME_NOTHING},
                        staged[3] = {HOME_DIRECT, HOME_STAGED, HOME_NOTHING};
    assert_int_equal(HOME_DIRECT, home_way(HOME_DIRECT, none, 0));
    assert_int_equal(HOME_DIRECT, home_way(HOME_DIRECT, none, 1));
    assert_int_equal(HOME_DIRECT, home_way(HOME_DIRECT, direct, 2));
    assert_int_equal(HOME_STAGED, home_way(HOME_STAGED, direct, 2));
    assert_int_equal(HOME_STAGED, home_way(HOME_DIRECT, staged, 3));
    assert_int_equal(HOME_NOTHING, home_way(HOME_NOTHING, staged, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_land_in_the_order_of_their_batches),
        cmocka_unit_test(few_threads_bytes_or_distinct_rows_and_wide_rows_go_directly),
        cmocka_unit_test(a_store_goes_on_by_staging_while_a_staged_batch_is_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
