/* by_id: reads and changes rows of the tables by id, for other people's models.
 *
 * A fetch divides the ids among workers, which copy rows. In an update each row belongs to one worker (row mod workers), which
 * sums the gradients of the row's places in the order of the ids and applies the rule once, so the result is the same with any
 * number of workers. A store also divides rows: if an id repeats, its last values are kept.
 */
#include "cpu.h"

#include "base/memory.h"
#include "base/report.h"
#include "kernels/backend.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FEW_VALUES = 1 << 14 }; /* a call with fewer values is done by one worker, since waking the others would take longer */

struct by_id {
    struct backend *backend;
    const struct rows_request *request;
    const uint32_t *ids;
    uint32_t dim;
    unsigned workers;
};

/* ---- ids ---- */

int cpu_rows_ids(struct backend *backend, uint64_t count, uint32_t **ids) {
    if (mem_grow(&backend->ids, &backend->id_capacity, count, sizeof *backend->ids, "ids")) return -1;
    *ids = backend->ids;
    return 0;
}

static int run(struct backend *backend, const struct rows_request *request, pool_job *job) {
    struct by_id call = {.backend = backend, .request = request, .ids = request->ids, .dim = request->table->spec.layout.dim, .workers = 1};
    if (request->count * call.dim > FEW_VALUES) call.workers = pool_threads(backend->pool);
    return call.workers > 1 ? pool_run(backend->pool, job, &call) : job(&call, 0);
}

/* ---- fetch ---- */

enum { AHEAD = 8 }; /* a row is prefetched this many rows before it is read, since each row is a cache miss */

static int fetch_rows(void *context, unsigned worker) {
    const struct by_id *call = context;
    const struct backend_table *table = call->request->table;
    enum value_type type = table->spec.layout.field[RECORD_WEIGHTS].type;
    uint64_t first, end, bytes = call->dim * sizeof(float);
    pool_share(call->request->count, worker, call->workers, &first, &end);
    for (uint64_t i = first; i < end; i++) {
        float *to = call->request->values + i * call->dim;
        if (i + AHEAD < end) __builtin_prefetch(cpu_weights(table, call->ids[i + AHEAD]));
        if (type == VALUE_BFLOAT16) call->backend->rows->widen(cpu_weights(table, call->ids[i]), call->dim, to);
        else if (value_is_code(type)) call->backend->rows->open_codes(cpu_weights(table, call->ids[i]), type == VALUE_FLOAT8, call->dim, to);
        else memcpy(to, cpu_weights(table, call->ids[i]), bytes);
    }
    return 0;
}

int cpu_rows_fetch(struct backend *backend, const struct rows_request *request) {
    return run(backend, request, fetch_rows);
}

/* ---- update and store ---- */

static struct cpu_row_set own_rows(const struct by_id *call, unsigned worker) {
    return cpu_row_set(&call->backend->shared, call->ids, call->request->count, worker, call->workers, call->request->table->spec.rows);
}

static int store_rows(void *context, unsigned worker) {
    const struct by_id *call = context;
    struct cpu_row_set set = own_rows(call, worker);
    struct cpu_named_row row;
    for (uint64_t at = 0; cpu_next_row(&set, &at, &row);) {
        uint64_t last = (uint32_t)row.key[row.places - 1];
        const struct backend_table *table = call->request->table;
        const struct cpu_draws draws = {&table->spec.rounding, DRAW_ROUND_STORE, call->request->global_step,
                                        round_row(&table->spec.rounding, row.row), 0};
        const float *values = call->request->values + last * call->dim;
        cpu_before_change(table, row.row);
        enum value_type type = table->spec.layout.field[RECORD_WEIGHTS].type;
        if (type == VALUE_BFLOAT16) call->backend->rows->write(cpu_weights(table, row.row), values, call->dim, &draws);
        else if (value_is_code(type)) call->backend->rows->close_codes(cpu_weights(table, row.row), type == VALUE_FLOAT8, values, call->dim, &draws);
        else memcpy(cpu_weights(table, row.row), values, call->dim * sizeof *values);
    }
    return 0;
}

