/* rows_set: the rows that some work needs: which rows they are, where each is named, and where their records are during the work.
 * The same functions fetch, update and copy back the rows of every row set. There is one for
 *
 *   a side of a batch          its targets, or its contexts                                        stage.cu, rows_move.cu
 *   a call by id               one list of ids                                                     by_id.cu
 *   an announced list of ids   whose weights are fetched before a call asks for them               by_id.cu
 *
 *   ids            7  2  9  7  -      [count] as given; `-` is DRAW_NONE: names no row, and counts for nothing
 *   distinct_ids   2  7  9            [rows] increasing, so that rows below the table's hot_rows come first
 *   distinct       1  0! 2! 1  -      [count] place of its row in distinct_ids; `!` is SINGLE_BIT
 *   order          1  0  3  2  4      [count] places in ids, by row and then as given
 *   starts         0  1  3  4         [rows + 1] where a row's places begin in order
 *   cold_first     1                  (of hot_rows 5) the first distinct row that is on the host
 *   slots             r7 r9           [rows - cold_first] their records on the GPU, one array a store
 *   staging           r7 r9           the same in pinned memory, for a store in a file
 *
 *   ids            7  2  9  7  -      [count] as given; `-` is DRAW_NONE: it names no row, and is ignored
 *   distinct_ids   2  7  9            [rows] rising, so rows below the table's hot_rows are first
 *   distinct       1  0! 2! 1  -      [count] for each id: its index in distinct_ids; `!` is SINGLE_BIT: it occurs once
 *   order          1  0  3  2  4      [count] places in ids, sorted by row; places of the same row rise
 *   starts         0  1  3  4         [rows + 1] for each distinct row: index of its first place in `order`
 *   cold_first     1                  index of the first distinct row that is on the host
 *   slots             r7 r9           [rows - cold_first] records of the rows on the host, on the GPU, one array a store
 *   staging           r7 r9           the same records in pinned memory, for a store in a file
 *
 * Sorting finds all of this on the GPU (batch_index.cu), and the counts stay there. The host knows upper bounds. It gets ids and
 * counts only if its threads move rows, that is, for stores in a file (row_set_send).
 *
 * How the records are used differs:
 *
 *   - A batch works in the slots, since several batches are in flight at once and a batch copies rows from another batch's slots
 *     (rows_move.cu: forward). Its records are copied back on a separate stream.
 *   - A call by id changes rows in place: rows on the host over the link, rows of a file in staging. The changed rows are in the
 *     table when the caller's stream continues, so calls need not wait for each other in any other way.
 *   - An announced list has only weights in its slots, also those of hot rows: a fetch then copies from one array.
 */
#ifndef SPTX_CUDA_ROWS_SET_CUH
#define SPTX_CUDA_ROWS_SET_CUH

#include <cuda_runtime.h>
#include <stdint.h>
#include "kernels/portable.h"

extern "C" {
#include "arrays.h"
}

#define SINGLE_BIT 0x80000000u /* flag in `distinct`: the row occurs once, and is no piece of the update's work */

struct backend;
struct store;

/* A growing array on the GPU. */
struct gpu_array {
    void *data;
    uint64_t bytes;
};

struct row_set {
    struct backend_table *table; /* the table that the rows belong to; NULL: no table is set yet, or the table was closed */
    uint64_t count;              /* number of ids; if only the GPU knows it, an upper bound */
    uint64_t capacity;           /* number of ids for which arrays are grown, so that later sets fit, too */
    struct gpu_array ids, distinct, distinct_starts, order;
    struct gpu_array items, longs;    /* struct item: items: one for each piece of the update's work; longs: one for each row of
                                       * several pieces */
    struct gpu_array distinct_ids[2]; /* by copy: while a new set's ids are written to one copy, the other copy may still be read */
    int copies, copy;                 /* copies: number of copies of distinct_ids; copy: index of the copy in use */
    struct batch_counts *counts;      /* on the GPU, owned by the set's owner: counts of distinct rows and so on, at index `side` */
    int side;
    struct gpu_array forward;    /* only for a batch: for each cold row, where its newest value is: stage << 28 | slot, or
                                  * DRAW_NONE: in the table */
    struct gpu_array slots[2];   /* by store: the cold rows' records, on the GPU */
    char *staging[2];            /* by store: the cold rows' records, in pinned memory; only for a store in a file */
    uint64_t staging_bytes[2];
    uint32_t *host_ids;          /* pinned: a copy of distinct_ids; host_counts: a copy of the counts */
    uint64_t host_ids_bytes;
    struct batch_counts *host_counts;
    int lands[2];                /* lands[s]: 1: store s is a file, and records of it were changed: they must be copied back
                                  * through staging */
    cudaEvent_t ticket;          /* for a batch or an announced list: recorded when the rows are in the slots; for a call by id:
                                  * recorded when the call is done and changed rows are in the table */
};

/* A row set as kernels receive it. */
struct row_set_view {
    const uint32_t *ids, *distinct, *distinct_ids, *distinct_starts, *order;
    const struct item *items; /* one for each piece of work */
    const struct item *longs; /* one for each row that has several pieces: which of its partial sums to add */
};

/* Returns the first place in ids[low .. high - 1], which are sorted, whose id is at least `id`; `high` if all ids are lower. */
static __device__ __forceinline__ uint32_t lower_bound(const uint32_t *ids, uint32_t low, uint32_t high, uint64_t id) {
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ids[middle] < id) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---- cold stores: some of their rows are on the host ---- */

int cuda_is_cold(const struct store *store);
int cuda_in_file(const struct store *store); /* returns 1 for a cold store in a file: the GPU cannot read it, so the host's
                                              * threads move its rows */
int cuda_has_cold(const struct backend_table *table);
uint64_t cuda_hot_rows(const struct backend_table *table); /* returns a number of rows: rows below it are on the GPU in all
                                                            * stores */
char *cuda_home_of(const struct store *store);             /* returns, for a cold store, the address on the host that row 0 has
                                                            * or would have */

/* ---- the set ---- */

int row_set_open(struct row_set *set, int side, int copies);
void row_set_close(struct backend *backend, struct row_set *set);
/* Allocates the set's arrays for this number of ids, except slots and staging: the functions that use them grow them. `what`:
 * see gpu_grow(). */
int row_set_grow(struct backend *backend, struct row_set *set, uint64_t count, const char *what);
struct row_set_view row_set_view(const struct row_set *set);

/* Must be called before records of the first `parts` stores change. It marks these stores if they are files, since
 * row_set_land() must then be called. */
void row_set_changes(struct row_set *set, int parts);
/* Enqueues copying the distinct ids and the counts to the host. */
int row_set_send(struct backend *backend, struct row_set *set, cudaStream_t stream);
/* Returns the number of cold rows, and sets *ids to their ids. The copying of row_set_send() must be complete. */
uint64_t row_set_cold(const struct row_set *set, const uint32_t **ids);
/* Reads the set's rows of store `part` from its file into staging, by the host's threads. Staging is grown to `capacity` rows. */
int row_set_read_file(struct backend *backend, struct row_set *set, int part, uint64_t capacity);
/* Copies the records in staging, which the GPU has written, to their places in the file, by the host's threads. */
int row_set_land(struct backend *backend, struct row_set *set);

#endif
