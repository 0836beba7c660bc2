/* keyed: tables whose rows are found by 64-bit keys: an index of keys (rows/keys.h) over a table.
 *
 *   rows 0 .. capacity - 1    rows of keys
 *   `spare` rows after them   first values that a call answers for keys without a row; an update changes the first of them in the
 *                             place of such keys
 *
 * Files hold keys by rising number, and no number of a row, so tables that were made by the same calls have the same files, whichever
 * rows their keys have. A file of changes is the same without the keys that no call has named since the mark:
 *
 *   text         "sptx keyed 1", then lines of a name and a value (struct head), then "end"
 *   key_about    [rows] the keys with their counts
 *   records      [rows] packed records, as a checkpoint has them
 *   gone         [gone] keys without a row that left since the mark
 *   sketch       [blocks] number of the block, and its counters
 *   XXH64        of all bytes before
 */
#include "handles.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "rows/rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

_Static_assert((int)SPTX_EVICT_AGE == (int)KEYS_AGE && KEYS_EVICTS == 4 && SPTX_ADMIT_MOST == (int)KEYS_ADMIT_MOST, "sptx.h has keys.h's numbers");

enum {
    SPARE_BYTES = 1 << 20,  /* bytes of the spare rows, of which there are 1 .. SPARE_MOST */
    SPARE_MOST = 1024,
    EVICTED_BYTES = 64 << 20, /* bytes of rows that are kept for sptx_keyed_evicted() by default */
    RECORDS_BYTES = 4 << 20   /* bytes of records that are made, read or written at a time */
};

struct sptx_keyed {
    struct sptx_table *table;
    struct keys keys;
    uint64_t spare;
    uint64_t chain;      /* a hash of all calls that changed the table: two tables with the same number have the same rows */
    uint64_t previous;   /* the clock of the newest mark */
    uint32_t *row, *ids; /* [capacities] rows of a call's keys; the same with spare rows in place of KEYS_NONE */
    uint64_t row_capacity, id_capacity;
    char *records;       /* [chunk] packed records */
    uint64_t chunk;
    uint64_t evicted_most, evicted_count, evicted_capacity, evicted_room; /* most: kept for the caller */
    uint64_t *evicted_key; /* [evicted_count], the first to leave first */
    float *evicted_row;    /* [evicted_count x dim] */
    uint64_t waiting, dropped, evictions, lost;
    struct sptx_keyed *next;
};

/* ---- opening ---- */

void sptx_keyed_defaults(struct sptx_keyed_options *options, uint64_t size) {
    struct sptx_keyed_options all = {.admit = 1, .keep_evicted = UINT64_MAX};
    if (!options || size < sizeof size) return;
    all.size = size < sizeof all ? size : sizeof all;
    memcpy(options, &all, all.size);
}

static int open_keyed(struct sptx_context *context, const struct sptx_table_options *rows, const struct sptx_keyed_options *given,
                      struct sptx_keyed *keyed) {
    struct sptx_keyed_options options;
    struct sptx_table_options of;
    sptx_keyed_defaults(&options, sizeof options);
    sptx_table_defaults(&of, sizeof of);
    if (given && take_options(&options, sizeof options, given)) return -1;
    if (!rows) return fail_usage("the options of the rows are NULL");
    if (take_options(&of, sizeof of, rows)) return -1;
    if (options.evict >= KEYS_EVICTS) return fail_usage("evict is 0 (none), 1 (lru), 2 (lfu) or 3 (age), not %u", options.evict);
    if (!options.admit || options.admit > KEYS_ADMIT_MOST) return fail_usage("admit = %u is not in 1..%d", options.admit, KEYS_ADMIT_MOST);
    uint64_t row = 4 * (uint64_t)of.dim + 1;
    keyed->spare = SPARE_BYTES / row > SPARE_MOST ? SPARE_MOST : SPARE_BYTES / row + 1;
    if (!of.rows || of.rows > SPTX_ROWS_MOST - SPARE_MOST)
        return fail_usage("a capacity of %" PRIu64 " is not in 1..%u", of.rows, SPTX_ROWS_MOST - SPARE_MOST);
    if (keys_init(&keyed->keys, of.rows, keyed->spare, (enum keys_evict)options.evict, options.admit) ||
        table_open(context, &of, &keyed->keys, keyed->spare, &keyed->table))
        return -1;
    const struct record_layout *layout = &keyed->table->table.spec.layout;
    keyed->chunk = RECORDS_BYTES / layout->packed > keyed->spare ? RECORDS_BYTES / layout->packed : keyed->spare;
    keyed->evicted_most = options.keep_evicted == UINT64_MAX ? EVICTED_BYTES / row + 1 : options.keep_evicted;
    keyed->records = mem_alloc(keyed->chunk, layout->packed, "records");
    return keyed->records ? 0 : -1;
}

