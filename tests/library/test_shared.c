/* Tests a table that two processes share, through sptx.h alone. */
#include "../testing.h"

#include "sptx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "open_cpu.h"

enum { ROWS = 40, DIM = 5, COUNT = 64, STEPS = 4 };

static struct sptx_table *open_shared(struct sptx_context *context, const char *name, uint32_t owner, uint32_t rank, uint32_t ranks) {
    struct sptx_table_options options;
    struct sptx_table *table;
    sptx_table_defaults(&options, sizeof options);
    options.rows = ROWS;
    options.dim = DIM;
    options.optimizer = "adam";
    options.dtype = SPTX_BFLOAT16;
    options.shared = name;
    options.owner = owner;
    options.rank = rank;
    options.ranks = ranks;
    if (sptx_table_open(context, &options, &table)) fail_msg("%s", sptx_error(context));
    return table;
}

/* Trains places first .. end - 1 of some batches, and fetches all rows. */
static void train(struct sptx_table *table, uint64_t first, uint64_t end, float *rows) {
    int32_t all[ROWS], ids[COUNT];
    float gradients[COUNT * DIM];
    for (int i = 0; i < ROWS; i++) all[i] = i;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++) ids[i] = (i * i + step) % ROWS;
        for (int i = 0; i < COUNT * DIM; i++) gradients[i] = (float)(i % 7 - 3) * 0.37f;
        struct sptx_ids some = {ids + first, end - first, 32, SPTX_HOST};
        assert_int_equal(sptx_update(table, &some, gradients + first * DIM, SPTX_HOST, NULL), SPTX_OK);
    }
    assert_int_equal(sptx_table_barrier(table), SPTX_OK);
    struct sptx_ids every = {all, ROWS, 32, SPTX_HOST};
    assert_int_equal(sptx_fetch(table, &every, rows, SPTX_HOST, NULL), SPTX_OK);
    assert_int_equal(sptx_table_barrier(table), SPTX_OK);
}

static void two_processes_give_the_bytes_of_one(void **state) {
    float alone[ROWS * DIM], rows[ROWS * DIM], theirs[ROWS * DIM];
    char name[32];
    int ends[2], status;
    snprintf(name, sizeof name, "c-%d", (int)getpid());
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    struct sptx_context *context = open_cpu(2);
    struct sptx_table *table = open_shared(context, name, SPTX_EXACT, child == 0, 2);
    train(table, child ? 0 : COUNT / 3, child ? COUNT / 3 : COUNT, rows);
    sptx_close(context);
    if (!child) _exit(write(ends[1], rows, sizeof rows) != (ssize_t)sizeof rows);
    assert_int_equal(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    context = open_cpu(1);
    struct sptx_table_options options;
    sptx_table_defaults(&options, sizeof options);
    options.rows = ROWS;
    options.dim = DIM;
    options.optimizer = "adam";
    options.dtype = SPTX_BFLOAT16;
    assert_int_equal(sptx_table_open(context, &options, &table), SPTX_OK);
    train(table, 0, COUNT, alone);
    sptx_close(context);
    assert_memory_equal(rows, alone, sizeof rows);
    assert_memory_equal(rows, theirs, sizeof rows);
    close(ends[0]);
    close(ends[1]);
}

static void wrong_calls_are_refused(void **state) {
    struct sptx_context *context = open_cpu(1);
    struct sptx_table_options options;
    struct sptx_table *table;
    const struct {
        const char *name;
        uint32_t owner, rank, ranks;
    } wrong[] = {{"a/b", 0, 0, 1}, {"", 0, 0, 1}, {"a", 2, 0, 1}, {"a", 0, 1, 1}, {"a", 0, 0, 257}, {NULL, SPTX_LOCK_FREE, 0, 0}, {NULL, 0, 1, 2}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sptx_table_defaults(&options, sizeof options);
        options.rows = ROWS;
        options.dim = DIM;
        options.shared = wrong[i].name;
        options.owner = wrong[i].owner;
        options.rank = wrong[i].rank;
        options.ranks = wrong[i].ranks;
        assert_int_equal(sptx_table_open(context, &options, &table), SPTX_USAGE);
        assert_null(table);
    }
    assert_int_equal(sptx_table_barrier(NULL), SPTX_USAGE);
    table = open_shared(context, "c-alone", SPTX_LOCK_FREE, 0, 0);
    struct sptx_saving *saving;
    assert_int_equal(sptx_table_save_begin(table, "c-alone.npy", 0, &saving), SPTX_USAGE);
    assert_null(saving);
    int32_t id = ROWS;
    float gradient[DIM] = {0};
    struct sptx_ids ids = {&id, 1, 32, SPTX_HOST};
    assert_int_equal(sptx_update(table, &ids, gradient, SPTX_HOST, NULL), SPTX_USAGE);
    assert_int_equal(sptx_table_barrier(table), SPTX_OK);
    sptx_close(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_give_the_bytes_of_one),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
