#include "table.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "kernels/backend.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *table_side_name(enum table_side side) {
    return side == TABLE_TARGET ? "target" : "context";
}

uint64_t table_row_bytes(const struct record_layout *layout, enum place weights, enum place state) {
    struct table_spec spec = {.rows = 1, .layout = *layout, .weights = weights, .state = state};
    struct table_shape shape = table_shape(&spec, 1);
    return shape.store[0].stride + (shape.stores == 2 ? shape.store[1].stride : 0);
}

/* ---- opening ---- */

static const char *const working_names[] = {[TABLE_TARGET] = "target.working", [TABLE_CONTEXT] = "context.working"};

int table_left(const char *file) {
    return file_is_partial(file, working_names[TABLE_TARGET]) || file_is_partial(file, working_names[TABLE_CONTEXT]);
}

/* Returns the number of columns of the ranks before the one that has the columns `own`. */
static uint32_t columns_before(struct columns own) {
    return own.apart ? 2 * own.first : own.first;
}

/* Refuses bfloat16 and coarse fields if the backend does not support them, or if the eight columns of one draw for rounding would be on different
 * ranks. */
static int check_halves(const struct table *table) {
    if (!table->whole.halves) return 0;
    if (!table->ops->halves)
        return fail(
            "the %s backend has rows of float32 alone, and the %s table is to have bfloat16; set model.precision and "
            "model.state_precision to float32, or take another backend",
            table->ops->name, table->spec.name);
    if (columns_before(table->own) % ROUND_GROUP == 0 &&
        ranks_count(table->ranks) <= (table->whole.dim + ROUND_GROUP - 1) / ROUND_GROUP)
        return 0;
    return fail("%u columns with bfloat16 are %u groups of eight, too few for %u ranks; take fewer ranks, or float32",
                table->whole.dim, (table->whole.dim + ROUND_GROUP - 1) / ROUND_GROUP, ranks_count(table->ranks));
}

int table_init(struct table *table, enum table_side side, const struct table_options *options,
               const struct backend_ops *ops, struct backend *backend) {
    *table = (struct table){
        .ops = ops, .backend = backend, .side = side, .rule = options->rule, .init = options->init, .seed = options->seed,
        .idle = options->idle, .biases = options->biases, .filler = options->filler, .fillers = options->fillers};
    table->spec.name = table_side_name(side);
    table->spec.rows = options->rows;
    table->spec.first_row = options->first_row;
    table->ranks = options->ranks;
    table->whole = record_layout_make(&table->rule, options->dim);
    table->whole.complex = options->complex != 0;
    table->own = record_columns(&table->whole, ranks_count(table->ranks), table->ranks ? table->ranks->number : 0);
    table->spec.rounding = (struct rounding){table->seed, side == TABLE_CONTEXT, columns_before(table->own), options->draws};
    table->spec.layout = record_layout_make(&table->rule, table->own.count);
    table->spec.hot_rows = options->hot_rows < options->rows ? options->hot_rows : options->rows;
    table->spec.gpu_cache = options->gpu_cache;
    table->spec.weights = options->weights;
    table->spec.state = options->state;
    table->spec.given = options->given;
    table->spec.frozen = options->frozen;
    int in_file = options->weights == PLACE_FILE || options->state == PLACE_FILE;
    if (in_file) table->spec.file_path = table->file_path = file_join(options->directory, working_names[side]);
    if (check_halves(table) || (in_file && !table->file_path) ||
        ops->table_open(backend, &table->spec, &table->store)) {
        table->store = NULL;
        table_release(table);
        return -1;
    }
    return 0;
}

void table_release(struct table *table) {
    if (table->store) table->ops->table_close(table->backend, table->store);
    free(table->file_path);
    *table = (struct table){0};
}

/* ---- first values ---- */

/* Splits `text` into at most `capacity` words, which are stored in `copy`. Returns their number; -1 if there are more words or the text is too
 * long. */
static int split(const char *text, char copy[256], char *words[], int capacity) {
    int n = 0;
    char *rest = copy;
    if (strlen(text) >= 256) return -1;
    strcpy(copy, text);
    for (char *word; (word = strtok_r(rest, " \t,", &rest));) {
        if (n == capacity) return -1;
        words[n++] = word;
    }
    return n;
}

static int set_values(struct init_values *out, enum init_kind kind, double a, double b) {
    *out = (struct init_values){kind, a, b};
    return 0;
}

int table_init_values(struct init_values *out, const char *text, enum table_side side, uint32_t dim) {
    char copy[256], *words[3];
    double a = 0, b = 0;
    int n = split(text, copy, words, 3);
    if (n < 1 || (n > 1 && text_real(words[1], &a)) || (n > 2 && text_real(words[2], &b))) return -1;
    if (n == 1 && !strcmp(words[0], "zeros")) return set_values(out, INIT_ZEROS, 0, 0);
    if (n == 1 && !strcmp(words[0], "word2vec")) return set_values(out, INIT_UNIFORM, -0.5 / dim, 0.5 / dim);
    if (n == 3 && !strcmp(words[0], "uniform") && a <= b) return set_values(out, INIT_UNIFORM, a, b);
    if (n == 3 && !strcmp(words[0], "normal") && b >= 0) return set_values(out, INIT_NORMAL, a, b);
    if (n == 2 && !strcmp(words[0], "notebook") && a >= 0) {
        double r = sqrt(2 / (a + dim));
        return side == TABLE_TARGET ? set_values(out, INIT_UNIFORM, -r, r) : set_values(out, INIT_NORMAL, 0, sqrt(r));
    }
    return -1;
}