enum sptx_status sptx_keyed_open(struct sptx_context *context, const struct sptx_table_options *rows,
                                 const struct sptx_keyed_options *options, struct sptx_keyed **out) {
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!out) return leave(context, fail_usage("a table is opened into a pointer; it is NULL"));
    *out = NULL;
    struct sptx_keyed *keyed = mem_zalloc(1, sizeof *keyed, "a table");
    if (!keyed) return leave(context, -1);
    int result = open_keyed(context, rows, options, keyed);
    enum sptx_status status = leave(context, result);
    if (result) {
        if (keyed->table) sptx_table_close(keyed->table);
        keys_release(&keyed->keys);
        free(keyed);
        return status;
    }
    keyed->next = context->keyed;
    context->keyed = *out = keyed;
    return status;
}

void sptx_keyed_close(struct sptx_keyed *keyed) {
    if (!keyed) return;
    struct sptx_keyed **at = &keyed->table->context->keyed;
    while (*at != keyed) at = &(*at)->next;
    *at = keyed->next;
    sptx_table_close(keyed->table);
    keys_release(&keyed->keys);
    free(keyed->row);
    free(keyed->ids);
    free(keyed->records);
    free(keyed->evicted_key);
    free(keyed->evicted_row);
    free(keyed);
}

struct sptx_table *sptx_keyed_table(struct sptx_keyed *keyed) {
    return keyed ? keyed->table : NULL;
}

enum sptx_status sptx_keyed_about(const struct sptx_keyed *keyed, struct sptx_keyed_numbers *numbers) {
    if (!keyed || !numbers) return SPTX_USAGE;
    struct sptx_keyed_numbers all = {.size = sizeof all, .capacity = keyed->keys.capacity, .keys = keyed->keys.count,
                                     .calls = keyed->keys.clock, .waiting = keyed->waiting, .dropped = keyed->dropped,
                                     .evictions = keyed->evictions, .evicted = keyed->evicted_count, .lost = keyed->lost,
                                     .evict = keyed->keys.evict, .admit = keyed->keys.admit};
    if (numbers->size < sizeof all.size || numbers->size > sizeof all) return SPTX_USAGE;
    all.size = numbers->size;
    memcpy(numbers, &all, all.size);
    return SPTX_OK;
}

enum sptx_status sptx_keyed_hash(const char *bytes, const uint64_t *offsets, uint64_t count, uint64_t *keys) {
    if (count && (!bytes || !offsets || !keys)) return SPTX_USAGE;
    for (uint64_t i = 0; i < count; i++) keys[i] = XXH3_64bits(bytes + offsets[i], offsets[i + 1] - offsets[i]);
    return SPTX_OK;
}

/* ---- records ---- */

/* Reads the records of rows into records[], or writes them; consecutive rows by one call. */
static int move_records(struct sptx_keyed *keyed, const uint32_t *row, uint64_t count, int write) {
    const struct table *table = &keyed->table->table;
    for (uint64_t i = 0, end; i < count; i = end) {
        char *at = keyed->records + i * table->spec.layout.packed;
        for (end = i + 1; end < count && row[end] == row[end - 1] + 1;) end++;
        if (write ? table->ops->table_write(table->backend, table->store, row[i], end - i, at)
                  : table->ops->table_read(table->backend, table->store, row[i], end - i, at))
            return -1;
    }
    return 0;
}

struct beginning {
    const struct table *table;
    const uint64_t *key;
    uint64_t count;
    char *records;
    unsigned workers;
};

static int begin_share(void *context, unsigned worker) {
    const struct beginning *b = context;
    uint64_t first, end;
    pool_share(b->count, worker, b->workers, &first, &end);
    for (; first < end; first++) table_first_record(b->table, b->key[first], b->records + first * b->table->spec.layout.packed);
    return 0;
}

