#include "commands.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "tune/tune.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_tried(void *user, const struct tune_tried *tried) {
    char line[1024];
    tune_line(tried, line, sizeof line);
    terminal_print(line, strlen(line));
    printf("\n");
    fflush(stdout);
}

/* sptx-w2v tune [CONFIG.ini] [--section.key=value ...] [--minutes=5] [--trials=N] [--out=best.ini] [--pairs=FILE ...]
 * [--analogies=FILE ...] [--anew] */
int cmd_tune(int argc, char **argv) {
    const char *minutes = NULL, *trials = NULL, *pairs[OPTION_TIMES], *analogies[OPTION_TIMES];
    ENDED_BY(config_release) struct config config = {.name = NULL};
    struct tune_request request = {
        .config = &config, .pairs = pairs, .analogies = analogies, .out = "best.ini", .took = print_tried};
    const struct option options[] = {{.name = "minutes", .text = &minutes},
                                     {.name = "trials", .text = &trials},
                                     {.name = "out", .text = &request.out},
                                     {.name = "pairs", .texts = pairs, .count = &request.pair_count},
                                     {.name = "analogies", .texts = analogies, .count = &request.analogy_count},
                                     {.name = "anew", .flag = &request.anew},
                                     {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    struct tune_answer answer = {.trials = 0};
    struct interrupt watch;
    if (arguments_read(&arguments, argv[0], argc, argv, options, ANY_SECTION)) return -1;
    if (!minutes && !trials) request.seconds = 5 * 60;
    if (minutes && (text_real(minutes, &request.seconds) || !(request.seconds > 0) || request.seconds > TUNE_MINUTES))
        return fail_usage("tune: --minutes = '%.100s' is not a number above 0", minutes);
    if (minutes) request.seconds *= 60;
    if (arguments_number("tune", "trials", trials, 1, UINT32_MAX, &request.trials) ||
        arguments_keys_wanted(&config, argv[0], &arguments))
        return -1;
    printf("%s\n", TUNE_HEAD);
    fflush(stdout);
    interrupt_watch(&watch);
    int result = tune_run(&answer, &request);
    interrupt_end(&watch);
    if (answer.trials) {
        note("%s %s %.4f after %" PRIu64 " epoch%s with %s", answer.stopped ? "so far    " : "best      ", answer.measure, answer.shown,
             answer.epochs, text_plural(answer.epochs), answer.keys);
        if (!isnan(answer.own)) note("           the keys as they were: %.4f", answer.own);
        note("written    '%s': sptx-w2v train %s trains on all of the data", request.out, request.out);
    }
    return result;
}
