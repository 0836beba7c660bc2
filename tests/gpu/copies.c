/* Copies of a table on GPUs, merged: the same bytes as the CPU backend's. On a machine with one GPU, all copies are on that GPU. */
#include "common.h"

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

/* Opens the copies with different rows, and merges them twice after changes, which are the same for each call with one seed. Returns
 * the rows of the last copy. */
static char *merged_rows(const struct backend_ops *ops, unsigned gpus, const struct record_layout *layout, uint32_t seed) {
    struct backend *backends[COPIES] = {NULL};
    struct backend_table *tables[COPIES] = {NULL};
    struct backend_copies *copies = NULL;
    char *packed = need(ROWS * layout->packed);
    random_seed(seed);
    for (unsigned i = 0; i < COPIES; i++) {
        struct backend_options options = {.threads = 1, .depth = 1, .index = i % gpus, .gpu_budget = UINT64_MAX};
        struct table_spec spec = {.name = "target",
                                  .rows = FIRST + ROWS,
                                  .first_row = FIRST,
                                  .layout = *layout,
                                  .rounding = {.seed = 1},
                                  .weights = PLACE_GPU,
                                  .state = PLACE_GPU};
        change_rows(layout, packed, 1);
        CHECK(!ops->open(&backends[i], &options) && !ops->table_open(backends[i], &spec, &tables[i]) &&
                  !ops->table_write(backends[i], tables[i], FIRST, ROWS, packed), "copies: a table cannot be opened");
    }
    int result = ops->copies_open(backends, tables, COPIES, &copies);
    CHECK(!result, "copies: they cannot be opened: %d", result);
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < COPIES; i++) {
            CHECK(!ops->table_read(backends[i], tables[i], FIRST, ROWS, packed), "copies: rows cannot be read");
            change_rows(layout, packed, 0);
            CHECK(!ops->table_write(backends[i], tables[i], FIRST, ROWS, packed), "copies: rows cannot be written");
        }
        CHECK(!ops->copies_merge(copies), "copies: they cannot be merged");
    }
    CHECK(!ops->table_read(backends[COPIES - 1], tables[COPIES - 1], FIRST, ROWS, packed), "copies: rows cannot be read");
    ops->copies_close(copies);
    for (unsigned i = 0; i < COPIES; i++) {
        ops->table_close(backends[i], tables[i]);
        ops->close(backends[i]);
    }
    return packed;
}

void test_copies(void) {
    struct backend_info info[COPIES];
    int found = backend_cuda.devices(info, COPIES);
    unsigned gpus = found < 1 ? 1 : found < COPIES ? (unsigned)found : COPIES;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        struct rule_options rule = {.rule = RULE_SGD, .precision = seed % 2 ? PRECISION_FLOAT32 : PRECISION_BFLOAT16};
        struct record_layout layout = record_layout_make(&rule, 1 + seed * 37 % 200);
        char *on_cpu = merged_rows(&backend_cpu, 1, &layout, seed), *on_gpu = merged_rows(&backend_cuda, gpus, &layout, seed);
        CHECK(!memcmp(on_cpu, on_gpu, ROWS * layout.packed), "copies: %u columns on %u GPUs differ from the CPU's", layout.dim, gpus);
        free(on_cpu);
        free(on_gpu);
    }
}
