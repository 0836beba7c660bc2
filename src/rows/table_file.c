/* table_file: saves a table to its .npy and loads it, a chunk of rows at a time (table.h).
 *
 *   saving    gathers this rank's chunk as whole rows (struct whole_rows) and adds it to the checksum; at the same time writes this
 *             rank's chunk of the round before
 *   loading   reads this rank's chunk of whole rows, and sends each rank its columns
 *
 * If the ranks do not see the same file system (shared_file_join()), only the first rank opens the file.
 */
#define XXH_STATIC_LINKING_ONLY /* needed for the size of a checksum's state, which one rank sends to the next */
#include "table.h"

#include "base/checks.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/text.h"
#include "values.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static unsigned rank_of(const struct table *table) {
    return table->ranks ? table->ranks->number : 0;
}

static struct record_layout part_of(const struct table *table, unsigned rank, struct columns *columns) {
    *columns = record_columns(&table->whole, ranks_count(table->ranks), rank);
    return record_layout_make(&table->rule, columns->count);
}

/* Returns the bytes of one rank's columns in a packed record. */
static uint64_t part_bytes(const struct record_layout *whole, unsigned ranks, unsigned rank) {
    uint64_t counts = whole->counted * value_bytes(VALUE_UINT32);
    return (whole->packed - counts) / whole->dim * record_columns(whole, ranks, rank).count + counts;
}

uint64_t whole_rows_bytes(uint64_t chunk, const struct record_layout *whole, unsigned ranks) {
    uint64_t bytes = 0;
    if (ranks < 2) return 0;
    for (unsigned r = 0; r < ranks; r++) bytes += part_bytes(whole, ranks, r);
    return chunk * (ranks * part_bytes(whole, ranks, 0) + bytes);
}

/* whole_rows: lets ranks that divide the columns of a table among them exchange columns, so that files are written and read by whole rows. Some
 * ranks, the takers, collect whole rows. This is done in rounds: in a round each taker, in order, gets one chunk of rows:
 *
 *              columns of rank 0    rank 1    rank 2              whole rows
 *   chunk 0    ##########           ######    ######     <--->    of taker 0
 *   chunk 1    ##########           ######    ######     <--->    of taker 1
 *   chunk 2    ##########           ######    ######     <--->    of taker 2
 *
 * Takers are all ranks, or only the first. All ranks make all calls together. A single rank has nothing to exchange.
 */

/* One exchange of a table's columns, as this rank sees it: the current round and its buffers. */
struct whole_rows {
    struct table *table;
    unsigned takers;
    uint64_t first, count;         /* rows of the current round */
    uint64_t own_first, own_count; /* rows of the chunk that this rank collects in this round; own_count = 0: it collects no chunk */
    char *own;                     /* [takers x chunk] packed records of this rank's columns */
    char *parts;                   /* [chunk] packed records of rank 0's columns, then of rank 1's, and so on; NULL: this rank is not a taker */
    uint64_t *by_taker, *by_rank;  /* [ranks] numbers of bytes. by_taker: of this rank's columns in each taker's chunk; by_rank: of each rank's
                                    * columns in this rank's chunk */
};

static int whole_rows_init(struct whole_rows *r, struct table *table, unsigned takers) {
    unsigned ranks = ranks_count(table->ranks);
    uint64_t chunk = table_first_chunk(table), bytes = 0;
    *r = (struct whole_rows){.table = table, .takers = takers, .first = table->spec.first_row};
    if (ranks == 1) return 0;
    for (unsigned rank = 0; rank < ranks; rank++) bytes += part_bytes(&table->whole, ranks, rank);
    r->own = mem_alloc(takers * chunk, table->spec.layout.packed, "columns on their way to other ranks");
    r->by_taker = mem_zalloc(2 * (uint64_t)ranks, sizeof *r->by_taker, "columns on their way to other ranks");
    if (r->by_taker) r->by_rank = r->by_taker + ranks;
    if (rank_of(table) < takers) r->parts = mem_alloc(chunk, bytes, "columns of all ranks");
    return r->own && r->by_taker && (r->parts || rank_of(table) >= takers) ? 0 : -1;
}

static void whole_rows_release(struct whole_rows *r) {
    mem_free(r->own, r->parts, r->by_taker);
    *r = (struct whole_rows){.table = NULL};
}

/* Returns the number of rows of chunk `number` of the round. */
static uint64_t chunk_of(const struct whole_rows *r, unsigned number) {
    uint64_t first = r->first + number * table_first_chunk(r->table);
    return first < r->table->spec.rows ? table_chunk(r->table, first) : 0;
}

