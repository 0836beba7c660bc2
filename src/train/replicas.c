#include "replicas.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Measured on 16 million words (scripts/RESULTS.md): positions of all ranks between two exchanges of the rows that are named
 * most, how many those are, and how many such exchanges come to one of all rows. With two and a half times as many positions two
 * replicas lose quality. */
enum { POSITIONS = 480000, HOT_ROWS = 4096, PIECES_TO_ALL = 10 };
enum { PIECES_OF_EPOCH = 16 }; /* of a short corpus, at least */
enum { CHUNK_ROWS = 4096 };

/* A table's rows as floats: sgd has no state beside the weights. */
static uint64_t floats_of(const struct table *table) {
    return table->whole.packed / sizeof(float);
}

uint64_t replicas_bytes(uint64_t rows, uint64_t floats) {
    return (2 * rows + CHUNK_ROWS) * floats * sizeof(float);
}

int replicas_open(struct replicas *r, struct ranks *ranks, struct table *target, struct table *context) {
    *r = (struct replicas){.ranks = ranks, .tables = {target, context}};
    r->moved = mem_alloc(CHUNK_ROWS, target->whole.packed, "what rows have moved by");
    for (int side = 0; side < 2 && r->moved; side++) {
        struct table *table = r->tables[side];
        r->base[side] = mem_alloc(table->spec.rows, table->whole.packed, "rows of all replicas");
        if (!r->base[side] || table->ops->table_read(table->backend, table->store, 0, table->spec.rows, r->base[side])) return -1;
    }
    return r->moved ? 0 : -1;
}

void replicas_close(struct replicas *r) {
    free(r->base[0]);
    free(r->base[1]);
    free(r->moved);
    *r = (struct replicas){.ranks = NULL};
}

uint64_t replicas_piece(uint64_t examples_per_epoch) {
    uint64_t part = (examples_per_epoch + PIECES_OF_EPOCH - 1) / PIECES_OF_EPOCH;
    return part < POSITIONS ? part : POSITIONS;
}

/* ---- exchanging ---- */

/* Rows [first, first + count), whose base and new values are the sum of all that moved them. */
static int exchange_chunk(struct replicas *r, int side, uint64_t first, uint64_t count) {
    struct table *table = r->tables[side];
    uint64_t floats = floats_of(table), values = count * floats;
    float *base = r->base[side] + first * floats;
    int result = table->ops->table_read(table->backend, table->store, first, count, r->moved);
    if (ranks_meet(r->ranks, NULL, result)) return -1;
    for (uint64_t i = 0; i < values; i++) r->moved[i] -= base[i];
    result = ranks_sum(r->ranks, r->moved, values);
    for (uint64_t i = 0; i < values; i++)
        if (r->moved[i] != 0) base[i] += r->moved[i]; /* what has not moved stays as it is, -0 too */
    return result ? result : table->ops->table_write(table->backend, table->store, first, count, base);
}

/* Ids are ranks of frequency: the first rows are those that are named most. */
static int exchange(struct replicas *r, uint64_t rows) {
    int result = 0;
    for (int side = 0; side < 2; side++) {
        uint64_t end = rows < r->tables[side]->spec.rows ? rows : r->tables[side]->spec.rows;
        for (uint64_t first = 0; first < end && !result; first += CHUNK_ROWS)
            result = exchange_chunk(r, side, first, end - first < CHUNK_ROWS ? end - first : CHUNK_ROWS);
    }
    return ranks_meet(r->ranks, NULL, result);
}

int replicas_settle(struct replicas *r) {
    if (!r->ranks || !r->pieces) return 0;
    r->pieces = 0;
    return exchange(r, UINT64_MAX);
}

/* ---- training ---- */

/* A rank's share of a piece. */
struct share {
    struct backend *backend;
    const struct backend_ops *ops;
    struct hogwild_request request;
    struct hogwild_result result;
};

static struct share share_of(const struct replicas *r, const struct hogwild_request *all) {
    struct share share = {.backend = r->tables[0]->backend, .ops = r->tables[0]->ops, .request = *all};
    double slope = all->count ? (all->lr_last - all->lr_first) / (double)all->count : 0;
    uint64_t first, end;
    pool_share(all->count, r->ranks->number, r->ranks->count, &first, &end);
    share.request.first += first;
    share.request.count = end - first;
    share.request.global_step += first;
    share.request.lr_first = all->lr_first + slope * (double)first;
    share.request.lr_last = all->lr_first + slope * (double)end;
    return share;
}

static int train_share(void *user) {
    struct share *share = user;
    return share->request.count ? share->ops->hogwild(share->backend, &share->request, &share->result) : 0;
}

static void add(struct hogwild_result *sum, const struct hogwild_result *one) {
    sum->words += one->words;
    sum->examples += one->examples;
    sum->pairs += one->pairs;
    sum->loss += one->loss;
    sum->sampled_examples += one->sampled_examples;
    sum->sampled_pairs += one->sampled_pairs;
    sum->sampled_terms += one->sampled_terms;
    sum->link_bytes += one->link_bytes;
}

int replicas_train(struct replicas *r, const struct hogwild_request *request, struct hogwild_result *result) {
    struct hogwild_result all[r->ranks->count];
    struct share share = share_of(r, request);
    if (ranks_do(r->ranks, train_share, &share)) return -1;
    ranks_exchange(r->ranks, &share.result, all, sizeof *all);
    *result = (struct hogwild_result){0};
    for (unsigned rank = 0; rank < r->ranks->count; rank++) add(result, &all[rank]);
    if (++r->pieces >= PIECES_TO_ALL) return replicas_settle(r);
    return exchange(r, HOT_ROWS);
}
