/* `bench`: measures the speed of copies, of training, of ranks, of walks and of reading, and the memory of a table. */

#include "commands.h"

#include "base/file.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "corpus/encode.h"
#include "corpus/graph.h"
#include "corpus/numbered.h"
#include "corpus/words.h"
#include "kernels/ranks.h"
#include "train/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A call of bench: its arguments, read by each kind of measurement and released by cmd_bench(). */
struct bench_call {
    int argc;
    char **argv;      /* argv[0] is "bench" */
    const char *name; /* the kind's name: "bench train" */
    int json;
    struct arguments arguments;
    struct config config;
    const char *config_path; /* path of the configuration file; NULL: none */
    double seconds;          /* how long a kind that trains measures */
    uint64_t steps;          /* number of steps; 0: as many as fit into `seconds` */
};

/* ---- arguments ---- */

/* Does the same as arguments_read(); other arguments may be the kind and one configuration file. */
static int bench_arguments(struct bench_call *call, const struct option *options, const char *sections) {
    if (arguments_read(&call->arguments, call->name, call->argc, call->argv, options, sections)) return -1;
    if (call->arguments.count > 2)
        return fail_usage("%s wants one configuration file, %d given; see 'sptx-w2v help bench'", call->name, call->arguments.count - 1);
    call->config_path = call->arguments.count == 2 ? call->arguments.given[1] : NULL;
    return 0;
}

static int bench_run_arguments(struct bench_call *call) {
    const char *seconds = NULL, *steps = NULL;
    const struct option options[] = {{.name = "json", .flag = &call->json},
                                     {.name = "seconds", .text = &seconds},
                                     {.name = "steps", .text = &steps},
                                     {0}};
    call->seconds = 10;
    if (bench_arguments(call, options, ANY_SECTION)) return -1;
    if (arguments_number("bench", "steps", steps, 1, (uint64_t)1 << 48, &call->steps)) return -1;
    if (seconds && (text_time(seconds, &call->seconds) || !(call->seconds > 0)))
        return fail_usage("bench: --seconds = '%s' is not a time", seconds);
    return 0;
}

static int bench_config(struct bench_call *call) {
    return arguments_config(&call->config, 0, call->config_path, &call->arguments);
}

/* ---- the head of a result ---- */

static void print_json_head(const struct bench_call *call, const struct backend_info *machine, const struct bench_limits *limits,
                            int gpu, const char *date) {
    ENDED_BY(json_release) struct json command = {.used = 0}, head = {.used = 0};
    json_print(&command, "sptx-w2v");
    for (int i = 0; i < call->argc; i++) json_print(&command, " %s", call->argv[i]);
    json_print(&head, "{\"bench\": \"%s\", \"command\": ", call->name + sizeof "bench");
    if (!command.failed) json_string(&head, command.bytes, command.used);
    json_print(&head, ", \"device\": ");
    json_string(&head, machine->name, strlen(machine->name));
    json_print(&head, ", \"link\": ");
    json_string(&head, machine->link, strlen(machine->link));
    json_print(&head, ", \"date\": \"%s\"", date);
    if (gpu)
        json_print(&head,
                   ", \"host_rows\": \"%s\", \"copy_to\": %.4g, \"copy_from\": %.4g, \"copy_both\": %.4g, \"copy_device\": %.4g",
                   machine->managed ? "managed" : "pinned", limits->to, limits->from, limits->both, limits->device);
    json_print(&head, "}");
    if (!command.failed && !head.failed) puts(head.bytes);
}