int cpu_rows_store(struct backend *backend, const struct rows_request *request) {
    return cpu_grow_keys(&backend->shared, request->count) || run(backend, request, store_rows) ? -1 : 0;
}

static int update_rows(void *context, unsigned worker) {
    const struct by_id *call = context;
    const struct rows_request *request = call->request;
    struct cpu_scratch *scratch = &call->backend->scratch[worker];
    struct rule_step constants = rule_prepare(request->rule, request->lr, request->global_step);
    struct cpu_memo memo = {0};
    struct cpu_row_set set = own_rows(call, worker);
    struct cpu_named_row row;
    for (uint64_t at = 0; cpu_next_row(&set, &at, &row);) {
        cpu_sum_places(&row, request->values, call->dim, call->dim, scratch->gradient);
        if (row.places > 1 && constants.clip > 0)
            cpu_shorten(&constants, call->dim, scratch->gradient, row.places, cpu_squares(call->dim, scratch->gradient));
        cpu_apply_rule(call->backend->rows, request->rule, request->lr, request->global_step, request->table, row.row,
                       scratch->gradient, scratch->rule_scratch, &memo);
    }
    return 0;
}

/* Updates rows. All memory is allocated before a row changes, so an update is done completely or not at all. */
int cpu_rows_update(struct backend *backend, const struct rows_request *request) {
    if (cpu_grow_keys(&backend->shared, request->count)) return -1;
    for (unsigned i = 0; i < pool_threads(backend->pool); i++)
        if (cpu_grow_gradient(&backend->scratch[i], request->table->spec.layout.span)) return -1;
    return run(backend, request, update_rows);
}

/* ---- view ---- */

int cpu_rows_cached(struct backend *backend, const struct backend_table *table, uint32_t *rows, uint64_t most, uint64_t *count) {
    *count = 0;
    return 0;
}

struct rows_view cpu_rows_view(struct backend *backend, const struct backend_table *table, const struct record_field *field) {
    uint64_t first = table->spec.first_row;
    if (record_is_weights(field))
        return (struct rows_view){
            .data = (char *)cpu_weights(table, (uint32_t)first) + field->offset, .first = first, .stride = table->weights.stride};
    return (struct rows_view){
        .data = (char *)(table->state_base + first * table->state_stride + field->offset), .first = first, .stride = table->state_stride};
}

/* ==== snapshots ====
 *
 * One thread, the reader, reads a table's rows in order, with the values from when the snapshot began. Meanwhile calls go on to change rows.
 *
 *   a call      before it changes a row that was not read yet, it copies the row's record, once (cpu_before_change)
 *   the reader  reads a chunk of rows under the chunk's lock: rows that were copied from their copies, the others from the table
 *
 * Memory for copies is limited. A call that finds no free copy waits until the reader has freed the copies of a chunk, or has read the row.
 */

enum {
    LOCKS = 64,              /* chunk c has lock c % LOCKS */
    CHUNK_BYTES = 128 << 10, /* bytes of records that the reader copies while it holds a lock */
    NO_COPY = UINT32_MAX
};

struct cpu_snapshot {
    struct cpu_snapshot_seen seen;
    uint64_t end;         /* the table's rows are below this number */
    uint64_t grain;       /* number of rows of a chunk */
    uint64_t stride;      /* bytes of a copy: the records of both stores, one after the other */
    uint64_t state_at;    /* offset of the state in a copy */
    uint32_t *newest;     /* [chunks] the newest copy of a row of the chunk; NO_COPY: none */
    uint32_t *before;     /* [copies] the next older copy of the same chunk, or the next free copy */
    uint32_t *row;        /* [copies] the row, counted from the table's first row */
    char *records;        /* [copies x stride] */
    uint32_t copies, used; /* number of copies that have memory; number that were ever used */
    uint32_t unused;      /* the first of the copies that are free again; NO_COPY: none */
    pthread_mutex_t lock[LOCKS];
    pthread_mutex_t memory; /* guards `used` and `unused` */
    pthread_cond_t moved;   /* signalled when copies were freed, or rows were read */
};

/* ---- beginning and ending ---- */

