#include "replicas.h"

#include "base/pool.h"
#include "base/progress.h"
#include "kernels/hogwild.h"

/* Measured on 16 million words (scripts/RESULTS.md): positions of all ranks between two exchanges of the rows that are named
 * most, how many those are, and how many such exchanges come to one of all rows. With two and a half times as many positions two
 * replicas lose quality. */
enum { POSITIONS = 480000, HOT_ROWS = 4096, PIECES_TO_ALL = 10 };
enum { PIECES_OF_EPOCH = 16 }; /* of a short corpus, at least */
static const double call_seconds = 0.25; /* signals and clocks are looked at between calls */

/* What all ranks train between two exchanges. */
static uint64_t piece_of(uint64_t examples_per_epoch) {
    uint64_t part = (examples_per_epoch + PIECES_OF_EPOCH - 1) / PIECES_OF_EPOCH;
    return part < POSITIONS ? part : POSITIONS;
}

int replicas_open(struct replicas *r, struct ranks *ranks, const struct table *target, const struct table *context,
                  uint64_t examples_per_epoch) {
    const struct backend_ops *ops = target->ops;
    *r = (struct replicas){.ranks = ranks,
                           .ops = ops,
                           .backend = target->backend,
                           .store = {target->store, context->store},
                           .piece = piece_of(examples_per_epoch),
                           .merges = 1};
    return ops->replica_open(r->backend, r->store[0]) || ops->replica_open(r->backend, r->store[1]) ? -1 : 0;
}

uint64_t replicas_at_once(const struct replicas *r) {
    return r->merges * r->piece;
}

/* ---- exchanging ---- */

static int merge(struct replicas *r, uint64_t rows) {
    return r->ops->replica_merge(r->backend, r->store[0], r->store[1], rows);
}

/* Ids are ranks of frequency: the first rows are those that are named most. */
static int merge_when_due(struct replicas *r) {
    int all = ++r->pieces == PIECES_TO_ALL;
    if (all) r->pieces = 0;
    return merge(r, all ? UINT64_MAX : HOT_ROWS);
}

int replicas_settle(struct replicas *r) {
    if (!r->ranks || !r->pieces) return 0;
    r->pieces = 0;
    return ranks_meet(r->ranks, NULL, merge(r, UINT64_MAX));
}

/* ---- training ---- */

/* Examples [from, to) of a request as one of their own. */
static struct hogwild_request cut(const struct hogwild_request *all, uint64_t from, uint64_t to) {
    struct hogwild_request part = *all;
    double slope = all->count ? (all->lr_last - all->lr_first) / (double)all->count : 0;
    part.first += from;
    part.count = to - from;
    part.global_step += from;
    part.lr_first = all->lr_first + slope * (double)from;
    part.lr_last = all->lr_first + slope * (double)to;
    return part;
}

/* This rank's share of a piece, and what its shares have come to. */
struct share {
    struct replicas *replicas;
    struct hogwild_request request;
    struct hogwild_result sum;
    double training, all; /* seconds */
};

static int train_share(void *user) {
    struct share *share = user;
    struct replicas *r = share->replicas;
    struct hogwild_result result = {0};
    double began = progress_now();
    if (share->request.count && r->ops->hogwild(r->backend, &share->request, &result)) return -1;
    share->training += progress_now() - began;
    hogwild_add(&share->sum, &result);
    return 0;
}

static void take_share(struct share *share, const struct hogwild_request *all, uint64_t from) {
    const struct replicas *r = share->replicas;
    uint64_t left = all->count - from, first, end;
    pool_share(left < r->piece ? left : r->piece, r->ranks->number, r->ranks->count, &first, &end);
    share->request = cut(all, from + first, from + end);
}

/* The processes meet before the first exchange and after the last; between them the exchanges themselves wait for the others. */
static int train_shares(struct share *share, const struct hogwild_request *request) {
    struct replicas *r = share->replicas;
    double began = progress_now();
    take_share(share, request, 0);
    if (ranks_do(r->ranks, train_share, share)) return -1;
    int failed = merge_when_due(r);
    for (uint64_t from = r->piece; from < request->count && !failed; from += r->piece) {
        take_share(share, request, from);
        failed = train_share(share) || merge_when_due(r);
    }
    share->all = progress_now() - began;
    r->exchanging += share->all - share->training;
    return ranks_meet(r->ranks, NULL, failed ? -1 : 0);
}

/* By the slowest rank's clock, after a call that was not cut short. */
static void settle_merges(struct replicas *r, uint64_t count, double seconds) {
    if (count < replicas_at_once(r)) return;
    if (seconds > 2 * call_seconds && r->merges > 1) r->merges /= 2;
    if (seconds < call_seconds / 2 && r->merges < r->ops->replica_merges) r->merges *= 2;
}

int replicas_train(struct replicas *r, const struct hogwild_request *request, struct hogwild_result *result) {
    struct share all[r->ranks->count], share = {.replicas = r};
    double slowest = 0;
    if (train_shares(&share, request)) return -1;
    ranks_exchange(r->ranks, &share, all, sizeof share);
    r->link_bytes += share.sum.link_bytes;
    *result = (struct hogwild_result){0};
    for (unsigned rank = 0; rank < r->ranks->count; rank++) {
        hogwild_add(result, &all[rank].sum);
        if (all[rank].all > slowest) slowest = all[rank].all;
    }
    settle_merges(r, request->count, slowest);
    return 0;
}