/* Prints the head of a measurement: command, device, date; with `gpu` also the speed of plain copies. */
static void bench_print_head(const struct bench_call *call, const struct backend_info *machine, const struct bench_limits *limits,
                       int gpu) {
    char date[32] = "", free_text[TEXT_BYTES];
    time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (call->json) {
        print_json_head(call, machine, limits, gpu, date);
        return;
    }
    printf("command    sptx-w2v");
    for (int i = 0; i < call->argc; i++) printf(" %s", call->argv[i]);
    printf("\ndevice     %s%s%s, %s of host memory available\ndate       %s\n", machine->name,
           *machine->link ? ", " : "", machine->link, text_of_bytes(free_text, mem_available()), date);
    if (gpu)
        printf("copies     to the GPU %.1f, from it %.1f, both at once %.1f, inside it (read and written) %.0f GB/s\n"
               "host rows  %s\n",
               limits->to / 1e9, limits->from / 1e9, limits->both / 1e9, limits->device / 1e9,
               machine->managed ? "managed memory" : "pinned memory");
    putchar('\n');
}

/* `bench memory`: measures what a table takes. */

static int bench_memory_kind(struct bench_call *call) {
    const char *rows_text = NULL, *dim_text = NULL;
    const struct option options[] = {{.name = "json", .flag = &call->json},
                                     {.name = "rows", .text = &rows_text},
                                     {.name = "dim", .text = &dim_text},
                                     {0}};
    uint64_t rows = 10000000, dim = 128;
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES], d[TEXT_BYTES], e[TEXT_BYTES];
    struct bench_memory m;
    struct bench bench;
    if (bench_arguments(call, options, "device, memory") || bench_config(call) ||
        arguments_number("bench", "rows", rows_text, 1, WORDS_MOST, &rows) ||
        arguments_number("bench", "dim", dim_text, 1, COLUMNS_MOST, &dim))
        return -1;
    int result = bench_open(&bench, &call->config) || bench_memory(&bench, rows, (uint32_t)dim, &m) ? -1 : 0;
    if (!result) bench_print_head(call, &bench.machine, &bench.limits, bench.ops->has_gpu);
    if (!result && call->json)
        printf("{\"bench\": \"memory\", \"rows\": %" PRIu64 ", \"dim\": %" PRIu64 ", \"payload_bytes\": %" PRIu64
               ", \"host_bytes\": %" PRIu64 ", \"gpu_bytes\": %" PRIu64 ", \"resident_bytes\": %" PRIu64 ", \"opening_seconds\": %.4g}\n",
               m.rows, m.dim, m.payload, m.host_bytes, m.gpu_bytes, m.resident, m.opening);
    else if (!result)
        printf("table      %s rows x %" PRIu64 " float32 = %s, held after %.2f s\nhost       %s by the backend, %s resident\ngpu        %s\n",
               text_of_count(a, m.rows), m.dim, text_of_bytes(b, m.payload), m.opening, text_of_bytes(c, m.host_bytes),
               text_of_bytes(d, m.resident), text_of_bytes(e, m.gpu_bytes));
    bench_close(&bench);
    return result;
}

/* `bench ranks`: measures the steps of a run on several ranks, which mpirun began. */

/* What one rank has measured, collected by the first rank. */
struct share {
    char device[128];
    uint32_t columns;
    uint64_t gpu_bytes, host_bytes, link_bytes;
    double seconds, loading, phase[PHASES];
};

/* Returns the seconds of the slowest rank, since all ranks do the same steps at the same time. */
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
static void print_shares(const struct share *shares, unsigned count) {
    char a[TEXT_BYTES], b[TEXT_BYTES];
    printf("\na step's parts one after the other, in ms, nothing overlapped; exchange: what waiting for others adds to the step\n");
    printf("rank  columns         GPU        host   loading  make_batch     step  exchange  link GB/s\n");
    for (unsigned r = 0; r < count; r++) {
        const struct share *s = &shares[r];
        double step = s->phase[PHASE_STEP], apart = s->phase[PHASE_ALONE]; /* apart: a step without waiting for other ranks; 0: not measured, since
                                                                            * there is one rank */
        printf("%4u  %7u  %10s  %10s  %6.2f s  %10.3f %8.3f   %6.1f%%  %9.1f\n", r, s->columns, text_of_bytes(a, s->gpu_bytes),
               text_of_bytes(b, s->host_bytes), s->loading, s->phase[PHASE_MAKE] * 1e3, step * 1e3,
               apart > 0 && step > apart ? 100 * (step - apart) / step : 0, (double)s->link_bytes / s->seconds / 1e9);
    }
}

