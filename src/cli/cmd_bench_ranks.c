/* `bench ranks`: measures the steps of a run on several ranks, which mpirun began. */
#include "cmd_bench.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "kernels/ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The measurements of one rank, which the first rank collects. */
struct share {
    char device[128];
    uint32_t columns;
    uint64_t gpu_bytes, host_bytes, link_bytes;
    double seconds, loading, phase[PHASES];
};

static struct share share_of(const struct bench_training *t, const struct ranks *ranks) {
    uint32_t grain = record_grain(&t->plan.layout);
    struct share share = {.columns = ranks_columns(t->plan.dim, grain, ranks->count, ranks->number).count,
                          .gpu_bytes = t->machine.gpu_used,
                          .host_bytes = t->machine.host_used,
                          .link_bytes = t->link_bytes,
                          .seconds = t->seconds,
                          .loading = t->loading};
    snprintf(share.device, sizeof share.device, "%s", t->machine.name);
    memcpy(share.phase, t->phase, sizeof share.phase);
    return share;
}

/* Returns the share of a step's time that is spent waiting for other ranks: 1 - (time of a step without waiting / time of a
 * step). Returns 0 for a single rank, for which steps without waiting are not measured. */
static double exchange_share(const struct share *share) {
    double step = share->phase[PHASE_STEP], apart = share->phase[PHASE_ALONE];
    return apart > 0 && step > apart ? (step - apart) / step : 0;
}

/* Returns the seconds of the slowest rank: all ranks do the same steps at the same time. */
static double run_seconds(const struct share *shares, unsigned count) {
    double most = 0;
    for (unsigned r = 0; r < count; r++)
        if (shares[r].seconds > most) most = shares[r].seconds;
    return most;
}

static void print_json(const struct bench_training *t, const struct share *shares, unsigned count) {
    double seconds = run_seconds(shares, count);
    char loss[JSON_NUMBER];
    printf("{\"bench\": \"ranks\", \"update\": \"%s\", \"ranks\": %u, \"rows\": %" PRIu64
           ", \"dim\": %u, \"batch\": %" PRIu64 ", \"hot_rows\": %" PRIu64 ", \"seconds\": %.6g, \"steps\": %" PRIu64
           ", \"pairs_per_second\": %.6g, \"words_per_second\": %.6g, \"loss_pair\": %s, \"by_rank\": [",
           t->hogwild ? "hogwild" : "batch", count, t->plan.rows, t->plan.dim, t->plan.batch, t->plan.hot_rows, seconds,
           t->steps, (double)t->pairs / seconds, (double)t->words / seconds, json_of(loss, t->loss_pair));
    for (unsigned r = 0; r < count; r++) {
        const struct share *s = &shares[r];
        printf("%s{\"columns\": %u, \"gpu_bytes\": %" PRIu64 ", \"host_bytes\": %" PRIu64 ", \"link_bytes\": %" PRIu64
               ", \"loading_seconds\": %.4g, \"seconds\": %.6g",
               r ? ", " : "", s->columns, s->gpu_bytes, s->host_bytes, s->link_bytes, s->loading, s->seconds);
        if (t->phase_steps)
            printf(", \"make_batch_seconds\": %.6g, \"step_seconds\": %.6g, \"step_apart_seconds\": %.6g",
                   s->phase[PHASE_MAKE], s->phase[PHASE_STEP], s->phase[PHASE_ALONE]);
        putchar('}');
    }
    printf("]}\n");
}

/* Prints the time of each phase of a step, for update = batch. */
static void print_phases(const struct share *shares, unsigned count) {
    char a[TEXT_BYTES], b[TEXT_BYTES];
    printf("\na step's parts one after the other, in ms, nothing overlapped; exchange: what waiting for others adds to the step\n");
    printf("rank  columns         GPU        host   loading  make_batch     step  exchange  link GB/s\n");
    for (unsigned r = 0; r < count; r++) {
        const struct share *s = &shares[r];
        printf("%4u  %7u  %10s  %10s  %6.2f s  %10.3f %8.3f   %6.1f%%  %9.1f\n", r, s->columns, text_of_bytes(a, s->gpu_bytes),
               text_of_bytes(b, s->host_bytes), s->loading, s->phase[PHASE_MAKE] * 1e3, s->phase[PHASE_STEP] * 1e3,
               100 * exchange_share(s), (double)s->link_bytes / s->seconds / 1e9);
    }
}

static void print_table(const struct bench_training *t, const struct share *shares, unsigned count) {
    char a[TEXT_BYTES], b[TEXT_BYTES];
    double seconds = run_seconds(shares, count);
    printf("ranks      %u, %s each\n", count, shares[0].device);
    if (t->hogwild)
        printf("update     hogwild, %s calls in %.2f s\n", text_of_count(a, t->steps), seconds);
    else
        printf("update     batch of %s, %s steps in %.2f s, %.3f ms each\n", text_of_count(a, t->plan.batch),
               text_of_count(b, t->steps), seconds, seconds / (double)t->steps * 1e3);
    printf("pairs/s    %s\n", text_of_rate(a, (double)t->pairs / seconds));
    if (t->words) printf("words/s    %s\n", text_of_rate(a, (double)t->words / seconds));
    printf("loss       %.4f a pair\n", t->loss_pair);
    if (t->phase_steps) print_phases(shares, count);
}

static int tell(const struct bench_call *call, struct ranks *ranks, const struct bench_training *training) {
    struct share own = share_of(training, ranks), *shares = mem_alloc(ranks->count, sizeof *shares, "measurements of ranks");
    if (ranks_agree(ranks, shares ? 0 : -1)) {
        free(shares);
        return -1;
    }
    ranks_exchange(ranks, &own, shares, sizeof own);
    if (ranks_first(ranks)) (call->json ? print_json : print_table)(training, shares, ranks->count);
    free(shares);
    return 0;
}

/* Called by every rank; only the first one prints. */
static int measure(const struct bench_call *call, const struct bench_length *length, const struct arguments *arguments) {
    struct bench_training training;
    struct config config = {.name = NULL};
    struct ranks ranks;
    int result = command_ranks(&ranks, call->name);
    if (!result) result = ranks_agree(&ranks, arguments_config(&config, ranks.count, call->config_path, arguments));
    if (!result) result = ranks_agree(&ranks, bench_train(&training, &config, length->seconds, length->steps, &ranks));
    if (!result) result = tell(call, &ranks, &training);
    config_release(&config);
    ranks_close(&ranks);
    return result;
}

int cmd_bench_ranks(int argc, char **argv) {
    struct bench_call call = {.argc = argc, .argv = argv, .name = "bench ranks"};
    struct bench_length length;
    struct arguments arguments;
    int result = bench_run_arguments(&arguments, &call, &length);
    if (!result) result = measure(&call, &length, &arguments);
    arguments_release(&arguments);
    return result;
}
