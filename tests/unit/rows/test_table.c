#define _GNU_SOURCE
#include "tests/testing.h"

#include "base/memory.h"
#include "kernels/backend.h"
#include "rows/values.h"
#include "run/model_files.h"
#include "tests/fresh_directory.h"
#include "tests/unit/fake_tables.h"

#include <xxhash.h>

static struct backend device = {.ops = &fake_ops};
static char directory[256];

static int set_up(void **state) {
    report_clear();
    device = (struct backend){.ops = &fake_ops};
    return fresh_directory(directory, sizeof directory, "table");
}
static int tear_down(void **state) {
    return directory_remove_tree(directory);
}

static struct config plain_config(void) {
    return (struct config){
        .model_dim = 10,
        .model_target_init = "word2vec",
        .model_context_init = "zeros",
        .model_relation_init = "word2vec",
        .optimizer_rule = RULE_SGD,
        .optimizer_lr = 0.1,
        .optimizer_bias_correction = COUNT_ROW,
        .memory_target = PLACE_PINNED,
        .memory_target_state = PLACE_PINNED,
        .memory_context = PLACE_GPU,
        .memory_context_state = PLACE_GPU,
        .train_seed = 7,
        .run_dir = directory,
    };
}

static void make_filled(struct table *table, enum table_side side, const struct config *config, uint64_t rows,
                        unsigned threads) {
    struct pool *pool = pool_open(threads);
    assert_int_equal(0, tables_init(table, side, config, &(struct table_options){.rows = rows}, &fake_ops, &device));
    assert_int_equal(0, table_fill(table, pool));
    pool_close(pool);
}

/* ---- layout ---- */

