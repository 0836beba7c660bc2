#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "commands.h"
#include "vectors/numeric.h"
#include "vectors/list_scores.h"
#include "vectors/page.h"

enum { MOST_LISTED = 1000000 }; /* largest --search; the limit on a page's size is reached far earlier */

/* sptx-w2v report RUN --out=FILE [--titles=FILE] [--labels=FILE | --colour=COLUMN [--item-features=FILE] [--feature-words=COLUMNS]] [--top=5000]
 * [--search=20000] [--table=TABLE] [--lists] [--evaluation=FILE ...] */
int cmd_report(int argc, char **argv) {
    const char *out = NULL, *titles_path = NULL, *top = NULL, *listed = NULL, *table = NULL, *evaluations[OPTION_TIMES];
    struct page_request request = {.top = 5000, .listed = 20000, .evaluations = evaluations};
    int lists = 0;
    const struct option options[] = {{.name = "out", .text = &out},
                                     {.name = "titles", .text = &titles_path},
                                     {.name = "labels", .text = &request.labels},
                                     {.name = "colour", .text = &request.colour},
                                     {.name = "item-features", .text = &request.features},
                                     {.name = "feature-words", .text = &request.words},
                                     {.name = "top", .text = &top},
                                     {.name = "search", .text = &listed},
                                     {.name = "table", .text = &table},
                                     {.name = "lists", .flag = &lists},
                                     {.name = "evaluation", .texts = evaluations, .count = &request.evaluation_count},
                                     {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    ENDED_BY(titles_release) struct titles titles = {NULL, NULL};
    struct interrupt watch;
    struct page_size size;
    char bytes[TEXT_BYTES], on_map[TEXT_BYTES], searched[TEXT_BYTES];
    ENDED_BY(model_close) struct model model = {.rows = 0};
    ENDED_BY(config_release) struct config config = {.name = NULL};
    if (arguments_read(&arguments, "report", argc, argv, options, "device, memory")) return -1;
    if (arguments.count != 1)
        return fail_usage("report wants one run directory, %d given; see 'sptx-w2v help report'", arguments.count);
    if (!out) return fail_usage("report wants --out=FILE; see 'sptx-w2v help report'");
    if (request.labels && request.colour) return fail_usage("report: --labels and --colour both colour the map; wanted one of them");
    if ((request.features || request.words) && !request.colour)
        return fail_usage("report: --item-features and --feature-words belong to --colour=COLUMN, which says by which column the map is coloured");
    request.run = arguments.given[0];
    if (arguments_number("report", "top", top, 1, MAP_ROWS, &request.top) ||
        arguments_number("report", "search", listed, 1, MOST_LISTED, &request.listed) ||
        arguments_config(&config, 0, NULL, &arguments) || model_open(&model, request.run))
        return -1;
    int view = answers_view_named(&model, table, (unsigned)config.device_threads);
    if (view < 0 || !(request.rows = answers_rows(&model, lists))) return -1;
    request.view = (enum model_view)view;
    request.titles = &titles;
    if (titles_path && titles_read(&titles, &model, titles_path)) return -1;
    interrupt_watch(&watch);
    int result = page_write(&model, &request, &config, out, &size);
    interrupt_end(&watch);
    if (!result)
        note("wrote '%s': %s; a map of the %s most frequent rows, and the nearest ones of %s; any browser opens it", out,
             text_of_bytes(bytes, size.bytes), text_of_count(on_map, size.top), text_of_count(searched, size.listed));
    return result;
}