static uint64_t chunks_of(const struct cpu_snapshot *s) {
    return (s->end - s->seen.first + s->grain - 1) / s->grain;
}

static void free_snapshot(struct cpu_snapshot *s) {
    if (s->records) munmap(s->records, s->copies * s->stride);
    mem_free(s->seen.copied, s->newest, s->before, s->row, s);
}

static int take_memory(struct cpu_snapshot *s) {
    const char *what = "copies of rows that change while a table is saved";
    uint64_t rows = s->end - s->seen.first;
    s->seen.copied = mem_zalloc(rows / 32 + 1, sizeof *s->seen.copied, what);
    s->newest = mem_alloc(chunks_of(s), sizeof *s->newest, what);
    s->before = mem_alloc(s->copies, sizeof *s->before, what);
    s->row = mem_alloc(s->copies, sizeof *s->row, what);
    if (!s->seen.copied || !s->newest || !s->before || !s->row) return -1;
    memset(s->newest, 0xFF, chunks_of(s) * sizeof *s->newest);
    void *records = mmap(NULL, s->copies * s->stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (records == MAP_FAILED) return fail("not enough memory for %s: %s", what, strerror(errno));
    s->records = records;
    return 0;
}

int cpu_snapshot_begin(struct backend *backend, struct backend_table *table, uint64_t most) {
    uint64_t rows = table_row_count(&table->spec), weights = table->weights.stride;
    struct cpu_snapshot *s = mem_zalloc(1, sizeof *s, "a snapshot of a table");
    if (!s) return -1;
    s->seen.first = s->seen.taken = table->spec.first_row;
    s->end = table->spec.rows;
    s->stride = weights + table->state.stride;
    s->state_at = table->state.memory ? weights : table->state_base - table->weights.base;
    s->grain = CHUNK_BYTES / s->stride ? CHUNK_BYTES / s->stride : 1;
    s->unused = NO_COPY;
    uint64_t copies = most / s->stride;
    if (copies > rows) copies = rows;
    s->copies = copies < 1 ? 1 : copies < NO_COPY ? (uint32_t)copies : NO_COPY - 1;
    if (take_memory(s)) {
        free_snapshot(s);
        return -1;
    }
    for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&s->lock[i], NULL);
    pthread_mutex_init(&s->memory, NULL);
    pthread_cond_init(&s->moved, NULL);
    table->snapshot = s;
    return 0;
}

/* A call that already holds a lock may still copy a row; a call that takes a lock later copies none. */
void cpu_snapshot_stop(struct backend_table *table) {
    struct cpu_snapshot *s = table->snapshot;
    __atomic_store_n(&s->seen.taken, s->end, __ATOMIC_RELEASE);
    pthread_mutex_lock(&s->memory);
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->memory);
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_lock(&s->lock[i]);
        pthread_mutex_unlock(&s->lock[i]);
    }
    madvise(s->records, s->copies * s->stride, MADV_DONTNEED);
}

void cpu_snapshot_end(struct backend *backend, struct backend_table *table) {
    struct cpu_snapshot *s = table->snapshot;
    if (!s) return;
    table->snapshot = NULL;
    for (int i = 0; i < LOCKS; i++) pthread_mutex_destroy(&s->lock[i]);
    pthread_mutex_destroy(&s->memory);
    pthread_cond_destroy(&s->moved);
    free_snapshot(s);
}

/* ---- a call that changes rows ---- */

/* Returns a copy that is free, or NO_COPY. */
static uint32_t take_copy(struct cpu_snapshot *s) {
    pthread_mutex_lock(&s->memory);
    uint32_t copy = s->unused;
    if (copy != NO_COPY) s->unused = s->before[copy];
    else if (s->used < s->copies) copy = s->used++;
    INVARIANT(s->used <= s->copies && (copy == NO_COPY || copy < s->used));
    pthread_mutex_unlock(&s->memory);
    return copy;
}

static void await_copy(struct cpu_snapshot *s, uint32_t row) {
    pthread_mutex_lock(&s->memory);
    while (s->unused == NO_COPY && s->used == s->copies && cpu_snapshot_wants(&s->seen, row)) pthread_cond_wait(&s->moved, &s->memory);
    pthread_mutex_unlock(&s->memory);
}