/* Advances to the next round; the first call begins the first round. Returns 1, or 0 if no rows are left. */
static int whole_rows_next(struct whole_rows *r) {
    const struct table *table = r->table;
    unsigned own = rank_of(table);
    struct columns columns;
    r->first += r->count;
    r->count = 0;
    for (unsigned taker = 0; taker < r->takers; taker++) {
        r->count += chunk_of(r, taker);
        if (r->by_taker) r->by_taker[taker] = chunk_of(r, taker) * table->spec.layout.packed;
    }
    r->own_first = r->first + own * table_first_chunk(table);
    r->own_count = own < r->takers ? chunk_of(r, own) : 0;
    INVARIANT(!r->own_count || r->own_first + r->own_count <= table->spec.rows);
    for (unsigned rank = 0; r->by_rank && rank < ranks_count(table->ranks); rank++)
        r->by_rank[rank] = r->own_count * part_of(table, rank, &columns).packed;
    return r->count > 0;
}

/* whole_rows_gather() collects this rank's chunk as packed records of all columns, from the tables of all ranks.
 * whole_rows_scatter() writes such records to the tables of all ranks. If one rank fails, all ranks fail. */
static int whole_rows_gather(struct whole_rows *r, char *whole) {
    struct table *table = r->table;
    const char *from = r->parts;
    struct columns columns;
    if (!r->own)
        return (table->is_snapshot ? table->ops->snapshot_read : table->ops->table_read)(table->backend, table->store, r->first,
                                                                                         r->count, whole);
    int result = table->ops->table_read(table->backend, table->store, r->first, r->count, r->own);
    if (ranks_meet(table->ranks, NULL, result)) return -1;
    ranks_swap(table->ranks, r->own, r->by_taker, r->parts, r->by_rank);
    for (unsigned rank = 0; r->own_count && rank < table->ranks->count; from += r->by_rank[rank++]) {
        struct record_layout part = part_of(table, rank, &columns);
        record_join(&table->whole, &part, columns, r->own_count, whole, from);
    }
    return 0;
}

static int whole_rows_scatter(struct whole_rows *r, const char *whole) {
    struct table *table = r->table;
    char *to = r->parts;
    struct columns columns;
    if (!r->own) return table->ops->table_write(table->backend, table->store, r->first, r->count, whole);
    for (unsigned rank = 0; r->own_count && rank < table->ranks->count; to += r->by_rank[rank++]) {
        struct record_layout part = part_of(table, rank, &columns);
        record_split(&table->whole, &part, columns, r->own_count, whole, to);
    }
    ranks_swap(table->ranks, r->parts, r->by_rank, r->own, r->by_taker);
    int result = table->ops->table_write(table->backend, table->store, r->first, r->count, r->own);
    return ranks_meet(table->ranks, NULL, result);
}

/* Files that all ranks write or read together. Ranks on one machine see the same file system; ranks on different machines may have different disks
 * under the same paths, so they find out before. */

/* Describes the file of the first rank, which sends this to the other ranks. */
struct notice {
    char name[4096]; /* path of the file; "": the path is too long to send */
    uint64_t number; /* rank r writes this number + r */
};

/* One rank's search for the file: its input and its result. */
struct probe {
    struct ranks *ranks;
    struct file_part *part;
    const char *path;
    struct notice notice;
    uint64_t at;
};

/* Writes this rank's number into the file. Returns 1 if this rank does not see the file. */
static int write_number(void *user) {
    struct probe *p = user;
    uint64_t number = p->notice.number + p->ranks->number, at = p->at + p->ranks->number * sizeof number;
    if (!*p->notice.name) return 1;
    if (!ranks_first(p->ranks) && file_part_join(p->part, p->path, p->notice.name)) return 1;
    return retry_write_at(p->part->fd, &number, sizeof number, at) || retry_sync(p->part->fd) ? 1 : 0;
}

/* Reads all ranks' numbers. Returns 1 if one is missing. */
static int read_numbers(void *user) {
    struct probe *p = user;
    uint64_t number;
    int fd = retry_open(p->notice.name, O_RDONLY | O_CLOEXEC), missing = fd < 0;
    for (unsigned r = 0; r < p->ranks->count && !missing; r++)
        missing = retry_read_at(fd, &number, sizeof number, p->at + r * sizeof number) != sizeof number ||
                  number != p->notice.number + r;
    if (fd >= 0) close(fd);
    return missing;
}

