#include "tests/testing.h"

#include "run/state.h"
#include "tests/unit/scratch.h"

#include <xxhash.h>

#include "tests/unit/sentence.h"

static const struct run_state example = {
    .progress = {.step = 40, .epoch = 2, .position = 12345678901, .words = UINT64_MAX, .pairs = 77, .seconds = 1.0 / 3,
                 .finished = 1},
    .corpus = {.vocab = 0xFEDCBA9876543210, .stream = 0x0123456789ABCDEF},
    .target = {.bytes = 1ull << 60, .xxh64 = 1},
    .context = {.bytes = 5, .xxh64 = UINT64_MAX},
    .target_first = 40981,
    .known = {.bytes = 77, .xxh64 = 3},
};

static void assert_same(const struct run_state *a, const struct run_state *b) {
    assert_int_equal(a->progress.step, b->progress.step);
    assert_int_equal(a->progress.epoch, b->progress.epoch);
    assert_true(a->progress.position == b->progress.position);
    assert_true(a->progress.words == b->progress.words);
    assert_int_equal(a->progress.pairs, b->progress.pairs);
    assert_true(a->progress.seconds == b->progress.seconds); /* the numbers must be the same to the last bit */
    assert_int_equal(a->progress.finished, b->progress.finished);
    assert_memory_equal(&a->corpus, &b->corpus, sizeof a->corpus);
    assert_memory_equal(&a->target, &b->target, sizeof a->target);
    assert_memory_equal(&a->context, &b->context, sizeof a->context);
    assert_int_equal(a->target_first, b->target_first);
    assert_memory_equal(&a->known, &b->known, sizeof a->known);
}

/* Writes the example's state.ini, leaves out the line that contains `without`, appends `more`, and makes the checksum right. */
static void write_changed(const char *without, const char *more) {
    char changed[4096] = "", last[64], *text, *rest;
    assert_int_equal(0, state_write(scratch, &example));
    rest = text = file_read(in_scratch("state.ini"), NULL);
    for (char *line; (line = strsep(&rest, "\n")) && *line;)
        if (strncmp(line, "state_xxh64", 11) && (!without || !strstr(line, without))) strcat(strcat(changed, line), "\n");
    strcat(changed, more);
    snprintf(last, sizeof last, "state_xxh64 = %016" PRIx64 "\n", (uint64_t)XXH64(changed, strlen(changed), 0));
    scratch_text("state.ini", strcat(changed, last));
    free(text);
}

static void what_is_written_is_read(void **state) {
    struct run_state read;
    int broken;
    assert_int_equal(0, state_write(scratch, &example));
    assert_int_equal(0, state_read(scratch, &read, &broken));
    assert_same(&example, &read);
    struct run_state none = {.progress = {0}};
    assert_int_equal(0, state_write(scratch, &none));
    assert_int_equal(0, state_read(scratch, &read, &broken));
    assert_same(&none, &read);
}

static void keys_may_be_more(void **state) {
    struct run_state read;
    int broken;
    write_changed(NULL, "temper = good\n");
    assert_int_equal(0, state_read(scratch, &read, &broken));
    assert_same(&example, &read);
}

static void numbers_of_few_runs_are_written_where_they_are_not_zero(void **state) {
    struct run_state read, plain = example;
    int broken;
    write_changed("target_first_row", "");
    assert_int_equal(0, state_read(scratch, &read, &broken));
    assert_int_equal(0, read.target_first);
    plain.target_first = 0, plain.known = (struct table_file){0, 0};
    assert_int_equal(0, state_write(scratch, &plain));
    char *text = file_read(in_scratch("state.ini"), NULL);
    assert_null(strstr(text, "target_first_row"));
    assert_null(strstr(text, "known"));
    free(text);
}

static void none_of_the_other_keys_may_lack(void **state) {
    static const char *const keys[] = {"step", "epoch", "position", "words", "pairs", "seconds", "finished", "target_bytes",
                                       "target_xxh64", "context_bytes", "context_xxh64", "vocab_xxh64", "stream_xxh3"};
    struct run_state read;
    int broken;
    for (int i = 0; i < 13; i++) {
        char line[32], wanted[64];
        snprintf(line, sizeof line, "%s = ", keys[i]);
        snprintf(wanted, sizeof wanted, "state.ini' has no key '%s'", keys[i]);
        write_changed(line, "");
        assert_int_equal(-1, state_read(scratch, &read, &broken));
        assert_int_equal(1, broken);
        sentence_holds(wanted);
    }
}

static void damage_is_told_from_what_cannot_be_read(void **state) {
    struct run_state read;
    int broken = 0;
    assert_int_equal(-1, state_read(scratch, &read, &broken));
    assert_int_equal(1, broken); /* the file is absent */
    sentence_holds("state.ini': No such file");
    scratch_text("state.ini", "[state]\nstep = many\n");
    broken = 0;
    assert_int_equal(-1, state_read(scratch, &read, &broken));
    assert_int_equal(1, broken);
    sentence_holds("state.ini' line 2 is damaged");
    for (int i = 0; i < 3; i++) { /* no clock gives such numbers */
        static const char *const lines[] = {"seconds = inf\n", "seconds = nan\n", "seconds = -1\n"};
        write_changed("seconds", lines[i]);
        assert_int_equal(-1, state_read(scratch, &read, &broken));
        assert_int_equal(1, broken);
        sentence_holds("state.ini' line 1");
    }
    assert_int_equal(0, truncate(in_scratch("state.ini"), (off_t)3 << 30)); /* a file of 3 GiB must be refused before it is read
                                                                             * into memory */
    broken = 0;
    assert_int_equal(-1, state_read(scratch, &read, &broken));
    assert_int_equal(1, broken);
    sentence_holds("state.ini' is damaged: it has more than 65536 bytes");
    assert_int_equal(0, file_remove(in_scratch("state.ini")));
    assert_int_equal(0, directory_make(in_scratch("state.ini")));
    assert_int_equal(-1, state_read(scratch, &read, &broken));
    assert_int_equal(0, broken);
    sentence_holds("state.ini' is not a plain file");
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(what_is_written_is_read),
        IN_SCRATCH(keys_may_be_more),
        IN_SCRATCH(numbers_of_few_runs_are_written_where_they_are_not_zero),
        IN_SCRATCH(none_of_the_other_keys_may_lack),
        IN_SCRATCH(damage_is_told_from_what_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