static void print_ranks(const struct bench_training *t, const struct share *shares, unsigned count) {
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
    if (t->phase_steps) print_shares(shares, count);
}

static int tell(const struct bench_call *call, struct ranks *ranks, const struct bench_training *t) {
    struct share own = {.columns = record_columns(&t->plan.whole, ranks->count, ranks->number).count,
                        .gpu_bytes = t->machine.gpu_used,
                        .host_bytes = t->machine.host_used,
                        .link_bytes = t->link_bytes,
                        .seconds = t->seconds,
                        .loading = t->loading};
    snprintf(own.device, sizeof own.device, "%s", t->machine.name);
    memcpy(own.phase, t->phase, sizeof own.phase);
    OWNED struct share *shares = mem_alloc(ranks->count, sizeof *shares, "measurements of ranks");
    int result = ranks_agree(ranks, shares ? 0 : -1);
    if (!result) ranks_exchange(ranks, &own, shares, sizeof own);
    if (!result && ranks_first(ranks)) (call->json ? print_json : print_ranks)(t, shares, ranks->count);
    return result;
}

/* Called by every rank; only the first one prints. */
static int bench_ranks_kind(struct bench_call *call) {
    struct bench_training training;
    struct ranks ranks;
    if (bench_run_arguments(call)) return -1;
    int result = command_ranks(&ranks, call->name);
    if (!result) result = ranks_agree(&ranks, arguments_config(&call->config, ranks.count, call->config_path, &call->arguments));
    if (!result) result = ranks_agree(&ranks, bench_train(&training, &call->config, call->seconds, call->steps, &ranks));
    if (!result) result = tell(call, &ranks, &training);
    ranks_close(&ranks);
    return result;
}

/* `bench read`: measures how fast a corpus becomes ids or a graph, step by step. */

/* A corpus that is measured, and the files made from it. */
struct reading {
    const struct bench_call *call;
    struct corpus_options options;
    struct corpus *corpus;
    struct pool *pool;
    char *encoded; /* path of the ids or the graph */
    struct vocab vocab;
    struct numbered numbered;
};

static double processor_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static int read_blocks(void *context, unsigned worker) {
    struct reading *reading = context;
    ENDED_BY(corpus_block_release) struct corpus_block block = {0};
    int more;
    while ((more = corpus_next(reading->corpus, &block)) > 0) continue;
    return more;
}

static int read_part(struct reading *reading) {
    if (corpus_read_as(reading->corpus, &reading->options)) return -1;
    corpus_set_threads(reading->corpus, pool_threads(reading->pool));
    corpus_rewind(reading->corpus);
    return pool_run(reading->pool, read_blocks, reading);
}

static int count_part(struct reading *reading) {
    corpus_set_numbered(reading->corpus, &reading->numbered);
    return vocab_build(&reading->vocab, reading->corpus, &reading->options, reading->pool);
}

static int encode_part(struct reading *reading) {
    ENDED_BY(idstream_close) struct idstream stream = {0};
    ENDED_BY(graph_close) struct graph graph = {0};
    int reused, result;
    if (corpus_formats[reading->options.format].edges)
        result = graph_make(&graph, reading->encoded, reading->corpus, &reading->vocab, &reading->options, reading->pool);
    else
        result =
            encode_open(&stream, reading->encoded, reading->corpus, &reading->vocab, &reading->options, reading->pool, &reused);
    return result;
}

static void print_part(const struct reading *reading, const char *name, double seconds, double cores) {
    double bytes = (double)corpus_size(reading->corpus);
    if (reading->call->json)
        printf("{\"bench\": \"read\", \"part\": \"%s\", \"bytes\": %.0f, \"seconds\": %.4g, \"core_seconds\": %.4g, "
               "\"bytes_per_second\": %.4g, \"bytes_per_core_second\": %.4g}\n",
               name, bytes, seconds, cores, bytes / seconds, bytes / cores);
    else
        printf("%-10s %8.3f s %8.1f MB/s %8.1f MB/s a core\n", name, seconds, bytes / seconds / 1e6, bytes / cores / 1e6);
}

