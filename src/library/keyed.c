/* keyed: tables whose rows are found by 64-bit keys: an index of keys (rows/keys.h) over a table.
 *
 *   rows 0 .. capacity - 1    rows of keys
 *   `spare` rows after them   a fetch of keys without a row writes their first values here; an update of such keys changes the first of
 *                             these rows instead
 *
 * A file contains the keys in rising order and no row numbers. So tables that had the same calls have the same files, although their keys may have
 * other rows. A file of changes leaves out the keys that no call has named since the mark:
 *
 *   text         "sptx keyed 1", then lines of a name and a value (struct head), then "end"
 *   key_about    [rows] the keys with their counts
 *   records      [rows] packed records, as in checkpoints
 *   gone         [gone] keys that left after the mark and have no row
 *   sketch       [blocks] number of the block, and its counters
 *   XXH64        checksum of all bytes before it
 */
#include "handles.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "rows/rules.h"
#include "rows/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

_Static_assert((int)SPTX_EVICT_AGE == (int)KEYS_AGE && KEYS_EVICTS == 4 && SPTX_ADMIT_MOST == (int)KEYS_ADMIT_MOST, "sptx.h has keys.h's numbers");

enum {
    SPARE_BYTES = 1 << 20,  /* bytes of all spare rows, about; there are 1 .. SPARE_MOST of them */
    SPARE_MOST = 1024,
    EVICTED_BYTES = 64 << 20, /* bytes of rows that are kept for sptx_keyed_evicted() by default */
    RECORDS_BYTES = 4 << 20   /* bytes of records that are made, read or written in one piece */
};

struct sptx_keyed {
    struct sptx_table *table;
    struct keys keys;
    struct key_index *index; /* the index on the GPU, which finds keys and counts their sights; NULL: the host's index does */
    uint64_t spare;
    uint64_t chain;      /* a hash of the options and of all calls that changed rows: if two tables have the same hash, they have the same rows */
    struct sptx_mark mark[2];    /* the two newest marks, the older one first; if keys.gone_from says that there is no mark, neither is used */
    uint32_t dtype, state_dtype; /* as the options say them, like `init` */
    char init[INIT_BYTES];
    uint32_t *row, *ids; /* [capacities] rows of a call's keys; a copy with spare rows in place of KEYS_NONE */
    uint64_t *key;       /* [key_capacity] a call's keys, if they are on a GPU and the host looks them up */
    uint64_t row_capacity, id_capacity, key_capacity;
    char *records;       /* [chunk] packed records; NULL until they are used for the first time */
    uint64_t chunk;
    uint64_t evicted_most, evicted_count, evicted_capacity, evicted_room; /* most: kept for the caller */
    uint64_t *evicted_key; /* [evicted_count], the first to leave first */
    float *evicted_row;    /* [evicted_count x dim] */
    uint64_t waiting, dropped, evictions, lost;
    struct sptx_keyed *next;
};

/* ---- the index on a GPU ---- */

static int choose_on_gpu(void *chooser, uint64_t wanted, uint32_t *victim) {
    struct sptx_keyed *keyed = chooser;
    const struct sptx_context *context = keyed->table->context;
    uint64_t highest = keyed->keys.evict == KEYS_LFU ? UINT64_MAX : keyed->keys.clock;
    return context->ops->keys_victims(context->backend, keyed->index, wanted, keyed->keys.plans, highest, victim);
}

static int open_index(struct sptx_keyed *keyed) {
    const struct sptx_context *context = keyed->table->context;
    struct keys *keys = &keyed->keys;
    if (!context->ops->keys_open) return 0;
    if (context->ops->keys_open(context->backend, keys->capacity, keys->secret, keys->evict, &keyed->index)) return -1;
    if (!keyed->index) {
        warn("the GPU has no space for an index of %" PRIu64 " keys: the host looks keys up", keys->capacity);
        return 0;
    }
    keys->choose = choose_on_gpu;
    keys->chooser = keyed;
    return 0;
}

/* Copies the newest counts of keys to keyed->keys. */
static int know_counts(struct sptx_keyed *keyed) {
    const struct sptx_context *context = keyed->table->context;
    return keyed->index ? context->ops->keys_counts(context->backend, keyed->index, keyed->keys.row) : 0;
}

/* Makes the index on the GPU anew from the host's. */
static int set_index(struct sptx_keyed *keyed) {
    const struct sptx_context *context = keyed->table->context;
    const struct keys *keys = &keyed->keys;
    return keyed->index ? context->ops->keys_set(context->backend, keyed->index, keys->row, keys->used, keys->count) : 0;
}

static void close_index(struct sptx_keyed *keyed) {
    const struct sptx_context *context = keyed->table->context;
    if (keyed->index) context->ops->keys_close(context->backend, keyed->index);
    keyed->index = NULL;
    keyed->keys.choose = NULL;
}

/* If the GPU cannot make a change that the host's index has already, the table goes on with the host's index. */
static int change_index(struct sptx_keyed *keyed, const struct key_change *change, void *stream) {
    const struct sptx_context *context = keyed->table->context;
    if (!context->ops->keys_commit(context->backend, keyed->index, change, stream)) return 0;
    close_index(keyed);
    return -1;
}

