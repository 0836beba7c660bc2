#include "kernels/ranks.h"

#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COLUMN_GRAIN = 4,        /* what records are filled up to */
    SUMMED_AT_ONCE = 1 << 20, /* floats: what ranks_sum() keeps beside them is as much */
    PATIENCE = 3             /* seconds that a rank which fails waits for the others to agree */
};

/* What a rank says when it fails, as the others get it. */
struct last_words {
    char sentence[3072], host[256];
};

static int is_alone(const struct ranks *ranks) {
    return ranks_count(ranks) == 1;
}

/* ---- who owns which columns ---- */

struct columns ranks_columns(uint32_t dim, unsigned count, unsigned number) {
    uint64_t first, end, groups = (dim + COLUMN_GRAIN - 1) / COLUMN_GRAIN, grain = groups < count ? 1 : COLUMN_GRAIN;
    pool_share(groups < count ? dim : groups, number, count, &first, &end);
    first *= grain;
    end = end * grain < dim ? end * grain : dim;
    return (struct columns){(uint32_t)first, (uint32_t)(end - first)};
}

/* ---- agreeing ---- */

static struct last_words own_words(void) {
    struct last_words words = {{0}, {0}};
    snprintf(words.sentence, sizeof words.sentence, "%s", report_sentence());
    if (gethostname(words.host, sizeof words.host - 1)) words.host[0] = 0;
    return words;
}

static void name_rank(char *text, size_t capacity, const struct ranks *ranks, unsigned number, const char *host) {
    snprintf(text, capacity, "rank %u of %u, on %s: ", number, ranks->count, *host ? host : "a machine without a name");
}

/* For a rank that fails while the others wait for it elsewhere, in a sum. */
static void end_all(const struct ranks *ranks, int code) {
    struct last_words words = own_words();
    char name[320];
    name_rank(name, sizeof name, ranks, ranks->number, words.host);
    report_dying(name, words.sentence, "");
    group_ops.end(ranks->group, code);
}

/* The sentence of rank `from` becomes everyone's. The first rank is the one that speaks: what is wrong with it needs no name. */
static int fail_together(struct ranks *ranks, unsigned from) {
    struct last_words words = own_words();
    char name[320] = "";
    group_ops.share(ranks->group, from, &words, sizeof words);
    if (from) name_rank(name, sizeof name, ranks, from, words.host);
    report_clear();
    ranks->over = 1;
    return ranks->codes[from] == 2 ? fail_usage("%s%s", name, words.sentence) : fail("%s%s", name, words.sentence);
}

int ranks_agree(struct ranks *ranks, int result) {
    if (is_alone(ranks)) return result;
    if (ranks->over) return -1;
    int code = !result ? 0 : report_exit_code() ? report_exit_code() : 1;
    if (group_ops.tell(ranks->group, code, ranks->codes, code ? PATIENCE : 0)) end_all(ranks, code);
    for (unsigned r = 0; r < ranks->count; r++)
        if (ranks->codes[r]) return fail_together(ranks, r);
    return 0;
}

/* ---- joining and leaving ---- */

int ranks_launched(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (int i = 0; i < 3; i++)
        if (getenv(names[i])) return 1;
    return 0;
}

int ranks_open(struct ranks *ranks) {
    struct group_place place;
    *ranks = (struct ranks){.count = 1, .local = 1};
    if (group_ops.open(&ranks->group, &place)) return -1;
    ranks->number = place.number;
    ranks->count = place.count;
    ranks->local = place.local;
    ranks->place = place.place;
    ranks->cores = place.cores;
    if (is_alone(ranks)) return 0;
    if (!ranks_first(ranks)) report_mute();
    ranks->codes = mem_alloc(place.count, sizeof *ranks->codes, "ranks");
    if (!ranks->codes) end_all(ranks, 1); /* it cannot even agree */
    return 0;
}

/* mpirun ends all that are left once one has ended with an error, so the first rank says its sentence before any of them ends. */
static void say_before_the_end(struct ranks *ranks) {
    if (ranks_first(ranks)) report_last();
    report_mute();
    unsigned none;
    group_ops.any(ranks->group, 0, &none, 0);
}

