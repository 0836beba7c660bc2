#include "bench_ranks.h"
#include "train/bench.h"
#include "commands.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* SpeedTorch's own table: rows moved, rows there are, columns. */
enum { TABLE_MOVED = 131072, TABLE_ROWS = 1000000, TABLE_DIM = 128 };
#define GIB ((uint64_t)1 << 30)

struct asked {
    int argc;
    char **argv;
    const char *what; /* transfer, train, ranks, memory */
    const char *config_path, *file, *rows, *dim, *steps, *seconds, *span;
    int json, brief;
};

/* ---- what every result says of where it comes from ---- */

static void print_command(const struct asked *asked) {
    for (int i = 0; i < asked->argc; i++) printf(" %s", asked->argv[i]);
}

static void print_json_head(const struct asked *asked, const struct backend_info *machine, const struct bench_limits *limits,
                            int cuda, const char *date) {
    struct json command = {.used = 0}, head = {.used = 0};
    json_print(&command, "sptx-w2v");
    for (int i = 0; i < asked->argc; i++) json_print(&command, " %s", asked->argv[i]);
    json_print(&head, "{\"bench\": \"%s\", \"command\": ", asked->what);
    if (!command.failed) json_string(&head, command.bytes, command.used);
    json_print(&head, ", \"device\": ");
    json_string(&head, machine->name, strlen(machine->name));
    json_print(&head, ", \"link\": ");
    json_string(&head, machine->link, strlen(machine->link));
    json_print(&head, ", \"date\": \"%s\"", date);
    if (cuda)
        json_print(&head,
                   ", \"host_rows\": \"%s\", \"copy_to\": %.4g, \"copy_from\": %.4g, \"copy_both\": %.4g, \"copy_device\": %.4g",
                   machine->managed ? "managed" : "pinned", limits->to, limits->from, limits->both, limits->device);
    json_print(&head, "}");
    if (!command.failed && !head.failed) puts(head.bytes);
    json_release(&command);
    json_release(&head);
}

static void print_head(const struct asked *asked, const struct backend_info *machine, const struct bench_limits *limits,
                       int cuda) {
    char date[32] = "", free_text[TEXT_BYTES];
    time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (asked->json) {
        print_json_head(asked, machine, limits, cuda, date);
        return;
    }
    printf("command    sptx-w2v");
    print_command(asked);
    printf("\ndevice     %s%s%s, %s of host memory available\ndate       %s\n", machine->name,
           *machine->link ? ", " : "", machine->link, text_of_bytes(free_text, mem_available()), date);
    if (cuda)
        printf("copies     to the GPU %.1f, from it %.1f, both at once %.1f, inside it (read and written) %.0f GB/s\n"
               "host rows  %s\n",
               limits->to / 1e9, limits->from / 1e9, limits->both / 1e9, limits->device / 1e9,
               machine->managed ? "managed memory" : "pinned memory");
    putchar('\n');
}

/* ---- transfer ---- */

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
           bytes / l->times.to / 1e9, l->times.from * 1e3, bytes / l->times.from / 1e9,
           (l->times.to + l->times.from) * 1e3);
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

static int measure_line(struct bench *bench, struct backend_table *table, struct line *line) {
    struct bench_request request = {.table = table, .rows = line->moved, .order = line->order};
    return cuda_bench_transfer(bench->backend, &request, &line->times);
}

