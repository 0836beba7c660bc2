#include "agree.h"

#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "group.h"
#include "join.h"

#include <stdlib.h>
#include <string.h>

enum { SUMMED_AT_ONCE = 1 << 20 }; /* floats in one message; ranks_sum() has a buffer of the same size */

/* ---- who owns which columns ---- */

struct columns ranks_columns(uint32_t dim, uint32_t group, unsigned count, unsigned number) {
    uint64_t first, end, groups = (dim + group - 1) / group, grain = groups < count ? 1 : group;
    pool_share(groups < count ? dim : groups, number, count, &first, &end);
    first *= grain;
    end = end * grain < dim ? end * grain : dim;
    return (struct columns){(uint32_t)first, (uint32_t)(end - first)};
}

/* ---- joining and leaving ---- */

int ranks_launched(void) {
    return join_place().launched;
}

static int open_ranks(struct ranks *ranks, const char *what) {
    struct group_place place;
    if (group_open(&ranks->group, &ranks->calls, &place)) return -1;
    ranks->number = place.number;
    ranks->count = place.count;
    ranks->local = place.local;
    ranks->place = place.place;
    ranks->cores = place.cores;
    if (is_alone(ranks)) return 0;
    if (!ranks_first(ranks)) report_mute();
    ranks->codes = mem_alloc(place.count, sizeof *ranks->codes, "ranks");
    if (!ranks->codes) agree_on_nothing(ranks, 1); /* without memory this rank cannot even agree */
    return join_alike(ranks, what);
}

int ranks_open(struct ranks *ranks, const char *what) {
    struct join join;
    *ranks = (struct ranks){.count = 1, .local = 1, .patience = RANKS_START_SECONDS};
    join_begin(&join, what);
    int result = open_ranks(ranks, what);
    join_end(&join);
    return result;
}

void ranks_patience(struct ranks *ranks, uint64_t seconds, int steps) {
    if (!ranks) return;
    ranks->steps = steps;
    ranks->patience = (unsigned)(seconds && !steps && seconds < RANKS_START_SECONDS ? RANKS_START_SECONDS : seconds);
}

/* Once a rank has ended with an error, mpirun ends all others; so the first rank prints its message before any rank ends. */
static void say_before_the_end(struct ranks *ranks) {
    if (ranks_first(ranks)) report_last();
    report_mute();
    unsigned none;
    if (ranks->calls->any(ranks->group, 0, &none, ranks->patience)) ranks->calls->end(ranks->group, 1);
}

void ranks_close(struct ranks *ranks) {
    if (ranks->over) say_before_the_end(ranks);
    if (ranks->group) ranks->calls->close(ranks->group);
    free(ranks->codes);
    free(ranks->parts);
    *ranks = (struct ranks){.count = 1, .local = 1};
}

/* ---- sums ---- */

static const char step[] = "a step"; /* for messages: the work for which a late rank should have sent its values */

/* Computes the offset and the size, in bytes, of each rank's share of `count` floats. */
static void share_out(const struct ranks *ranks, uint64_t count, int *counts, int *at) {
    for (unsigned r = 0; r < ranks->count; r++) {
        uint64_t first, end;
        pool_share(count, r, ranks->count, &first, &end);
        at[r] = (int)(first * sizeof(float));
        counts[r] = (int)((end - first) * sizeof(float));
    }
}

/* Each rank sums its share of the values and sends it to all. If every rank sent everything to all, three ranks would send half
 * as much again, eight ranks four times as much. */
