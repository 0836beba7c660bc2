/* whole_rows: a table's columns, which ranks share out, as whole rows and back, for files. A round is as many chunks of rows as
 * there are ranks that take whole rows, in order; every taker has the rows of its chunk:
 *
 *              columns of rank 0    rank 1    rank 2              whole rows
 *   chunk 0    ##########           ######    ######     <--->    of taker 0
 *   chunk 1    ##########           ######    ######     <--->    of taker 1
 *   chunk 2    ##########           ######    ######     <--->    of taker 2
 *
 * Takers are all ranks, or the first one alone. All ranks make all calls together; a rank alone has nothing to exchange.
 */
#ifndef SPTX_WHOLE_ROWS_H
#define SPTX_WHOLE_ROWS_H

#include "table.h"

struct whole_rows {
    struct table *table;
    unsigned takers;
    uint64_t first, count;         /* rows of the round */
    uint64_t own_first, own_count; /* those of this rank's chunk; it may have none */
    char *own;                     /* [takers x chunk] packed records of this rank's columns */
    char *parts;                   /* [chunk] of each rank's columns, one rank behind the other; NULL where this one takes none */
    uint64_t *by_taker, *by_rank;  /* [ranks] bytes: of own columns of each chunk; of each rank's columns of the own chunk */
};

int whole_rows_init(struct whole_rows *rounds, struct table *table, unsigned takers); /* -1 after fail() */
void whole_rows_release(struct whole_rows *rounds);

/* Goes to the next round, of a new one to the first: 1, or 0 where there are no more rows. */
int whole_rows_next(struct whole_rows *rounds);

/* This rank's chunk, packed records of all columns, from the columns that ranks have in their tables; and back. A rank that
 * cannot fails for all. */
int whole_rows_gather(struct whole_rows *rounds, char *whole);
int whole_rows_scatter(struct whole_rows *rounds, const char *whole);

/* Bytes of memory that rounds take, of so many rows of such records. */
uint64_t whole_rows_bytes(uint64_t chunk, const struct record_layout *whole, unsigned ranks);

#endif
