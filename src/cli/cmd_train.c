/* train and plan. Both choose how many of this machine's GPUs train a run; train then starts one process (rank) for each. */
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "commands.h"
#include "corpus/corpus.h"
#include "kernels/backend.h"
#include "kernels/ranks.h"
#include "run/state.h"
#include "train/gpus.h"
#include "train/session.h"
#include "train/trainer.h"
#include "vectors/evaluate.h"
#include "vectors/features.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many GPUs train a run, and why. */
struct launch {
    unsigned gpus;        /* number of processes that train the run, one for each GPU; 1 without a GPU, or if each GPU has a copy of the tables */
    char why[GPUS_WHY];   /* text such as "1 of 4: .."; "": device.gpus does not allow several */
    char other[GPUS_WHY]; /* text: keys whose values differ from those of a run on one GPU, with both values; "": none */
};

enum { GPUS_MOST = 64 }; /* most GPUs that are counted */

/* Fails if device.gpus is larger than the number of GPUs: two processes on one GPU, or on a CPU, are slower than one. */
static int launch_check_gpus(const struct config *config) {
    const struct backend_ops *ops;
    struct backend_info info[GPUS_MOST];
    if (config_backend(config, &ops)) return -1;
    int count = ops->has_gpu ? ops->devices(info, GPUS_MOST) : 0;
    if (count < 0 || (uint64_t)count >= config->device_gpus) return count < 0 ? -1 : 0;
    if (!count)
        return fail("device.gpus = %" PRIu64 " begins a process for each GPU, and %s; leave the key out: one process uses all cores",
                    config->device_gpus,
                    config_named_backend(config) ? "device.backend = cpu uses none" : "this machine has none that can be used");
    return fail("device.gpus = %" PRIu64 " begins a process for each GPU, and this machine has %d that can be used; set the key to %d at most",
                config->device_gpus, count, count);
}

/* ---- the number of GPUs ---- */

/* Says how to use all GPUs, if the keys allow several processes. */
static void advise_columns(const struct config *config, char why[GPUS_WHY]) {
    ENDED_BY(config_release) struct config several = {0};
    uint64_t length = strlen(why);
    int result = config_copy(&several, config);
    several.ranks = (unsigned)config->device_gpus;
    if (result || !strcmp(config->corpus_path, CORPUS_INPUT) || config_resolve(&several)) report_clear();
    else snprintf(why + length, GPUS_WHY - length, "; device.share = columns uses all");
}

/* Resolves a config, whose keys are set, for the number of GPUs (up to device.gpus) that trains it fastest. For that it encodes the corpus, which
 * the ranks then reuse. Returns 0, or -1 after fail(). */
static int launch_choose(struct config *config, struct launch *launch) {
    ENDED_BY(config_release) struct config one = {0};
    *launch = (struct launch){.gpus = 1};
    if (config->device_gpus < 2) {
        config->ranks = 1;
        return config_resolve(config);
    }
    int result = config_copy(&one, config);
    one.ranks = 1;
    if (!result) result = config_resolve(&one);
    int all = one.device_share == SHARE_COLUMNS;
    int64_t gpus = result ? -1 : all ? (int64_t)one.device_gpus : gpus_choose(&one, launch->why);
    if (!result && all) snprintf(launch->why, GPUS_WHY, "all %" PRIu64 " (device.share = columns)", one.device_gpus);
    if (gpus < 0) return -1;
    if ((uint64_t)gpus < config->device_gpus) advise_columns(config, launch->why);
    config->copies = one.copies;
    launch->gpus = config->ranks = one.copies ? 1 : (unsigned)gpus;
    if (config_resolve(config)) return -1;
    if (one.copies) return 0;
    if (gpus == 1) config->device_gpus = 0, config->train_merge_every = COUNT_AUTO; /* one GPU has no copies to merge */
    else if (strcmp(config->corpus_path, CORPUS_INPUT)) { /* the keys whose values change when several GPUs divide the columns */
        ENDED_BY(config_release) struct config several = {0};
        result = config_copy(&several, config) || session_settle(&several, NULL) || session_settle(&one, NULL) ? -1 : 0;
        if (!result) config_differences(&several, &one, launch->other, GPUS_WHY);
        if (result) return -1;
    }
    return 0;
}

/* Prints the choice, if there was one: to stdout, or as notes. */
static void launch_print(const struct launch *launch, int to_stdout) {
    const char *const names[] = {"GPUs", "other results"}, *const texts[] = {launch->why, launch->other};
    for (int i = 0; i < 2; i++) {
        if (!*texts[i]) continue;
        const char *more = i ? "; in brackets, the value on one GPU" : "";
        if (to_stdout) printf("%-16s %s%s\n", names[i], texts[i], more);
        else note("%-16s %s%s", names[i], texts[i], more);
    }
}

/* ---- a process for each GPU ---- */

#define WARNED "SPTX_WARNED" /* environment variable by which ranks know that warnings about keys were already printed */

/* Sets environment variables of Open MPI, unless the user has: by default it gives each of two ranks one core only, which slows training, and
 * refuses to run as root or more ranks than cores. */