/* SpeedTorch's table, by place and by the order of the ids. */
static int print_table(const struct asked *asked, struct bench *bench, uint64_t rows, uint64_t dim) {
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
    if (!asked->json) {
        printf("%s rows of %" PRIu64 " float32 out of %s, to and from one variable on the GPU; medians of %d\n",
               text_of_count(moved_text, moved), dim, text_of_count(rows_text, rows), BENCH_REPEATS);
        printf("%-8s %-21s %9s %7s %9s %7s %9s %9s %7s\n", "place", "ids", "to ms", "GB/s", "from ms", "GB/s", "sum ms",
               "both ms", "GB/s");
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct line line = {lines[i].place, rows, moved, dim * sizeof(float), lines[i].order, {0, 0, 0}};
        struct backend_table *table;
        if (bench_table_open(bench, line.place, rows, (uint32_t)dim, asked->file, &table)) return -1;
        int result = measure_line(bench, table, &line);
        bench->ops->table_close(bench->backend, table);
        if (result) return -1;
        (asked->json ? print_json_line : print_table_line)(&line);
        fflush(stdout);
    }
    return 0;
}

/* One table of the sweep: how many rows at once, in which order. */
static int sweep_table(const struct asked *asked, struct bench *bench, uint64_t span, uint64_t row_bytes) {
    static const uint64_t moved[] = {8192, 262144, 1048576};
    struct backend_table *table;
    uint64_t rows = span / row_bytes;
    int result = 0;
    if (bench_table_open(bench, PLACE_PINNED, rows, (uint32_t)(row_bytes / sizeof(float)), NULL, &table)) return -1;
    for (size_t i = 0; i < sizeof moved / sizeof *moved && !result; i++)
        for (int order = BENCH_RANDOM; order <= BENCH_SORTING && !result; order++) {
            struct line line = {PLACE_PINNED, rows, moved[i], row_bytes, (enum bench_order)order, {0, 0, 0}};
            if (2 * moved[i] > rows) continue; /* the two ways take different rows */
            if (!(result = measure_line(bench, table, &line)))
                (asked->json ? print_json_line : print_sweep_line)(&line);
            fflush(stdout);
        }
    bench->ops->table_close(bench->backend, table);
    return result;
}

static int print_sweep(const struct asked *asked, struct bench *bench, uint64_t widest) {
    static const uint64_t row_bytes[] = {512, 768, 1600, 4800};
    if (!asked->json) {
        printf("\npinned rows, GB/s of payload\n");
        printf("%12s   %-5s %-10s %-21s %7s %7s %7s\n", "rows", "bytes", "span", "ids", "to", "from", "both");
    }
    for (size_t i = 0; i < sizeof row_bytes / sizeof *row_bytes; i++)
        for (uint64_t span = GIB; span <= widest; span = span < widest && span * 16 > widest ? widest : span * 16)
            if (sweep_table(asked, bench, span, row_bytes[i])) return -1;
    return 0;
}

static int run_transfer(const struct asked *asked, const struct config *config) {
    struct bench bench;
    uint64_t rows = TABLE_ROWS, dim = TABLE_DIM, span = 16 * GIB;
    int result = -1;
    if (command_count("bench", "rows", asked->rows, 2, 4294967294u, &rows) ||
        command_count("bench", "dim", asked->dim, 4, 4096, &dim))
        return -1;
    if (asked->span && (text_bytes(asked->span, &span) || span < GIB))
        return fail_usage("bench: --span = '%s' is not a size from 1GiB on", asked->span);
    if (bench_open(&bench, config)) goto out;
    if (!bench.cuda) {
        char why[512] = "device.backend = cpu";
        if (config->device_backend != BACKEND_CPU) backend_cuda_present(why, sizeof why);
        fail("bench transfer measures rows between tables and a GPU, and there is none to use: %s", why);
        goto out;
    }
    print_head(asked, &bench.machine, &bench.limits, 1);
    result = print_table(asked, &bench, rows, dim);
    if (!result && !asked->brief) result = print_sweep(asked, &bench, span);
out:
    bench_close(&bench);
    return result;
}

/* ---- train ---- */

static const char *const phase_names[] = {"make_batch", "gather", "step", "scatter"};

static double per_step(const struct bench_training *t, uint64_t count) {
    return t->steps ? (double)count / (double)t->steps : 0;
}

/* Shares of what the machine's plain copies reach: by the bytes that the plan expects of a step or, lock-free, by those
 * of the rows that examples name, of which frequent ones come from the GPU's cache. */