/* Lets all ranks write one file, if all see it. The first rank has opened `writer`, whose file contains nothing from byte `at` on; the other ranks
 * pass NULL. Every rank opens the file by its unique name and writes a number; the first rank reads the numbers of all.
 *
 * Returns the number of ranks that may write the file: all, each through its `part`, or 1: only the first rank. 0 after fail(). All ranks call this
 * together.
 */
static unsigned shared_file_join(struct file_part *part, struct ranks *ranks, const struct file_writer *writer, const char *path,
                          uint64_t at) {
    struct probe p = {.ranks = ranks, .part = part, .path = path, .at = at};
    *part = (struct file_part){path, -1};
    if (ranks_meet(ranks, NULL, writer ? file_part_of(part, writer) : 0)) return 0;
    if (ranks_count(ranks) == 1) return 1;
    if (writer) { /* the number is a hash of the file's name, which no other process's file has */
        p.notice.number = XXH3_64bits(writer->partial, strlen(writer->partial));
        if (strlen(writer->partial) < sizeof p.notice.name) strcpy(p.notice.name, writer->partial);
    }
    ranks_share(ranks, &p.notice, sizeof p.notice);
    int alone = ranks_do(ranks, write_number, &p);
    if (!alone) alone = ranks_do(ranks, writer ? read_numbers : NULL, &p);
    if (alone && !writer) file_part_close(part); /* the ranks have no common file: the one that this rank opened may belong to another process */
    return alone < 0 ? 0 : alone ? 1 : ranks->count;
}

/* Numbers that identify a file on one machine. */
struct identity {
    uint64_t inode, bytes;
    int64_t seconds, nanoseconds; /* time of the last write */
};

/* Returns the number of ranks that can read the file: all, if every rank finds the same file under this name, otherwise 1. 0 after fail(). All
 * ranks call this together. */
