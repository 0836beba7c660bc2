/* whole_rows: turns a table's columns, which ranks share out, into whole rows and back, for files. A round is as many chunks of
 * rows as there are ranks that take whole rows, in order; every taker has the rows of its chunk:
 *
 *              columns of rank 0    rank 1    rank 2              whole rows
 *   chunk 0    ##########           ######    ######     <--->    of taker 0
 *   chunk 1    ##########           ######    ######     <--->    of taker 1
 *   chunk 2    ##########           ######    ######     <--->    of taker 2
 *
 * Takers are all ranks, or only the first one. All ranks make all calls together; a single rank has nothing to exchange.
 */
#ifndef SPTX_WHOLE_ROWS_H
#define SPTX_WHOLE_ROWS_H

#include "table.h"

struct whole_rows {
    struct table *table;
    unsigned takers;
    uint64_t first, count;         /* the rows of the round */
    uint64_t own_first, own_count; /* the rows of this rank's chunk; it may have none */
    char *own;                     /* [takers x chunk] packed records with this rank's columns */
    char *parts;                   /* [chunk] records of rank 0's columns, of rank 1's, ..; NULL where this rank takes none */
    uint64_t *by_taker, *by_rank;  /* [ranks] bytes: its columns of each taker's chunk; each rank's columns of its own chunk */
};

int whole_rows_init(struct whole_rows *rounds, struct table *table, unsigned takers); /* -1 after fail() */
void whole_rows_release(struct whole_rows *rounds);

/* Goes to the next round; a new one goes to the first. Returns 1, or 0 where there are no more rows. */
int whole_rows_next(struct whole_rows *rounds);

/* Collects this rank's chunk as packed records of all columns, from the columns that the ranks have in their tables;
 * scatter does the reverse. A rank that cannot fails for all. */
int whole_rows_gather(struct whole_rows *rounds, char *whole);
int whole_rows_scatter(struct whole_rows *rounds, const char *whole);

/* Returns the memory that rounds take, for chunks of this number of rows. */
uint64_t whole_rows_bytes(uint64_t chunk, const struct record_layout *whole, unsigned ranks);

#endif