/* Copies the row unless its copy is no longer needed. Returns 0 if there is no memory for the copy. */
static int try_to_keep(struct cpu_snapshot *s, const struct backend_table *table, uint32_t row) {
    uint32_t number = (uint32_t)(row - s->seen.first), *newest = &s->newest[number / s->grain];
    pthread_mutex_t *lock = &s->lock[number / s->grain % LOCKS];
    pthread_mutex_lock(lock);
    int wanted = cpu_snapshot_wants(&s->seen, row);
    uint32_t copy = wanted ? take_copy(s) : NO_COPY;
    if (copy != NO_COPY) {
        char *to = s->records + copy * s->stride;
        memcpy(to, cpu_weights(table, row), table->weights.stride);
        if (table->state.memory) memcpy(to + s->state_at, (const char *)(table->state.base + row * table->state.stride), table->state.stride);
        s->row[copy] = number;
        s->before[copy] = *newest;
        *newest = copy;
        __atomic_fetch_or(&s->seen.copied[number / 32], 1u << number % 32, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(lock);
    return !wanted || copy != NO_COPY;
}

void cpu_keep_row(const struct backend_table *table, uint32_t row) {
    while (!try_to_keep(table->snapshot, table, row)) await_copy(table->snapshot, row);
}

/* ---- the reader ---- */

/* Copies rows from..end of one chunk, counted from the table's first row, to packed records. A row that has a copy may be changing
 * now, so it is read from the copy; only the other rows are read from the table. */
static void read_chunk(struct cpu_snapshot *s, const struct backend_table *table, uint64_t from, uint64_t end, char *packed) {
    const struct record_layout *layout = &table->spec.layout;
    for (uint64_t at = from; at < end;) {
        uint64_t run = at;
        while (run < end && cpu_snapshot_wants(&s->seen, (uint32_t)(s->seen.first + run))) run++;
        struct host_records rows = cpu_records_from(table, s->seen.first + at);
        host_pack(NULL, layout, &rows, run - at, packed + (at - from) * layout->packed);
        at = run + 1;
    }
    for (uint32_t copy = s->newest[from / s->grain]; copy != NO_COPY; copy = s->before[copy]) {
        char *record = s->records + copy * s->stride;
        struct host_records one = {.weights = record, .state = record + s->state_at};
        if (s->row[copy] >= from && s->row[copy] < end) host_pack(NULL, layout, &one, 1, packed + (s->row[copy] - from) * layout->packed);
    }
}

/* Frees the copies of a chunk that was read to its end. */
static void free_copies(struct cpu_snapshot *s, uint64_t chunk) {
    uint32_t newest = s->newest[chunk], oldest = newest;
    while (oldest != NO_COPY && s->before[oldest] != NO_COPY) oldest = s->before[oldest];
    pthread_mutex_lock(&s->memory);
    if (newest != NO_COPY) {
        s->before[oldest] = s->unused;
        s->unused = newest;
    }
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->memory);
    s->newest[chunk] = NO_COPY;
}

int cpu_snapshot_read(struct backend *backend, struct backend_table *table, uint64_t first, uint64_t count, void *packed) {
    struct cpu_snapshot *s = table->snapshot;
    char *to = packed;
    if (host_check_rows(&table->spec, first, count)) return -1;
    for (uint64_t at = first - s->seen.first, end = at + count; at < end;) {
        uint64_t chunk = at / s->grain, whole = (chunk + 1) * s->grain, last = whole < end ? whole : end;
        pthread_mutex_lock(&s->lock[chunk % LOCKS]);
        read_chunk(s, table, at, last, to);
        __atomic_store_n(&s->seen.taken, s->seen.first + last, __ATOMIC_RELEASE);
        if (last == whole || s->seen.first + last == s->end) free_copies(s, chunk);
        pthread_mutex_unlock(&s->lock[chunk % LOCKS]);
        to += (last - at) * table->spec.layout.packed;
        at = last;
    }
    return 0;
}