static void test_rule_order(void **state) {
    /* config.def must list the rules in the same order as the kernels */
    char names[512] = "", listed[512] = "";
#define NAME(name, enumerator) strcat(names, #name), strcat(names, "|");
    RULES(NAME)
    strcat(names, "auto|"); /* config.def has auto after the rules */
#undef NAME
#define SECTION(name, help)
#define TEXT(section, key, fallback, help)
#define FORM(section, key, fallback, form, help)
#define COUNT(section, key, fallback, lowest, highest, help)
#define REAL(section, key, fallback, lowest, highest, help)
#define BYTES(section, key, fallback, lowest, highest, help)
#define TRUTH(section, key, fallback, help)
#define CHOICE(section, key, fallback, list, help)                                                                     \
    if (!strcmp(#section "." #key, "optimizer.rule")) snprintf(listed, sizeof listed, "%s|", list);
#include "config/config.def"
    for (char *at = listed; *at; at++)
        if (*at == '-') *at = '_';
    assert_string_equal(names, listed);
}

static void test_layout(void **state) {
    struct config config = plain_config();
    struct rule_options rule = tables_rule(&config);
    struct record_layout layout = record_layout_make(&rule, 10);
    assert_int_equal(12, layout.span);
    assert_int_equal(0, layout.slots);
    assert_int_equal(0, layout.counted); /* sgd corrects no bias, so it does not count steps */
    assert_int_equal(40, layout.packed);
    assert_int_equal(64, table_row_bytes(&layout, PLACE_PINNED, PLACE_PINNED)); /* a record shorter than a cache line is not
                                                                                 * padded to a whole line */
    assert_int_equal(96, store_stride(96));
    assert_int_equal(128, store_stride(97));
    assert_int_equal(160, store_stride(129));
    assert_int_equal(160, store_stride(136)); /* 64 columns of bfloat16 and rowwise_adagrad's sum */
    assert_int_equal(192, store_stride(170));
    assert_int_equal(256, store_stride(171));
    assert_int_equal(384, store_stride(257));

    config.optimizer_rule = RULE_ADAM;
    config.optimizer_amsgrad = 1;
    rule = tables_rule(&config);
    layout = record_layout_make(&rule, 400);
    assert_int_equal(3, layout.slots);
    assert_int_equal(1, layout.counted);
    assert_int_equal(4 * 1600 + 4, layout.packed);
    assert_int_equal(6528, table_row_bytes(&layout, PLACE_GPU, PLACE_GPU)); /* 6,404 bytes, padded */
    assert_int_equal(1664 + 4864, table_row_bytes(&layout, PLACE_GPU, PLACE_PINNED)); /* 1,600 and 4,804 bytes, each padded */

    config.optimizer_bias_correction = COUNT_GLOBAL;
    rule = tables_rule(&config);
    assert_int_equal(0, record_layout_make(&rule, 400).counted);
}

/* Each field must be where its record's layout says. In memory, columns are padded to groups of four; in a file they are not. */
static void test_fields(void **state) {
    struct config config = plain_config();
    config.optimizer_rule = RULE_ADAM;
    struct rule_options rule = tables_rule(&config);
    struct record_layout layout = record_layout_make(&rule, 10);
    static const struct {
        const char *name;
        enum value_type type;
        uint64_t columns, offset, bytes, packed;
    } wanted[] = {{"weights", VALUE_FLOAT32, 10, 0, 48, 0},
                  {"exp_avg", VALUE_FLOAT32, 10, 0, 48, 40},
                  {"exp_avg_sq", VALUE_FLOAT32, 10, 48, 48, 80},
                  {"updates", VALUE_UINT32, 1, 96, 4, 120}};
    assert_int_equal(4, layout.fields);
    assert_int_equal(124, layout.packed);
    assert_int_equal(48, record_weights_bytes(&layout));
    assert_int_equal(100, record_state_bytes(&layout));
    for (uint32_t i = 0; i < layout.fields; i++) {
        const struct record_field *field = record_field(&layout, wanted[i].name);
        assert_ptr_equal(field, &layout.field[i]);
        assert_int_equal(wanted[i].type, field->type);
        assert_int_equal(wanted[i].columns, field->columns);
        assert_int_equal(wanted[i].offset, field->offset);
        assert_int_equal(wanted[i].bytes, field->bytes);
        assert_int_equal(wanted[i].packed, field->packed);
    }
    assert_null(record_field(&layout, "max_exp_avg_sq"));
    assert_ptr_equal(record_slot(&layout, 1), &layout.field[2]);
    assert_ptr_equal(record_updates(&layout), &layout.field[3]);
}

/* If one field is bfloat16, all fields are padded to groups of eight columns. Packed records have no padding between their
 * fields. */
static void test_fields_of_bfloat16(void **state) {
    struct config config = plain_config();
    config.optimizer_rule = RULE_ADAM;
    struct rule_options rule = tables_rule(&config);
    for (int state_too = 0; state_too < 2; state_too++) {
        rule.precision = PRECISION_BFLOAT16;
        rule.state_precision = state_too ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
        struct record_layout layout = record_layout_make(&rule, 11);
        assert_int_equal(16, layout.span);
        assert_int_equal(8, record_grain(&layout));
        assert_int_equal(32, record_weights_bytes(&layout));
        assert_int_equal((state_too ? 64 : 128) + 4, record_state_bytes(&layout));
        assert_int_equal(VALUE_BFLOAT16, layout.field[RECORD_WEIGHTS].type);
        assert_int_equal(state_too ? VALUE_BFLOAT16 : VALUE_FLOAT32, record_slot(&layout, 1)->type);
        assert_int_equal(state_too ? 44 : 66, record_slot(&layout, 1)->packed);
        assert_int_equal(state_too ? 70 : 114, layout.packed);
    }
}

/* A row's sum is one float32, even if other state is bfloat16, and a file contains it unrounded. */
static void test_fields_of_a_rule_by_row(void **state) {
    struct config config = plain_config();
    config.optimizer_rule = RULE_ROWWISE_ADAGRAD;
    struct rule_options rule = tables_rule(&config);
    for (int half = 0; half < 2; half++) {
        rule.state_precision = half;
        struct record_layout layout = record_layout_make(&rule, 128);
        const struct record_field *sum = record_field(&layout, "sum");
        assert_int_equal(2, layout.fields);
        assert_int_equal(VALUE_FLOAT32, sum->type);
        assert_int_equal(1, sum->columns);
        assert_int_equal(516, layout.packed);
        assert_int_equal(4, record_state_bytes(&layout));
        assert_int_equal(640, table_row_bytes(&layout, PLACE_PINNED, PLACE_PINNED));
        assert_int_equal(512 + 32, table_row_bytes(&layout, PLACE_PINNED, PLACE_GPU));
    }
}

/* A row's second moment is its last slot, and is not padded. */
static void test_fields_of_rowwise_adam(void **state) {
    struct config config = plain_config();
    config.optimizer_rule = RULE_ROWWISE_ADAM;
    struct rule_options rule = tables_rule(&config);
    rule.state_precision = PRECISION_BFLOAT16;
    struct record_layout layout = record_layout_make(&rule, 10);
    const struct record_field *mean = record_slot(&layout, 0), *square = record_slot(&layout, 1);
    assert_int_equal(1, layout.by_row);
    assert_true(mean->type == VALUE_BFLOAT16 && mean->columns == 10 && mean->bytes == 32 && mean->packed == 40);
    assert_true(square->type == VALUE_FLOAT32 && square->columns == 1 && square->offset == 32 && square->packed == 60);
    assert_true(record_updates(&layout)->offset == 36 && record_state_bytes(&layout) == 40 && layout.packed == 68);
}

/* A record in memory has the scale before the codes; a record in a file has the scale at its end. A record whose bytes are all zero must be a row of
 * zeros. */
static void test_fields_of_codes(void **state) {
    struct config config = plain_config();
    config.optimizer_rule = RULE_ROWWISE_ADAGRAD;
    struct rule_options rule = tables_rule(&config);
    for (int precision = PRECISION_INT8; precision <= PRECISION_FLOAT8; precision++) {
        rule.precision = precision;
        struct record_layout layout = record_layout_make(&rule, 60);
        const struct record_field *weights = &layout.field[RECORD_WEIGHTS], *scale = record_scale(&layout);
        assert_int_equal(precision == PRECISION_INT8 ? VALUE_INT8 : VALUE_FLOAT8, weights->type);
        assert_true(layout.coarse && layout.fields == 3 && layout.packed == 68 && record_grain(&layout) == 8 && layout.span == 64);
        assert_true(weights->offset == 16 && weights->bytes == 64 && weights->packed == 0 && record_weights_bytes(&layout) == 80);
        assert_true(scale->offset == 0 && scale->type == VALUE_FLOAT32 && scale->packed == 64 && record_field(&layout, "scale") == scale);
        assert_int_equal(4, record_state_bytes(&layout));
        assert_int_equal(96, table_row_bytes(&layout, PLACE_PINNED, PLACE_PINNED));
        float values[60] = {0};
        char record[68], zeros[68] = {0};
        memset(record, 1, sizeof record);
        values_write(&layout, record_slot(&layout, 0), record, values, 1);
        values_write(&layout, weights, record, values, 60);
        assert_memory_equal(record, zeros, sizeof record);
    }
}

static void test_layout_lit2vec(void **state) { /* the record of RUNS' largest row: 400 columns with Adamax */
    struct config config = plain_config();
    config.optimizer_rule = RULE_ADAMAX;
    config.optimizer_bias_correction = COUNT_GLOBAL;
    struct rule_options rule = tables_rule(&config);
    struct record_layout layout = record_layout_make(&rule, 400);
    assert_int_equal(4800, layout.packed);
    assert_int_equal(4864, table_row_bytes(&layout, PLACE_PINNED, PLACE_PINNED));
}

static void test_unsettled_place(void **state) {
    struct config config = plain_config();
    struct table table;
    config.memory_target_state = PLACE_AUTO;
    assert_int_equal(-1, tables_init(&table, TABLE_TARGET, &config, &(struct table_options){.rows = 5}, &fake_ops, &device));
    assert_non_null(strstr(report_sentence(), "memory.target_state"));
    table_release(&table);
}

static void test_file_place_names_its_file(void **state) {
    struct config config = plain_config();
    struct table table;
    config.memory_context_state = PLACE_FILE;
    const struct table_options all_hot = {.rows = 5, .hot_rows = 100};
    assert_int_equal(0, tables_init(&table, TABLE_CONTEXT, &config, &all_hot, &fake_ops, &device));
    assert_int_equal(PLACE_GPU, table.spec.weights);
    assert_int_equal(PLACE_FILE, table.spec.state);
    assert_int_equal(5, table.spec.hot_rows);
    assert_non_null(strstr(table.spec.file_path, directory));
    assert_non_null(strstr(table.spec.file_path, "context"));
    table_release(&table);
    table_release(&table);
}

/* ---- laws ---- */

static void test_laws(void **state) {
    struct init_values values;
    assert_int_equal(0, table_init_values(&values, "zeros", TABLE_TARGET, 8));
    assert_int_equal(INIT_ZEROS, values.kind);
    assert_int_equal(0, table_init_values(&values, " uniform  -0.25 1e-1 ", TABLE_TARGET, 8));
    assert_int_equal(INIT_UNIFORM, values.kind);
    assert_true(values.a == -0.25 && values.b == 0.1);
    assert_int_equal(0, table_init_values(&values, "normal 0.5 2", TABLE_CONTEXT, 8));
    assert_int_equal(INIT_NORMAL, values.kind);
    assert_true(values.a == 0.5 && values.b == 2);
    assert_int_equal(0, table_init_values(&values, "word2vec", TABLE_CONTEXT, 50));
    assert_true(values.a == -0.01 && values.b == 0.01);
}

static void test_notebook_law(void **state) { /* the figures that RUNS gives: r = 8.41e-4, sd 0.0290 */
    struct init_values values;
    assert_int_equal(0, table_init_values(&values, "notebook 2829854", TABLE_TARGET, 400));
    assert_int_equal(INIT_UNIFORM, values.kind);
    assert_float_equal(8.41e-4, values.b, 1e-6);
    assert_true(values.a == -values.b);
    assert_int_equal(0, table_init_values(&values, "notebook 10000", TABLE_CONTEXT, 188));
    assert_int_equal(INIT_NORMAL, values.kind);
    assert_true(values.a == 0);
    assert_float_equal(0.1184, values.b, 1e-4);
}

static void test_bad_laws(void **state) {
    static const char *const bad[] = {"",           "  ",       "zero",       "zeros 1",       "uniform",   "uniform 1",
                                      "uniform 2 1", "normal 0 -1", "normal 0 x", "uniform 0 1 2", "notebook", "notebook -1",
                                      "word2vec 3", "uniform nan 1"};
    struct init_values values;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(-1, table_init_values(&values, bad[i], TABLE_TARGET, 8));
    char endless[1000];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    assert_int_equal(-1, table_init_values(&values, endless, TABLE_TARGET, 8));
    assert_string_equal("", report_sentence());
}

static void test_reach(void **state) {
    static const struct {
        const char *text;
        double reach;
    } laws[] = {{"zeros", 0},          {"uniform -3 2", 3},       {"uniform 2 3", 3},          {"normal 0 1", 6.7},
                {"normal -2 1", 8.7}, {"uniform 1e39 1e39", 1e39}, {"uniform -1e300 0", 1e300}, {"notebook 0", 0.5}};
    struct init_values values;
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        assert_int_equal(0, table_init_values(&values, laws[i].text, TABLE_TARGET, 8));
        assert_float_equal(laws[i].reach, table_init_reach(&values), laws[i].reach * 1e-12);
    }
}

/* ---- first values ---- */

static void test_bad_init_is_named(void **state) {
    struct config config = plain_config();
    struct table table;
    config.model_context_init = "ones";
    assert_int_equal(-1, tables_init(&table, TABLE_CONTEXT, &config, &(struct table_options){.rows = 3}, &fake_ops, &device));
    assert_non_null(strstr(report_sentence(), "model.context_init = 'ones'"));
    assert_non_null(strstr(report_sentence(), "uniform LO HI"));
    report_clear();
    assert_int_equal(-1, tables_check_init(&config));
    assert_non_null(strstr(report_sentence(), "model.context_init = 'ones'"));
    config.model_context_init = "zeros";
    assert_int_equal(0, tables_check_init(&config));
    table_release(&table);
}

static void test_fill_is_a_function_of_row_and_column(void **state) {
    enum { ROWS = 430000 }; /* two chunks, of which the second is shorter */
    struct config config = plain_config();
    struct table one, three;
    make_filled(&one, TABLE_TARGET, &config, ROWS, 1);
    make_filled(&three, TABLE_TARGET, &config, ROWS, 3);
    assert_int_equal(device.writes, 4);
    assert_memory_equal(one.store->packed, three.store->packed, ROWS * 40);
    const float *weights = (const float *)one.store->packed;
    for (uint64_t row = 0; row < ROWS; row += 99999)
        for (uint32_t column = 0; column < 10; column++) {
            uint32_t bits = draw_at(7, DRAW_INIT_TARGET, row, 0, column / 4).word[column % 4];
            float wanted = (float)(-0.05 + 0.1 * (double)draw_unit(bits));
            assert_true(weights[row * 10 + column] == wanted);
        }
    table_release(&one);
    table_release(&three);
}

static void test_sides_and_seeds_differ(void **state) {
    struct config config = plain_config();
    struct table target, context, other;
    config.model_context_init = "word2vec";
    make_filled(&target, TABLE_TARGET, &config, 20, 1);
    make_filled(&context, TABLE_CONTEXT, &config, 20, 1);
    config.train_seed = 8;
    make_filled(&other, TABLE_TARGET, &config, 20, 1);
    assert_memory_not_equal(target.store->packed, context.store->packed, 800);
    assert_memory_not_equal(target.store->packed, other.store->packed, 800);
    table_release(&target);
    table_release(&context);
    table_release(&other);
}

static void test_moments(void **state) {
    enum { ROWS = 50000, COLUMNS = 10 };
    struct config config = plain_config();
    struct table table;
    config.model_target_init = "normal 1.5 0.5";
    make_filled(&table, TABLE_TARGET, &config, ROWS, 2);
    const float *weights = (const float *)table.store->packed;
    double sum = 0, squares = 0, fourth = 0, n = ROWS * COLUMNS;
    for (uint64_t i = 0; i < ROWS * COLUMNS; i++) {
        double z = (weights[i] - 1.5) / 0.5;
        sum += z, squares += z * z, fourth += z * z * z * z;
    }
    assert_true(fabs(sum / n) < 4 / sqrt(n));
    assert_true(fabs(squares / n - 1) < 4 * sqrt(2 / n));
    assert_true(fabs(fourth / n - 3) < 4 * sqrt(96 / n));
    table_release(&table);
}

static void test_first_state(void **state) {
    struct config config = plain_config();
    struct table table;
    config.optimizer_rule = RULE_RPROP;
    config.optimizer_lr = 0.25;
    make_filled(&table, TABLE_CONTEXT, &config, 4, 2);
    const float *record = (const float *)table.store->packed;
    for (int row = 0; row < 4; row++, record += 30)
        for (int i = 0; i < 10; i++) {
            assert_true(record[i] == 0);       /* weights: zeros */
            assert_true(record[10 + i] == 0);  /* prev */
            assert_true(record[20 + i] == 0.25f); /* step_size */
        }
    table_release(&table);
    config.optimizer_rule = RULE_ADAM;
    make_filled(&table, TABLE_TARGET, &config, 4, 2);
    for (int row = 0; row < 4; row++) assert_int_equal(0, ((uint32_t *)table.store->packed)[row * 31 + 30]);
    table_release(&table);
}

/* ---- disk ---- */

static void test_save_and_load(void **state) {
    enum { ROWS = 70000 };
    struct config config = plain_config();
    struct table table, other;
    uint64_t checksum, length;
    config.optimizer_rule = RULE_ADAM;
    make_filled(&table, TABLE_TARGET, &config, ROWS, 2);
    ((uint32_t *)table.store->packed)[30] = 77;
    char *path = file_join(directory, "target.npy"), *bytes;
    assert_int_equal(0, table_save(&table, path, &checksum));
    bytes = file_read(path, &length);
    assert_non_null(bytes);
    assert_true(checksum == XXH64(bytes, length, 0));
    assert_memory_equal(bytes + length - (uint64_t)ROWS * 124, table.store->packed, (uint64_t)ROWS * 124);
    assert_non_null(memmem(bytes, 512, "'exp_avg_sq'", 12));
    free(bytes);

    assert_int_equal(0, tables_init(&other, TABLE_TARGET, &config, &(struct table_options){.rows = ROWS}, &fake_ops, &device));
    assert_int_equal(0, table_load(&other, path));
    assert_memory_equal(other.store->packed, table.store->packed, (uint64_t)ROWS * 124);
    table_release(&table);
    table_release(&other);
    free(path);
}

static void assert_rows_from(const struct table *table, const struct table *whole) {
    uint64_t packed = whole->spec.layout.packed, before = table->spec.first_row * packed;
    assert_memory_equal(table->store->packed + before, whole->store->packed + before, table_row_count(&table->spec) * packed);
}

/* The part of a table that begins at a row above 0 has the rows of the whole table after being filled, saved and loaded. A file of the whole table
 * is refused. Tested with one chunk and with several. */
static void test_a_table_that_begins_later(void **state) {
    static const uint64_t sizes[][2] = {{400, 150}, {280000, 130001}, {3, 2}}; /* number of rows, and the first row of the part */
    struct config config = plain_config();
    struct pool *pool = pool_open(2);
    char *whole_path = file_join(directory, "whole.npy"), *path = file_join(directory, "target.npy");
    config.optimizer_rule = RULE_ADAM;
    for (int i = 0; i < 3; i++) {
        struct table whole, table, again;
        uint64_t checksum, length;
        const struct table_options own = {.rows = sizes[i][0], .first_row = sizes[i][1], .hot_rows = sizes[i][1]};
        make_filled(&whole, TABLE_TARGET, &config, own.rows, 1);
        assert_int_equal(0, table_save(&whole, whole_path, &checksum));
        assert_int_equal(0, tables_init(&table, TABLE_TARGET, &config, &own, &fake_ops, &device));
        assert_int_equal(0, table_fill(&table, pool));
        assert_rows_from(&table, &whole);
        assert_int_equal(0, table_save(&table, path, &checksum));
        char *bytes = file_read(path, &length);
        assert_true(checksum == XXH64(bytes, length, 0));
        assert_true(table_file_bytes(&table) == (own.rows - own.first_row) * 124);
        assert_true(length - table_file_bytes(&table) < 4096);
        free(bytes);
        assert_int_equal(0, tables_init(&again, TABLE_TARGET, &config, &own, &fake_ops, &device));
        assert_int_equal(0, table_load(&again, path));
        assert_rows_from(&again, &whole);
        table_release(&again);
        assert_int_equal(0, tables_init(&again, TABLE_TARGET, &config, &own, &fake_ops, &device));
        assert_int_equal(-1, table_load(&again, whole_path));
        table_release(&again);
        table_release(&table);
        table_release(&whole);
    }
    pool_close(pool);
    free(whole_path);
    free(path);
}

/* Loads a file that does not fit the table. The message must contain `seen`, from the file, and `wanted`, from the table. */
static void refuse_load(const char *path, struct config *config, uint64_t rows, const char *seen, const char *wanted) {
    struct table table;
    assert_int_equal(0, tables_init(&table, TABLE_TARGET, config, &(struct table_options){.rows = rows}, &fake_ops, &device));
    report_clear();
    assert_int_equal(-1, table_load(&table, path));
    assert_non_null(strstr(report_sentence(), seen));
    assert_non_null(strstr(report_sentence(), wanted));
    table_release(&table);
}

enum { SHARED_ROWS = 300 };

static void assert_columns_of(const struct table *part, const struct table *whole) {
    const struct record_layout *own = &part->spec.layout;
    char *wanted = malloc(SHARED_ROWS * own->packed);
    record_split(&whole->spec.layout, own, part->own, SHARED_ROWS, whole->store->packed, wanted);
    assert_memory_equal(part->store->packed, wanted, SHARED_ROWS * own->packed);
    free(wanted);
}

/* Ten columns are shared among up to seven ranks in groups of four, or the five complex numbers that they are among up to five ranks. Some ranks'
 * columns begin in the middle of a draw of first values. */
static void test_ranks_have_columns_of_the_same_table(void **state) {
    struct config config = plain_config();
    struct table whole, part;
    struct pool *pool = pool_open(2);
    config.optimizer_rule = RULE_ADAM;
    config.model_target_init = "normal 0 1";
    make_filled(&whole, TABLE_TARGET, &config, SHARED_ROWS, 1);
    for (unsigned i = 2; i <= 7 + 5; i++) {
        int complex = i > 7;
        unsigned count = complex ? i - 7 : i;
        config.examples_mode = complex ? MODE_TRIPLE : MODE_WINDOW;
        for (unsigned r = 0; r < count; r++) {
            struct ranks ranks = {.number = r, .count = count, .local = 1};
            const struct table_options own = {.rows = SHARED_ROWS, .ranks = &ranks};
            assert_int_equal(0, tables_init(&part, TABLE_TARGET, &config, &own, &fake_ops, &device));
            assert_int_equal(part.own.apart, complex && count > 1 ? 5 : 0);
            assert_int_equal(0, table_fill(&part, pool));
            assert_columns_of(&part, &whole);
            assert_int_equal(table_file_bytes(&part), table_file_bytes(&whole));
            table_release(&part);
        }
    }
    table_release(&whole);
    pool_close(pool);
}

/* Gives every third row other first values: its weights are its number, and its state is 2 if the number is even. */
static int take_third(void *user, const struct table *table, uint64_t row, char *record) {
    float *values = (float *)(void *)record;
    if (row == *(const uint64_t *)user) return (fail)("row %llu cannot be had", (unsigned long long)row);
    if (row % 3) return 0;
    for (uint32_t i = 0; i < table->own.count; i++) values[i] = (float)row;
    for (uint32_t i = 0; i < table->own.count && row % 2 == 0; i++) values[table->own.count + i] = 2;
    return 1;
}

static void check_third(const struct table *filled, const struct table *plain) {
    for (uint64_t row = 0; row < plain->spec.rows; row++) {
        uint64_t at = row * plain->spec.layout.packed;
        const float *values = (const float *)(const void *)(filled->store->packed + at);
        if (row % 3) assert_memory_equal(filled->store->packed + at, plain->store->packed + at, plain->spec.layout.packed);
        else assert_true(values[0] == (float)row && values[9] == (float)row && values[10] == (row % 2 ? 0.5f : 2) &&
                         values[19] == values[10]);
    }
}

/* A chunk has 209,715 rows, and the last chunk is shorter. The state of rows in one chunk must not be used in the next. */
static void test_rows_that_begin_elsewhere(void **state) {
    enum { ROWS = 250000 };
    struct config config = plain_config();
    struct table plain, filled;
    config.optimizer_rule = RULE_ADAGRAD;
    config.optimizer_initial_accumulator = 0.5;
    for (int side = 0; side < 2; side++) { /* one table begins with drawn weights, the other with zeros */
        make_filled(&plain, (enum table_side)side, &config, ROWS, 2);
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            uint64_t none = UINT64_MAX, last = ROWS - 1;
            struct pool *pool = pool_open(threads);
            struct table_origin origin = {&none, take_third};
            const struct table_options own = {.rows = ROWS};
            assert_int_equal(0, tables_init(&filled, (enum table_side)side, &config, &own, &fake_ops, &device));
            assert_int_equal(0, table_fill_from(&filled, &origin, pool));
            check_third(&filled, &plain);
            origin.user = &last;
            assert_int_equal(-1, table_fill_from(&filled, &origin, pool));
            assert_string_equal("row 249999 cannot be had", report_sentence());
            report_clear();
            table_release(&filled);
            pool_close(pool);
        }
        table_release(&plain);
    }
}