static int prepare_mpirun(void) {
    static const char *const settings[][2] = {{"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                              {"PRTE_MCA_hwloc_default_binding_policy", "none"},
                                              {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                              {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                              {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                              {WARNED, "1"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (setenv(settings[i][0], settings[i][1], 0)) return fail("no memory for the environment of mpirun");
    return 0;
}

/* If several GPUs were chosen, replaces this process by mpirun with the command's arguments (argv begins with its name) and does not return.
 * Otherwise returns 0; -1 after fail(). */
static int launch_gpus(const struct launch *launch, char **argv) {
    char gpus[24];
    int count = 0;
    if (launch->gpus < 2) return 0;
    OWNED char *own = path_of_program();
    if (!own) return -1;
    while (argv[count]) count++;
    const char **words = mem_zalloc((uint64_t)count + 6, sizeof *words, "arguments of mpirun");
    if (!words) return -1;
    snprintf(gpus, sizeof gpus, "%u", launch->gpus);
    const char *const before[] = {"mpirun", "-n", gpus, own};
    memcpy(words, before, sizeof before);
    memcpy(words + 4, argv, (uint64_t)count * sizeof *words);
    if (report_is_quiet()) words[4 + count] = "--quiet";
    if (!prepare_mpirun()) {
        execvp("mpirun", (char **)words);
        fail("device.gpus = %s: cannot run mpirun, which begins a process for each GPU: %s; scripts/setup.sh installs it", gpus,
             strerror(errno));
    }
    free(words);
    return -1;
}

/* ---- train ---- */

/* Reads the arguments into options of the trainer, and into a config that is not resolved yet. */
static int read_train(int argc, char **argv, struct config *config, struct trainer_options *how) {
    const char *when = NULL;
    const struct option options[] = {{.name = "resume", .flag = &how->resume},
                                     {.name = "overwrite", .flag = &how->overwrite, .text = &when},
                                     {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    if (arguments_read(&arguments, argv[0], argc, argv, options, ANY_SECTION)) return -1;
    if (when && strcmp(when, "now"))
        return fail_usage("train: --overwrite = '%.100s' is not now: --overwrite replaces an older run when the new one has a "
                   "checkpoint, --overwrite=now at once",
                   when);
    how->overwrite_now = when != NULL;
    if (how->resume && how->overwrite)
        return fail_usage("train: --resume goes on with a run and --overwrite starts over; give one of them");
    return arguments_keys_wanted(config, argv[0], &arguments);
}

/* Resolves the config for the processes that train it. If several GPUs shall train it and mpirun has not started this process, replaces the
 * process by mpirun. */
static int settle_ranks(struct config *config, const struct ranks *ranks, char **argv) {
    struct launch launch = {0};
    if (ranks_launched() || ranks->count > 1) {
        config->ranks = ranks->count;
        report_hold();
        int result = config_resolve(config);
        report_release(!getenv(WARNED));
        return result;
    }
    if (config->device_gpus > 1 && launch_check_gpus(config)) return -1;
    if (launch_choose(config, &launch)) return -1;
    launch_print(&launch, 0);
    return launch_gpus(&launch, argv);
}

/* sptx-w2v train [CONFIG.ini] [--section.key=value ...] [--resume | --overwrite[=now]]; with mpirun, each rank calls it */
int cmd_train(int argc, char **argv) {
    struct ranks ranks;
    struct trainer_options how = {.ranks = &ranks, .judge = judge_checkpoint, .evaluate = evaluate_live};
    ENDED_BY(config_release) struct config config = {0};
    int result = command_ranks(&ranks, argv[0]);
    if (!result) result = ranks_agree(&ranks, read_train(argc, argv, &config, &how));
    if (!result) result = ranks_agree(&ranks, settle_ranks(&config, &ranks, argv));
    if (!result) result = ranks_agree(&ranks, ranks_first(&ranks) ? features_check(&config) : 0);
    if (!result) result = trainer_run(&config, &how);
    ranks_close(&ranks);
    return result;
}

/* ---- plan ---- */

struct planning {
    struct config config;
    struct ranks ranks; /* the number of ranks to plan for */
    struct launch launch;
    int json;
};

/* Prints the plan. Counts the corpus and encodes it into the files that `train` uses, so that `train` can begin at once. */
static int print_plan(void *user) {
    struct planning *p = user;
    struct config *config = &p->config;
    struct session session = {.config = config};
    int result = features_check(config) ? -1 : session_plan(&session, config, &p->ranks);
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

static int read_plan(int argc, char **argv, struct planning *p) {
    const struct option options[] = {{.name = "json", .flag = &p->json}, {0}};
    ENDED_BY(arguments_release) struct arguments arguments = {0};
    int result = arguments_read(&arguments, argv[0], argc, argv, options, ANY_SECTION);
    if (!result) result = arguments_keys_wanted(&p->config, argv[0], &arguments);
    if (!result && p->ranks.count == 1 && !p->config.device_ranks) return launch_choose(&p->config, &p->launch);
    p->config.ranks = p->ranks.count > 1 ? p->ranks.count : 0; /* 0: device.ranks says how many */
    return result ? -1 : config_resolve(&p->config);
}

/* sptx-w2v plan [CONFIG.ini] [--section.key=value ...] [--json]; if there are several ranks, the first one plans. */
int cmd_plan(int argc, char **argv) {
    struct planning p = {.json = 0};
    int result = command_ranks(&p.ranks, argv[0]);
    if (!result) result = ranks_agree(&p.ranks, read_plan(argc, argv, &p));
    if (!result) result = ranks_alike_config(&p.config, &p.ranks);
    if (!result) result = ranks_do(&p.ranks, ranks_first(&p.ranks) ? print_plan : NULL, &p);
    config_release(&p.config);
    ranks_close(&p.ranks);
    return result;
}