static double memory_share(const struct bench_training *t) {
    double bytes = t->hogwild ? (double)t->row_bytes : t->plan.memory_bytes * (double)t->steps;
    return t->limits.device > 0 ? bytes / t->seconds / t->limits.device : 0;
}
static double link_share(const struct bench_training *t) {
    return t->limits.both > 0 ? (double)t->link_bytes / t->seconds / t->limits.both : 0;
}

static void print_train_json(const struct bench_training *t) {
    printf("{\"bench\": \"train\", \"update\": \"%s\", \"rows\": %" PRIu64 ", \"dim\": %u, \"batch\": %" PRIu64
           ", \"hot_rows\": %" PRIu64 ", \"loading_seconds\": %.4g, \"seconds\": %.6g, \"steps\": %" PRIu64
           ", \"pairs\": %" PRIu64 ", \"words\": %" PRIu64
           ", \"pairs_per_second\": %.6g, \"words_per_second\": %.6g, \"loss_pair\": %.6g, \"link_bytes\": %" PRIu64
           ", \"gpu_bytes\": %" PRIu64 ", \"host_bytes\": %" PRIu64,
           t->hogwild ? "hogwild" : "batch", t->plan.rows, t->plan.dim, t->plan.batch, t->plan.hot_rows, t->loading,
           t->seconds, t->steps, t->pairs, t->words, (double)t->pairs / t->seconds, (double)t->words / t->seconds,
           t->loss_pair, t->link_bytes, t->machine.gpu_used, t->machine.host_used);
    if (t->cuda) printf(", \"memory_share\": %.4g, \"link_share\": %.4g", memory_share(t), link_share(t));
    if (t->cuda && !t->hogwild) printf(", \"floor_pairs_per_second\": %.6g", t->plan.floor_pairs);
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
    if (t->hogwild && t->cuda) {
        printf("memory     %s/s of rows read and written, %.1f%% of what copies reach; frequent rows come from the "
               "cache\n",
               text_of_bytes(a, (uint64_t)((double)t->row_bytes / t->seconds)), 100 * memory_share(t));
        printf("link       %s/s, %.1f%% of what copies reach both ways\n",
               text_of_bytes(a, (uint64_t)((double)t->link_bytes / t->seconds)), 100 * link_share(t));
    }
    if (!t->hogwild && t->cuda) {
        printf("memory     %s a step (planned), %.1f%% of what copies reach\n",
               text_of_bytes(a, (uint64_t)t->plan.memory_bytes), 100 * memory_share(t));
        printf("link       %s a step, %.1f%% of what copies reach both ways\n",
               text_of_bytes(a, (uint64_t)per_step(t, t->link_bytes)), 100 * link_share(t));
        printf("floor      %s pairs/s, %.1f%% of it reached\n", text_of_rate(a, t->plan.floor_pairs),
               t->plan.floor_pairs > 0 ? 100 * (double)t->pairs / t->seconds / t->plan.floor_pairs : 0);
    }
    if (t->phase_steps) print_phases(t);
}

/* --seconds or --steps. */
static int read_length(const struct asked *asked, double *seconds, uint64_t *steps) {
    *seconds = 10;
    *steps = 0;
    if (command_count("bench", "steps", asked->steps, 1, (uint64_t)1 << 48, steps)) return -1;
    if (asked->seconds && (text_time(asked->seconds, seconds) || !(*seconds > 0)))
        return fail_usage("bench: --seconds = '%s' is not a time", asked->seconds);
    return 0;
}

static int run_ranks(const struct asked *asked, const char **settings, int setting_count) {
    struct bench_ranks_options options = {
        .config_path = asked->config_path, .settings = settings, .setting_count = setting_count, .json = asked->json};
    return read_length(asked, &options.seconds, &options.steps) ? -1 : bench_ranks(&options);
}

