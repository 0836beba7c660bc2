/* rounds: a table's columns, which ranks share out, as whole rows and back, for files. A round is as many chunks of rows as
 * there are ranks that take whole rows, in order; every taker has the rows of its chunk:
 *
 *              columns of rank 0    rank 1    rank 2              whole rows
 *   chunk 0    ##########           ######    ######     <--->    of taker 0
 *   chunk 1    ##########           ######    ######     <--->    of taker 1
 *   chunk 2    ##########           ######    ######     <--->    of taker 2
 *
 * Takers are all ranks, or the first one alone. All ranks make all calls together; a rank alone has nothing to exchange.
 */
#ifndef SPTX_ROUNDS_H
#define SPTX_ROUNDS_H

#include "table.h"

struct rounds {
    struct table *table;
    unsigned takers;
    uint64_t first, count;         /* rows of the round */
    uint64_t own_first, own_count; /* those of this rank's chunk; it may have none */
    char *own;                     /* [takers x chunk] packed records of this rank's columns */
    char *parts;                   /* [chunk] of each rank's columns, one rank behind the other; NULL where this one takes none */
    uint64_t *by_taker, *by_rank;  /* [ranks] bytes: of own columns of each chunk; of each rank's columns of the own chunk */
};

int rounds_init(struct rounds *rounds, struct table *table, unsigned takers); /* -1 after fail() */
void rounds_release(struct rounds *rounds);

/* Goes to the next round, of a new one to the first: 1, or 0 where there are no more rows. */
int rounds_next(struct rounds *rounds);

/* This rank's chunk, packed records of all columns, from the columns that ranks have in their tables; and back. A rank that
 * cannot fails for all. */
int rounds_gather(struct rounds *rounds, char *whole);
int rounds_scatter(struct rounds *rounds, const char *whole);

/* Bytes of memory that rounds take, of so many rows of such records. */
uint64_t rounds_bytes(uint64_t chunk, const struct record_layout *whole, unsigned ranks);

#endif
