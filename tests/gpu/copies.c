/* Copies of a table on GPUs, merged: the same values as copies_merge_group() gives on the host. On a machine with one GPU, all copies are on
 * that GPU. */
#include "common.h"

#include "kernels/hogwild.h"

#include <inttypes.h>

enum { ROWS = 700, FIRST = 3, COPIES = 3 };

static void change_rows(const struct record_layout *layout, char *packed, int all) {
    for (uint64_t row = 0; row < ROWS; row++)
        for (uint32_t j = 0; j < layout->dim; j++) {
            char *at = packed + row * layout->packed;
            if (!all && random_bits() % 3) continue;
            if (layout->halves) ((uint16_t *)at)[j] = bfloat16_nearest(random_float());
            else ((float *)at)[j] = random_float();
        }
}

static float value_at(const struct record_layout *layout, const char *packed, uint64_t row, uint32_t j) {
    const char *at = packed + row * layout->packed;
    return layout->halves ? bfloat16_value(((const uint16_t *)at)[j]) : ((const float *)at)[j];
}

/* Merges all rows on the host. base: [ROWS x dim] the rows after the last merge, which become the merged rows. packed: the rows of each copy. */
static void merge_on_host(const struct record_layout *layout, float *base, char *const packed[COPIES]) {
    for (uint64_t row = 0; row < ROWS; row++)
        for (uint32_t first = 0; first < layout->dim; first += COPIES_GROUP) {
            float merged[COPIES_GROUP] = {0}, rows[COPIES * COPIES_GROUP] = {0};
            float *group = base + row * layout->dim + first;
            uint32_t count = layout->dim - first < COPIES_GROUP ? layout->dim - first : COPIES_GROUP;
            memcpy(merged, group, count * sizeof *group);
            for (unsigned i = 0; i < COPIES; i++)
                for (uint32_t j = 0; j < count; j++) rows[i * COPIES_GROUP + j] = value_at(layout, packed[i], row, first + j);
            copies_merge_group(merged, rows, COPIES);
            for (uint32_t j = 0; j < count; j++) group[j] = layout->halves ? bfloat16_value(bfloat16_nearest(merged[j])) : merged[j];
        }
}

/* Opens copies with different rows, and merges them twice after changes. After each merge all copies must have the host's rows. */
static void check_merges(unsigned gpus, const struct record_layout *layout) {
    const struct backend_ops *ops = &backend_cuda;
    struct backend *on[COPIES] = {NULL};
    struct backend_table *tables[COPIES] = {NULL};
    struct backend_copies *copies = NULL;
    char *packed[COPIES];
    float *base = need(ROWS * layout->dim * sizeof *base);
    for (unsigned i = 0; i < COPIES; i++) {
        struct backend_options options = {.threads = 1, .depth = 1, .index = i % gpus, .gpu_budget = UINT64_MAX};
        struct table_spec spec = {.name = "target",
                                  .rows = FIRST + ROWS,
                                  .first_row = FIRST,
                                  .layout = *layout,
                                  .rounding = {.seed = 1},
                                  .weights = PLACE_GPU,
                                  .state = PLACE_GPU};
        packed[i] = need(ROWS * layout->packed);
        change_rows(layout, packed[i], 1);
        CHECK(!ops->open(&on[i], &options) && !ops->table_open(on[i], &spec, &tables[i]) &&
                  !ops->table_write(on[i], tables[i], FIRST, ROWS, packed[i]), "copies: a table cannot be opened");
    }
    int result = ops->copies_open(on, tables, COPIES, &copies);
    CHECK(!result, "copies: they cannot be opened: %d", result);
    for (uint64_t i = 0; i < ROWS * (uint64_t)layout->dim; i++) base[i] = value_at(layout, packed[0], i / layout->dim, (uint32_t)(i % layout->dim));
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < COPIES; i++) {
            CHECK(!ops->table_read(on[i], tables[i], FIRST, ROWS, packed[i]), "copies: rows cannot be read");
            change_rows(layout, packed[i], 0);
            CHECK(!ops->table_write(on[i], tables[i], FIRST, ROWS, packed[i]), "copies: rows cannot be written");
        }
        CHECK(!ops->copies_merge(copies), "copies: they cannot be merged");
        merge_on_host(layout, base, packed);
        for (unsigned i = 0; i < COPIES; i++) {
            uint64_t differ = 0;
            CHECK(!ops->table_read(on[i], tables[i], FIRST, ROWS, packed[i]), "copies: rows cannot be read");
            for (uint64_t j = 0; j < ROWS * (uint64_t)layout->dim; j++)
                differ += value_at(layout, packed[i], j / layout->dim, (uint32_t)(j % layout->dim)) != base[j];
            CHECK(!differ, "copies: %u columns on %u GPUs: %" PRIu64 " values of copy %u are not the host's", layout->dim, gpus, differ, i);
        }
    }
    ops->copies_close(copies);
    for (unsigned i = 0; i < COPIES; i++) {
        ops->table_close(on[i], tables[i]);
        ops->close(on[i]);
        free(packed[i]);
    }
    free(base);
}

void test_copies(void) {
    struct backend_info info[COPIES];
    int found = backend_cuda.devices(info, COPIES);
    unsigned gpus = found < 1 ? 1 : found < COPIES ? (unsigned)found : COPIES;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        struct rule_options rule = {.rule = RULE_SGD, .precision = seed % 2 ? PRECISION_FLOAT32 : PRECISION_BFLOAT16};
        struct record_layout layout = record_layout_make(&rule, 1 + seed * 37 % 200);
        random_seed(seed);
        check_merges(gpus, &layout);
    }
}
