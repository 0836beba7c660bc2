/* `bench read`: measures how fast a corpus becomes ids or a graph, part by part. */
#include "cmd_bench.h"

#include "base/file.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "corpus/encode.h"
#include "corpus/graph_make.h"
#include "corpus/numbered.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A measurement: a corpus, and the files that are made of it. */
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
    struct corpus_block block = {0};
    int more;
    while ((more = corpus_next(reading->corpus, &block)) > 0) continue;
    corpus_block_release(&block);
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
    struct idstream stream = {0};
    struct graph graph = {0};
    int reused, result;
    if (corpus_formats[reading->options.format].edges)
        result = graph_make(&graph, reading->encoded, reading->corpus, &reading->vocab, &reading->options, reading->pool);
    else
        result =
            encode_open(&stream, reading->encoded, reading->corpus, &reading->vocab, &reading->options, reading->pool, &reused);
    graph_close(&graph);
    idstream_close(&stream);
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

static int measure_parts(struct reading *reading) {
    static const struct {
        const char *name;
        int (*run)(struct reading *reading);
    } parts[] = {{"read", read_part}, {"count", count_part}, {"encode", encode_part}};
    double all = 0, all_cores = 0;
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

static void print_head(const struct reading *reading) {
    unsigned threads = pool_threads(reading->pool);
    struct backend_info machine = {.threads = threads};
    char processor[96];
    processor_name(processor, sizeof processor);
    snprintf(machine.name, sizeof machine.name, "%s, %u thread%s", processor, threads, threads == 1 ? "" : "s");
    bench_print_head(reading->call, &machine, NULL, 0);
}

static int measure_file(struct reading *reading, char *path) {
    reading->corpus = corpus_open(&path, 1);
    if (!reading->corpus) return -1;
    if (corpus_stream(reading->corpus)) return fail("'%s' is an id stream, which is encoded already", path);
    if (graph_settle(&reading->options, reading->corpus)) return -1;
    print_head(reading);
    return measure_parts(reading);
}

/* Measures in a directory of its own, which is removed. */
static int measure_in(struct reading *reading, char *path) {
    char *directory = file_join(spool_directory(), "sptx-bench-XXXXXX");
    if (!directory) return -1;
    int made = mkdtemp(directory) != NULL, result = -1;
    if (!made) fail("cannot make the directory '%s': %s; TMPDIR names another place", directory, strerror(errno));
    else if ((reading->encoded = file_join(directory, "corpus")) && !numbered_open(&reading->numbered, reading->encoded)) {
        result = measure_file(reading, path);
        numbered_close(&reading->numbered);
        if (file_exists(reading->encoded) == 1) file_remove(reading->encoded);
    }
    if (made) rmdir(directory);
    free(directory);
    return result;
}

static int measure(const struct bench_call *call, const struct config *config, const char *path) {
    struct reading reading = {.call = call, .options = config_corpus(config), .pool = pool_open((unsigned)config->device_threads)};
    if (!reading.pool) return -1;
    reading.options.path = path;
    int result = measure_in(&reading, (char *)path);
    free(reading.encoded);
    vocab_release(&reading.vocab);
    corpus_close(reading.corpus);
    pool_close(reading.pool);
    return result;
}

int cmd_bench_read(int argc, char **argv) {
    struct bench_call call = {.argc = argc, .argv = argv, .name = "bench read"};
    const struct option options[] = {{.name = "json", .flag = &call.json}, {0}};
    struct arguments arguments;
    struct config config = {.name = NULL};
    int result = bench_arguments(&arguments, &call, options, "corpus, graph, device");
    if (!result && !call.config_path) result = fail_usage("bench read wants a FILE of data; see 'sptx-w2v help bench'");
    if (!result) result = arguments_config(&config, 0, NULL, &arguments);
    if (!result) result = measure(&call, &config, call.config_path);
    config_release(&config);
    arguments_release(&arguments);
    return result;
}