static void sum_piece(struct ranks *ranks, float *values, uint64_t count) {
    int *counts = ranks->calls->counts(ranks->group), *at = counts + ranks->count, *come = at + ranks->count,
        *where = come + ranks->count;
    share_out(ranks, count, counts, at);
    int own = counts[ranks->number];
    for (unsigned r = 0; r < ranks->count; r++) come[r] = own, where[r] = (int)r * own;
    float *sum = values + (uint64_t)at[ranks->number] / sizeof(float);
    uint64_t floats = (uint64_t)own / sizeof(float);
    agree_in_time(
        ranks, ranks->calls->swap(ranks->group, values, counts, at, ranks->parts, come, where, ranks->patience), step);
    memcpy(sum, ranks->parts, (uint64_t)own);
    for (unsigned r = 1; r < ranks->count; r++) {
        const float *part = ranks->parts + r * floats;
        for (uint64_t i = 0; i < floats; i++) sum[i] += part[i];
    }
    agree_in_time(ranks, ranks->calls->collect(ranks->group, values, counts, at, ranks->patience), step);
}

int ranks_sum(struct ranks *ranks, float *values, uint64_t count) {
    if (is_alone(ranks) || !count) return 0;
    uint64_t most = SUMMED_AT_ONCE + ranks->count; /* shares differ in size */
    if (mem_reserve(&ranks->parts, &ranks->part_capacity, most, sizeof *ranks->parts, "sums over ranks")) return -1;
    for (uint64_t first = 0; first < count; first += SUMMED_AT_ONCE)
        sum_piece(ranks, values + first, count - first < SUMMED_AT_ONCE ? count - first : SUMMED_AT_ONCE);
    return 0;
}

/* ---- rows and bytes ---- */

void ranks_exchange(struct ranks *ranks, const void *own, void *all, uint64_t size) {
    uint64_t sizes[ranks_count(ranks)];
    for (unsigned r = 0; r < ranks_count(ranks); r++) sizes[r] = size;
    ranks_gather(ranks, own, ranks_first(ranks) ? all : NULL, sizes);
    ranks_share(ranks, all, size * ranks_count(ranks));
}

unsigned ranks_any(struct ranks *ranks, unsigned bits) {
    unsigned all = bits;
    if (!is_alone(ranks)) agree_in_time(ranks, ranks->calls->any(ranks->group, bits, &all, ranks->patience), step);
    return all;
}

void ranks_share(struct ranks *ranks, void *bytes, uint64_t size) {
    if (!is_alone(ranks))
        agree_in_time(ranks, ranks->calls->share(ranks->group, 0, bytes, size, ranks->patience), step);
}

/* Converts sizes to MPI's counts and offsets, one share behind the other. */
static void line_up(const struct ranks *ranks, const uint64_t *sizes, int *counts, int *at) {
    int end = 0;
    for (unsigned r = 0; r < ranks->count; r++) {
        counts[r] = (int)sizes[r];
        at[r] = end;
        end += counts[r];
    }
}

void ranks_gather(struct ranks *ranks, const void *own, void *all, const uint64_t *sizes) {
    if (is_alone(ranks)) {
        memcpy(all, own, sizes[0]);
        return;
    }
    int *counts = ranks->calls->counts(ranks->group), *at = counts + ranks->count;
    line_up(ranks, sizes, counts, at);
    agree_in_time(ranks, ranks->calls->gather(ranks->group, own, all, counts, at, ranks->patience), step);
}

void ranks_swap(struct ranks *ranks, const void *own, const uint64_t *sizes, void *others, const uint64_t *come) {
    if (is_alone(ranks)) {
        memcpy(others, own, sizes[0]);
        return;
    }
    int *counts = ranks->calls->counts(ranks->group), *at = counts + ranks->count, *counts_come = at + ranks->count,
        *where = counts_come + ranks->count;
    line_up(ranks, sizes, counts, at);
    line_up(ranks, come, counts_come, where);
    int late = ranks->calls->swap(ranks->group, own, counts, at, others, counts_come, where, ranks->patience);
    agree_in_time(ranks, late, "a step or a checkpoint");
}

void ranks_pass(struct ranks *ranks, unsigned from, unsigned to, void *bytes, uint64_t size) {
    if (is_alone(ranks) || from == to || (ranks->number != from && ranks->number != to)) return;
    agree_in_time(ranks, ranks->calls->pass(ranks->group, from, to, bytes, size, ranks->patience),
                  "a step or a checkpoint");
}
