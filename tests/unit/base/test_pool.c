#include "base/pool.h"
#include "base/report.h"

#include "tests/testing.h"

static int fresh(void **state) {
    report_clear();
    return 0;
}

struct counting {
    unsigned seen[16];      /* number of runs of each worker; each worker counts its own */
    _Atomic uint64_t taken; /* next index for pool_take() */
    _Atomic uint64_t sum;
    uint64_t count, grain;
    unsigned char *touched; /* [count] */
    unsigned fails;         /* number of the worker that fails; 16 or more: no worker fails */
};

static int count_job(void *context, unsigned worker) {
    struct counting *c = context;
    uint64_t first, end;
    c->seen[worker]++;
    while (pool_take(&c->taken, c->count, c->grain, &first, &end))
        for (uint64_t i = first; i < end; i++) c->touched[i]++, c->sum += i;
    return worker == c->fails ? (fail)("worker %u failed", worker) : 0;
}

static void every_worker_runs_once_a_job(void **state) {
    for (unsigned threads = 1; threads <= 5; threads++) {
        struct pool *pool = pool_open(threads);
        struct counting c = {.fails = 99};
        assert_non_null(pool);
        assert_int_equal(pool_threads(pool), threads);
        for (unsigned round = 1; round <= 2000; round++) {
            assert_int_equal(pool_run(pool, count_job, &c), 0);
            for (unsigned i = 0; i < 16; i++) assert_int_equal(c.seen[i], i < threads ? round : 0);
        }
        pool_close(pool);
    }
}

static void taken_work_covers_everything_once(void **state) {
    struct pool *pool = pool_open(4);
    static const uint64_t counts[] = {0, 1, 63, 64, 65, 10007}, grains[] = {1, 64, 1000000};
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 3; j++) {
            struct counting c = {
                .count = counts[i], .grain = grains[j], .touched = calloc(counts[i] + 1, 1), .fails = 99};
            assert_int_equal(pool_run(pool, count_job, &c), 0);
            for (uint64_t k = 0; k < counts[i]; k++) assert_int_equal(c.touched[k], 1);
            assert_int_equal(c.touched[counts[i]], 0);
            assert_true(c.sum == (counts[i] ? counts[i] * (counts[i] - 1) / 2 : 0));
            free(c.touched);
        }
    pool_close(pool);
}

static void shares_cover_everything_in_order(void **state) {
    static const uint64_t counts[] = {0, 1, 3, 7, 8, 9, 1000003, UINT64_MAX / 2};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (unsigned workers = 1; workers < 9; workers++) {
            uint64_t behind = 0;
            for (unsigned worker = 0; worker < workers; worker++) {
                uint64_t first, end;
                pool_share(counts[i], worker, workers, &first, &end);
                assert_true(first == behind && end >= first);
                assert_true(end - first - counts[i] / workers <= 1);
                behind = end;
            }
            assert_true(behind == counts[i]);
        }
}

static void one_failure_fails_the_job_and_not_the_next(void **state) {
    struct pool *pool = pool_open(3);
    for (unsigned worker = 0; worker < 3; worker++) {
        struct counting c = {.fails = worker};
        assert_int_equal(pool_run(pool, count_job, &c), -1);
        assert_non_null(strstr(report_sentence(), "failed"));
        report_clear();
        c.fails = 99;
        assert_int_equal(pool_run(pool, count_job, &c), 0);
    }
    pool_close(pool);
}

static void no_number_means_the_cores(void **state) {
    struct pool *pool = pool_open(0);
    assert_true(pool_cores() >= 1);
    assert_int_equal(pool_threads(pool), pool_cores());
    pool_close(pool);
    pool_close(NULL); /* closing NULL does no harm */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(every_worker_runs_once_a_job, fresh),
                                       cmocka_unit_test_setup(taken_work_covers_everything_once, fresh),
                                       cmocka_unit_test_setup(shares_cover_everything_in_order, fresh),
                                       cmocka_unit_test_setup(one_failure_fails_the_job_and_not_the_next, fresh),
                                       cmocka_unit_test_setup(no_number_means_the_cores, fresh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
