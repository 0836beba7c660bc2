/* whole_rows: lets ranks that share out the columns of a table exchange them, so that files are written and read by whole rows.
 * Some ranks, the takers, collect whole rows. This is done in rounds: in a round each taker, in order, gets one chunk of rows:
 *
 *              columns of rank 0    rank 1    rank 2              whole rows
 *   chunk 0    ##########           ######    ######     <--->    of taker 0
 *   chunk 1    ##########           ######    ######     <--->    of taker 1
 *   chunk 2    ##########           ######    ######     <--->    of taker 2
 *
 * Takers are all ranks, or only the first. All ranks make all calls together. A single rank has nothing to exchange.
 */
#ifndef SPTX_WHOLE_ROWS_H
#define SPTX_WHOLE_ROWS_H

#include "base/file.h"
#include "kernels/ranks.h"
#include "table.h"

/* One exchange of a table's columns, as this rank sees it: the current round and its buffers. */
struct whole_rows {
    struct table *table;
    unsigned takers;
    uint64_t first, count;         /* rows of the current round */
    uint64_t own_first, own_count; /* rows of the chunk that this rank collects; own_count = 0: it collects none in this round */
    char *own;                     /* [takers x chunk] packed records of this rank's columns */
    char *parts;                   /* [chunk] packed records of rank 0's columns, then of rank 1's, and so on; NULL: this rank is
                                    * no taker */
    uint64_t *by_taker, *by_rank;  /* [ranks] numbers of bytes. by_taker: of this rank's columns of each taker's chunk; by_rank:
                                    * of each rank's columns of this rank's chunk */
};

int whole_rows_init(struct whole_rows *rounds, struct table *table, unsigned takers); /* returns 0, or -1 after fail() */
void whole_rows_release(struct whole_rows *rounds);

/* Advances to the next round; the first call begins the first round. Returns 1, or 0 if no rows are left. */
int whole_rows_next(struct whole_rows *rounds);

/* whole_rows_gather() collects this rank's chunk as packed records of all columns, from the tables of all ranks.
 * whole_rows_scatter() writes such records to the tables of all ranks. If one rank fails, all ranks fail. */
int whole_rows_gather(struct whole_rows *rounds, char *whole);
int whole_rows_scatter(struct whole_rows *rounds, const char *whole);

/* Returns the bytes of memory that a whole_rows needs, for chunks of `chunk` rows. */
uint64_t whole_rows_bytes(uint64_t chunk, const struct record_layout *whole, unsigned ranks);

/* shared_file: finds out if all ranks see the same file system, for files that they write or read together. Ranks of one machine
 * do; ranks of different machines may each have a disk of their own under the same paths. */

/* Lets all ranks write one file, if they see it. The first rank has opened `writer`, whose file has nothing from byte `at` on; the
 * other ranks pass NULL. Every rank opens the file by its unique name and writes a number; the first rank reads all numbers back.
 *
 * Returns the number of ranks that may write the file: all, each through its `part`; or 1, the first rank. 0 after fail(). All
 * ranks call it together.
 */
unsigned shared_file_join(struct file_part *part, struct ranks *ranks, const struct file_writer *writer, const char *path,
                          uint64_t at);

/* Returns the number of ranks that can read the file: all, if every rank finds the same file with this name; otherwise 1.
 * Returns 0 after fail(). All ranks call it together. */
unsigned shared_file_readers(struct ranks *ranks, const char *path);

#endif