static int measure_parts(struct reading *reading, char *path) {
    static const struct {
        const char *name;
        int (*run)(struct reading *reading);
    } parts[] = {{"read", read_part}, {"count", count_part}, {"encode", encode_part}};
    unsigned threads = pool_threads(reading->pool);
    struct backend_info machine = {.threads = threads};
    char processor[96];
    double all = 0, all_cores = 0;
    reading->corpus = corpus_open(&path, 1);
    if (!reading->corpus) return -1;
    if (corpus_stream(reading->corpus)) return fail("'%s' is an id stream, which is encoded already", path);
    if (graph_settle(&reading->options, reading->corpus)) return -1;
    processor_name(processor, sizeof processor);
    snprintf(machine.name, sizeof machine.name, "%s, %u thread%s", processor, threads, threads == 1 ? "" : "s");
    bench_print_head(reading->call, &machine, NULL, 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double began = progress_now(), used = processor_seconds();
        if (parts[i].run(reading)) return -1;
        double seconds = progress_now() - began, cores = processor_seconds() - used;
        print_part(reading, parts[i].name, seconds, cores);
        all += i ? seconds : 0; /* counting reads the files again */
        all_cores += i ? cores : 0;
    }
    print_part(reading, "all", all, all_cores);
    return 0;
}

/* Measures in its own directory, which is removed. */
static int measure_in(struct reading *reading, char *path) {
    OWNED char *directory = file_join(spool_directory(), "sptx-bench-XXXXXX");
    if (!directory) return -1;
    int made = mkdtemp(directory) != NULL, result = -1;
    if (!made) fail("cannot make the directory '%s': %s; TMPDIR names another place", directory, strerror(errno));
    else if ((reading->encoded = file_join(directory, "corpus")) && !numbered_open(&reading->numbered, reading->encoded)) {
        result = measure_parts(reading, path);
        numbered_close(&reading->numbered);
        if (file_exists(reading->encoded) == 1) file_remove(reading->encoded);
    }
    if (made) rmdir(directory);
    return result;
}

static int bench_read_kind(struct bench_call *call) {
    const struct option options[] = {{.name = "json", .flag = &call->json}, {0}};
    if (bench_arguments(call, options, "corpus, graph, device")) return -1;
    if (!call->config_path) return fail_usage("bench read wants a FILE of data; see 'sptx-w2v help bench'");
    if (arguments_config(&call->config, 0, NULL, &call->arguments)) return -1;
    struct reading reading = {
        .call = call, .options = config_corpus(&call->config), .pool = pool_open((unsigned)call->config.device_threads)};
    if (!reading.pool) return -1;
    reading.options.path = call->config_path;
    int result = measure_in(&reading, (char *)call->config_path);
    free(reading.encoded);
    vocab_release(&reading.vocab);
    corpus_close(reading.corpus);
    pool_close(reading.pool);
    return result;
}

/* `bench train`: measures the speed of a configuration, and the phases of its step. */

static const char *const phase_names[] = {"make_batch", "step"};

