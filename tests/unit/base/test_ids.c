#include "base/checks.h"

#include "tests/testing.h"

enum { MOST = 40 };
static const uint64_t ROWS[] = {1, 2, 1000, INT32_MAX, (uint64_t)INT32_MAX + 1, (uint64_t)INT32_MAX + 2, UINT32_MAX - 1};

/* Converts `count` ids, one of which is wrong, at an address that is not a multiple of 16 bytes. */
static void check_take(unsigned bits, uint64_t rows, uint64_t count, uint64_t place, int64_t id) {
    int64_t wide[MOST + 1];
    int32_t narrow[MOST + 1];
    uint32_t to[MOST + 2];
    const uint64_t most = bits == 32 && rows > INT32_MAX ? INT32_MAX : rows;
    memset(to, 0xAA, sizeof to);
    for (uint64_t i = 0; i < count; i++) {
        wide[i + 1] = i == place ? id : (int64_t)((most - 1 - i % most) % most);
        narrow[i + 1] = (int32_t)wide[i + 1];
    }
    int wrong = ids_take(bits == 64 ? (void *)(wide + 1) : (void *)(narrow + 1), bits, count, rows, to + 1);
    assert_int_equal(wrong, place < count && (id < 0 || (uint64_t)id >= rows));
    for (uint64_t i = 0; i < count; i++) assert_int_equal(to[i + 1], (uint32_t)wide[i + 1]);
    assert_int_equal(to[0], 0xAAAAAAAA);
    assert_int_equal(to[count + 1], 0xAAAAAAAA);
}

static void ids_are_taken_and_the_wrong_ones_found(void **state) {
    for (size_t r = 0; r < sizeof ROWS / sizeof *ROWS; r++) {
        const int64_t last = (int64_t)ROWS[r] - 1;
        const int64_t far = INT64_C(1) << 32;
        const int64_t ids[] = {0,   last,       last + 1, -1,        INT32_MAX, INT32_MIN, UINT32_MAX,
                               far, far + last, -far,     far << 30, INT64_MAX, INT64_MIN};
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
            for (uint64_t count = 0; count <= MOST; count++)
                for (uint64_t place = 0; place <= count; place++) { /* place == count: no id is wrong */
                    check_take(64, ROWS[r], count, place, ids[i]);
                    if (ids[i] == (int32_t)ids[i]) check_take(32, ROWS[r], count, place, ids[i]);
                }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids_are_taken_and_the_wrong_ones_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
