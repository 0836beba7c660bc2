/* `bench train`: measures the speed of a configuration, and the phases of its step. */
#include "cmd_bench.h"

#include "base/json.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const phase_names[] = {"make_batch", "step"};

static double per_step(const struct bench_training *t, uint64_t count) {
    return t->steps ? (double)count / (double)t->steps : 0;
}

/* Returns the bytes that training moves in a second, divided by the bytes that plain copies move in a second on this machine.
 * For exact steps the plan says how many bytes a step moves. For lock-free training these are the bytes of the rows in all
 * examples, although the GPU's cache serves frequent rows. */
static double memory_share(const struct bench_training *t) {
    double bytes = t->hogwild ? (double)t->row_bytes : t->plan.memory_bytes * (double)t->steps;
    return t->limits.device > 0 ? bytes / t->seconds / t->limits.device : 0;
}
static double link_share(const struct bench_training *t) {
    return t->limits.both > 0 ? (double)t->link_bytes / t->seconds / t->limits.both : 0;
}

static void print_train_json(const struct bench_training *t) {
    char loss[JSON_NUMBER];
    printf("{\"bench\": \"train\", \"update\": \"%s\", \"rows\": %" PRIu64 ", \"dim\": %u, \"batch\": %" PRIu64
           ", \"hot_rows\": %" PRIu64 ", \"loading_seconds\": %.4g, \"seconds\": %.6g, \"steps\": %" PRIu64
           ", \"pairs\": %" PRIu64 ", \"words\": %" PRIu64
           ", \"pairs_per_second\": %.6g, \"words_per_second\": %.6g, \"loss_pair\": %s, \"link_bytes\": %" PRIu64
           ", \"gpu_bytes\": %" PRIu64 ", \"host_bytes\": %" PRIu64,
           t->hogwild ? "hogwild" : "batch", t->plan.rows, t->plan.dim, t->plan.batch, t->plan.hot_rows, t->loading,
           t->seconds, t->steps, t->pairs, t->words, (double)t->pairs / t->seconds, (double)t->words / t->seconds,
           json_of(loss, t->loss_pair), t->link_bytes, t->machine.gpu_used, t->machine.host_used);
    if (t->gpu) printf(", \"memory_share\": %.4g, \"link_share\": %.4g", memory_share(t), link_share(t));
    if (t->gpu && !t->hogwild) printf(", \"floor_pairs_per_second\": %.6g", t->plan.floor_pairs);
    if (t->hogwild) printf(", \"calling_seconds\": %.6g", t->calling);
    for (int i = 0; i < PHASE_ALONE && t->phase_steps; i++) printf(", \"%s_seconds\": %.6g", phase_names[i], t->phase[i]);
    printf("}\n");
}

static void print_phases(const struct bench_training *t) {
    double sum = 0;
    for (int i = 0; i < PHASE_ALONE; i++) sum += t->phase[i];
    printf("\na step's parts one after the other, nothing overlapped (%" PRIu64 " steps)\n", t->phase_steps);
    for (int i = 0; i < PHASE_ALONE; i++)
        printf("  %-10s %9.3f ms  %5.1f%%\n", phase_names[i], t->phase[i] * 1e3, sum > 0 ? 100 * t->phase[i] / sum : 0);
    printf("  %-10s %9.3f ms, overlapped %.3f\n", "sum", sum * 1e3, t->seconds / (double)t->steps * 1e3);
}

static void print_train(const struct bench_training *t) {
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
    printf("tables     %s rows x %u, %s of the GPU, %s of the host, %s rows hot\n", text_of_count(a, t->plan.rows),
           t->plan.dim, text_of_bytes(b, t->machine.gpu_used), text_of_bytes(c, t->machine.host_used),
           text_of_count((char[TEXT_BYTES]){0}, t->plan.hot_rows));
    printf("loading    %.2f s\n", t->loading);
    if (t->hogwild)
        printf("update     hogwild, %" PRIu64 " calls in %.2f s, %.1f%% of the time within them\n", t->steps,
               t->seconds, 100 * t->calling / t->seconds);
    else
        printf("update     batch of %s, %s steps in %.2f s, %.3f ms each\n", text_of_count(a, t->plan.batch),
               text_of_count(b, t->steps), t->seconds, t->seconds / (double)t->steps * 1e3);
    printf("pairs/s    %s\n", text_of_rate(a, (double)t->pairs / t->seconds));
    if (t->words) printf("words/s    %s\n", text_of_rate(a, (double)t->words / t->seconds));
    printf("loss       %.4f a pair\n", t->loss_pair);
    if (t->hogwild && t->gpu) {
        printf("memory     %s/s of rows read and written, %.1f%% of what copies reach; frequent rows come from the "
               "cache\n",
               text_of_bytes(a, (uint64_t)((double)t->row_bytes / t->seconds)), 100 * memory_share(t));
        printf("link       %s/s, %.1f%% of what copies reach both ways\n",
               text_of_bytes(a, (uint64_t)((double)t->link_bytes / t->seconds)), 100 * link_share(t));
    }
    if (!t->hogwild && t->gpu) {
        printf("memory     %s a step (planned), %.1f%% of what copies reach\n",
               text_of_bytes(a, (uint64_t)t->plan.memory_bytes), 100 * memory_share(t));
        printf("link       %s a step, %.1f%% of what copies reach both ways\n",
               text_of_bytes(a, (uint64_t)per_step(t, t->link_bytes)), 100 * link_share(t));
        printf("at most    %s pairs/s where moving rows took all the time; %.1f%% of that reached\n",
               text_of_rate(a, t->plan.floor_pairs),
               t->plan.floor_pairs > 0 ? 100 * (double)t->pairs / t->seconds / t->plan.floor_pairs : 0);
    }
    if (t->phase_steps) print_phases(t);
}

int cmd_bench_train(int argc, char **argv) {
    struct bench_call call = {.argc = argc, .argv = argv, .name = "bench train"};
    struct bench_length length;
    struct bench_training training;
    struct arguments arguments;
    struct config config = {.name = NULL};
    int result = bench_run_arguments(&arguments, &call, &length);
    if (!result) result = arguments_config(&config, 0, call.config_path, &arguments);
    if (!result) result = bench_train(&training, &config, length.seconds, length.steps, NULL);
    if (!result) {
        bench_print_head(&call, &training.machine, &training.limits, training.gpu);
        (call.json ? print_train_json : print_train)(&training);
    }
    config_release(&config);
    arguments_release(&arguments);
    return result;
}