/* Returns the bytes that training moves a second, divided by the bytes that plain copies move on this machine. For exact steps the plan says how
 * many bytes a step moves; lock-free, they are the bytes of all examples' rows, although the GPU's cache serves frequent ones. */
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
        printf("memory     %s/s of rows read and written, %.1f%% of what copies reach; frequent rows come from the cache\n",
               text_of_bytes(a, (uint64_t)((double)t->row_bytes / t->seconds)), 100 * memory_share(t));
        printf("link       %s/s, %.1f%% of what copies reach both ways\n",
               text_of_bytes(a, (uint64_t)((double)t->link_bytes / t->seconds)), 100 * link_share(t));
    }
    if (!t->hogwild && t->gpu) {
        printf("memory     %s a step (planned), %.1f%% of what copies reach\n",
               text_of_bytes(a, (uint64_t)t->plan.memory_bytes), 100 * memory_share(t));
        printf("link       %s a step, %.1f%% of what copies reach both ways\n",
               text_of_bytes(a, t->steps ? t->link_bytes / t->steps : 0), 100 * link_share(t));
        printf("at most    %s pairs/s where moving rows took all the time; %.1f%% of that reached\n",
               text_of_rate(a, t->plan.floor_pairs),
               t->plan.floor_pairs > 0 ? 100 * (double)t->pairs / t->seconds / t->plan.floor_pairs : 0);
    }
    if (t->phase_steps) print_phases(t);
}

static int bench_train_kind(struct bench_call *call) {
    struct bench_training training;
    if (bench_run_arguments(call) || bench_config(call) || bench_train(&training, &call->config, call->seconds, call->steps, NULL)) return -1;
    bench_print_head(call, &training.machine, &training.limits, training.gpu);
    (call->json ? print_train_json : print_train)(&training);
    return 0;
}

/* `bench transfer`: measures how fast rows move between a table in each place and the GPU. */

/* Size of SpeedTorch's own benchmark: rows moved, rows of the table, columns. */
enum { TABLE_MOVED = 131072, TABLE_ROWS = 1000000, TABLE_DIM = 128 };
#define GIB ((uint64_t)1 << 30)

static const char *const order_names[] = {"random", "sorted", "random, sorted first"};
static const char *const place_names[] = {"pinned", "gpu", "file"};

struct line {
    enum place place;
    uint64_t total, moved, row_bytes;
    enum bench_order order;
    struct bench_times times;
};

static void print_json_line(const struct line *l) {
    printf("{\"bench\": \"transfer\", \"place\": \"%s\", \"order\": \"%s\", \"table_rows\": %" PRIu64
           ", \"rows\": %" PRIu64 ", \"row_bytes\": %" PRIu64
           ", \"to_seconds\": %.6g, \"from_seconds\": %.6g, \"sum_seconds\": %.6g, \"both_seconds\": %.6g}\n",
           place_names[l->place], order_names[l->order], l->total, l->moved, l->row_bytes, l->times.to, l->times.from,
           l->times.to + l->times.from, l->times.both);
}

static void print_table_line(const struct line *l) {
    double bytes = (double)(l->moved * l->row_bytes);
    printf("%-8s %-21s %9.3f %7.1f %9.3f %7.1f %9.3f", place_names[l->place], order_names[l->order], l->times.to * 1e3,
           bytes / l->times.to / 1e9, l->times.from * 1e3, bytes / l->times.from / 1e9, (l->times.to + l->times.from) * 1e3);
    if (l->times.both > 0) printf(" %9.3f %7.1f", l->times.both * 1e3, 2 * bytes / l->times.both / 1e9);
    putchar('\n');
}

static void print_sweep_line(const struct line *l) {
    double bytes = (double)(l->moved * l->row_bytes);
    char moved[TEXT_BYTES], span[TEXT_BYTES];
    printf("%12s x %-5" PRIu64 " %-10s %-21s %7.1f %7.1f %7.1f\n", text_of_count(moved, l->moved), l->row_bytes,
           text_of_bytes(span, l->total * l->row_bytes), order_names[l->order], bytes / l->times.to / 1e9,
           bytes / l->times.from / 1e9, 2 * bytes / l->times.both / 1e9);
}

static int time_line(struct bench *bench, struct backend_table *table, struct line *line) {
    struct bench_request request = {.table = table, .rows = line->moved, .order = line->order};
    return bench->ops->bench_transfer(bench->backend, &request, &line->times);
}