/* Gives rows the first values of keys. */
static int begin_rows(struct sptx_keyed *keyed, const uint64_t *key, const uint32_t *row, uint64_t count) {
    struct sptx_context *context = keyed->table->context;
    for (uint64_t i = 0; i < count; i += keyed->chunk) {
        struct beginning b = {&keyed->table->table, key + i, count - i < keyed->chunk ? count - i : keyed->chunk, keyed->records, 1};
        if (b.count * keyed->table->table.spec.layout.packed > 1 << 16) b.workers = pool_threads(context->pool);
        if ((b.workers > 1 ? pool_run(context->pool, begin_share, &b) : begin_share(&b, 0)) || move_records(keyed, row + i, b.count, 1))
            return -1;
    }
    return 0;
}

/* ---- calls ---- */

static int check_keys(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count) {
    if (check_count(count, "keys") || check_aligned(keys, sizeof *keys, "keys")) return -1;
    if (count && !keys) return fail_usage("%" PRIu64 " keys at NULL", count);
    return mem_grow(&keyed->row, &keyed->row_capacity, count, sizeof *keyed->row, "rows of keys") ||
                   mem_grow(&keyed->ids, &keyed->id_capacity, count, sizeof *keyed->ids, "rows of keys")
               ? -1
               : 0;
}

/* Makes a call of the backend on rows; the rows are copied to where the backend wants ids. */
static int ask(struct sptx_keyed *keyed, const uint32_t *row, uint64_t count, const float *values, enum sptx_memory memory, void *stream,
               rows_call *call) {
    struct sptx_context *context = keyed->table->context;
    uint32_t *ids;
    if (context->ops->rows_ids(context->backend, count, &ids)) return -1;
    memcpy(ids, row, count * sizeof *ids);
    return ask_rows(keyed->table, &(struct sptx_ids){ids, count, 32, SPTX_HOST}, values, memory, stream, call);
}

/* Answers the rows of a call's keys. Keys without one have their first values in spare rows, as many at a time as there are. */
static int give_rows(struct sptx_keyed *keyed, const uint64_t *key, uint64_t count, float *out, enum sptx_memory memory, void *stream) {
    struct sptx_context *context = keyed->table->context;
    uint64_t dim = keyed->table->table.spec.layout.dim, capacity = keyed->keys.capacity, missing[SPARE_MOST];
    uint32_t spare[SPARE_MOST];
    for (uint64_t first = 0, end, n; first < count; first = end) {
        for (n = 0, end = first; end < count && (keyed->row[end] != KEYS_NONE || n < keyed->spare); end++) {
            keyed->ids[end] = keyed->row[end];
            if (keyed->row[end] != KEYS_NONE) continue;
            missing[n] = key[end];
            keyed->ids[end] = spare[n] = (uint32_t)(capacity + n);
            n++;
        }
        if ((n && (context->ops->rows_wait(context->backend) || begin_rows(keyed, missing, spare, n))) ||
            ask(keyed, keyed->ids + first, end - first, out + first * dim, memory, stream, context->ops->rows_fetch))
            return -1;
    }
    return 0;
}

/* Keeps the rows of the keys that are about to leave for sptx_keyed_evicted(). */
static int keep_evicted(struct sptx_keyed *keyed) {
    uint64_t dim = keyed->table->table.spec.layout.dim, most = keyed->evicted_most, count = keyed->keys.victim_count;
    if (!count) return 0;
    uint64_t fresh = count < most ? count : most, kept = keyed->evicted_count < most - fresh ? keyed->evicted_count : most - fresh;
    if (mem_grow(&keyed->evicted_key, &keyed->evicted_capacity, kept + fresh, sizeof *keyed->evicted_key, "rows that leave") ||
        mem_grow(&keyed->evicted_row, &keyed->evicted_room, (kept + fresh) * dim, sizeof(float), "rows that leave"))
        return -1;
    uint64_t forget = keyed->evicted_count - kept;
    if (forget) {
        memmove(keyed->evicted_key, keyed->evicted_key + forget, kept * sizeof *keyed->evicted_key);
        memmove(keyed->evicted_row, keyed->evicted_row + forget * dim, kept * dim * sizeof(float));
    }
    const uint32_t *victim = keyed->keys.victim + (count - fresh);
    for (uint64_t i = 0; i < fresh; i++) keyed->evicted_key[kept + i] = keyed->keys.row[victim[i]].key;
    if (fresh && ask(keyed, victim, fresh, keyed->evicted_row + kept * dim, SPTX_HOST, NULL, keyed->table->context->ops->rows_fetch)) return -1;
    keyed->lost += forget + count - fresh;
    keyed->evicted_count = kept + fresh;
    return 0;
}

