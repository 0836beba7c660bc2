#include "whole_rows.h"

#include "base/memory.h"

#include <stdlib.h>

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