/* Measures a table of SpeedTorch's size in each place, with each order of ids. file: path beside which a table in a file is created. */
static int print_table(int json, struct bench *bench, uint64_t rows, uint64_t dim, const char *file) {
    static const struct {
        enum place place;
        enum bench_order order;
    } lines[] = {{PLACE_GPU, BENCH_RANDOM},
                 {PLACE_PINNED, BENCH_RANDOM},
                 {PLACE_PINNED, BENCH_SORTING},
                 {PLACE_PINNED, BENCH_SORTED},
                 {PLACE_FILE, BENCH_RANDOM}};
    uint64_t moved = rows < TABLE_MOVED ? rows : TABLE_MOVED;
    char moved_text[TEXT_BYTES], rows_text[TEXT_BYTES];
    if (!json) {
        printf("%s rows of %" PRIu64 " float32 out of %s, to and from one variable on the GPU; medians of %d\n",
               text_of_count(moved_text, moved), dim, text_of_count(rows_text, rows), BENCH_REPEATS);
        printf("%-8s %-21s %9s %7s %9s %7s %9s %9s %7s\n", "place", "ids", "to ms", "GB/s", "from ms", "GB/s", "sum ms",
               "both ms", "GB/s");
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct line line = {lines[i].place, rows, moved, dim * sizeof(float), lines[i].order, {0, 0, 0}};
        struct backend_table *table;
        if (bench_table_open(bench, line.place, rows, (uint32_t)dim, file, &table)) return -1;
        int result = time_line(bench, table, &line);
        bench->ops->table_close(bench->backend, table);
        if (result) return -1;
        (json ? print_json_line : print_table_line)(&line);
        fflush(stdout);
    }
    return 0;
}

/* Measures one table of the sweep, with each number of rows and each order of ids. */
static int sweep_table(int json, struct bench *bench, uint64_t span, uint64_t row_bytes) {
    static const uint64_t moved[] = {8192, 262144, 1048576};
    struct backend_table *table;
    uint64_t rows = span / row_bytes;
    int result = 0;
    if (bench_table_open(bench, PLACE_PINNED, rows, (uint32_t)(row_bytes / sizeof(float)), NULL, &table)) return -1;
    for (size_t i = 0; i < sizeof moved / sizeof *moved && !result; i++)
        for (int order = BENCH_RANDOM; order <= BENCH_SORTING && !result; order++) {
            struct line line = {PLACE_PINNED, rows, moved[i], row_bytes, (enum bench_order)order, {0, 0, 0}};
            if (2 * moved[i] > rows) continue; /* rows to the GPU and from it must differ, so the table needs twice as many */
            if (!(result = time_line(bench, table, &line))) (json ? print_json_line : print_sweep_line)(&line);
            fflush(stdout);
        }
    bench->ops->table_close(bench->backend, table);
    return result;
}

static int print_sweep(int json, struct bench *bench, uint64_t widest) {
    static const uint64_t row_bytes[] = {512, 768, 1600, 4800};
    if (!json) {
        printf("\npinned rows, GB/s of payload\n");
        printf("%12s   %-5s %-10s %-21s %7s %7s %7s\n", "rows", "bytes", "span", "ids", "to", "from", "both");
    }
    for (size_t i = 0; i < sizeof row_bytes / sizeof *row_bytes; i++)
        for (uint64_t span = GIB; span <= widest; span = span < widest && span * 16 > widest ? widest : span * 16)
            if (sweep_table(json, bench, span, row_bytes[i])) return -1;
    return 0;
}

