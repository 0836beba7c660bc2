#include "cmd_bench.h"

#include "base/json.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- arguments ---- */

int bench_arguments(struct arguments *arguments, struct bench_call *call, const struct option *options, const char *sections) {
    if (arguments_read(arguments, call->name, call->argc, call->argv, options, sections)) return -1;
    if (arguments->count > 2)
        return fail_usage("%s wants one configuration file, %d given; see 'sptx-w2v help bench'", call->name, arguments->count - 1);
    call->config_path = arguments->count == 2 ? arguments->given[1] : NULL;
    return 0;
}

int bench_run_arguments(struct arguments *arguments, struct bench_call *call, struct bench_length *length) {
    const char *seconds = NULL, *steps = NULL;
    const struct option options[] = {{.name = "json", .flag = &call->json},
                                     {.name = "seconds", .text = &seconds},
                                     {.name = "steps", .text = &steps},
                                     {0}};
    *length = (struct bench_length){.seconds = 10};
    if (bench_arguments(arguments, call, options, ANY_SECTION)) return -1;
    if (arguments_number("bench", "steps", steps, 1, (uint64_t)1 << 48, &length->steps)) return -1;
    if (seconds && (text_time(seconds, &length->seconds) || !(length->seconds > 0)))
        return fail_usage("bench: --seconds = '%s' is not a time", seconds);
    return 0;
}

/* ---- the head of a result ---- */

static const char *kind_of(const struct bench_call *call) {
    return call->name + sizeof "bench";
}

static void print_command(const struct bench_call *call) {
    for (int i = 0; i < call->argc; i++) printf(" %s", call->argv[i]);
}

static void print_json_head(const struct bench_call *call, const struct backend_info *machine, const struct bench_limits *limits,
                            int gpu, const char *date) {
    struct json command = {.used = 0}, head = {.used = 0};
    json_print(&command, "sptx-w2v");
    for (int i = 0; i < call->argc; i++) json_print(&command, " %s", call->argv[i]);
    json_print(&head, "{\"bench\": \"%s\", \"command\": ", kind_of(call));
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
    json_release(&command);
    json_release(&head);
}

void bench_print_head(const struct bench_call *call, const struct backend_info *machine, const struct bench_limits *limits,
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
    print_command(call);
    printf("\ndevice     %s%s%s, %s of host memory available\ndate       %s\n", machine->name,
           *machine->link ? ", " : "", machine->link, text_of_bytes(free_text, mem_available()), date);
    if (gpu)
        printf("copies     to the GPU %.1f, from it %.1f, both at once %.1f, inside it (read and written) %.0f GB/s\n"
               "host rows  %s\n",
               limits->to / 1e9, limits->from / 1e9, limits->both / 1e9, limits->device / 1e9,
               machine->managed ? "managed memory" : "pinned memory");
    putchar('\n');
}

/* ---- the command ---- */

/* sptx-w2v bench transfer|train|ranks|walks|memory [CONFIG.ini] [--section.key=value ...], or bench read FILE */
int cmd_bench(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } kinds[] = {{"transfer", cmd_bench_transfer},
                 {"train", cmd_bench_train},
                 {"ranks", cmd_bench_ranks},
                 {"walks", cmd_bench_walks},
                 {"memory", cmd_bench_memory},
                 {"read", cmd_bench_read}};
    int at = 1;
    while (at < argc && !strncmp(argv[at], "--", 2)) at++;
    if (at == argc) return fail_usage("bench wants transfer, train, ranks, walks or memory, and a CONFIG.ini at most, or read and a FILE");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[at], kinds[i].name)) return kinds[i].run(argc, argv);
    return fail_usage("bench has no '%.100s'; it measures transfer, train, ranks, walks, memory or read", argv[at]);
}