static unsigned shared_file_readers(struct ranks *ranks, const char *path) {
    struct identity own = {0}, first;
    struct stat about;
    if (ranks_count(ranks) == 1) return 1;
    if (ranks_meet(ranks, NULL, 0)) return 0;
    if (!stat(path, &about))
        own = (struct identity){(uint64_t)about.st_ino, (uint64_t)about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
    first = own;
    ranks_share(ranks, &first, sizeof first);
    return ranks_any(ranks, memcmp(&own, &first, sizeof own) ? 1 : 0) ? 1 : ranks->count;
}

/* Describes the fields and rows of this table's file. */
static struct npy describe(const struct table *table) {
    const struct record_layout *layout = &table->whole;
    struct npy npy = {.rows = table_row_count(&table->spec), .fields = layout->fields};
    for (uint32_t i = 0; i < layout->fields; i++) {
        const struct record_field *field = &layout->field[i];
        snprintf(npy.field[i].name, sizeof npy.field[i].name, "%s", field->name);
        npy.field[i].columns = field->columns;
        npy.field[i].kind = values_kind(field->type);
    }
    return npy;
}

/* ---- saving ---- */

/* A table that is being saved. */
struct saving {
    struct table *table;
    struct whole_rows rounds;
    struct file_part *part;
    uint64_t data;                   /* offset in the file, in bytes, of the first row */
    XXH64_state_t *hash;             /* state of the checksum. When this rank takes it over, it covers all bytes before this rank's chunk */
    char *next, *last;               /* next: records of the chunk that is being gathered; last: of the chunk that is being written */
    uint64_t last_first, last_count; /* rows of `last` */
    uint64_t not_finite;             /* first row of this rank that contains infinity or NaN; UINT64_MAX: all rows are finite */
};

/* Adds this rank's chunk to the checksum. The checksum covers all rows in order, so its state is sent from each rank to the rank
 * with the next chunk. */
static void hash_chunk(struct saving *saving) {
    const struct whole_rows *r = &saving->rounds;
    struct ranks *ranks = saving->table->ranks;
    unsigned own = ranks ? ranks->number : 0, before = (own ? own : r->takers) - 1, after = (own + 1) % r->takers;
    if (!r->own_count) return;
    if (r->own_first > saving->table->spec.first_row) ranks_pass(ranks, before, own, saving->hash, sizeof *saving->hash);
    XXH64_update(saving->hash, saving->next, r->own_count * saving->table->whole.packed);
    if (r->own_first + r->own_count < saving->table->spec.rows) ranks_pass(ranks, own, after, saving->hash, sizeof *saving->hash);
}

/* Gathers the next chunk and checks it for infinity and NaN. The fast check reads all bytes as floats. These include a row's count of updates: up
 * to about 2 x 10^9 updates it looks like a finite float; above that the chunk is only checked once more, value by value. Records with bfloat16
 * are always checked value by value. */
static int take_next(struct saving *saving) {
    const struct record_layout *layout = &saving->table->whole;
    uint64_t rows = saving->rounds.own_count;
    if (whole_rows_gather(&saving->rounds, saving->next)) return -1;
    if (layout->halves || !floats_finite((const float *)(const void *)saving->next, rows * layout->packed / value_bytes(VALUE_FLOAT32)))
        for (uint64_t row = 0; row < rows && saving->not_finite == UINT64_MAX; row++)
            for (uint32_t i = 0; i < layout->fields; i++)
                if (!values_finite(&layout->field[i], saving->next + row * layout->packed + layout->field[i].packed))
                    saving->not_finite = saving->rounds.own_first + row;
    hash_chunk(saving);
    return saving->not_finite == UINT64_MAX ? 0 : TABLE_NOT_FINITE;
}

static int write_last(void *user) {
    struct saving *saving = user;
    uint64_t packed = saving->table->whole.packed;
    if (!saving->last_count) return 0;
    uint64_t before = (saving->last_first - saving->table->spec.first_row) * packed;
    return file_part_write(saving->part, saving->data + before, saving->last, saving->last_count * packed);
}

/* Runs all rounds. While one chunk is written, the next one is gathered. */
static int save_rounds(struct saving *saving) {
    int more, result;
    struct ranks_work writing;
    do {
        more = whole_rows_next(&saving->rounds);
        ranks_begin(&writing, write_last, saving);
        result = ranks_meet(saving->table->ranks, &writing, more ? take_next(saving) : 0);
        char *written = saving->last;
        saving->last = saving->next;
        saving->next = written;
        saving->last_first = saving->rounds.own_first;
        saving->last_count = saving->rounds.own_count;
    } while (more && !result);
    if (result) return result;
    /* The first rank gets the checksum's state from the rank with the last chunk. */
    const struct table *table = saving->table;
    uint64_t rows = table_row_count(&table->spec), chunks = rows ? (rows - 1) / table_first_chunk(table) : 0;
    ranks_pass(table->ranks, (unsigned)(chunks % saving->rounds.takers), 0, saving->hash, sizeof *saving->hash);
    return 0;
}

/* Fails on all ranks with the same message, which names the lowest such row of all ranks. */
static void say_not_finite(const struct saving *saving) {
    const struct table *table = saving->table;
    unsigned count = ranks_count(table->ranks);
    uint64_t rows[count], first = UINT64_MAX;
    ranks_exchange(table->ranks, &saving->not_finite, rows, sizeof *rows);
    for (unsigned r = 0; r < count; r++)
        if (rows[r] < first) first = rows[r];
    fail("row %" PRIu64 " of the %s table holds infinity or NaN", first, table->spec.name);
}

static int sync_part(void *user) {
    return file_part_sync(user);
}

/* Writes the rows, from byte `data` of the file on, and syncs the file. */
static int save_rows(struct table *table, struct file_part *part, unsigned takers, uint64_t data, XXH64_state_t *hash) {
    uint64_t chunk = table_first_chunk(table) * table->whole.packed;
    OWNED char *records = mem_alloc(SAVED_AT_ONCE, chunk, "pieces of a table on their way to disk");
    struct saving saving = {.table = table, .part = part, .data = data, .hash = hash, .next = records, .not_finite = UINT64_MAX};
    int writes = part->fd >= 0, result = whole_rows_init(&saving.rounds, table, takers) || !records ? -1 : 0;
    if (records) saving.last = records + chunk;
    if (!result && ranks_first(table->ranks)) result = file_part_resize(part, data + table_file_bytes(table));
    result = ranks_meet(table->ranks, NULL, result);
    if (!result) result = save_rounds(&saving);
    if (result == TABLE_NOT_FINITE) say_not_finite(&saving);
    if (!result) result = ranks_do(table->ranks, writes ? sync_part : NULL, part);
    whole_rows_release(&saving.rounds);
    return result;
}

static int commit(void *user) {
    return file_commit(user);
}

int table_save(struct table *table, const char *path, uint64_t *checksum) {
    int first = ranks_first(table->ranks);
    struct file_writer writer = {.fd = -1};
    struct file_part part = {path, -1};
    XXH64_state_t hash;
    uint64_t data = 0;
    XXH64_reset(&hash, 0);
    struct npy npy = describe(table);
    int result = first && (file_writer_open(&writer, path) || npy_write_header(&npy, &writer)) ? -1 : 0;
    if (first && !result) { /* the header is far smaller than the buffer, so it is still in it */
        XXH64_update(&hash, writer.buffer, writer.used);
        data = npy.data;
    }
    result = ranks_meet(table->ranks, NULL, result);
    if (!result) ranks_share(table->ranks, &data, sizeof data);
    unsigned takers = result ? 0 : shared_file_join(&part, table->ranks, first ? &writer : NULL, path, data);
    result = takers ? save_rows(table, &part, takers, data, &hash) : -1;
    file_part_close(&part);
    if (!result) result = ranks_do(table->ranks, first ? commit : NULL, &writer);
    else file_abandon(&writer);
    *checksum = XXH64_digest(&hash);
    return result;
}

/* ---- a table that is saved while it is used ---- */

uint64_t table_snapshot_bytes(uint64_t bytes) {
    const uint64_t share = 8, least = 64 << 20;
    if (bytes < least) return bytes;
    return bytes / share < least ? least : bytes / share;
}

int table_snapshot(struct table *table, uint64_t most, struct table *snapshot) {
    uint64_t row = table_row_bytes(&table->spec.layout, table->spec.weights, table->spec.state);
    if (!most) most = table_snapshot_bytes(table_row_count(&table->spec) * row);
    *snapshot = *table;
    snapshot->is_snapshot = 1;
    return table->ops->snapshot_begin(table->backend, table->store, most);
}

/* ---- loading ---- */

/* Writes the names of the fields and their columns, as in "weights[128] exp_avg[128] updates". */
static void name_fields(const struct npy *npy, char *out, size_t capacity) {
    size_t at = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < npy->fields; i++) {
        const struct npy_field *field = &npy->field[i];
        const char *name = field->name[0] ? field->name : "(plain array)";
        at = text_add(out, capacity, at, "%s%s", i ? " " : "", name);
        if (field->kind != 'u')
            at = text_add(out, capacity, at, "[%" PRIu32 "]%s", field->columns,
                          field->kind == 'h' ? " (bfloat16)" : field->kind == 'b' ? " (int8)" : field->kind == 'B' ? " (float8)" : "");
    }
}

