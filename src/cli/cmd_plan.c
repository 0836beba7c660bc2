#include "base/report.h"
#include "commands.h"
#include "launch.h"
#include "run/state.h"
#include "train/session.h"

struct planning {
    struct config config;
    struct ranks ranks; /* the number of ranks to plan for */
    struct launch launch;
    int json;
};

/* Prints the plan. Counts and encodes the corpus into the files that `train` would write, so that a later `train` begins at
 * once. */
static int print_plan(void *user) {
    struct planning *p = user;
    struct config *config = &p->config;
    struct session session;
    int result = session_plan(&session, config, &p->ranks);
    if (!result) {
        if (p->json)
            planner_print_json(&session.plan);
        else
            planner_print(&session.plan, config, 1);
        if (!p->json) launch_print(&p->launch, 1);
        if (!session.plan.fits || !session.plan.fits_disk) result = fail("the run does not fit: %s", session.plan.advice);
    }
    session_close(&session);
    return result;
}

static int read_arguments(int argc, char **argv, struct planning *p) {
    const struct option options[] = {{.name = "json", .flag = &p->json}, {0}};
    struct arguments arguments;
    int result = arguments_read(&arguments, argv[0], argc, argv, options, ANY_SECTION);
    if (!result) result = arguments_keys_wanted(&p->config, argv[0], &arguments);
    arguments_release(&arguments);
    if (!result && p->ranks.count == 1 && !p->config.device_ranks) return launch_choose(&p->config, &p->launch);
    p->config.ranks = p->ranks.count > 1 ? p->ranks.count : 0; /* 0: device.ranks says how many */
    return result ? -1 : config_resolve(&p->config);
}

/* sptx-w2v plan [CONFIG.ini] [--section.key=value ...] [--json]; if there are several ranks, the first one plans. */
int cmd_plan(int argc, char **argv) {
    struct planning p = {.json = 0};
    int result = command_ranks(&p.ranks, argv[0]);
    if (!result) result = ranks_agree(&p.ranks, read_arguments(argc, argv, &p));
    if (!result) result = ranks_alike_config(&p.config, &p.ranks);
    if (!result) result = ranks_do(&p.ranks, ranks_first(&p.ranks) ? print_plan : NULL, &p);
    config_release(&p.config);
    ranks_close(&p.ranks);
    return result;
}
