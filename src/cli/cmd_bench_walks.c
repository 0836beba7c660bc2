/* `bench walks`: measures how fast walks over a graph are drawn, without training on them. */
#include "cmd_bench.h"

#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

static void print_walks(const struct bench_walks *w, int json) {
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
    double nodes = (double)w->walks * w->length / w->seconds;
    if (json) {
        printf("{\"bench\": \"walks\", \"nodes\": %" PRIu64 ", \"arcs\": %" PRIu64 ", \"length\": %u, \"walks\": %" PRIu64
               ", \"seconds\": %.6g, \"steps_per_second\": %.6g, \"neighbours_on_host\": %s}\n",
               w->graph.nodes, w->graph.arcs, w->length, w->walks, w->seconds, nodes, w->on_host ? "true" : "false");
        return;
    }
    printf("graph      %s arcs of %s nodes%s\n", text_of_count(a, w->graph.arcs), text_of_count(b, w->graph.nodes),
           w->on_host ? ", neighbours in host memory" : "");
    printf("walks      %s of %u nodes in %.2f s\n", text_of_count(c, w->walks), w->length, w->seconds);
    printf("steps/s    %s\n", text_of_rate(a, nodes));
}

int cmd_bench_walks(int argc, char **argv) {
    struct bench_call call = {.argc = argc, .argv = argv, .name = "bench walks"};
    struct bench_length length;
    struct bench_walks walks;
    struct arguments arguments;
    struct config config = {.name = NULL};
    int result = bench_run_arguments(&arguments, &call, &length);
    if (!result && length.steps) result = fail_usage("bench walks wants --seconds, not --steps");
    if (!result) result = arguments_config(&config, 0, call.config_path, &arguments);
    if (!result) result = bench_walks(&walks, &config, length.seconds);
    if (!result) {
        bench_print_head(&call, &walks.machine, NULL, 0);
        print_walks(&walks, call.json);
    }
    config_release(&config);
    arguments_release(&arguments);
    return result;
}
