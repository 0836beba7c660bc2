/* test_together WHAT|DIRECTORY: what ranks do together, for tests/cli/test_ranks*.py to begin under mpirun.
 *
 *   sum     sums of many sizes, held bit by bit against the parts added up in rank order; exit code 0
 *   agree   rank 1 fails and all agree on it: one sentence, exit code 1 of all
 *   alone   rank 1 fails while the others wait in a sum: it must end them
 *   replicas   rows that they move in tables of their own: the first 4,096 are exchanged each time, all every tenth time.
 *           On GPUs with SPTX_BACKEND=cuda; "replicas by host", "replicas by nccl": with that way of exchange
 *   DIRECTORY   tables of several chunks are saved there and loaded: their files are those of one rank, to the byte
 */
#include "kernels/backend.h"
#include "kernels/ranks.h"
#include "base/memory.h"
#include "base/report.h"
#include "rows/table.h"
#include "train/replicas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a rank's part of a value. No sum of two of these is exact. */
static float part(unsigned rank, uint64_t i) {
    uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15u * (2 * rank + 1);
    return (float)(int32_t)(mixed >> 32) * 1e-6f;
}

static int check_sum(struct ranks *ranks, uint64_t count) {
    float *values = mem_alloc(count, sizeof *values, "values");
    int result = values ? 0 : -1;
    for (uint64_t i = 0; i < count && !result; i++) values[i] = part(ranks->number, i);
    if (!result) result = ranks_sum(ranks, values, count);
    for (uint64_t i = 0; i < count && !result; i++) {
        float sum = part(0, i);
        for (unsigned r = 1; r < ranks->count; r++) sum += part(r, i);
        if (memcmp(&sum, values + i, sizeof sum))
            result = fail("value %" PRIu64 " of %" PRIu64 " is %.9g, wanted %.9g", i, count, (double)values[i], (double)sum);
    }
    free(values);
    return result;
}

static int check_sums(struct ranks *ranks) {
    const uint64_t sizes[] = {0, 1, 2, 3, 5, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) + 7};
    int result = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !result; i++) result = ranks_agree(ranks, check_sum(ranks, sizes[i]));
    if (!result && ranks_any(ranks, 1u << ranks->number) != (1u << ranks->count) - 1) result = fail("not every rank's bit came");
    return ranks_agree(ranks, result);
}

/* ---- tables ---- */

/* Files of 3.2, 1 and 0.1 chunks of 16 MiB, and of two rows; columns that are no groups of four; with state, and with a
 * count a row. */
static const struct {
    uint64_t rows;
    uint32_t dim;
    enum rule rule;
} tables[] = {{260000, 50, RULE_SGD}, {83886, 50, RULE_SGD}, {700, 13, RULE_ADAM}, {2, 5, RULE_SPARSE_ADAM}, {60000, 70, RULE_ADAM}};

static int open_table(struct table *table, struct backend *backend, int number, struct ranks *ranks) {
    const struct table_options options = {.rows = tables[number].rows,
                                          .dim = tables[number].dim,
                                          .rule = {.rule = tables[number].rule, .count_rows = tables[number].rule == RULE_ADAM},
                                          .init = {INIT_NORMAL, 0, 1},
                                          .seed = 5,
                                          .ranks = ranks};
    return table_init(table, TABLE_TARGET, &options, &backend_cpu, backend);
}

/* Sets all values to zero, so that what is loaded shows. */
static int clear(struct table *table) {
    char *rows = mem_zalloc(table->spec.rows, table->spec.layout.packed, "rows");
    int result = rows ? table->ops->table_write(table->backend, table->store, 0, table->spec.rows, rows) : -1;
    free(rows);
    return result;
}

static int fill(struct table *table) {
    struct pool *pool = pool_open(1);
    int result = pool ? table_fill(table, pool) : -1;
    pool_close(pool);
    return result;
}

/* A single rank must write the same file, and have the same bytes after loading. Each rank writes a file of its own. */
static int save_alone(struct backend *backend, int number, const char *path, uint64_t *checksum) {
    struct table table;
    int result = open_table(&table, backend, number, NULL);
    if (!result) result = fill(&table) || table_save(&table, path, checksum) ? -1 : 0;
    table_release(&table);
    return result;
}