/* ---- opening ---- */

void sptx_keyed_defaults(struct sptx_keyed_options *options, uint64_t size) {
    struct sptx_keyed_options all = {.admit = 1, .keep_evicted = UINT64_MAX};
    if (!options || size < sizeof size) return;
    all.size = size < sizeof all ? size : sizeof all;
    memcpy(options, &all, all.size);
}

static uint64_t hash_of_kind(const struct sptx_keyed *keyed);

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
    snprintf(keyed->init, sizeof keyed->init, "%s", of.init ? of.init : "");
    keyed->dtype = of.dtype;
    keyed->state_dtype = of.state_dtype;
    keyed->evicted_most = options.keep_evicted == UINT64_MAX ? EVICTED_BYTES / row + 1 : options.keep_evicted;
    if (keys_init(&keyed->keys, of.rows, keyed->spare, (enum keys_evict)options.evict, options.admit) ||
        table_open(context, &of, &keyed->keys, keyed->spare, &keyed->table))
        return -1;
    uint64_t packed = keyed->table->table.spec.layout.packed;
    keyed->chunk = RECORDS_BYTES / packed > keyed->spare ? RECORDS_BYTES / packed : keyed->spare;
    keyed->chain = hash_of_kind(keyed);
    if (!open_index(keyed)) return 0;
    sptx_table_close(keyed->table);
    return -1;
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
    close_index(keyed);
    sptx_table_close(keyed->table);
    keys_release(&keyed->keys);
    free(keyed->row);
    free(keyed->ids);
    free(keyed->key);
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
                                     .calls = keyed->keys.clock, .chain = keyed->chain, .waiting = keyed->waiting, .dropped = keyed->dropped,
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

