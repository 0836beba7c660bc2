#include "tests/testing.h"

#include "base/pool.h"
#include "corpus/encode.h"
#include "corpus/words.h"
#include "tests/unit/scratch.h"

enum { MOST = 3000, ITEMS = 50, LISTS = 90 };

/* Random pairs. Some items have no row, and some lists have no item with a row. */
struct drawn {
    uint32_t numbers[3 * MOST], rows[ITEMS], list_rows[LISTS];
    struct pairs_met met;
};

static void draw(struct drawn *d, int list_rows, int weights) {
    uint64_t count = 1 + scratch_random(MOST - 1);
    for (uint32_t i = 0; i < ITEMS; i++) d->rows[i] = scratch_random(4) ? 1000 + i : WORDS_ABSENT;
    d->rows[7] = 1007;
    for (uint32_t i = 0; i < LISTS; i++) d->list_rows[i] = 2000 + i;
    for (uint64_t i = 0; i < count; i++) {
        float weight = (float)(1 + scratch_random(100));
        d->numbers[3 * i] = scratch_random(1 + scratch_random(LISTS - 1));
        d->numbers[3 * i + 1] = i ? scratch_random(ITEMS) : 7;
        memcpy(&d->numbers[3 * i + 2], &weight, sizeof weight);
    }
    d->met = (struct pairs_met){.count = count,
                                .stride = 3,
                                .ids = d->numbers + 1,
                                .names = d->numbers,
                                .weights = weights ? (const float *)(const void *)(d->numbers + 2) : NULL,
                                .rows = d->rows,
                                .list_rows = list_rows ? d->list_rows : NULL,
                                .list_numbers = LISTS};
}

/* Checks a stream against the pairs, list by list. */
static void holds_lists(const struct idstream *stream, const struct drawn *d) {
    int seen[LISTS] = {0};
    uint64_t at = 0, sentence = 0;
    for (uint64_t i = 0; i < d->met.count; i++) {
        uint32_t list = d->numbers[3 * i];
        if (d->rows[d->numbers[3 * i + 1]] == WORDS_ABSENT || seen[list]++) continue;
        assert_int_equal(stream->starts[sentence++], at);
        if (d->met.list_rows) {
            assert_int_equal(stream->ids[at], 2000 + list);
            assert_true(!stream->weights || stream->weights[at] == 0);
            at++;
        }
        for (uint64_t j = i; j < d->met.count; j++) {
            uint32_t row = d->rows[d->numbers[3 * j + 1]];
            if (d->numbers[3 * j] != list || row == WORDS_ABSENT) continue;
            assert_int_equal(stream->ids[at], row);
            float weight = d->met.weights ? d->met.weights[3 * j] : 1;
            assert_true(!stream->weights || stream->weights[at] == weight);
            at++;
        }
    }
    assert_int_equal(stream->sentences, sentence);
    assert_int_equal(stream->tokens, at);
    assert_int_equal(stream->starts[sentence], at);
}

static void lists_are_alike_with_any_threads_buckets_and_rounds(void **state) {
    struct drawn *d = malloc(sizeof *d);
    struct pool *pools[] = {pool_open(1), pool_open(2), pool_open(5)};
    for (unsigned round = 0; round < 120; round++) {
        struct idstream_writer writer;
        struct idstream stream;
        struct pool *pool = pools[round % 3];
        int weighed = (int)scratch_random(2);
        draw(d, round % 2, (int)scratch_random(2));
        d->met.bucket_ids = scratch_random(2) ? 1 + scratch_random(300) : 0;
        d->met.round_ids = scratch_random(2) ? 1 + scratch_random(2000) : 0;
        assert_int_equal(idstream_writer_open(&writer, in_scratch("ids")), 0);
        writer.pool = pool;
        writer.weighed = weighed ? PAIR_WEIGHTS_LINEAR : PAIR_WEIGHTS_NONE;
        assert_int_equal(group_pairs(&writer, &d->met, weighed, pool), 0);
        assert_int_equal(idstream_writer_commit(&writer, 5), 0);
        assert_int_equal(idstream_open(&stream, in_scratch("ids"), 5, 3000, pool), 0);
        assert_int_equal(stream.weights != NULL, weighed);
        holds_lists(&stream, d);
        idstream_close(&stream);
    }
    for (int p = 0; p < 3; p++) pool_close(pools[p]);
    free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_are_alike_with_any_threads_buckets_and_rounds, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
