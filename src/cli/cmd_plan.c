#include "commands.h"
#include "base/memory.h"
#include "base/report.h"
#include "train/alike.h"
#include "train/session.h"

#include <stdlib.h>

/* The corpus is counted and encoded as train does it, into the same files, so that a train that follows begins at once.
 */
static int print_plan(struct config *config, const struct ranks *ranks, int json) {
    struct session session;
    int result = session_plan(&session, config, ranks);
    if (!result) {
        if (json)
            planner_print_json(&session.plan);
        else
            planner_print(&session.plan, config, 1);
        if (!session.plan.fits) result = fail("the run does not fit: %s", session.plan.advice);
    }
    session_close(&session);
    return result;
}

static int read_arguments(int argc, char **argv, const struct ranks *ranks, struct config *config, int *json) {
    const struct option options[] = {{.name = "json", .flag = json}, {0}};
    const char **texts = mem_zalloc(2 * (uint64_t)argc, sizeof *texts, "arguments");
    int result = -1, setting_count;
    if (!texts) return -1;
    const char **settings = texts + argc;
    int given = command_arguments(argc, argv, options, texts, settings, &setting_count);
    unsigned several = ranks->count > 1 ? ranks->count : 0; /* 0: as many as the configuration says */
    if (given >= 0) result = command_config_wanted(config, several, argv[0], texts, given, settings, setting_count);
    free(texts);
    return result;
}

/* sptx-w2v plan [CONFIG.ini] [--section.key=value ...] [--json]; of several ranks the first one plans. */
int cmd_plan(int argc, char **argv) {
    struct ranks ranks;
    struct config config = {0};
    int json = 0, result = command_ranks(&ranks, argv[0]);
    if (!result) result = ranks_agree(&ranks, read_arguments(argc, argv, &ranks, &config, &json));
    if (!result) result = alike_config(&config, &ranks);
    if (!result) result = ranks_agree(&ranks, ranks_first(&ranks) ? print_plan(&config, &ranks, json) : 0);
    config_release(&config);
    ranks_close(&ranks);
    return result;
}
