#include "commands.h"
#include "base/memory.h"
#include "base/report.h"
#include "train/session.h"

#include <stdlib.h>

/* The corpus is counted and encoded as train does it, into the same files, so that a train that follows begins at once.
 */
static int print_plan(struct config *config, int json) {
    struct session session;
    int result = session_plan(&session, config);
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

/* sptx-w2v plan [CONFIG.ini] [--section.key=value ...] [--json] */
int cmd_plan(int argc, char **argv) {
    int json = 0;
    const struct option options[] = {{.name = "json", .flag = &json}, {0}};
    const char **texts = mem_zalloc(2 * (uint64_t)argc, sizeof *texts, "arguments");
    struct config config = {0};
    int result = -1, setting_count;
    if (!texts) return -1;
    const char **settings = texts + argc;
    int given = command_arguments(argc, argv, options, texts, settings, &setting_count);
    if (given < 0) goto out;
    if (command_config_wanted(&config, 0, argv[0], texts, given, settings, setting_count)) goto out;
    result = print_plan(&config, json);
out:
    free(texts);
    config_release(&config);
    return result;
}
