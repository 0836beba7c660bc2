#include "base/machine.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "kernels/backend.h"

#include <stdio.h>
#include <unistd.h>

enum { DEVICES_MOST = 64 }; /* most devices of a backend that are printed */

/* Prints the devices of a backend, or why it has none. */
static int print_backend(const struct backend_ops *ops) {
    struct backend_info info[DEVICES_MOST];
    char why[512] = "";
    if (!ops->present(why, sizeof why)) {
        printf("%-10s no: %s\n", ops->name, why);
        return 0;
    }
    int count = ops->devices(info, DEVICES_MOST);
    for (int i = 0; i < count && i < DEVICES_MOST; i++) {
        const struct backend_info *gpu = &info[i];
        char total[TEXT_BYTES], unused[TEXT_BYTES];
        if (ops->has_gpu)
            printf("gpu %-6d %s, %s free of %s%s%s, rows in host memory %s%s\n", i, gpu->name, text_of_bytes(unused, gpu->gpu_free),
                   text_of_bytes(total, gpu->gpu_total), *gpu->link ? ", " : "", gpu->link, gpu->managed ? "managed" : "pinned",
                   gpu->runs ? "" : "; not used: this program holds no kernels for it");
        else
            printf("%-10s %s\n", ops->name, info[i].name);
    }
    return count < 0 ? -1 : 0;
}

/* sptx-w2v devices */
int cmd_devices(int argc, char **argv) {
    const struct option options[] = {{0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    if (arguments_read(&arguments, argv[0], argc, argv, options, NULL)) return -1;
    if (arguments.count) return fail_usage("devices takes no arguments, '%.100s' given", arguments.given[0]);
    char name[256], total[TEXT_BYTES], available[TEXT_BYTES];
    processor_name(name, sizeof name);
    printf("processor  %s\n", name);
    printf("cores      %u may be used, of %ld\n", pool_cores(), sysconf(_SC_NPROCESSORS_ONLN));
    printf("memory     %s, %s available\n", text_of_bytes(total, mem_total()), text_of_bytes(available, mem_available()));
    int count = 0;
    while (backends[count]) count++;
    while (count--) /* the best one is the last */
        if (print_backend(backends[count])) return -1;
    printf("auto       %s\n", backend_best()->name);
    return 0;
}
