#include "table.h"

#include "base/floats.h"
#include "base/memory.h"
#include "kernels/stores.h"
#include "normal.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

const char *table_side_name(enum table_side side) {
    return side == TABLE_TARGET ? "target" : "context";
}

uint64_t table_row_bytes(const struct record_layout *layout, enum place weights, enum place state) {
    struct table_spec spec = {.rows = 1, .layout = *layout, .weights = weights, .state = state};
    struct table_shape shape = table_shape(&spec, 1);
    return shape.store[0].stride + (shape.stores == 2 ? shape.store[1].stride : 0);
}

/* ---- opening ---- */

enum { WORKING_NAME = 32 };

static void name_of_working_file(enum table_side side, char name[WORKING_NAME]) {
    snprintf(name, WORKING_NAME, "%s.working", table_side_name(side));
}

int table_left(const char *file) {
    char target[WORKING_NAME], context[WORKING_NAME];
    name_of_working_file(TABLE_TARGET, target);
    name_of_working_file(TABLE_CONTEXT, context);
    return file_is_partial(file, target) || file_is_partial(file, context);
}

static int name_working_file(struct table *table, const char *directory) {
    if (table->spec.weights != PLACE_FILE && table->spec.state != PLACE_FILE) return 0;
    char name[WORKING_NAME];
    name_of_working_file(table->side, name);
    table->file_path = file_join(directory, name);
    table->spec.file_path = table->file_path;
    return table->file_path ? 0 : -1;
}

