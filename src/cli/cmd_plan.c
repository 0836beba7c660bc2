#include "commands.h"
#include "base/report.h"
#include "run/ranks_alike.h"
#include "train/session.h"

struct planning {
    struct config config;
    struct ranks ranks; /* the number of ranks to plan for */
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
        if (!session.plan.fits) result = fail("the run does not fit: %s", session.plan.advice);
    }
    session_close(&session);
    return result;
}

static int read_arguments(int argc, char **argv, struct planning *p) {
    const struct option options[] = {{.name = "json", .flag = &p->json}, {0}};
    struct arguments arguments;
    int result = arguments_read(&arguments, argv[0], argc, argv, options, ANY_SECTION);
    unsigned several = p->ranks.count > 1 ? p->ranks.count : 0; /* 0: the configuration says how many */
    if (!result) result = arguments_config_wanted(&p->config, several, argv[0], &arguments);
    arguments_release(&arguments);
    return result;
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