/* Adds a call to the hash of all calls. Values on a GPU are left out. */
static void add_to_chain(struct sptx_keyed *keyed, int kind, const uint64_t *key, uint64_t count, const float *values, enum sptx_memory memory) {
    const struct table *table = &keyed->table->table;
    double rate = kind == 'u' ? keyed->table->rule.lr : 0;
    keyed->chain = XXH3_64bits_withSeed(key, count * sizeof *key, keyed->chain + (uint64_t)kind);
    keyed->chain = XXH3_64bits_withSeed(&rate, sizeof rate, keyed->chain);
    if (values && memory == SPTX_HOST) keyed->chain = XXH3_64bits_withSeed(values, count * table->spec.layout.dim * sizeof *values, keyed->chain);
}

/* Finds a call's keys, and gives rows to new ones. */
static int name_keys(struct sptx_keyed *keyed, enum keys_call call, const uint64_t *key, uint64_t count) {
    struct keys *keys = &keyed->keys;
    struct pool *pool = keyed->table->context->pool;
    if (keys_plan(keys, pool, call, key, count, keyed->row)) return -1;
    uint64_t evictions = keys->victim_count, fresh = keys->fresh_count;
    uint32_t *row = mem_alloc(fresh + 1, sizeof *row, "rows of new keys");
    if (!row || keep_evicted(keyed)) {
        free(row);
        keys_forget_plan(keys);
        return -1;
    }
    keys_commit(keys, pool, call, key, count, keyed->row);
    keyed->evictions += evictions;
    keys_find(keys, pool, keys->fresh, fresh, row);
    int result = fresh ? begin_rows(keyed, keys->fresh, row, fresh) : 0;
    free(row);
    return result;
}

static uint64_t count_missing(const struct sptx_keyed *keyed, uint64_t count) {
    uint64_t missing = 0;
    for (uint64_t i = 0; i < count; i++) missing += keyed->row[i] == KEYS_NONE;
    return missing;
}

enum sptx_status sptx_keyed_fetch(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, float *out, enum sptx_memory memory,
                                  void *stream) {
    if (!keyed) return SPTX_USAGE;
    struct sptx_context *context = keyed->table->context;
    enter(context);
    if (check_keys(keyed, keys, count) || check_values(keyed->table, count, out, memory, "fetched values", 0)) return leave(context, -1);
    if (!count) return leave(context, 0);
    if (name_keys(keyed, KEYS_SEE, keys, count)) return leave(context, -1);
    keyed->waiting += count_missing(keyed, count);
    add_to_chain(keyed, 'f', keys, count, NULL, SPTX_HOST);
    return leave(context, give_rows(keyed, keys, count, out, memory, stream));
}

enum sptx_status sptx_keyed_find(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, float *out, uint8_t *found,
                                 enum sptx_memory memory, void *stream) {
    if (!keyed) return SPTX_USAGE;
    struct sptx_context *context = keyed->table->context;
    enter(context);
    if (check_keys(keyed, keys, count) || (out && check_values(keyed->table, count, out, memory, "found values", 0))) return leave(context, -1);
    keys_find(&keyed->keys, context->pool, keys, count, keyed->row);
    for (uint64_t i = 0; found && i < count; i++) found[i] = keyed->row[i] != KEYS_NONE;
    return leave(context, out && count ? give_rows(keyed, keys, count, out, memory, stream) : 0);
}

/* An update or a store. */
static enum sptx_status change(struct sptx_keyed *keyed, enum keys_call call, const uint64_t *keys, uint64_t count, const float *values,
                               enum sptx_memory memory, void *stream) {
    struct sptx_context *context = keyed->table->context;
    int update = call == KEYS_CHANGE;
    enter(context);
    if (check_keys(keyed, keys, count) || check_values(keyed->table, count, values, memory, update ? "gradients" : "values", update))
        return leave(context, -1);
    if (!count) return leave(context, 0);
    if (name_keys(keyed, call, keys, count)) return leave(context, -1);
    keyed->dropped += count_missing(keyed, count);
    for (uint64_t i = 0; i < count; i++) keyed->ids[i] = keyed->row[i] != KEYS_NONE ? keyed->row[i] : (uint32_t)keyed->keys.capacity;
    add_to_chain(keyed, update ? 'u' : 's', keys, count, values, memory);
    return leave(context, ask(keyed, keyed->ids, count, values, memory, stream, update ? context->ops->rows_update : context->ops->rows_store));
}

