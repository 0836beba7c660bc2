/* Tests which rows the keys freeze, and writes and reads known.npy. */
#include "tests/testing.h"

#include "run/model_files.h"
#include "tests/unit/scratch.h"

static struct frozen frozen_of(int freeze, uint64_t rows) {
    struct config config = {.train_freeze = freeze};
    struct frozen frozen;
    assert_int_equal(frozen_init(&frozen, &config, rows), 0);
    return frozen;
}

static void what_the_keys_say(void **state) {
    struct frozen none = frozen_of(FREEZE_NONE, 40), target = frozen_of(FREEZE_TARGET, 40),
                  context = frozen_of(FREEZE_CONTEXT, 40), known = frozen_of(FREEZE_KNOWN, 40);
    assert_true(!none.bits[0] && !none.bits[1] && !target.bits[1] && !context.bits[0]);
    for (uint32_t row = 0; row < 40; row++) {
        assert_true(row_has_bit(target.bits[TABLE_TARGET], row) && row_has_bit(context.bits[TABLE_CONTEXT], row));
        assert_true(!row_has_bit(known.bits[TABLE_TARGET], row) && !row_has_bit(none.bits[TABLE_TARGET], row));
    }
    assert_true(!frozen_bytes(&none) && !frozen_bytes(&target) && frozen_bytes(&known));
    frozen_release(&none), frozen_release(&target), frozen_release(&context), frozen_release(&known);
}

/* The numbers of rows are below, at and above multiples of 32, the rows of a word of the mask. */
static void to_disk_and_back(void **state) {
    static const uint64_t sizes[] = {1, 31, 32, 33, 64, 1000};
    char *path = in_scratch("known.npy");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t rows = sizes[i], first, again;
        struct frozen written = frozen_of(FREEZE_KNOWN, rows), read = frozen_of(FREEZE_KNOWN, rows);
        for (uint64_t row = 0; row < rows; row++)
            for (int side = 0; side < 2; side++)
                if (scratch_random(2)) frozen_add(&written, (enum table_side)side, row);
        frozen_add(&written, TABLE_CONTEXT, rows - 1);
        assert_int_equal(frozen_write(&written, path, &first), 0);
        assert_true((uint64_t)file_size(path) <= frozen_bytes(&written));
        assert_int_equal(frozen_read(&read, path), 0);
        for (int side = 0; side < 2; side++)
            assert_memory_equal(written.bits[side], read.bits[side], table_frozen_words(rows) * sizeof(uint32_t));
        assert_int_equal(frozen_write(&read, path, &again), 0);
        assert_true(first == again);
        frozen_release(&read);
        read = frozen_of(FREEZE_KNOWN, rows + 32);
        assert_int_equal(frozen_read(&read, path), -1);
        assert_non_null(strstr(report_sentence(), "which came from train.from"));
        report_clear();
        frozen_release(&written), frozen_release(&read);
    }
}

static void other_files_are_refused(void **state) {
    struct frozen frozen = frozen_of(FREEZE_KNOWN, 32);
    struct file_writer writer;
    struct npy npy = {.rows = 1, .fields = 1, .field = {{.columns = 2, .kind = 'f'}}};
    char *path = in_scratch("known.npy");
    assert_int_equal(frozen_read(&frozen, path), -1);
    report_clear();
    assert_int_equal(file_writer_open(&writer, path), 0);
    assert_true(!npy_write_header(&npy, &writer) && !file_write(&writer, "12345678", 8) && !file_commit(&writer));
    assert_int_equal(frozen_read(&frozen, path), -1);
    assert_non_null(strstr(report_sentence(), "which came from train.from"));
    frozen_release(&frozen);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_the_keys_say, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(to_disk_and_back, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(other_files_are_refused, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
