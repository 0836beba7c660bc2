#include "tests/testing.h"

#include "base/file.h"
#include "corpus/encode.h"
#include "tests/unit/scratch.h"

#include <stdlib.h>

enum { ENTITIES = 300, RELATIONS = 7, MET = 4000 };

struct triple {
    uint32_t head, relation, tail;
};
static int by_ids(const void *a, const void *b) {
    const struct triple *x = a, *y = b;
    return x->head != y->head           ? (x->head > y->head) - (x->head < y->head)
           : x->relation != y->relation ? (x->relation > y->relation) - (x->relation < y->relation)
                                        : (x->tail > y->tail) - (x->tail < y->tail);
}

/* Draws triples of numbers. Every ninth number of an entity has no row; a third of all triples have head 3. */
static void draw(struct triple *met) {
    uint32_t state = 1;
    for (int i = 0; i < MET; i++) {
        uint32_t drawn[3];
        for (int j = 0; j < 3; j++) drawn[j] = (state = state * 1664525u + 1013904223u) >> 8;
        met[i] = (struct triple){drawn[0] % 3 ? drawn[0] % ENTITIES : 3, drawn[1] % RELATIONS, drawn[2] % (i % 2 ? 5 : ENTITIES)};
    }
}

static void each_triple_is_written_once_in_order(void **state) {
    static struct triple met[MET], wanted[MET];
    uint32_t rows[ENTITIES], relation_rows[RELATIONS];
    uint64_t kept = 0, distinct = 0;
    draw(met);
    for (uint32_t i = 0; i < ENTITIES; i++) rows[i] = i % 9 == 8 ? WORDS_ABSENT : ENTITIES - 1 - i;
    for (uint32_t i = 0; i < RELATIONS; i++) relation_rows[i] = ENTITIES + (i + 3) % RELATIONS;
    for (int i = 0; i < MET; i++) {
        struct triple row = {rows[met[i].head], relation_rows[met[i].relation], rows[met[i].tail]};
        if (row.head != WORDS_ABSENT && row.tail != WORDS_ABSENT) wanted[kept++] = row;
    }
    qsort(wanted, kept, sizeof *wanted, by_ids);
    for (uint64_t i = 0; i < kept; i++)
        if (!i || by_ids(&wanted[i], &wanted[i - 1])) wanted[distinct++] = wanted[i];
    assert_true(distinct < kept && kept < MET);
    for (unsigned threads = 1; threads <= 4; threads += 3)
        for (uint64_t at_once = 0; at_once < 3000; at_once = at_once * 9 + 1) {
            struct triples_met given = {.count = MET,
                                        .stride = 3,
                                        .heads = &met->head,
                                        .relations = &met->relation,
                                        .tails = &met->tail,
                                        .rows = rows,
                                        .relation_rows = relation_rows,
                                        .entities = ENTITIES,
                                        .at_once = at_once};
            struct idstream_writer writer;
            struct idstream stream;
            struct pool *pool = pool_open(threads);
            assert_int_equal(idstream_writer_open(&writer, in_scratch("ids")), 0);
            writer.triples = 1;
            assert_int_equal(encode_triples(&writer, &given, pool), 0);
            assert_int_equal(idstream_writer_commit(&writer, 7), 0);
            assert_int_equal(idstream_open(&stream, in_scratch("ids"), 7, ENTITIES + RELATIONS, pool), 0);
            assert_int_equal(stream.triples, distinct);
            assert_memory_equal(stream.ids, wanted, distinct * sizeof *wanted);
            idstream_close(&stream);
            pool_close(pool);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_triple_is_written_once_in_order, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