static int run_train(const struct asked *asked, struct config *config) {
    struct bench_training training;
    uint64_t steps;
    double seconds;
    if (read_length(asked, &seconds, &steps) || bench_train(&training, config, seconds, steps, NULL)) return -1;
    print_head(asked, &training.machine, &training.limits, training.cuda);
    (asked->json ? print_train_json : print_train)(&training);
    return 0;
}

/* ---- memory ---- */

static int run_memory(const struct asked *asked, const struct config *config) {
    struct bench bench;
    struct bench_memory m;
    uint64_t rows = 10000000, dim = 128;
    int result = -1;
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
    if (command_count("bench", "rows", asked->rows, 1, 4294967294u, &rows) ||
        command_count("bench", "dim", asked->dim, 1, 4096, &dim))
        return -1;
    if (bench_open(&bench, config) || bench_memory(&bench, rows, (uint32_t)dim, &m)) goto out;
    print_head(asked, &bench.machine, &bench.limits, bench.cuda);
    if (asked->json)
        printf("{\"bench\": \"memory\", \"rows\": %" PRIu64 ", \"dim\": %" PRIu64 ", \"payload_bytes\": %" PRIu64
               ", \"host_bytes\": %" PRIu64 ", \"gpu_bytes\": %" PRIu64 ", \"resident_bytes\": %" PRIu64
               ", \"opening_seconds\": %.4g}\n",
               m.rows, m.dim, m.payload, m.host_bytes, m.gpu_bytes, m.resident, m.opening);
    else
        printf("table      %s rows x %" PRIu64
               " float32 = %s, held after %.2f s\nhost       %s by the backend, %s resident\ngpu        %s\n",
               text_of_count(a, m.rows), m.dim, text_of_bytes(b, m.payload), m.opening, text_of_bytes(c, m.host_bytes),
               text_of_bytes((char[TEXT_BYTES]){0}, m.resident), text_of_bytes((char[TEXT_BYTES]){0}, m.gpu_bytes));
    result = 0;
out:
    bench_close(&bench);
    return result;
}

/* ---- the command ---- */

int cmd_bench(int argc, char **argv) {
    struct asked asked = {.argc = argc, .argv = argv, .file = "sptx-bench-rows"};
    const char *positional[argc], *settings[argc];
    int setting_count, result = -1;
    const struct option options[] = {{.name = "json", .flag = &asked.json},
                                     {.name = "brief", .flag = &asked.brief},
                                     {.name = "rows", .text = &asked.rows},
                                     {.name = "dim", .text = &asked.dim},
                                     {.name = "span", .text = &asked.span},
                                     {.name = "file", .text = &asked.file},
                                     {.name = "seconds", .text = &asked.seconds},
                                     {.name = "steps", .text = &asked.steps},
                                     {0}};
    struct config config;
    int count = command_arguments(argc, argv, options, positional, settings, &setting_count);
    if (count < 0) return -1;
    if (count < 1 || count > 2) return fail_usage("bench wants transfer, train, ranks or memory, and a CONFIG.ini at most");
    asked.what = positional[0];
    asked.config_path = count == 2 ? positional[1] : NULL;
    int train = !strcmp(asked.what, "train"), transfer = !strcmp(asked.what, "transfer"), ranks = !strcmp(asked.what, "ranks");
    if (!train && !transfer && !ranks && strcmp(asked.what, "memory"))
        return fail_usage("bench has no '%.100s'; it measures transfer, train, ranks or memory", asked.what);
    if ((train || ranks) && !asked.config_path) return fail_usage("bench %s wants a CONFIG.ini", asked.what);
    if (ranks) return run_ranks(&asked, settings, setting_count);
    if (!command_config(&config, asked.config_path, settings, setting_count))
        result = train      ? run_train(&asked, &config)
                 : transfer ? run_transfer(&asked, &config)
                            : run_memory(&asked, &config);
    config_release(&config);
    return result;
}