static int same_files(const char *one, const char *other) {
    uint64_t length, other_length;
    char *bytes = file_read(one, &length), *others = file_read(other, &other_length);
    int same = bytes && others && length == other_length && !memcmp(bytes, others, length);
    free(bytes);
    free(others);
    return same;
}

static int check_table(struct ranks *ranks, struct backend *backend, int number, const char *directory) {
    struct table table;
    uint64_t checksum = 0, wanted = 0;
    char name[64], *all = file_join(directory, "all.npy"), *again = file_join(directory, "again.npy");
    snprintf(name, sizeof name, "alone-%u.npy", ranks->number);
    char *alone = file_join(directory, name);
    int result = all && again && alone ? open_table(&table, backend, number, ranks) : -1;
    if (!result) result = save_alone(backend, number, alone, &wanted) || fill(&table) ? -1 : 0;
    if (!ranks_agree(ranks, result)) {
        result = table_save(&table, all, &checksum) || clear(&table) || table_load(&table, all) ||
                 table_save(&table, again, &checksum);
        if (!result && ranks_first(ranks) && (checksum != wanted || !same_files(all, alone) || !same_files(again, alone)))
            result = fail("table %d of %u ranks is not that of one", number, ranks->count);
    }
    table_release(&table);
    free(all);
    free(again);
    free(alone);
    return ranks_agree(ranks, result);
}

static int check_tables(struct ranks *ranks, const char *directory) {
    const struct backend_options options = {.threads = 1, .depth = 1, .ranks = ranks};
    struct backend *backend = NULL;
    int result = backend_cpu.open(&backend, &options);
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !result; i++)
        if (tables[i].dim >= ranks->count) result = check_table(ranks, backend, (int)i, directory);
    if (backend) backend_cpu.close(backend);
    return result;
}

/* ---- replicas ---- */

enum { HOT = 4096, TIMES_TO_ALL = 10, COLUMNS = 3, EXAMPLES = 101, PIECES = 16 /* of an epoch */ };

/* Instead of training: every value of a row moves by quarters that no float rounds. */
static struct {
    struct table *tables[2];
    unsigned rank;
} moved;

static float step_of(uint64_t row, unsigned rank) {
    return 0.25f * (float)(row % 5 + 1) * (float)(rank + 1);
}

static int move_rows(struct backend *backend, const struct hogwild_request *request, struct hogwild_result *result) {
    *result = (struct hogwild_result){.examples = request->count};
    for (int side = 0; side < 2; side++) {
        struct table *table = moved.tables[side];
        uint64_t rows = table->spec.rows;
        float *values = mem_alloc(rows, COLUMNS * sizeof *values, "rows");
        int failed = !values || table->ops->table_read(backend, table->store, 0, rows, values);
        for (uint64_t i = 0; i < rows * COLUMNS && !failed; i++) values[i] += step_of(i / COLUMNS, moved.rank);
        if (!failed) failed = table->ops->table_write(backend, table->store, 0, rows, values);
        free(values);
        if (failed) return -1;
    }
    return 0;
}

/* Checks the rows after `times` exchanges, in the first `of_all` of which all rows took part. */
static int check_moved(const struct table *table, const struct ranks *ranks, unsigned times, unsigned of_all) {
    uint64_t rows = table->spec.rows;
    float *values = mem_alloc(rows, COLUMNS * sizeof *values, "rows");
    int result = values ? table->ops->table_read(table->backend, table->store, 0, rows, values) : -1;
    for (uint64_t i = 0; i < rows * COLUMNS && !result; i++) {
        uint64_t row = i / COLUMNS;
        unsigned together = row < HOT ? times : of_all;
        float wanted = (float)(times - together) * step_of(row, ranks->number);
        for (unsigned r = 0; r < ranks->count; r++) wanted += (float)together * step_of(row, r);
        if (values[i] != wanted)
            result = fail("row %" PRIu64 " of %" PRIu64 " is %g after %u exchanges, wanted %g", row, rows, (double)values[i],
                          times, (double)wanted);
    }
    free(values);
    return result;
}

static int check_both(struct ranks *ranks, const struct table both[2], unsigned times, unsigned of_all) {
    int result = check_moved(&both[0], ranks, times, of_all) || check_moved(&both[1], ranks, times, of_all) ? -1 : 0;
    return ranks_agree(ranks, result);
}

