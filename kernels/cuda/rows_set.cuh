/* rows_set: the rows that some work needs: which rows, where each is named, and where their records are during the work. The same
 * functions fetch, update and copy back the rows of every set:
 *
 *   a side of a batch          its targets, or its contexts                                        stage.cu, rows_move.cu
 *   a call by id               one list of ids                                                     by_id.cu
 *   an announced list of ids   whose weights are fetched before they are asked for                 by_id.cu
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
 * Sorting finds all of this on the GPU (batch_index.cu), and the counts stay there. The host knows a bound; it gets ids and counts
 * only where its own threads move rows, which is for stores in a file (row_set_send).
 *
 * What differs by owner:
 *
 *   - A batch works in the slots, since several batches are in flight at once and take rows from one another's slots
 *     (rows_move.cu: forward). Its records are copied back on a separate stream.
 *   - A call by id changes rows in place: those on the host over the link, those of a file in staging. When the caller's
 *     stream continues, they are in the table, so calls need no order among themselves.
 *   - An announced list has only weights in its slots, including those of hot rows: a fetch then copies from one array.
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
    struct backend_table *table; /* the table of the rows; NULL: it was closed, or no table is set yet */
    uint64_t count;              /* number of ids, or the upper bound that the host knows */
    uint64_t capacity;           /* number of ids that arrays are grown for, so that later sets fit */
    struct gpu_array ids, distinct, distinct_starts, order;
    struct gpu_array items, longs;    /* pieces of the update's work */
    struct gpu_array distinct_ids[2]; /* by copy: an older copy may still be read while a new one is made */
    int copies, copy;                 /* copies: how many copies of distinct_ids there are; copy: the one in use */
    struct batch_counts *counts;      /* on the GPU, the owner's: distinct, cold_first and so on, at index `side` */
    int side;
    struct gpu_array forward;    /* only for a batch: where each cold row's newest value is (stage << 28 | slot); DRAW_NONE: in
                                  * the table */
    struct gpu_array slots[2];   /* by store */
    char *staging[2];            /* by store */
    uint64_t staging_bytes[2];
    uint32_t *host_ids;          /* a pinned copy of distinct_ids and of the counts */
    uint64_t host_ids_bytes;
    struct batch_counts *host_counts;
    int lands[2];                /* by store: 1: the store is a file, so changed records are copied back through staging */
    cudaEvent_t ticket;          /* recorded, for a batch or an announced list, when rows are in the slots; for a call by id,
                                  * when it is done and rows are in the table */
};

/* A row set as kernels receive it. */
struct row_set_view {
    const uint32_t *ids, *distinct, *distinct_ids, *distinct_starts, *order;
    const struct item *items; /* one for each piece of work */
    const struct item *longs; /* one for each row that has several pieces: its partial sums */
};

/* Returns the first place in ids[low..high), which rise, whose id is not below `id`. */
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
int cuda_in_file(const struct store *store); /* cold, and not readable by the GPU: the host's threads move its rows */
int cuda_has_cold(const struct backend_table *table);
uint64_t cuda_hot_rows(const struct backend_table *table); /* rows below this number are on the GPU in all stores */
char *cuda_home_of(const struct store *store);             /* for a cold store: the address on the host where row 0 would be */

/* ---- the set ---- */

int row_set_open(struct row_set *set, int side, int copies);
void row_set_close(struct backend *backend, struct row_set *set);
/* Allocates the arrays for this number of ids, except slots and staging, which their users grow. `what`: see gpu_grow(). */
int row_set_grow(struct backend *backend, struct row_set *set, uint64_t count, const char *what);
struct row_set_view row_set_view(const struct row_set *set);

/* Must be called before rows of the first `parts` stores change. It marks the stores that are files, whose rows must later be
 * landed. */
void row_set_changes(struct row_set *set, int parts);
/* Enqueues copying the distinct ids and the counts to the host; it has them when the stream has done this. */
int row_set_send(struct backend *backend, struct row_set *set, cudaStream_t stream);
/* Returns the number of cold rows, and their ids. The copy of row_set_send() must have finished. */
uint64_t row_set_cold(const struct row_set *set, const uint32_t **ids);
/* Reads the rows of store `part` from its file into staging, with the host's threads. Staging is grown to `capacity` rows. */
int row_set_read_file(struct backend *backend, struct row_set *set, int part, uint64_t capacity);
/* Copies the rows in staging, which the GPU has written, to their places in the file, with the host's threads. */
int row_set_land(struct backend *backend, struct row_set *set);

#endif
