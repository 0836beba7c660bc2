#include "kernels/backend.h"
#include "commands.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/processor.h"
#include "base/report.h"
#include "base/text.h"

#include <stdio.h>
#include <unistd.h>

enum { GPUS_MOST = 64 };

/* Prints the CPU backend's name, which tells the processor level that its loops were compiled for. */
static int print_processor(void) {
    struct backend_options options = {.threads = 0, .depth = 1};
    struct backend_info info;
    struct backend *backend;
    char name[256], total[TEXT_BYTES], available[TEXT_BYTES];
    if (backend_cpu.open(&backend, &options)) return -1;
    int result = backend_cpu.info(backend, &info);
    backend_cpu.close(backend);
    if (result) return -1;
    processor_name(name, sizeof name);
    printf("processor  %s\n", name);
    printf("cores      %u may be used, of %ld\n", pool_cores(), sysconf(_SC_NPROCESSORS_ONLN));
    printf("memory     %s, %s available\n", text_of_bytes(total, mem_total()),
           text_of_bytes(available, mem_available()));
    printf("cpu        %s\n", info.name);
    return 0;
}

static int print_gpus(void) {
    struct backend_info info[GPUS_MOST];
    char why[512] = "", total[TEXT_BYTES], unused[TEXT_BYTES];
    int present = backend_cuda_present(why, sizeof why);
    if (!present) {
        printf("cuda       no: %s\n", why);
        return 0;
    }
    int count = backend_cuda_devices(info, GPUS_MOST);
    if (count < 0) return -1;
    for (int i = 0; i < count && i < GPUS_MOST; i++)
        printf("gpu %-6d %s, %s free of %s%s%s, rows in host memory %s%s\n", i, info[i].name,
               text_of_bytes(unused, info[i].gpu_free), text_of_bytes(total, info[i].gpu_total), *info[i].link ? ", " : "",
               info[i].link, info[i].managed ? "managed" : "pinned",
               info[i].runs ? "" : "; not used: this program holds no kernels for it");
    return present;
}

/* sptx-w2v devices */
int cmd_devices(int argc, char **argv) {
    const struct option options[] = {{0}};
    struct arguments arguments;
    int result = arguments_read(&arguments, argv[0], argc, argv, options, NULL);
    if (!result && arguments.count) result = fail_usage("devices takes no arguments, '%.100s' given", arguments.given[0]);
    arguments_release(&arguments);
    if (result || print_processor()) return -1;
    int present = print_gpus();
    if (present < 0) return -1;
    printf("auto       %s\n", present ? "cuda" : "cpu");
    return 0;
}