/* Calls of one to three pieces, and the last piece is a short one. */
static int move_together(struct ranks *ranks, struct table both[2]) {
    struct replicas replicas;
    int result = ranks_agree(ranks, replicas_open(&replicas, ranks, &both[0], &both[1], EXAMPLES * PIECES));
    for (unsigned times = 0, pieces = 1; times < 2 * TIMES_TO_ALL + 3 && !result; pieces = pieces % 3 + 1) {
        struct hogwild_request request = {.count = EXAMPLES * (pieces - 1) + (pieces == 2 ? ranks->count : EXAMPLES)};
        struct hogwild_result sum;
        result = replicas_train(&replicas, &request, &sum);
        if (!result && sum.examples != request.count)
            result = fail("%" PRIu64 " examples of %" PRIu64, sum.examples, request.count);
        times += pieces;
        if (!result) result = check_both(ranks, both, times, times / TIMES_TO_ALL * TIMES_TO_ALL);
        if (times < 2 * TIMES_TO_ALL + 3 || result) continue;
        result = replicas_settle(&replicas);
        if (!result) result = check_both(ranks, both, times, times);
    }
    return result;
}

/* Rows of both tables: around those that are exchanged often, and around as many as go at a time on CPUs and on GPUs. */
static const uint64_t replica_shapes[][2] = {
    {HOT - 1, 1},       {HOT, HOT + 1},     {HOT + 1, HOT},     {3 * HOT + 5, 2 * HOT + 1},
    {131071, 131073},   {131072, 131071},   {131073, 131072},   {262144, 5},
    {262145, 262143},
};

static int check_replicas(struct ranks *ranks, enum exchange_way way) {
    const struct backend_options options = {
        .threads = 1, .depth = 1, .ranks = ranks, .replicas = 1, .exchange = way, .gpu_budget = UINT64_MAX};
    const char *wanted = getenv("SPTX_BACKEND");
    struct backend_ops moving = wanted && !strcmp(wanted, "cuda") ? backend_cuda : backend_cpu;
    struct backend *backend = NULL;
    int result = ranks_agree(ranks, moving.open(&backend, &options));
    moving.hogwild = move_rows;
    for (size_t i = 0; i < sizeof replica_shapes / sizeof *replica_shapes && !result; i++) {
        struct table both[2];
        memset(both, 0, sizeof both); /* no ops: not open */
        for (int side = 0; side < 2 && !result; side++) {
            const uint64_t rows = replica_shapes[i][side], hot[] = {0, rows / 3, rows};
            const struct table_options how = {.rows = rows,
                                              .hot_rows = hot[(i + (size_t)side) % 3],
                                              .dim = COLUMNS,
                                              .weights = i % 4 ? PLACE_PINNED : PLACE_GPU,
                                              .rule = {.rule = RULE_SGD},
                                              .init = {INIT_ZEROS, 0, 0}};
            result = table_init(&both[side], TABLE_TARGET, &how, &moving, backend);
            if (!result) result = fill(&both[side]);
            moved.tables[side] = &both[side];
        }
        moved.rank = ranks->number;
        result = ranks_agree(ranks, result);
        if (!result) result = move_together(ranks, both);
        for (int side = 0; side < 2; side++)
            if (both[side].ops) table_release(&both[side]);
    }
    if (backend) moving.close(backend);
    return result;
}

static int run(struct ranks *ranks, const char *what) {
    float one = 1;
    if (!strcmp(what, "sum")) return check_sums(ranks);
    if (!strcmp(what, "replicas")) return check_replicas(ranks, EXCHANGE_AUTO);
    if (!strcmp(what, "replicas by host")) return check_replicas(ranks, EXCHANGE_HOST);
    if (!strcmp(what, "replicas by nccl")) return check_replicas(ranks, EXCHANGE_NCCL);
    if (*what == '/') return check_tables(ranks, what);
    if (ranks->number == 1) return ranks_agree(ranks, fail("rank 1 has had enough"));
    if (!strcmp(what, "alone")) ranks_sum(ranks, &one, 1);
    return ranks_agree(ranks, 0);
}

int main(int argc, char **argv) {
    struct ranks ranks;
    if (argc != 2) return 2;
    int result = ranks_open(&ranks, argv[1]) || run(&ranks, argv[1]);
    int first = ranks_first(&ranks);
    if (result && ranks.count == 1) report_last();
    ranks_close(&ranks);
    if (first && !result) printf("1 passed, 0 failed\n");
    return result ? 1 : 0;
}