/* Reads the records of rows into records[], or writes them. */
static int move_records(struct sptx_keyed *keyed, const uint32_t *row, uint64_t count, int write) {
    const struct table *table = &keyed->table->table;
    return table->ops->table_move(table->backend, table->store, row, count, keyed->records, write);
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

/* Allocates the memory for records, once. */
static int reserve_records(struct sptx_keyed *keyed) {
    if (!keyed->records) keyed->records = mem_alloc(keyed->chunk, keyed->table->table.spec.layout.packed, "records");
    return keyed->records ? 0 : -1;
}

static int check_keys(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count) {
    if (check_count(count, "keys") || check_aligned(keys, sizeof *keys, "keys")) return -1;
    if (count && !keys) return fail_usage("%" PRIu64 " keys at NULL", count);
    return reserve_records(keyed) || mem_grow(&keyed->row, &keyed->row_capacity, count, sizeof *keyed->row, "rows of keys") ||
                   mem_grow(&keyed->ids, &keyed->id_capacity, count, sizeof *keyed->ids, "rows of keys")
               ? -1
               : 0;
}

/* Copies keys that may be on the GPU to the host, if the host looks them up. */
static int bring_keys(struct sptx_keyed *keyed, const uint64_t **keys, uint64_t count, void *stream) {
    const struct sptx_context *context = keyed->table->context;
    if (!context->ops->has_gpu || keyed->index || !count) return 0;
    if (mem_grow(&keyed->key, &keyed->key_capacity, count, sizeof *keyed->key, "keys of a call") ||
        context->ops->host_copy(context->backend, keyed->key, *keys, count * sizeof **keys, stream))
        return -1;
    *keys = keyed->key;
    return 0;
}

/* Makes a call of the backend on rows, whose numbers are copied to its buffer for ids. */
static int ask(struct sptx_keyed *keyed, const uint32_t *row, uint64_t count, const float *values, enum sptx_memory memory, void *stream,
               rows_call *call) {
    struct sptx_context *context = keyed->table->context;
    uint32_t *ids;
    if (context->ops->rows_ids(context->backend, count, &ids)) return -1;
    memcpy(ids, row, count * sizeof *ids);
    return ask_rows(keyed->table, 0, &(struct sptx_ids){ids, count, 32, SPTX_HOST}, values, memory, stream, call);
}

/* Reads the rows of a call's keys. For keys without a row, first values are written to spare rows, and read from there; if there are more such
 * keys than spare rows, in several rounds. */
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

/* Copies the rows of keys that are about to leave to the queue of sptx_keyed_evicted(). */
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

/* Adds a call to the hash of all calls, with its values unless they are in GPU memory. found: NULL, or what keys_find() of the backend has found:
 * of keys on the GPU the hash is added that the GPU has made. */
static void add_to_chain(struct sptx_keyed *keyed, int kind, const uint64_t *key, uint64_t count, const struct key_finding *found,
                         const float *values, enum sptx_memory memory) {
    uint64_t bytes = count * keyed->table->table.spec.layout.dim * sizeof *values;
    double rate = kind != 'r' ? keyed->table->rule.lr : 0; /* rprop's first state of new keys depends on it, too */
    int hashed = found && found->keys_on_gpu;
    keyed->chain = XXH3_64bits_withSeed(hashed ? &found->hash : key, hashed ? sizeof found->hash : count * sizeof *key,
                                        keyed->chain + (uint64_t)kind);
    keyed->chain = XXH3_64bits_withSeed(&rate, sizeof rate, keyed->chain);
    if (values && memory == SPTX_HOST) keyed->chain = XXH3_64bits_withSeed(values, bytes, keyed->chain);
}

/* Finds the rows of a call's keys, and gives rows to new keys. Sets *found if the GPU finds them; otherwise the rows are in keyed->row. */
static int name_keys(struct sptx_keyed *keyed, enum keys_call call, const uint64_t *key, uint64_t count, void *stream, struct key_finding *found) {
    const struct sptx_context *context = keyed->table->context;
    struct keys *keys = &keyed->keys;
    struct pool *pool = context->pool;
    if (keyed->index) {
        keys->plans++;
        if (context->ops->keys_find(context->backend, keyed->index, key, count, keys->plans, stream, found) ||
            keys_plan_missed(keys, call, found->missed, found->missed_count, found->named))
            return -1;
    } else if (keys_plan(keys, pool, call, key, count, keyed->row)) {
        return -1;
    }
    uint64_t evictions = keys->victim_count, fresh = keys->fresh_count, before = keys->count;
    uint32_t *row = mem_alloc(fresh + 1, sizeof *row, "rows of new keys");
    if (!row || keep_evicted(keyed)) {
        free(row);
        keys_forget_plan(keys);
        return -1;
    }
    keys_commit(keys, pool, call, key, count, keyed->index ? NULL : keyed->row);
    keyed->evictions += evictions;
    keys_find(keys, pool, keys->fresh, fresh, row);
    const struct key_change change = {.clock = keys->clock, .used = keys->used, .keys_now = before - evictions, .call_keys = found->keys,
                                      .count = count, .sights = call == KEYS_SEE, .keys = keys->fresh, .rows = row, .added = fresh,
                                      .removed_rows = keys->victim, .removed = evictions};
    int result = keyed->index ? change_index(keyed, &change, stream) : 0;
    /* on a GPU earlier calls may still be changing rows of keys that have left */
    if (!result && fresh && (context->ops->rows_wait(context->backend) || begin_rows(keyed, keys->fresh, row, fresh))) result = -1;
    free(row);
    return result;
}

/* Makes a call of the backend with the rows that the GPU has found, if all of the call's keys have one: *done is 1 then. Otherwise copies the rows
 * to keyed->row, and the keys to the host if they are on the GPU. */
static int ask_found(struct sptx_keyed *keyed, const struct key_finding *found, uint64_t missing, const uint64_t **keys, uint64_t count,
                     const float *values, enum sptx_memory memory, void *stream, rows_call *call, int *done) {
    const struct sptx_context *context = keyed->table->context;
    *done = keyed->index && !missing;
    if (*done) return ask_rows(keyed->table, 0, &(struct sptx_ids){found->rows, count, 32, SPTX_CUDA}, values, memory, stream, call);
    if (!keyed->index) return 0;
    if (context->ops->host_copy(context->backend, keyed->row, found->rows, count * sizeof *keyed->row, stream)) return -1;
    if (!found->keys_on_gpu) return 0;
    if (mem_grow(&keyed->key, &keyed->key_capacity, count, sizeof *keyed->key, "keys of a call")) return -1;
    *keys = keyed->key;
    return context->ops->host_copy(context->backend, keyed->key, found->keys, count * sizeof *keyed->key, stream);
}

/* Fetches the rows of a call's keys, after they were found. */
static int fetch_found(struct sptx_keyed *keyed, const struct key_finding *found, uint64_t missing, const uint64_t *keys, uint64_t count, float *out,
                       enum sptx_memory memory, void *stream) {
    int done;
    if (ask_found(keyed, found, missing, &keys, count, out, memory, stream, keyed->table->context->ops->rows_fetch, &done)) return -1;
    return done ? 0 : give_rows(keyed, keys, count, out, memory, stream);
}

enum sptx_status sptx_keyed_fetch(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, float *out, enum sptx_memory memory,
                                  void *stream) {
    if (!keyed) return SPTX_USAGE;
    struct sptx_context *context = keyed->table->context;
    struct key_finding found = {0};
    enter(context);
    if (check_keys(keyed, keys, count) || check_values(keyed->table, count, out, memory, "fetched values", 0) ||
        bring_keys(keyed, &keys, count, stream))
        return leave(context, -1);
    if (!count) return leave(context, 0);
    if (name_keys(keyed, KEYS_SEE, keys, count, stream, &found)) return leave(context, -1);
    uint64_t missing = keyed->keys.missed_count - keyed->keys.fresh_places;
    keyed->waiting += missing;
    add_to_chain(keyed, 'f', keys, count, &found, NULL, SPTX_HOST);
    return leave(context, fetch_found(keyed, &found, missing, keys, count, out, memory, stream));
}

enum sptx_status sptx_keyed_find(struct sptx_keyed *keyed, const uint64_t *keys, uint64_t count, float *out, uint8_t *found,
                                 enum sptx_memory memory, void *stream) {
    if (!keyed) return SPTX_USAGE;
    struct sptx_context *context = keyed->table->context;
    struct key_finding seen = {0};
    enter(context);
    if (check_keys(keyed, keys, count) || (out && check_values(keyed->table, count, out, memory, "found values", 0)) ||
        bring_keys(keyed, &keys, count, stream))
        return leave(context, -1);
    if (!count) return leave(context, 0);
    if (!keyed->index) keys_find(&keyed->keys, context->pool, keys, count, keyed->row);
    else if (context->ops->keys_find(context->backend, keyed->index, keys, count, 0, stream, &seen)) return leave(context, -1);
    if (out && fetch_found(keyed, &seen, seen.missed_count, keys, count, out, memory, stream)) return leave(context, -1);
    if (!found) return leave(context, 0);
    if (keyed->index && !seen.missed_count) memset(keyed->row, 0, count * sizeof *keyed->row);
    else if (keyed->index && !out && context->ops->host_copy(context->backend, keyed->row, seen.rows, count * sizeof *keyed->row, stream))
        return leave(context, -1);
    for (uint64_t i = 0; i < count; i++) found[i] = keyed->row[i] != KEYS_NONE;
    return leave(context, 0);
}

/* An update or a store. */
static enum sptx_status change(struct sptx_keyed *keyed, enum keys_call call, const uint64_t *keys, uint64_t count, const float *values,
                               enum sptx_memory memory, void *stream) {
    struct sptx_context *context = keyed->table->context;
    int update = call == KEYS_CHANGE;
    struct key_finding found = {0};
    enter(context);
    if (check_keys(keyed, keys, count) || check_values(keyed->table, count, values, memory, update ? "gradients" : "values", update) ||
        bring_keys(keyed, &keys, count, stream))
        return leave(context, -1);
    if (!count) return leave(context, 0);
    if (name_keys(keyed, call, keys, count, stream, &found)) return leave(context, -1);
    uint64_t missing = keyed->keys.missed_count - keyed->keys.fresh_places;
    rows_call *ask_for = update ? context->ops->rows_update : context->ops->rows_store;
    keyed->dropped += missing;
    add_to_chain(keyed, update ? 'u' : 's', keys, count, &found, values, memory);
    int done, result = ask_found(keyed, &found, missing, &keys, count, values, memory, stream, ask_for, &done);
    if (result || done) return leave(context, result);
    for (uint64_t i = 0; i < count; i++) keyed->ids[i] = keyed->row[i] != KEYS_NONE ? keyed->row[i] : (uint32_t)keyed->keys.capacity;
    return leave(context, ask(keyed, keyed->ids, count, values, memory, stream, ask_for));
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
    uint64_t missing = 0;
    for (uint64_t i = 0; i < count; i++) missing += keyed->row[i] == KEYS_NONE;
    if (missing < count) {
        own->clock++;
        add_to_chain(keyed, 'r', keys, count, NULL, NULL, SPTX_HOST);
    }
    uint64_t gone = 0;
    for (uint64_t i = 0; i < count; i++) { /* of equal keys in one call, only the first one finds a row to remove */
        if (keyed->row[i] == KEYS_NONE || !own->row[keyed->row[i]].born) continue;
        keys_remove(own, keyed->row[i]);
        keyed->ids[gone++] = keyed->row[i];
    }
    if (removed) *removed = gone;
    const struct key_change change = {.clock = own->clock, .used = own->used, .removed_rows = keyed->ids, .removed = gone};
    return leave(context, keyed->index && gone ? change_index(keyed, &change, NULL) : 0);
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
    if (know_counts(keyed)) return leave(keyed->table->context, -1);
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
    keyed->lost = 0;
    if (!given) return leave(context, 0);
    memcpy(keys, keyed->evicted_key, given * sizeof *keys);
    memcpy(rows, keyed->evicted_row, given * dim * sizeof *rows);
    keyed->evicted_count -= given;
    memmove(keyed->evicted_key, keyed->evicted_key + given, keyed->evicted_count * sizeof *keys);
    memmove(keyed->evicted_row, keyed->evicted_row + given * dim, keyed->evicted_count * dim * sizeof *rows);
    return leave(context, 0);
}

/* ---- files ---- */

static const char file_mark[] = "sptx keyed 1\n", file_end[] = "end\n";
enum { HEAD_BYTES = 8192 }; /* more than a file's text takes */

/* Names of the numbers in a file's text. KIND_NUMBERS must be equal in a table and in a file of its changes. whole: 1: the file has a whole table;
 * 0: it has the changes of the calls base_clock + 1 .. clock. */
#define KIND_NUMBERS(X) X(dim) X(dtype) X(state_dtype) X(seed) X(count_rows) X(evict) X(admit)
#define HEAD_NUMBERS(X)                                                                                                                    \
    X(whole) X(capacity) X(record) X(clock) X(chain) X(base_clock) X(base_chain) X(steps) X(stores) X(waiting) X(dropped) X(evictions)     \
    X(sights) X(rows) X(gone) X(blocks)
struct head {
#define FIELD(name) uint64_t name;
    KIND_NUMBERS(FIELD)
    HEAD_NUMBERS(FIELD)
#undef FIELD
    char optimizer[32], init[INIT_BYTES];
    struct rule_options rule; /* its lr may differ between a table and a file of its changes */
};

struct key_about { /* what a file has of a key */
    uint64_t key, count, last, born;
};
enum { BLOCK_BYTES = sizeof(uint64_t) + KEYS_BLOCK };

static struct head head_of(const struct sptx_keyed *keyed, const struct sptx_mark *since) {
    const struct keys *keys = &keyed->keys;
    const struct sptx_table *table = keyed->table;
    struct head head = {.whole = !since, .capacity = keys->capacity, .dim = table->table.spec.layout.dim,
                        .record = table->table.spec.layout.packed, .dtype = keyed->dtype, .state_dtype = keyed->state_dtype,
                        .seed = table->table.seed, .evict = keys->evict, .admit = keys->admit, .count_rows = (uint64_t)table->rule.count_rows,
                        .clock = keys->clock, .chain = keyed->chain, .base_clock = since ? since->call : 0,
                        .base_chain = since ? since->chain : 0, .steps = table->steps, .stores = table->stores, .waiting = keyed->waiting,
                        .dropped = keyed->dropped, .evictions = keyed->evictions, .sights = keys->sights, .rule = table->rule};
    snprintf(head.optimizer, sizeof head.optimizer, "%s", table->fixed ? "none" : rules_name(table->rule.rule));
    memcpy(head.init, keyed->init, sizeof head.init);
    return head;
}

#define WHOLE(name) text_add(text, HEAD_BYTES, strlen(text), #name " %" PRIu64 "\n", head->name);
#define REAL(name)  text_add(text, HEAD_BYTES, strlen(text), #name " %.17g\n", head->rule.name);
static const char *print_kind(const struct head *head, char text[HEAD_BYTES]) {
    snprintf(text, HEAD_BYTES, "%soptimizer %s\ninit %s\n", file_mark, head->optimizer, head->init);
    KIND_NUMBERS(WHOLE)
    REAL(clip)
#define NUMBER(name, fallback, lowest, highest, rules, help)  REAL(name)
#define BY_RULE(name, fallback, lowest, highest, rules, help) REAL(name)
#define FLAG(name, rules, help)                               text_add(text, HEAD_BYTES, strlen(text), #name " %d\n", head->rule.name);
#include "kernels/optimizers.def"
    return text;
}

/* Returns the hash before the first call. It depends on seed, init, dtypes, evict, admit, optimizer and its options, but not on lr. */
static uint64_t hash_of_kind(const struct sptx_keyed *keyed) {
    const struct head head = head_of(keyed, NULL);
    char text[HEAD_BYTES];
    print_kind(&head, text);
    return XXH3_64bits(text, strlen(text));
}

static uint64_t print_head(const struct head *head, char text[HEAD_BYTES]) {
    print_kind(head, text);
    HEAD_NUMBERS(WHOLE)
    REAL(lr)
    text_add(text, HEAD_BYTES, strlen(text), "%s", file_end);
    return strlen(text);
}
#undef WHOLE
#undef REAL

/* Reads a line of a file's text. Returns 1 for a number named above, 0 for another known name, -1 for an unknown name. */
static int read_line(struct head *head, const char *name, const char *value) {
#define WHOLE(field)                                                                                                                       \
    if (!strcmp(name, #field)) return head->field = strtoull(value, NULL, 10), 1;
#define REAL(field)                                                                                                                        \
    if (!strcmp(name, #field)) return text_real(value, &head->rule.field);
#define NUMBER(field, fallback, lowest, highest, rules, help)  REAL(field)
#define BY_RULE(field, fallback, lowest, highest, rules, help) REAL(field)
#define FLAG(field, rules, help)                                                                                                           \
    if (!strcmp(name, #field)) return head->rule.field = *value == '1', 0;
    KIND_NUMBERS(WHOLE)
    HEAD_NUMBERS(WHOLE)
    REAL(lr)
    REAL(clip)
#include "kernels/optimizers.def"
#undef WHOLE
#undef REAL
    if (!strcmp(name, "init")) return snprintf(head->init, sizeof head->init, "%s", value) * 0;
    if (strcmp(name, "optimizer") || (strcmp(value, "none") && rules_named(value) < 0)) return -1;
    head->rule = rules_defaults(rules_named(value) < 0 ? RULE_SGD : rules_named(value));
    return snprintf(head->optimizer, sizeof head->optimizer, "%s", value) * 0;
}

/* Reads the text of a file, and compares the checksum of the file's bytes. *at: set to the first byte after the text. */
static int read_head(const struct file_map *map, const char *path, struct head *head, uint64_t *at) {
    char text[HEAD_BYTES + 1], *rest = text, *end;
    uint64_t length = map->size < HEAD_BYTES ? map->size : HEAD_BYTES, sum;
    unsigned numbers = 0, wanted = 0;
#define ONE(name) wanted++;
    KIND_NUMBERS(ONE)
    HEAD_NUMBERS(ONE)
#undef ONE
    if (length) memcpy(text, map->data, length);
    text[length] = 0;
    if (strncmp(text, file_mark, strlen(file_mark)) || !(end = strstr(text, file_end)) || map->size < 8)
        return fail("'%s' is no file of a table by key: it does not begin with '%.*s'", path, (int)strlen(file_mark) - 1, file_mark);
    memcpy(&sum, map->data + map->size - sizeof sum, sizeof sum);
    if (XXH64(map->data, map->size - sizeof sum, 0) != sum) return fail("'%s' is damaged: its bytes have another sum than it says", path);
    *at = (uint64_t)(end - text) + strlen(file_end);
    *end = 0;
    rest += strlen(file_mark);
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        char *value = strchr(line, ' ');
        if (value) *value++ = 0;
        int known = value ? read_line(head, line, value) : -1;
        if (known < 0) return fail("'%s' has a line '%s', which this version, %s, does not know", path, line, SPTX_VERSION);
        numbers += (unsigned)known;
    }
    uint64_t left = map->size - *at - sizeof sum, most = UINT32_MAX;
    if (numbers != wanted || !*head->optimizer || head->rows > most || head->gone > most || head->blocks > most || head->record > most / 64 ||
        left != head->rows * (sizeof(struct key_about) + head->record) + head->gone * 8 + head->blocks * BLOCK_BYTES)
        return fail("'%s' has %" PRIu64 " bytes of rows, other than its text says", path, left);
    return 0;
}

enum sptx_status sptx_keyed_options_of(struct sptx_context *context, const char *path, struct sptx_table_options *rows,
                                       struct sptx_keyed_options *options) {
    if (!context) return SPTX_USAGE;
    struct file_map map;
    struct head head = {0};
    uint64_t at;
    enter(context);
    if (!path || !rows || !options) return leave(context, fail_usage("the path or the options are NULL"));
    if (rows->size != sizeof *rows || options->size != sizeof *options) return leave(context, fail_usage("the options have no defaults yet"));
    if (file_map_open(&map, path)) return leave(context, -1);
    int result = read_head(&map, path, &head, &at);
    file_map_close(&map);
    if (result) return leave(context, -1);
    rows->rows = head.capacity;
    rows->dim = (uint32_t)head.dim;
    rows->seed = (uint32_t)head.seed;
    rows->dtype = (uint32_t)head.dtype;
    rows->state_dtype = (uint32_t)head.state_dtype;
    rows->count_rows = (uint32_t)head.count_rows;
    rows->optimizer = strcmp(head.optimizer, "none") ? rules_name(head.rule.rule) : "none";
    rows->init = memcpy(context->keyed_init, head.init, sizeof head.init);
    rows->lr = head.rule.lr;
    rows->clip = head.rule.clip;
#define NUMBER(name, fallback, lowest, highest, rules, help)  rows->name = head.rule.name;
#define BY_RULE(name, fallback, lowest, highest, rules, help) rows->name = head.rule.name;
#define FLAG(name, rules, help)                               rows->name = (uint32_t)head.rule.name;
#include "kernels/optimizers.def"
    options->evict = (uint32_t)head.evict;
    options->admit = (uint32_t)head.admit;
    return leave(context, 0);
}

/* ---- saving ---- */

static int write_summed(struct file_writer *writer, XXH64_state_t *sum, const void *bytes, uint64_t count) {
    if (count) XXH64_update(sum, bytes, count);
    return file_write(writer, bytes, count);
}

static int put_records(struct sptx_keyed *keyed, struct file_writer *writer, XXH64_state_t *sum, const uint32_t *row, uint64_t count) {
    const struct record_layout *layout = &keyed->table->table.spec.layout;
    for (uint64_t first = 0; first < count; first += keyed->chunk) {
        uint64_t some = count - first < keyed->chunk ? count - first : keyed->chunk;
        if (move_records(keyed, row + first, some, 0)) return -1;
        for (uint64_t i = 0; i < some; i++)
            for (uint32_t f = 0; f < layout->fields; f++)
                if (!values_finite(&layout->field[f], keyed->records + i * layout->packed + layout->field[f].packed))
                    return fail("the row of key %" PRIu64 " has infinity or NaN in its %s; nothing is saved", keyed->keys.row[row[first + i]].key,
                                layout->field[f].name);
        if (write_summed(writer, sum, keyed->records, some * layout->packed)) return -1;
    }
    return 0;
}

/* Returns 1 if a block of counters must be saved: for a whole table, one with a count above 0; for changes, one that a call after the mark
 * changed. */
static int block_is_saved(const struct keys *keys, uint64_t block, const struct sptx_mark *since) {
    static const uint8_t none[KEYS_BLOCK];
    return since ? keys->sketch_call[block] > since->call : memcmp(keys->sketch + block * KEYS_BLOCK, none, KEYS_BLOCK) != 0;
}

static int write_file(struct sptx_keyed *keyed, const char *path, const struct sptx_mark *since) {
    struct keys *keys = &keyed->keys;
    struct head head = head_of(keyed, since);
    struct file_writer writer = {0};
    char text[HEAD_BYTES];
    uint32_t *row = NULL;
    uint64_t *gone = NULL, hash;
    XXH64_state_t *sum = XXH64_createState();
    int64_t rows = keys_list(keys, since ? since->call : 0, &row), left = since && rows >= 0 ? keys_list_gone(keys, since->call, &gone) : 0;
    int result = sum && rows >= 0 && left >= 0 && !reserve_records(keyed) ? 0 : -1;
    head.rows = (uint64_t)rows;
    head.gone = (uint64_t)left;
    for (uint64_t i = 0; i < keys->blocks; i++) head.blocks += (uint64_t)block_is_saved(keys, i, since);
    if (!result && !(result = file_writer_open(&writer, path))) {
        XXH64_reset(sum, 0);
        result = write_summed(&writer, sum, text, print_head(&head, text));
        for (uint64_t i = 0; i < head.rows && !result; i++) {
            const struct key_row *of = &keys->row[row[i]];
            result = write_summed(&writer, sum, &(struct key_about){of->key, of->count, of->last, of->born}, sizeof(struct key_about));
        }
        if (!result) result = put_records(keyed, &writer, sum, row, head.rows) || write_summed(&writer, sum, gone, head.gone * sizeof *gone);
        for (uint64_t i = 0; i < keys->blocks && !result; i++)
            if (block_is_saved(keys, i, since))
                result = write_summed(&writer, sum, &i, sizeof i) || write_summed(&writer, sum, keys->sketch + i * KEYS_BLOCK, KEYS_BLOCK);
        hash = XXH64_digest(sum);
        result = result || file_write(&writer, &hash, sizeof hash) || file_commit(&writer) ? -1 : 0;
        if (result) file_abandon(&writer);
    }
    XXH64_freeState(sum);
    free(row);
    free(gone);
    return result;
}

enum sptx_status sptx_keyed_mark(struct sptx_keyed *keyed, struct sptx_mark *mark) {
    if (!keyed || !mark) return SPTX_USAGE;
    const struct sptx_mark now = {keyed->keys.clock, keyed->chain};
    if (keyed->keys.gone_from == UINT64_MAX) keyed->mark[1] = now;
    if (keyed->mark[1].call != now.call || keyed->keys.gone_from == UINT64_MAX) {
        keyed->mark[0] = keyed->mark[1];
        keyed->mark[1] = now;
        keys_mark(&keyed->keys, keyed->mark[0].call);
    }
    *mark = now;
    return SPTX_OK;
}

enum sptx_status sptx_keyed_save(struct sptx_keyed *keyed, const char *path, const struct sptx_mark *since) {
    if (!keyed) return SPTX_USAGE;
    struct sptx_context *context = keyed->table->context;
    enter(context);
    if (!path || !*path) return leave(context, fail_usage("a table is saved to a path; none was given"));
    int known = !since;
    for (int i = 0; since && i < 2 && keyed->keys.gone_from != UINT64_MAX; i++)
        known |= since->call == keyed->mark[i].call && since->chain == keyed->mark[i].chain;
    if (!known) return leave(context, fail_usage("the mark is none of this table's two newest; save the whole table, and take a new mark"));
    file_remove_left(path);
    return leave(context, context->ops->rows_wait(context->backend) || know_counts(keyed) ? -1 : write_file(keyed, path, since));
}

/* ---- loading, and applying changes ---- */

static int check_kind(const struct sptx_keyed *keyed, const char *path, const struct head *theirs) {
    struct head own = head_of(keyed, NULL);
    char own_text[HEAD_BYTES], their_text[HEAD_BYTES];
    const char *mine = print_kind(&own, own_text), *other = print_kind(theirs, their_text), *line = mine;
    for (uint64_t i = 0; mine[i] && mine[i] == other[i]; i++)
        if (mine[i] == '\n') line = mine + i + 1;
    other += line - mine; /* now both are at the first line that differs, or at the end */
    if (*line || own.record != theirs->record)
        return fail("'%s' is of a table with %.*s, and this one has %.*s", path, (int)strcspn(other, "\n"), other, (int)strcspn(line, "\n"), line);
    if (keyed->keys.blocks && own.capacity != theirs->capacity)
        return fail("'%s' is of a table of %" PRIu64 " rows, and this one has %" PRIu64 ": with admit above 1 these must be the same", path,
                    theirs->capacity, own.capacity);
    if (theirs->whole) return keyed->keys.clock ? fail_usage("a whole table is loaded into a new one, and this one was used") : 0;
    if (theirs->base_clock == keyed->keys.clock && theirs->base_chain == keyed->chain) return 0;
    return fail("'%s' has the changes of calls %" PRIu64 " to %" PRIu64 ", and this table is at call %" PRIu64 "%s; nothing is changed", path,
                theirs->base_clock + 1, theirs->clock, keyed->keys.clock,
                keyed->keys.clock == theirs->base_clock ? ", to which other calls led"
                : keyed->chain == theirs->chain         ? ": they are applied already"
                : keyed->keys.clock < theirs->base_clock ? ": changes before them are missing"
                                                         : ", past those");
}

/* The sections of a mapped file, and the rows that its keys have in the table. */
struct changes {
    const char *keys, *records, *gone, *blocks;
    uint64_t *key; /* [rows + gone] keys that have rows in the file, then keys that left */
    uint32_t *row; /* [rows + gone] rows of these keys in the table; KEYS_NONE: not in the table */
};

static struct key_about about_at(const struct changes *c, uint64_t i) {
    struct key_about about;
    memcpy(&about, c->keys + i * sizeof about, sizeof about);
    return about;
}

/* Checks that the file's keys rise, and that the table has space for them. */
static int check_changes(struct sptx_keyed *keyed, const char *path, const struct head *head, struct changes *c) {
    struct keys *keys = &keyed->keys;
    uint64_t fresh = 0, leave = 0, block, *gone = c->key + head->rows;
    int wrong = 0;
    for (uint64_t i = 0; i < head->rows; i++) {
        struct key_about about = about_at(c, i);
        c->key[i] = about.key;
        wrong |= !about.born || about.born > about.last || about.last > head->clock || (i && c->key[i - 1] >= about.key);
    }
    memcpy(gone, c->gone, head->gone * sizeof *gone);
    for (uint64_t i = 0, at = 0; i < head->gone; i++) {
        while (at < head->rows && c->key[at] < gone[i]) at++;
        wrong |= (at < head->rows && c->key[at] == gone[i]) || (i && gone[i - 1] >= gone[i]);
    }
    for (uint64_t i = 0; i < head->blocks; i++) {
        memcpy(&block, c->blocks + i * BLOCK_BYTES, sizeof block);
        wrong |= block >= keys->blocks;
    }
    if (wrong) return fail("'%s' is damaged: its keys are not in order", path);
    keys_find(keys, keyed->table->context->pool, c->key, head->rows + head->gone, c->row);
    for (uint64_t i = 0; i < head->rows; i++) fresh += c->row[i] == KEYS_NONE;
    for (uint64_t i = 0; i < head->gone; i++) leave += c->row[head->rows + i] != KEYS_NONE;
    if (keys->count - leave + fresh > keys->capacity)
        return fail("'%s' brings %" PRIu64 " keys beside %" PRIu64 ", more than this table's capacity of %" PRIu64 " rows", path, fresh,
                    keys->count - leave, keys->capacity);
    return keys_reserve(keys, leave);
}

static int make_changes(struct sptx_keyed *keyed, const struct head *head, struct changes *c) {
    struct keys *keys = &keyed->keys;
    uint64_t packed = keyed->table->table.spec.layout.packed, block;
    keys->clock = head->clock;
    for (uint64_t i = head->rows; i < head->rows + head->gone; i++)
        if (c->row[i] != KEYS_NONE) keys_remove(keys, c->row[i]);
    for (uint64_t i = 0; i < head->rows; i++) {
        struct key_about about = about_at(c, i);
        struct key_row of = {.key = about.key, .count = about.count, .last = about.last, .born = about.born};
        if (c->row[i] == KEYS_NONE) c->row[i] = keys_take(keys, &of);
        else keys->row[c->row[i]] = of;
    }
    keys_forget_plan(keys);
    for (uint64_t i = 0; i < head->blocks; i++) {
        memcpy(&block, c->blocks + i * BLOCK_BYTES, sizeof block);
        memcpy(keys->sketch + block * KEYS_BLOCK, c->blocks + i * BLOCK_BYTES + sizeof block, KEYS_BLOCK);
        keys->sketch_call[block] = head->clock;
    }
    keys->sights = head->sights;
    keyed->chain = head->chain;
    keyed->waiting = head->waiting;
    keyed->dropped = head->dropped;
    keyed->evictions = head->evictions;
    keyed->table->steps = head->steps;
    keyed->table->stores = head->stores;
    set_rate(keyed->table, head->rule.lr);
    for (uint64_t first = 0; first < head->rows; first += keyed->chunk) {
        uint64_t some = head->rows - first < keyed->chunk ? head->rows - first : keyed->chunk;
        memcpy(keyed->records, c->records + first * packed, some * packed);
        if (move_records(keyed, c->row + first, some, 1)) return -1;
    }
    return 0;
}

enum sptx_status sptx_keyed_load(struct sptx_keyed *keyed, const char *path) {
    if (!keyed) return SPTX_USAGE;
    struct sptx_context *context = keyed->table->context;
    struct file_map map;
    struct head head = {0};
    struct changes c = {0};
    uint64_t at;
    enter(context);
    if (!path || !*path) return leave(context, fail_usage("a table is loaded from a path; none was given"));
    if (file_map_open(&map, path)) return leave(context, -1);
    int result = read_head(&map, path, &head, &at) || check_kind(keyed, path, &head) ? -1 : 0;
    if (!result) {
        c.keys = map.data + at;
        c.records = c.keys + head.rows * sizeof(struct key_about);
        c.gone = c.records + head.rows * head.record;
        c.blocks = c.gone + head.gone * sizeof *c.key;
        c.key = mem_alloc(head.rows + head.gone + 1, sizeof *c.key, "the keys of a file");
        c.row = mem_alloc(head.rows + head.gone + 1, sizeof *c.row, "the keys of a file");
        result = !c.key || !c.row || reserve_records(keyed) || context->ops->rows_wait(context->backend) || know_counts(keyed) ||
                         check_changes(keyed, path, &head, &c) || (make_changes(keyed, &head, &c) | set_index(keyed))
                     ? -1
                     : 0;
    }
    free(c.key);
    free(c.row);
    file_map_close(&map);
    return leave(context, result);
}
