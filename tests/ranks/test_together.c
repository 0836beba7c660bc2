/* test_together WHAT|DIRECTORY: what ranks do together, for tests/cli/test_ranks*.py to begin under mpirun.
 *
 *   sum     sums of many sizes: each must equal, to the bit, the ranks' values added up in rank order; exit code 0
 *   agree   rank 1 fails and all agree on it: one sentence, exit code 1 of all
 *   alone   rank 1 fails while the others wait in a sum: it must end them
 *   DIRECTORY   saves tables of several chunks there, loads and saves them again: each file must have the bytes that one rank writes
 */
#include "kernels/backend.h"
#include "kernels/ranks.h"
#include "base/memory.h"
#include "base/report.h"
#include "rows/table.h"

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
    uint64_t rows, first_row;
    uint32_t dim;
    enum rule rule;
} tables[] = {{260000, 0, 50, RULE_SGD},      {83886, 0, 50, RULE_SGD},    {700, 0, 13, RULE_ADAM},
              {2, 0, 5, RULE_SPARSE_ADAM},    {60000, 0, 70, RULE_ADAM},   {400000, 140000, 50, RULE_SGD},
              {180000, 96114, 50, RULE_SGD}, {700, 699, 13, RULE_ADAM}};

static int open_table(struct table *table, struct backend *backend, int number, struct ranks *ranks) {
    const struct table_options options = {.rows = tables[number].rows,
                                          .first_row = tables[number].first_row,
                                          .dim = tables[number].dim,
                                          .rule = {.rule = tables[number].rule, .count_rows = tables[number].rule == RULE_ADAM},
                                          .init = {.rows = {INIT_NORMAL, 0, 1}},
                                          .seed = 5,
                                          .ranks = ranks};
    return table_init(table, TABLE_TARGET, &options, &backend_cpu, backend);
}

/* Sets all values to zero, so that what is loaded shows. */
static int clear(struct table *table) {
    uint64_t first = table->spec.first_row, count = table_row_count(&table->spec);
    char *rows = mem_zalloc(count, table->spec.layout.packed, "rows");
    int result = rows ? table->ops->table_write(table->backend, table->store, first, count, rows) : -1;
    free(rows);
    return result;
}

static int fill(struct table *table) {
    struct pool *pool = pool_open(1);
    int result = pool ? table_fill(table, pool) : -1;
    pool_close(pool);
    return result;
}

/* Saves and loads the table as a run of one rank would. Each process does this alone, with a file of its own, which must have the same bytes as the
 * file that all ranks wrote together. */
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

static int run(struct ranks *ranks, const char *what) {
    float one = 1;
    if (!strcmp(what, "sum")) return check_sums(ranks);
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