int table_init(struct table *table, enum table_side side, const struct table_options *options,
               const struct backend_ops *ops, struct backend *backend) {
    *table = (struct table){
        .ops = ops, .backend = backend, .side = side, .rule = options->rule, .init = options->init, .seed = options->seed};
    table->spec.name = table_side_name(side);
    table->spec.rows = options->rows;
    table->spec.layout = record_layout_make(&table->rule, options->dim);
    table->spec.hot_rows = options->hot_rows < options->rows ? options->hot_rows : options->rows;
    table->spec.weights = options->weights;
    table->spec.state = options->state;
    if (name_working_file(table, options->directory) || ops->table_open(backend, &table->spec, &table->store)) {
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

/* Words of `text`, at most `capacity`, in `copy` of 256 bytes; -1 where there are more or they are longer. */
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

enum { TILE = 64 }; /* columns drawn at once */

/* What a row's columns from `first` are drawn from: `count` words, four a draw. */
static void draw_words(uint32_t seed, uint32_t purpose, uint64_t row, uint32_t first, uint32_t count, uint32_t *words) {
    for (uint32_t i = 0; i < count; i += 4) {
        struct draw4 drawn = draw_at(seed, purpose, row, 0, (first + i) / 4);
        memcpy(words + i, drawn.word, sizeof drawn.word);
    }
}

static void draw_weights(const struct init_values *from, uint32_t seed, enum table_side side, uint64_t row,
                         uint32_t dim, float *weights) {
    uint32_t purpose = side == TABLE_TARGET ? DRAW_INIT_TARGET : DRAW_INIT_CONTEXT, words[TILE];
    double values[TILE], scale = from->kind == INIT_NORMAL ? from->b : from->b - from->a;
    for (uint32_t first = 0; first < dim; first += TILE) {
        uint32_t columns = dim - first < TILE ? dim - first : TILE, count = (columns + 3) / 4 * 4;
        draw_words(seed, purpose, row, first, count, words);
        (from->kind == INIT_NORMAL ? normal_values : uniform_values)(words, count, values);
        for (uint32_t i = 0; i < columns; i++) weights[first + i] = (float)(from->a + scale * values[i]);
    }
}

/* The chunk of rows [first, first + count) that is being drawn. */
struct filling {
    struct table *table;
    unsigned threads;
    uint64_t first, count;
    char *records; /* [count] packed */
};

/* A record with its first state and weights of zero, `count` times. */
static void first_records(const struct table *table, char *records, uint64_t count) {
    const struct record_layout *layout = &table->spec.layout;
    memset(records, 0, count * layout->packed);
    for (uint64_t row = 0; row < count; row++)
        for (uint32_t s = 0; s < layout->slots; s++) {
            const struct record_field *slot = record_slot(layout, s);
            float *values = (float *)(void *)(records + row * layout->packed + slot->packed);
            for (uint32_t i = 0; i < slot->columns; i++) values[i] = slot->initial;
        }
}

static int draw_chunk(void *context, unsigned worker) {
    const struct filling *filling = context;
    const struct record_layout *layout = &filling->table->spec.layout;
    const struct record_field *weights = &layout->field[RECORD_WEIGHTS];
    uint64_t first, end;
    pool_share(filling->count, worker, filling->threads, &first, &end);
    for (uint64_t i = first; i < end; i++)
        draw_weights(&filling->table->init, filling->table->seed, filling->table->side, filling->first + i,
                     weights->columns, (float *)(void *)(filling->records + i * layout->packed + weights->packed));
    return 0;
}

/* Rows that are moved at once, of `all`. */
static uint64_t grain_of(uint64_t all, const struct record_layout *layout) {
    uint64_t rows = TABLE_CHUNK / layout->packed;
    if (rows > all) rows = all;
    return rows ? rows : 1;
}
static uint64_t grain(const struct table *table) {
    return grain_of(table->spec.rows, &table->spec.layout);
}

uint64_t table_saving_bytes(uint64_t rows, const struct record_layout *layout) {
    return SAVED_AT_ONCE * grain_of(rows, layout) * layout->packed;
}

/* Rows of the chunk that begins at row `first`; 0 behind the last. */
static uint64_t chunk_at(const struct table *table, uint64_t first) {
    uint64_t left = table->spec.rows - first, most = grain(table);
    return left < most ? left : most;
}

/* Drawn by all threads, then written by all of the backend's. */
static int fill_chunks(struct filling *filling, struct pool *pool) {
    const struct table *table = filling->table;
    int result = 0;
    filling->threads = pool_threads(pool);
    first_records(table, filling->records, grain(table));
    for (; !result && (filling->count = chunk_at(table, filling->first)); filling->first += filling->count) {
        if (filling->table->init.kind != INIT_ZEROS) result = pool_run(pool, draw_chunk, filling);
        if (!result)
            result = table->ops->table_write(table->backend, table->store, filling->first, filling->count, filling->records);
    }
    return result;
}

int table_fill(struct table *table, struct pool *pool) {
    struct filling filling = {.table = table};
    filling.records = mem_alloc(grain(table), table->spec.layout.packed, "a table's first values");
    int result = filling.records ? fill_chunks(&filling, pool) : -1;
    free(filling.records);
    return result;
}

/* ---- disk ---- */

static char kind_of(enum value_type type) {
    switch (type) {
    case VALUE_FLOAT32:
        return 'f';
    case VALUE_UINT32:
        return 'u';
    }
    return 0;
}

/* What the file of this table is made of. */
static struct npy describe(const struct table *table) {
    const struct record_layout *layout = &table->spec.layout;
    struct npy npy = {.rows = table->spec.rows, .fields = layout->fields};
    for (uint32_t i = 0; i < layout->fields; i++) {
        const struct record_field *field = &layout->field[i];
        snprintf(npy.field[i].name, sizeof npy.field[i].name, "%s", field->name);
        npy.field[i].columns = field->columns;
        npy.field[i].kind = kind_of(field->type);
    }
    return npy;
}

/* A table on its way to disk: while a chunk is written, the next is read and hashed. */
struct saving {
    struct table *table;
    struct file_writer *writer;
    XXH64_state_t *hash;
    char *next, *last;                /* records that are read, and that are written */
    uint64_t first, reading, writing; /* the row where `next` begins; how many rows each has */
    int not_finite;                   /* a row holds infinity or NaN, and that is said */
};

static int record_finite(const struct record_layout *layout, const char *record) {
    for (uint32_t i = 0; i < layout->fields; i++) {
        const struct record_field *field = &layout->field[i];
        const float *values = (const float *)(const void *)(record + field->packed);
        if (field->type == VALUE_FLOAT32 && !floats_finite(values, field->columns)) return 0;
    }
    return 1;
}

/* The chunk that is read: first all of its bytes as floats, at the speed of memory. A count among them only says that a
 * closer look is due; its bits are those of a finite float up to two thousand million updates. */
static int check_finite(struct saving *saving) {
    const struct table *table = saving->table;
    const struct record_layout *layout = &table->spec.layout;
    const float *all = (const float *)(const void *)saving->next;
    if (floats_finite(all, saving->reading * layout->packed / value_bytes(VALUE_FLOAT32))) return 0;
    for (uint64_t row = 0; row < saving->reading; row++)
        if (!record_finite(layout, saving->next + row * layout->packed)) {
            saving->not_finite = 1;
            return fail("row %" PRIu64 " of the %s table holds infinity or NaN", saving->first + row, table->spec.name);
        }
    return 0;
}

static int read_next(struct saving *saving) {
    struct table *table = saving->table;
    if (!saving->reading) return 0;
    if (table->ops->table_read(table->backend, table->store, saving->first, saving->reading, saving->next)) return -1;
    if (check_finite(saving)) return -1;
    XXH64_update(saving->hash, saving->next, saving->reading * table->spec.layout.packed);
    return 0;
}

static int save_turn(void *context, unsigned worker) {
    struct saving *saving = context;
    if (worker == 0) return read_next(saving);
    return file_write(saving->writer, saving->last, saving->writing * saving->table->spec.layout.packed);
}

static int save_chunks(struct saving *saving, struct pool *pool) {
    for (saving->reading = chunk_at(saving->table, 0); saving->reading || saving->writing;) {
        if (pool_run(pool, save_turn, saving)) return -1;
        char *written = saving->last;
        saving->last = saving->next;
        saving->next = written;
        saving->writing = saving->reading;
        saving->first += saving->reading;
        saving->reading = chunk_at(saving->table, saving->first);
    }
    return 0;
}

static int save_rows(struct table *table, struct file_writer *writer, XXH64_state_t *hash) {
    uint64_t chunk = grain(table) * table->spec.layout.packed;
    char *records = mem_alloc(SAVED_AT_ONCE, chunk, "pieces of a table on their way to disk");
    if (!records) return -1;
    struct pool *pool = pool_open(2);
    struct saving saving = {.table = table, .writer = writer, .hash = hash, .next = records, .last = records + chunk};
    int result = pool ? save_chunks(&saving, pool) : -1;
    pool_close(pool);
    free(records);
    return saving.not_finite ? TABLE_NOT_FINITE : result;
}

int table_save(struct table *table, const char *path, uint64_t *checksum) {
    struct npy npy = describe(table);
    struct file_writer writer;
    XXH64_state_t *hash = XXH64_createState();
    int result = -1;
    if (!hash) return fail("not enough memory for a checksum");
    XXH64_reset(hash, 0);
    if (file_writer_open(&writer, path)) goto out;
    if (npy_write_header(&npy, &writer)) goto abandon;
    if (writer.used != writer.written) { /* a header is far smaller than the buffer it waits in */
        fail("the header of '%s' is longer than a write buffer", path);
        goto abandon;
    }
    XXH64_update(hash, writer.buffer, writer.used);
    result = save_rows(table, &writer, hash);
    if (result) goto abandon;
    result = file_commit(&writer);
    *checksum = XXH64_digest(hash);
    goto out;
abandon:
    file_abandon(&writer);
out:
    XXH64_freeState(hash);
    return result;
}

/* "weights[128] exp_avg[128] updates" */
static void name_fields(const struct npy *npy, char *out, size_t capacity) {
    size_t at = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < npy->fields && at < capacity; i++) {
        const struct npy_field *field = &npy->field[i];
        int n = field->kind == 'u' ? snprintf(out + at, capacity - at, "%s%s", i ? " " : "", field->name)
                                   : snprintf(out + at, capacity - at, "%s%s[%" PRIu32 "]", i ? " " : "",
                                              field->name[0] ? field->name : "(plain array)", field->columns);
        at += n > 0 ? (size_t)n : 0;
    }
}

static int same_fields(const struct npy *seen, const struct npy *wanted) {
    if (seen->fields != wanted->fields) return 0;
    for (uint32_t i = 0; i < seen->fields; i++) {
        const struct npy_field *a = &seen->field[i], *b = &wanted->field[i];
        if (strcmp(a->name, b->name) || a->columns != b->columns || a->kind != b->kind) return 0;
    }
    return 1;
}

static int check_file(const struct table *table, const struct npy *seen, const char *path) {
    struct npy wanted = describe(table);
    char has[512], wants[512];
    if (seen->rows != wanted.rows)
        return fail("'%s' has %" PRIu64 " rows, the %s table has %" PRIu64, path, seen->rows, table->spec.name, wanted.rows);
    if (!same_fields(seen, &wanted) || seen->record != table->spec.layout.packed) {
        name_fields(seen, has, sizeof has);
        name_fields(&wanted, wants, sizeof wants);
        return fail("'%s' has the fields %s, this model.dim and optimizer want %s", path, has, wants);
    }
    return 0;
}

int table_load(struct table *table, const char *path) {
    struct npy npy;
    if (npy_open(&npy, path)) return -1;
    int result = check_file(table, &npy, path);
    for (uint64_t first = 0, count; !result && (count = chunk_at(table, first)); first += count)
        result = table->ops->table_write(table->backend, table->store, first, count, npy_row(&npy, &npy.field[0], first));
    npy_close(&npy);
    return result;
}