double table_init_reach(const struct init_values *values) {
    if (values->kind == INIT_ZEROS) return 0;
    if (values->kind == INIT_NORMAL) return fabs(values->a) + NORMAL_FURTHEST * values->b;
    return fmax(fabs(values->a), fabs(values->b));
}

static void uniform_values(const uint32_t *words, uint32_t count, double *out) {
    for (uint32_t i = 0; i < count; i++) out[i] = draw_unit(words[i]);
}

enum { TILE = 64 }; /* number of columns whose first values are drawn at a time */

/* Draws the values with which the columns `own` of a row begin. One draw gives the values of four columns, so the first draw may also give values
 * of columns before `own`, which are left out. */
static void first_of_run(const struct init_values *from, uint32_t seed, enum table_side side, uint64_t row, struct columns own, float *weights) {
    uint32_t purpose = side == TABLE_TARGET ? DRAW_INIT_TARGET : DRAW_INIT_CONTEXT, words[TILE];
    uint32_t first = own.first, end = first + own.count;
    double values[TILE], scale = from->kind == INIT_NORMAL ? from->b : from->b - from->a;
    for (uint32_t tile = first / 4 * 4; tile < end; tile += TILE) {
        uint32_t columns = end - tile < TILE ? end - tile : TILE, count = (columns + 3) / 4 * 4;
        for (uint32_t i = 0; i < count; i += 4) { /* one draw makes four words */
            struct draw4 drawn = draw_at(seed, purpose, row, 0, (tile + i) / 4);
            memcpy(words + i, drawn.word, sizeof drawn.word);
        }
        (from->kind == INIT_NORMAL ? normal_values : uniform_values)(words, count, values);
        for (uint32_t i = tile < first ? first - tile : 0; i < columns; i++)
            weights[tile + i - first] = (float)(from->a + scale * values[i]);
    }
}

void table_first_weights(const struct init_values *from, uint32_t seed, enum table_side side, uint64_t row, struct columns own,
                         float *weights) {
    for (uint32_t at = 0; at < own.count; at += record_run(own, at).count) first_of_run(from, seed, side, row, record_run(own, at), weights + at);
}

/* The chunk that is being filled, with the rows first .. first + count - 1. */
struct filling {
    struct table *table;
    const struct table_origin *origin; /* NULL: every row gets first values */
    unsigned threads;
    uint64_t first, count;
    char *records; /* [count] packed records */
};

/* Returns which of this rank's columns is the column of ones, or the bias. If another rank has that column, returns a number past this rank's
 * columns. */
static uint32_t ones_column(const struct table *table) {
    return table->whole.dim - 1 - (table->side == TABLE_CONTEXT) - table->own.first;
}
/* Makes `count` records with the first state, and with zero weights except in a column of ones. */
static void first_records(const struct table *table, char *records, uint64_t count) {
    const struct record_layout *layout = &table->spec.layout;
    float initial[COLUMNS_MOST];
    memset(records, 0, count * layout->packed);
    for (uint32_t s = 0; s < layout->slots; s++) {
        const struct record_field *slot = record_slot(layout, s);
        for (uint32_t i = 0; i < slot->columns; i++)
            initial[i] = !table->biases || s           ? slot->initial
                         : i == ones_column(table) ? LOSS_GLOVE_STILL
                         : i == table->whole.dim - 1 - (table->side == TABLE_TARGET) - table->own.first ? 1
                                                   : slot->initial;
        for (uint64_t row = 0; row < count; row++)
            values_write(layout, slot, records + row * layout->packed, initial, slot->columns);
    }
    const struct record_field *weights = &layout->field[RECORD_WEIGHTS];
    if (!table->biases || ones_column(table) >= weights->columns) return;
    memset(initial, 0, sizeof initial);
    initial[ones_column(table)] = 1;
    for (uint64_t row = 0; row < count; row++)
        values_write(layout, weights, records + row * layout->packed, initial, weights->columns);
}

static int is_idle(const struct table *table, uint64_t row) {
    return row >= table->spec.rows - table->idle;
}

/* New memory on the CPU is zero, and so is the record of an idle row if the rule has no state. */
int table_is_blank(const struct table *table, uint64_t first) {
    return is_idle(table, first) && !table->spec.layout.slots && !table->ops->has_gpu;
}