static int bench_transfer_kind(struct bench_call *call) {
    const char *rows_text = NULL, *dim_text = NULL, *span_text = NULL, *file = "sptx-bench-rows";
    uint64_t rows = TABLE_ROWS, dim = TABLE_DIM, span = 16 * GIB;
    int brief = 0;
    const struct option options[] = {{.name = "json", .flag = &call->json},
                                     {.name = "brief", .flag = &brief},
                                     {.name = "rows", .text = &rows_text},
                                     {.name = "dim", .text = &dim_text},
                                     {.name = "span", .text = &span_text},
                                     {.name = "file", .text = &file},
                                     {0}};
    struct bench bench;
    if (bench_arguments(call, options, "device, memory") || bench_config(call) ||
        arguments_number("bench", "rows", rows_text, 2, WORDS_MOST, &rows) ||
        arguments_number("bench", "dim", dim_text, 4, COLUMNS_MOST, &dim))
        return -1;
    if (span_text && (text_bytes(span_text, &span) || span < GIB))
        return fail_usage("bench: --span = '%s' is not a size from 1GiB on", span_text);
    int result = bench_open(&bench, &call->config);
    if (!result && !bench.ops->bench_transfer) { /* the user named a backend without a GPU, or no GPU can be used */
        char why[512];
        const struct backend_ops *named = config_named_backend(&call->config);
        if (named) snprintf(why, sizeof why, "device.backend = %s", named->name);
        else backends[0]->present(why, sizeof why);
        result = fail("bench transfer measures rows between tables and a GPU, and there is none to use: %s", why);
    }
    if (!result) {
        bench_print_head(call, &bench.machine, &bench.limits, 1);
        result = print_table(call->json, &bench, rows, dim, file) || (!brief && print_sweep(call->json, &bench, span)) ? -1 : 0;
    }
    bench_close(&bench);
    return result;
}

/* `bench walks`: measures how fast walks over a graph are drawn, without training on them. */

static int bench_walks_kind(struct bench_call *call) {
    char a[TEXT_BYTES], b[TEXT_BYTES];
    struct bench_walks w;
    if (bench_run_arguments(call)) return -1;
    if (call->steps) return fail_usage("bench walks wants --seconds, not --steps");
    if (bench_config(call) || bench_walks(&w, &call->config, call->seconds)) return -1;
    double nodes = (double)w.walks * w.length / w.seconds;
    int most = w.graph.directed; /* 1: walks may end early */
    bench_print_head(call, &w.machine, NULL, 0);
    if (call->json) {
        printf("{\"bench\": \"walks\", \"nodes\": %" PRIu64 ", \"arcs\": %" PRIu64 ", \"length\": %u, \"walks\": %" PRIu64
               ", \"seconds\": %.6g, \"steps_per_second\": %.6g, \"at_most\": %s, \"neighbours_on_host\": %s}\n",
               w.graph.nodes, w.graph.arcs, w.length, w.walks, w.seconds, nodes, most ? "true" : "false", w.on_host ? "true" : "false");
        return 0;
    }
    printf("graph      %s arcs of %s nodes%s\n", text_of_count(a, w.graph.arcs), text_of_count(b, w.graph.nodes),
           w.on_host ? ", neighbours in host memory" : "");
    printf("walks      %s of %s%u nodes in %.2f s\n", text_of_count(a, w.walks), most ? "at most " : "", w.length, w.seconds);
    printf("steps/s    %s%s\n", most ? "at most " : "", text_of_rate(a, nodes));
    return 0;
}

/* ---- the command ---- */

/* sptx-w2v bench transfer|train|ranks|walks|memory [CONFIG.ini] [--section.key=value ...], or bench read FILE */
int cmd_bench(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(struct bench_call *call);
    } kinds[] = {{"bench transfer", bench_transfer_kind},
                 {"bench train", bench_train_kind},
                 {"bench ranks", bench_ranks_kind},
                 {"bench walks", bench_walks_kind},
                 {"bench memory", bench_memory_kind},
                 {"bench read", bench_read_kind}};
    int at = 1;
    while (at < argc && !strncmp(argv[at], "--", 2)) at++;
    if (at == argc) return fail_usage("bench wants transfer, train, ranks, walks or memory, and a CONFIG.ini at most, or read and a FILE");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(argv[at], kinds[i].name + sizeof "bench")) continue;
        struct bench_call call = {.argc = argc, .argv = argv, .name = kinds[i].name};
        int result = kinds[i].run(&call);
        config_release(&call.config);
        arguments_release(&call.arguments);
        return result;
    }
    return fail_usage("bench has no '%.100s'; it measures transfer, train, ranks, walks, memory or read", argv[at]);
}