void ranks_close(struct ranks *ranks) {
    if (ranks->over) say_before_the_end(ranks);
    if (ranks->group) group_ops.close(ranks->group);
    free(ranks->codes);
    free(ranks->parts);
    *ranks = (struct ranks){.count = 1, .local = 1};
}

/* ---- waiting within bounds ---- */

/* late: a call took longer than ranks->patience. There is nothing to go on with: all are ended, and the rank is named. */
static void end_if(struct ranks *ranks, int late) {
    if (!late) return;
    unsigned r = group_ops.missing(ranks->group, PATIENCE);
    if (r < ranks->count)
        fail("rank %u of %u did not come with its part of a step within %u s (device.rank_timeout): its process hangs", r,
             ranks->count, ranks->patience);
    else
        fail("ranks waited for one another for more than %u s (device.rank_timeout)", ranks->patience);
    end_all(ranks, 1);
}

/* ---- sums ---- */

/* Where each rank's share of `count` values lies. */
static void share_out(const struct ranks *ranks, uint64_t count, int *counts, int *at) {
    for (unsigned r = 0; r < ranks->count; r++) {
        uint64_t first, end;
        pool_share(count, r, ranks->count, &first, &end);
        at[r] = (int)first;
        counts[r] = (int)(end - first);
    }
}

/* Each rank adds up its share of the values, and gives it to all: two thirds of what sending everything to everyone moves with
 * three ranks, a quarter with eight. */
static void sum_piece(struct ranks *ranks, float *values, uint64_t count) {
    int *counts = group_ops.counts(ranks->group), *at = counts + ranks->count;
    share_out(ranks, count, counts, at);
    uint64_t own = (uint64_t)counts[ranks->number];
    float *sum = values + at[ranks->number];
    end_if(ranks, group_ops.spread(ranks->group, values, counts, at, ranks->parts, ranks->patience));
    memcpy(sum, ranks->parts, own * sizeof *sum);
    for (unsigned r = 1; r < ranks->count; r++) {
        const float *part = ranks->parts + r * own;
        for (uint64_t i = 0; i < own; i++) sum[i] += part[i];
    }
    end_if(ranks, group_ops.collect(ranks->group, values, counts, at, ranks->patience));
}

int ranks_sum(struct ranks *ranks, float *values, uint64_t count) {
    if (is_alone(ranks) || !count) return 0;
    uint64_t most = SUMMED_AT_ONCE + ranks->count; /* shares are not all of one size */
    if (mem_reserve(&ranks->parts, &ranks->part_capacity, most, sizeof *ranks->parts, "sums over ranks")) return -1;
    for (uint64_t first = 0; first < count; first += SUMMED_AT_ONCE)
        sum_piece(ranks, values + first, count - first < SUMMED_AT_ONCE ? count - first : SUMMED_AT_ONCE);
    return 0;
}

/* ---- the rest ---- */

void ranks_exchange(struct ranks *ranks, const void *own, void *all, uint64_t size) {
    uint64_t sizes[ranks_count(ranks)];
    for (unsigned r = 0; r < ranks_count(ranks); r++) sizes[r] = size;
    ranks_gather(ranks, own, ranks_first(ranks) ? all : NULL, sizes);
    ranks_share(ranks, all, size * ranks_count(ranks));
}

unsigned ranks_any(struct ranks *ranks, unsigned bits) {
    unsigned all = bits;
    if (!is_alone(ranks)) end_if(ranks, group_ops.any(ranks->group, bits, &all, ranks->patience));
    return all;
}

void ranks_share(struct ranks *ranks, void *bytes, uint64_t size) {
    if (!is_alone(ranks)) group_ops.share(ranks->group, 0, bytes, size);
}

void ranks_gather(struct ranks *ranks, const void *own, void *all, const uint64_t *sizes) {
    if (is_alone(ranks)) {
        memcpy(all, own, sizes[0]);
        return;
    }
    int *counts = group_ops.counts(ranks->group), *at = counts + ranks->count, end = 0;
    for (unsigned r = 0; r < ranks->count; r++) {
        counts[r] = (int)sizes[r];
        at[r] = end;
        end += counts[r];
    }
    /* The others wait for the first one's disk. */
    end_if(ranks, group_ops.gather(ranks->group, own, all, counts, at, ranks_first(ranks) ? ranks->patience : 0));
}