/* Copies the row from the origin; if the origin lacks the row, gives it its first weights. */
static int begin_row(const struct filling *filling, uint64_t row, char *record) {
    const struct table *table = filling->table;
    const struct table_origin *origin = filling->origin;
    int taken = origin ? origin->take(origin->user, table, row, record) : 0;
    const struct init_values *init = first_values_of(&table->init, row);
    if (taken || init->kind == INIT_ZEROS) return taken < 0 ? -1 : 0;
    const struct record_field *weights = &table->spec.layout.field[RECORD_WEIGHTS];
    float first[COLUMNS_MOST];
    memset(first, 0, weights->columns * sizeof *first); /* clears only the row's columns: clearing all of `first` took longer than drawing */
    if (!is_idle(table, row)) table_first_weights(init, table->seed, table->side, row, table->own, first);
    if (table->biases && ones_column(table) < weights->columns) first[ones_column(table)] = 1;
    values_write(&table->spec.layout, weights, record, first, weights->columns);
    return 0;
}

void table_first_record(const struct table *table, uint64_t row, char *record) {
    const struct record_field *weights = &table->spec.layout.field[RECORD_WEIGHTS];
    float first[COLUMNS_MOST];
    first_records(table, record, 1);
    if (table->init.rows.kind == INIT_ZEROS) return;
    table_first_weights(&table->init.rows, table->seed, table->side, row, table->own, first);
    values_write(&table->spec.layout, weights, record, first, weights->columns);
}

static int begin_rows(void *context, unsigned worker) {
    const struct filling *filling = context;
    uint64_t first, end, packed = filling->table->spec.layout.packed;
    pool_share(filling->count, worker, filling->threads, &first, &end);
    if (filling->origin) first_records(filling->table, filling->records + first * packed, end - first);
    for (uint64_t i = first; i < end; i++)
        if (begin_row(filling, filling->first + i, filling->records + i * packed)) return -1;
    return 0;
}

/* Returns the number of rows of a chunk. If ranks divide the columns among them, they also divide the TABLE_CHUNK bytes. */
static uint64_t grain(uint64_t all, const struct record_layout *whole, unsigned ranks) {
    uint64_t rows = TABLE_CHUNK / whole->packed, share = (all + ranks - 1) / ranks;
    if (rows > share) rows = share;
    return rows ? rows : 1;
}

uint64_t table_saving_bytes(uint64_t rows, const struct record_layout *whole, unsigned ranks) {
    uint64_t chunk = grain(rows, whole, ranks);
    return SAVED_AT_ONCE * chunk * whole->packed + whole_rows_bytes(chunk, whole, ranks);
}

uint64_t table_blank_rows(uint64_t rows, uint64_t idle, const struct record_layout *whole, unsigned ranks) {
    uint64_t chunk = grain(rows, whole, ranks), first = (rows - idle + chunk - 1) / chunk * chunk;
    return whole->slots || first > rows ? 0 : rows - first;
}

uint64_t table_file_bytes(const struct table *table) {
    return table_row_count(&table->spec) * table->whole.packed;
}

uint64_t table_chunk(const struct table *table, uint64_t first) {
    uint64_t left = table->spec.rows - first, most = grain(table_row_count(&table->spec), &table->whole, ranks_count(table->ranks));
    INVARIANT(first >= table->spec.first_row && first <= table->spec.rows);
    return left < most ? left : most;
}

uint64_t table_first_chunk(const struct table *table) {
    return table_chunk(table, table->spec.first_row);
}

/* Fills the table. For each chunk, all threads make records, then the backend writes them with its own threads. Records of zero bytes are not
 * written, since a backend's new memory is zero; on the CPU this memory is then allocated only when rows are first written. */
static int fill_chunks(struct filling *filling, struct pool *pool) {
    const struct table *table = filling->table;
    /* 1: all rows have the same first record */
    int alike = !filling->origin && table->init.rows.kind == INIT_ZEROS && !table->init.later_from, result = 0;
    filling->threads = pool_threads(pool);
    first_records(table, filling->records, table_first_chunk(table));
    if (alike && !filling->records[0] && !memcmp(filling->records, filling->records + 1, table->spec.layout.packed - 1)) return 0;
    for (uint64_t chunk = 0; !result && (filling->count = table_chunk(table, filling->first)); filling->first += filling->count, chunk++) {
        if (table->fillers && chunk % table->fillers != table->filler) continue;
        result = interrupt_check();
        if (!filling->origin && table_is_blank(table, filling->first)) continue;
        if (!result && !alike) result = pool_run(pool, begin_rows, filling);
        if (!result)
            result = table->ops->table_write(table->backend, table->store, filling->first, filling->count, filling->records);
    }
    return result;
}

int table_fill(struct table *table, struct pool *pool) {
    return table_fill_from(table, NULL, pool);
}

int table_fill_from(struct table *table, const struct table_origin *origin, struct pool *pool) {
    struct filling filling = {.table = table, .origin = origin, .first = table->spec.first_row};
    filling.records = mem_alloc(table_first_chunk(table), table->spec.layout.packed, "a table's first values");
    int result = filling.records ? fill_chunks(&filling, pool) : -1;
    free(filling.records);
    return result;
}
