#include "whole_rows.h"

#include "base/memory.h"
#include "base/retry.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static unsigned rank_of(const struct table *table) {
    return table->ranks ? table->ranks->number : 0;
}

static struct record_layout part_of(const struct table *table, unsigned rank, struct columns *columns) {
    *columns = ranks_columns(table->whole.dim, record_grain(&table->whole), ranks_count(table->ranks), rank);
    return record_layout_make(&table->rule, columns->count);
}

/* Returns the bytes that one rank's columns take in a packed record. */
static uint64_t part_bytes(const struct record_layout *whole, unsigned ranks, unsigned rank) {
    uint64_t counts = whole->counted * value_bytes(VALUE_UINT32);
    return (whole->packed - counts) / whole->dim * ranks_columns(whole->dim, record_grain(whole), ranks, rank).count + counts;
}

uint64_t whole_rows_bytes(uint64_t chunk, const struct record_layout *whole, unsigned ranks) {
    uint64_t bytes = 0;
    if (ranks < 2) return 0;
    for (unsigned r = 0; r < ranks; r++) bytes += part_bytes(whole, ranks, r);
    return chunk * (ranks * part_bytes(whole, ranks, 0) + bytes);
}

int whole_rows_init(struct whole_rows *r, struct table *table, unsigned takers) {
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

void whole_rows_release(struct whole_rows *r) {
    free(r->own);
    free(r->parts);
    free(r->by_taker);
    *r = (struct whole_rows){.table = NULL};
}

/* Returns the number of rows of chunk `number` of the round. */
static uint64_t chunk_of(const struct whole_rows *r, unsigned number) {
    uint64_t first = r->first + number * table_first_chunk(r->table);
    return first < r->table->spec.rows ? table_chunk(r->table, first) : 0;
}

int whole_rows_next(struct whole_rows *r) {
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
    for (unsigned rank = 0; r->by_rank && rank < ranks_count(table->ranks); rank++)
        r->by_rank[rank] = r->own_count * part_of(table, rank, &columns).packed;
    return r->count > 0;
}

int whole_rows_gather(struct whole_rows *r, char *whole) {
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
        record_join(&table->whole, &part, columns.first, r->own_count, whole, from);
    }
    return 0;
}

int whole_rows_scatter(struct whole_rows *r, const char *whole) {
    struct table *table = r->table;
    char *to = r->parts;
    struct columns columns;
    if (!r->own) return table->ops->table_write(table->backend, table->store, r->first, r->count, whole);
    for (unsigned rank = 0; r->own_count && rank < table->ranks->count; to += r->by_rank[rank++]) {
        struct record_layout part = part_of(table, rank, &columns);
        record_split(&table->whole, &part, columns.first, r->own_count, whole, to);
    }
    ranks_swap(table->ranks, r->parts, r->by_rank, r->own, r->by_taker);
    int result = table->ops->table_write(table->backend, table->store, r->first, r->count, r->own);
    return ranks_meet(table->ranks, NULL, result);
}

/* The first rank's file, as it describes the file to the other ranks. */
struct notice {
    char name[4096]; /* path of the file; "": the path is too long to send */
    uint64_t number; /* rank r writes this number + r */
};

/* A rank's search for the file: its arguments and its result. */
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

/* The number is a hash of the file's name. No other process has a file of this name, so the number is unique, too. */
static void describe(struct notice *notice, const char *name) {
    *notice = (struct notice){.number = XXH3_64bits(name, strlen(name))};
    if (strlen(name) < sizeof notice->name) strcpy(notice->name, name);
}

unsigned shared_file_join(struct file_part *part, struct ranks *ranks, const struct file_writer *writer, const char *path,
                          uint64_t at) {
    struct probe p = {.ranks = ranks, .part = part, .path = path, .at = at};
    *part = (struct file_part){path, -1};
    if (ranks_meet(ranks, NULL, writer ? file_part_of(part, writer) : 0)) return 0;
    if (ranks_count(ranks) == 1) return 1;
    if (writer) describe(&p.notice, writer->partial);
    ranks_share(ranks, &p.notice, sizeof p.notice);
    int alone = ranks_do(ranks, write_number, &p);
    if (!alone) alone = ranks_do(ranks, writer ? read_numbers : NULL, &p);
    if (alone && !writer) file_part_close(part); /* not shared: this rank may have opened another process's file */
    return alone < 0 ? 0 : alone ? 1 : ranks->count;
}

/* The numbers that identify a file on a machine. */
struct identity {
    uint64_t inode, bytes;
    int64_t seconds, nanoseconds; /* time of the last write */
};

unsigned shared_file_readers(struct ranks *ranks, const char *path) {
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