static void test_load_refuses(void **state) {
    struct config config = plain_config();
    struct table table;
    uint64_t checksum;
    char *path = file_join(directory, "target.npy");
    config.optimizer_rule = RULE_ADAGRAD;
    make_filled(&table, TABLE_TARGET, &config, 100, 1);
    assert_int_equal(0, table_save(&table, path, &checksum));
    table_release(&table);
    refuse_load(path, &config, 101, "100 rows", "101");
    config.model_dim = 12;
    refuse_load(path, &config, 100, "weights[10] sum[10]", "weights[12] sum[12]");
    config.model_dim = 10;
    config.optimizer_rule = RULE_SGD;
    refuse_load(path, &config, 100, "weights[10] sum[10]", "want weights[10]");
    config.optimizer_rule = RULE_ASGD;
    refuse_load(path, &config, 100, "sum[10]", "ax[10] updates");
    assert_int_equal(0, truncate(path, 500));
    refuse_load(path, &config, 100, "target.npy", "");
    assert_int_equal(0, unlink(path));
    refuse_load(path, &config, 100, "target.npy", "");
    free(path);
}

static void test_failed_read_leaves_no_file(void **state) {
    struct config config = plain_config();
    struct table table;
    uint64_t checksum;
    char *path = file_join(directory, "target.npy"), **names;
    make_filled(&table, TABLE_TARGET, &config, 1000000, 1); /* these rows are read in three chunks */
    device.reads = 0;
    device.fail_read_at = 2;
    assert_int_equal(-1, table_save(&table, path, &checksum));
    assert_string_equal("the device is gone", report_sentence());
    assert_int_equal(0, directory_list(directory, &names));
    free(names);
    free(path);
    table_release(&table);
}