enum sptx_status sptx_keyed_update(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, const float *gradients,
                                   enum sptx_memory memory, void *stream) {
    return keyed ? change(keyed, KEYS_CHANGE, keys, count, gradients, memory, stream) : SPTX_USAGE;
}

enum sptx_status sptx_keyed_store(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, const float *values,
                                  enum sptx_memory memory, void *stream) {
    return keyed ? change(keyed, KEYS_PUT, keys, count, values, memory, stream) : SPTX_USAGE;
}

enum sptx_status sptx_keyed_remove(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, uint64_t *removed) {
    if (!keyed) return SPTX_USAGE;
    struct sptx_context *context = keyed->table->context;
    struct keys *own = &keyed->keys;
    enter(context);
    if (check_keys(keyed, keys, count) || keys_reserve(own, count)) return leave(context, -1);
    keys_find(own, context->pool, keys, count, keyed->row);
    uint64_t before = own->count;
    if (count_missing(keyed, count) < count) {
        own->clock++;
        add_to_chain(keyed, 'r', keys, count, NULL, SPTX_HOST);
    }
    for (uint64_t i = 0; i < count; i++) /* a key that repeats is removed at its first place */
        if (keyed->row[i] != KEYS_NONE && own->row[keyed->row[i]].born) keys_remove(own, keyed->row[i]);
    if (removed) *removed = before - own->count;
    return leave(context, 0);
}

enum sptx_status sptx_keyed_keys(struct sptx_keyed *keyed, uint64_t *keys, uint64_t capacity, uint64_t *count) {
    if (!keyed) return SPTX_USAGE;
    uint32_t *rows;
    enter(keyed->table->context);
    if (!count || (capacity && !keys)) return leave(keyed->table->context, fail_usage("keys or count is NULL"));
    *count = keyed->keys.count;
    int64_t listed = capacity ? keys_list(&keyed->keys, 0, &rows) : 0;
    for (int64_t i = 0; i < listed && (uint64_t)i < capacity; i++) keys[i] = keyed->keys.row[rows[i]].key;
    if (capacity && listed >= 0) free(rows);
    return leave(keyed->table->context, listed < 0 ? -1 : 0);
}

enum sptx_status sptx_keyed_counts(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, uint64_t *counts) {
    if (!keyed) return SPTX_USAGE;
    enter(keyed->table->context);
    if (check_keys(keyed, keys, count)) return leave(keyed->table->context, -1);
    if (count && !counts) return leave(keyed->table->context, fail_usage("counts are NULL"));
    keys_find(&keyed->keys, keyed->table->context->pool, keys, count, keyed->row);
    for (uint64_t i = 0; i < count; i++) counts[i] = keyed->row[i] == KEYS_NONE ? 0 : keyed->keys.row[keyed->row[i]].count;
    return leave(keyed->table->context, 0);
}

enum sptx_status sptx_keyed_evicted(struct sptx_keyed *keyed, uint64_t *keys, float *rows, uint64_t capacity, uint64_t *count) {
    if (!keyed) return SPTX_USAGE;
    struct sptx_context *context = keyed->table->context;
    uint64_t dim = keyed->table->table.spec.layout.dim, given = capacity < keyed->evicted_count ? capacity : keyed->evicted_count;
    enter(context);
    if (!count || (given && (!keys || !rows))) return leave(context, fail_usage("keys, rows or count is NULL"));
    *count = given;
    if (!given) return leave(context, 0);
    memcpy(keys, keyed->evicted_key, given * sizeof *keys);
    memcpy(rows, keyed->evicted_row, given * dim * sizeof *rows);
    keyed->evicted_count -= given;
    keyed->lost = 0;
    memmove(keyed->evicted_key, keyed->evicted_key + given, keyed->evicted_count * sizeof *keys);
    memmove(keyed->evicted_row, keyed->evicted_row + given * dim, keyed->evicted_count * dim * sizeof *rows);
    return leave(context, 0);
}