int table_has_fields(const struct table *table, const struct npy *npy) {
    struct npy wanted = describe(table);
    int same = npy->fields == wanted.fields && npy->record == table->whole.packed;
    for (uint32_t i = 0; same && i < npy->fields; i++) {
        const struct npy_field *a = &npy->field[i], *b = &wanted.field[i];
        same = !strcmp(a->name, b->name) && a->columns == b->columns && a->kind == b->kind;
    }
    return same;
}

static int check_file(const struct table *table, const struct npy *seen, const char *path) {
    struct npy wanted = describe(table);
    char has[512], wants[512];
    if (seen->rows != wanted.rows)
        return fail("'%s' has %" PRIu64 " rows, the %s table has %" PRIu64, path, seen->rows, table->spec.name, wanted.rows);
    if (!table_has_fields(table, seen)) {
        name_fields(seen, has, sizeof has);
        name_fields(&wanted, wants, sizeof wants);
        return fail("'%s' has the fields %s, this model.dim, precision and optimizer want %s", path, has, wants);
    }
    return 0;
}

static int load_rows(struct table *table, const struct npy *npy, unsigned readers) {
    struct whole_rows rounds;
    int result = ranks_meet(table->ranks, NULL, whole_rows_init(&rounds, table, readers));
    while (!result && whole_rows_next(&rounds)) {
        const char *own = rounds.own_count ? npy_row(npy, &npy->field[0], rounds.own_first - table->spec.first_row) : NULL;
        /* Rows that are zeros in the file, and were never written in the table, are not written: so memory for them is never allocated. */
        int blank = ranks_count(table->ranks) == 1 && table_is_blank(table, rounds.first) && !own[0] &&
                    !memcmp(own, own + 1, rounds.own_count * table->whole.packed - 1);
        result = interrupt_check() ? -1 : blank ? 0 : whole_rows_scatter(&rounds, own);
    }
    whole_rows_release(&rounds);
    return result;
}

int table_load(struct table *table, const char *path) {
    ENDED_BY(npy_close) struct npy npy = {.rows = 0};
    unsigned readers = shared_file_readers(table->ranks, path), own = table->ranks ? table->ranks->number : 0;
    int reads = own < readers;
    int result = !readers || (reads && (npy_open(&npy, path) || check_file(table, &npy, path))) ? -1 : 0;
    result = ranks_meet(table->ranks, NULL, result);
    if (!result) result = load_rows(table, &npy, readers);
    return result;
}
