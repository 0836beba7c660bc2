/* `bench memory`: measures how much memory a table needs. */
#include "cmd_bench.h"

#include "base/text.h"
#include "corpus/words.h"

#include <inttypes.h>
#include <stdio.h>

static void print(const struct bench_call *call, const struct bench_memory *m) {
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
    if (call->json)
        printf("{\"bench\": \"memory\", \"rows\": %" PRIu64 ", \"dim\": %" PRIu64 ", \"payload_bytes\": %" PRIu64
               ", \"host_bytes\": %" PRIu64 ", \"gpu_bytes\": %" PRIu64 ", \"resident_bytes\": %" PRIu64
               ", \"opening_seconds\": %.4g}\n",
               m->rows, m->dim, m->payload, m->host_bytes, m->gpu_bytes, m->resident, m->opening);
    else
        printf("table      %s rows x %" PRIu64
               " float32 = %s, held after %.2f s\nhost       %s by the backend, %s resident\ngpu        %s\n",
               text_of_count(a, m->rows), m->dim, text_of_bytes(b, m->payload), m->opening, text_of_bytes(c, m->host_bytes),
               text_of_bytes((char[TEXT_BYTES]){0}, m->resident), text_of_bytes((char[TEXT_BYTES]){0}, m->gpu_bytes));
}

static int measure_memory(const struct bench_call *call, const struct config *config, uint64_t rows, uint32_t dim) {
    struct bench bench;
    struct bench_memory m;
    int result = bench_open(&bench, config);
    if (!result) result = bench_memory(&bench, rows, dim, &m);
    if (!result) {
        bench_print_head(call, &bench.machine, &bench.limits, bench.ops->has_gpu);
        print(call, &m);
    }
    bench_close(&bench);
    return result;
}

int cmd_bench_memory(int argc, char **argv) {
    struct bench_call call = {.argc = argc, .argv = argv, .name = "bench memory"};
    const char *rows_text = NULL, *dim_text = NULL;
    const struct option options[] = {{.name = "json", .flag = &call.json},
                                     {.name = "rows", .text = &rows_text},
                                     {.name = "dim", .text = &dim_text},
                                     {0}};
    struct arguments arguments;
    struct config config = {.name = NULL};
    uint64_t rows = 10000000, dim = 128;
    int result = bench_arguments(&arguments, &call, options, "device, memory");
    if (!result) result = arguments_config(&config, 0, call.config_path, &arguments);
    if (!result) result = arguments_number("bench", "rows", rows_text, 1, WORDS_MOST, &rows);
    if (!result) result = arguments_number("bench", "dim", dim_text, 1, COLUMNS_MOST, &dim);
    if (!result) result = measure_memory(&call, &config, rows, (uint32_t)dim);
    config_release(&config);
    arguments_release(&arguments);
    return result;
}