/* Puts NaN or infinity into the first or last float of rows in each of three chunks: the table must not be saved. The bits of a counter may be
 * anything. */
static void test_what_is_no_number_is_not_saved(void **state) {
    enum { ROWS = 150000, WIDTH = 31 }; /* a chunk has 135,300 rows */
    static const uint64_t rows[] = {0, 1, 135300, 140000, ROWS - 1};
    struct config config = plain_config();
    struct table table;
    uint64_t checksum;
    char *path = file_join(directory, "target.npy"), wanted[96];
    config.optimizer_rule = RULE_ADAM;
    make_filled(&table, TABLE_TARGET, &config, ROWS, 2);
    for (int i = 0; i < 5; i++)
        for (int column = 0; column < WIDTH - 1; column += 29) {
            uint32_t *at = (uint32_t *)table.store->packed + rows[i] * WIDTH + column, kept = *at;
            *at = column ? 0x7F800000u : 0xFFC00001u; /* infinity, a NaN */
            snprintf(wanted, sizeof wanted, "row %d of the target table holds infinity or NaN", (int)rows[i]);
            report_clear();
            assert_int_equal(TABLE_NOT_FINITE, table_save(&table, path, &checksum));
            assert_string_equal(wanted, report_sentence());
            assert_false(file_exists(path));
            *at = kept;
        }
    report_clear();
    ((uint32_t *)table.store->packed)[rows[3] * WIDTH + WIDTH - 1] = 0x7F800000u;
    assert_int_equal(0, table_save(&table, path, &checksum));
    free(path);
    table_release(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_order),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_fields_of_bfloat16), cmocka_unit_test(test_fields_of_a_rule_by_row),
        cmocka_unit_test(test_fields_of_rowwise_adam), cmocka_unit_test(test_fields_of_codes),
        cmocka_unit_test(test_layout_lit2vec),
        cmocka_unit_test_setup_teardown(test_unsettled_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_place_names_its_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_laws, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_notebook_law, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reach, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_laws, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_init_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fill_is_a_function_of_row_and_column, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sides_and_seeds_differ, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_first_state, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_save_and_load, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_table_that_begins_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ranks_have_columns_of_the_same_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rows_that_begin_elsewhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_load_refuses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_no_number_is_not_saved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failed_read_leaves_no_file, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
