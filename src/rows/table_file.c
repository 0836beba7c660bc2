/* table_file: a table to and from its .npy, a chunk of rows at a time (table.h).
 *
 *   alone    read a chunk | hash it, and write the one before
 *   ranks    every rank reads its columns of a chunk; the first one gathers them, joins them to whole records, and goes on as
 *            alone. Each chunk begins with all agreeing that they are still there
 */
#include "table.h"

#include "base/floats.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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
    const struct record_layout *layout = &table->whole;
    struct npy npy = {.rows = table->spec.rows, .fields = layout->fields};
    for (uint32_t i = 0; i < layout->fields; i++) {
        const struct record_field *field = &layout->field[i];
        snprintf(npy.field[i].name, sizeof npy.field[i].name, "%s", field->name);
        npy.field[i].columns = field->columns;
        npy.field[i].kind = kind_of(field->type);
    }
    return npy;
}

/* ---- columns of all ranks ---- */

static int is_whole(const struct table *table) {
    return ranks_count(table->ranks) == 1;
}

/* A chunk on its way from all ranks to the first. */
struct gathering {
    struct table *table;
    char *own;        /* packed records of this rank's columns */
    char *all;        /* those of every rank, one rank behind the other; NULL but on the first */
    uint64_t *sizes;  /* [ranks] bytes of each */
};

static struct record_layout part_of(const struct table *table, unsigned rank, struct columns *columns) {
    *columns = ranks_columns(table->whole.dim, table->ranks->count, rank);
    return record_layout_make(&table->rule, columns->count);
}

static void release_gathering(struct gathering *g) {
    free(g->own);
    free(g->all);
    free(g->sizes);
}

/* Memory for chunks. A table that is whole is not gathered. */
static int init_gathering(struct gathering *g, struct table *table) {
    struct columns columns;
    uint64_t bytes = 0, rows = table_chunk(table, 0);
    *g = (struct gathering){.table = table};
    if (is_whole(table)) return 0;
    for (unsigned r = 0; r < table->ranks->count; r++) bytes += part_of(table, r, &columns).packed;
    g->own = mem_alloc(rows, table->spec.layout.packed, "columns on their way to the first rank");
    g->sizes = mem_alloc(table->ranks->count, sizeof *g->sizes, "columns on their way to the first rank");
    if (ranks_first(table->ranks)) g->all = mem_alloc(rows, bytes, "columns of all ranks");
    return g->own && g->sizes && (g->all || !ranks_first(table->ranks)) ? 0 : -1;
}

/* By all ranks: rows [first, first + count) as whole records on the first one. */
static int gather_rows(struct gathering *g, uint64_t first, uint64_t count, char *whole) {
    struct table *table = g->table;
    struct columns columns;
    const char *from = g->all;
    if (is_whole(table)) return table->ops->table_read(table->backend, table->store, first, count, whole);
    if (ranks_agree(table->ranks, table->ops->table_read(table->backend, table->store, first, count, g->own))) return -1;
    for (unsigned r = 0; r < table->ranks->count; r++) g->sizes[r] = count * part_of(table, r, &columns).packed;
    ranks_gather(table->ranks, g->own, g->all, g->sizes);
    for (unsigned r = 0; whole && r < table->ranks->count; from += g->sizes[r++]) {
        struct record_layout part = part_of(table, r, &columns);
        record_join(&table->whole, &part, columns.first, count, whole, from);
    }
    return 0;
}

int table_give(struct table *table) {
    struct gathering gathering;
    int result = init_gathering(&gathering, table);
    for (uint64_t first = 0, count; !result && (count = table_chunk(table, first)); first += count)
        result = gather_rows(&gathering, first, count, NULL);
    release_gathering(&gathering);
    return result;
}

/* ---- saving ---- */

/* A table on its way to disk: while a chunk is written, the next is read and hashed. */
struct saving {
    struct table *table;
    struct gathering *gathering;
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
    const struct record_layout *layout = &table->whole;
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
    if (gather_rows(saving->gathering, saving->first, saving->reading, saving->next)) return -1;
    if (check_finite(saving)) return -1;
    XXH64_update(saving->hash, saving->next, saving->reading * table->whole.packed);
    return 0;
}

static int save_turn(void *context, unsigned worker) {
    struct saving *saving = context;
    if (worker == 0) return read_next(saving);
    return file_write(saving->writer, saving->last, saving->writing * saving->table->whole.packed);
}

static int save_chunks(struct saving *saving, struct pool *pool) {
    for (saving->reading = table_chunk(saving->table, 0); saving->reading || saving->writing;) {
        if (pool_run(pool, save_turn, saving)) return -1;
        char *written = saving->last;
        saving->last = saving->next;
        saving->next = written;
        saving->writing = saving->reading;
        saving->first += saving->reading;
        saving->reading = table_chunk(saving->table, saving->first);
    }
    return 0;
}

static int save_rows(struct table *table, struct file_writer *writer, XXH64_state_t *hash) {
    uint64_t chunk = table_chunk(table, 0) * table->whole.packed;
    struct gathering gathering;
    struct pool *pool = pool_open(2);
    char *records = mem_alloc(SAVED_AT_ONCE, chunk, "pieces of a table on their way to disk");
    struct saving saving = {.table = table, .gathering = &gathering, .writer = writer, .hash = hash, .next = records};
    int result = init_gathering(&gathering, table) || !pool || !records ? -1 : 0;
    if (!result) {
        saving.last = records + chunk;
        result = save_chunks(&saving, pool);
    }
    release_gathering(&gathering);
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

/* ---- loading ---- */

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

int table_has_fields(const struct table *table, const struct npy *npy) {
    struct npy wanted = describe(table);
    return same_fields(npy, &wanted) && npy->record == table->whole.packed;
}

static int check_file(const struct table *table, const struct npy *seen, const char *path) {
    struct npy wanted = describe(table);
    char has[512], wants[512];
    if (seen->rows != wanted.rows)
        return fail("'%s' has %" PRIu64 " rows, the %s table has %" PRIu64, path, seen->rows, table->spec.name, wanted.rows);
    if (!table_has_fields(table, seen)) {
        name_fields(seen, has, sizeof has);
        name_fields(&wanted, wants, sizeof wants);
        return fail("'%s' has the fields %s, this model.dim and optimizer want %s", path, has, wants);
    }
    return 0;
}

/* Own columns of the chunk at `whole`, by way of memory for them. */
static int write_rows(struct table *table, uint64_t first, uint64_t count, const char *whole, char *own) {
    if (!is_whole(table)) record_split(&table->whole, &table->spec.layout, table->own.first, count, whole, own);
    return table->ops->table_write(table->backend, table->store, first, count, is_whole(table) ? whole : own);
}

int table_load(struct table *table, const char *path) {
    struct npy npy;
    char *own = NULL;
    if (npy_open(&npy, path)) return -1;
    int result = check_file(table, &npy, path);
    if (!result && !is_whole(table)) {
        own = mem_alloc(table_chunk(table, 0), table->spec.layout.packed, "this rank's columns");
        result = own ? 0 : -1;
    }
    for (uint64_t first = 0, count; !result && (count = table_chunk(table, first)); first += count)
        result = write_rows(table, first, count, npy_row(&npy, &npy.field[0], first), own);
    free(own);
    npy_close(&npy);
    return result;
}
