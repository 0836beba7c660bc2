/* `bench transfer`: measures how fast rows move between a table in each place and the GPU. */
#include "cmd_bench.h"

#include "base/report.h"
#include "base/text.h"
#include "corpus/words.h"

#include <inttypes.h>
#include <stdio.h>

/* The size of SpeedTorch's own benchmark: rows moved, rows of the table, columns. */
enum { TABLE_MOVED = 131072, TABLE_ROWS = 1000000, TABLE_DIM = 128 };
#define GIB ((uint64_t)1 << 30)

struct transfer {
    struct bench_call call;
    uint64_t rows, dim, span;
    const char *file; /* path beside which a table in a file has its working file */
    int brief;
};

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

/* Measures a table of SpeedTorch's size in each place, with each order of ids. */
static int print_table(const struct transfer *asked, struct bench *bench, uint64_t rows, uint64_t dim) {
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
    if (!asked->call.json) {
        printf("%s rows of %" PRIu64 " float32 out of %s, to and from one variable on the GPU; medians of %d\n",
               text_of_count(moved_text, moved), dim, text_of_count(rows_text, rows), BENCH_REPEATS);
        printf("%-8s %-21s %9s %7s %9s %7s %9s %9s %7s\n", "place", "ids", "to ms", "GB/s", "from ms", "GB/s", "sum ms",
               "both ms", "GB/s");
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct line line = {lines[i].place, rows, moved, dim * sizeof(float), lines[i].order, {0, 0, 0}};
        struct backend_table *table;
        if (bench_table_open(bench, line.place, rows, (uint32_t)dim, asked->file, &table)) return -1;
        int result = time_line(bench, table, &line);
        bench->ops->table_close(bench->backend, table);
        if (result) return -1;
        (asked->call.json ? print_json_line : print_table_line)(&line);
        fflush(stdout);
    }
    return 0;
}

/* Measures one table of the sweep: moves each number of rows, in each order of ids. */
static int sweep_table(const struct transfer *asked, struct bench *bench, uint64_t span, uint64_t row_bytes) {
    static const uint64_t moved[] = {8192, 262144, 1048576};
    struct backend_table *table;
    uint64_t rows = span / row_bytes;
    int result = 0;
    if (bench_table_open(bench, PLACE_PINNED, rows, (uint32_t)(row_bytes / sizeof(float)), NULL, &table)) return -1;
    for (size_t i = 0; i < sizeof moved / sizeof *moved && !result; i++)
        for (int order = BENCH_RANDOM; order <= BENCH_SORTING && !result; order++) {
            struct line line = {PLACE_PINNED, rows, moved[i], row_bytes, (enum bench_order)order, {0, 0, 0}};
            if (2 * moved[i] > rows) continue; /* rows to the GPU and rows from it are different ones, so there must be twice as
                                                * many */
            if (!(result = time_line(bench, table, &line))) (asked->call.json ? print_json_line : print_sweep_line)(&line);
            fflush(stdout);
        }
    bench->ops->table_close(bench->backend, table);
    return result;
}

static int print_sweep(const struct transfer *asked, struct bench *bench, uint64_t widest) {
    static const uint64_t row_bytes[] = {512, 768, 1600, 4800};
    if (!asked->call.json) {
        printf("\npinned rows, GB/s of payload\n");
        printf("%12s   %-5s %-10s %-21s %7s %7s %7s\n", "rows", "bytes", "span", "ids", "to", "from", "both");
    }
    for (size_t i = 0; i < sizeof row_bytes / sizeof *row_bytes; i++)
        for (uint64_t span = GIB; span <= widest; span = span < widest && span * 16 > widest ? widest : span * 16)
            if (sweep_table(asked, bench, span, row_bytes[i])) return -1;
    return 0;
}

/* Fails because the opened backend has no GPU, and says why: the user named it, or no GPU is usable. */
static void refuse_without_gpu(const struct config *config) {
    char why[512];
    const struct backend_ops *named = config_named_backend(config);
    if (named) snprintf(why, sizeof why, "device.backend = %s", named->name);
    else backends[0]->present(why, sizeof why);
    fail("bench transfer measures rows between tables and a GPU, and there is none to use: %s", why);
}

static int measure_transfer(const struct transfer *asked, const struct config *config) {
    struct bench bench;
    int result = -1;
    if (bench_open(&bench, config)) goto out;
    if (!bench.ops->bench_transfer) {
        refuse_without_gpu(config);
        goto out;
    }
    bench_print_head(&asked->call, &bench.machine, &bench.limits, 1);
    result = print_table(asked, &bench, asked->rows, asked->dim);
    if (!result && !asked->brief) result = print_sweep(asked, &bench, asked->span);
out:
    bench_close(&bench);
    return result;
}

static int read_arguments(struct transfer *asked, struct config *config) {
    const char *rows = NULL, *dim = NULL, *span = NULL;
    const struct option options[] = {{.name = "json", .flag = &asked->call.json},
                                     {.name = "brief", .flag = &asked->brief},
                                     {.name = "rows", .text = &rows},
                                     {.name = "dim", .text = &dim},
                                     {.name = "span", .text = &span},
                                     {.name = "file", .text = &asked->file},
                                     {0}};
    struct arguments arguments;
    int result = bench_arguments(&arguments, &asked->call, options, "device, memory");
    if (!result) result = arguments_config(config, 0, asked->call.config_path, &arguments);
    arguments_release(&arguments);
    if (result || arguments_number("bench", "rows", rows, 2, WORDS_MOST, &asked->rows) ||
        arguments_number("bench", "dim", dim, 4, COLUMNS_MOST, &asked->dim))
        return -1;
    if (span && (text_bytes(span, &asked->span) || asked->span < GIB))
        return fail_usage("bench: --span = '%s' is not a size from 1GiB on", span);
    return 0;
}

int cmd_bench_transfer(int argc, char **argv) {
    struct transfer asked = {.call = {.argc = argc, .argv = argv, .name = "bench transfer"},
                             .rows = TABLE_ROWS,
                             .dim = TABLE_DIM,
                             .span = 16 * GIB,
                             .file = "sptx-bench-rows"};
    struct config config = {.name = NULL};
    int result = read_arguments(&asked, &config) || measure_transfer(&asked, &config) ? -1 : 0;
    config_release(&config);
    return result;
}
