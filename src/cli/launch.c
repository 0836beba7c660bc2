#include "launch.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/report.h"
#include "kernels/backend.h"
#include "kernels/ranks.h"
#include "corpus/corpus.h"
#include "train/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUS_MOST = 64 }; /* most GPUs that are counted */

int launch_check_gpus(const struct config *config) {
    const struct backend_ops *ops;
    struct backend_info info[GPUS_MOST];
    if (config_backend(config, &ops)) return -1;
    int count = ops->has_gpu ? ops->devices(info, GPUS_MOST) : 0;
    if (count < 0 || (uint64_t)count >= config->device_gpus) return count < 0 ? -1 : 0;
    if (!count)
        return fail("device.gpus = %" PRIu64 " begins a process for each GPU, and %s; leave the key out: one process uses all cores",
                    config->device_gpus,
                    config_named_backend(config) ? "device.backend = cpu uses none" : "this machine has none that can be used");
    return fail("device.gpus = %" PRIu64 " begins a process for each GPU, and this machine has %d that can be used; set the key to %d "
                "at most",
                config->device_gpus, count, count);
}

/* ---- the number of GPUs ---- */

/* Writes the keys whose values change when several GPUs share out the columns, with the values on one GPU and on several. Both
 * configs are resolved. */
static int find_differences(struct config *one, const struct config *config, char out[GPUS_WHY]) {
    struct config several = {0};
    int result = config_copy(&several, config) || session_settle(&several, NULL) || session_settle(one, NULL) ? -1 : 0;
    if (!result) config_differences(&several, one, out, GPUS_WHY);
    config_release(&several);
    return result;
}

/* Chooses the number of GPUs. one: the configuration, resolved for one process. */
static int64_t choose_gpus(struct config *one, char why[GPUS_WHY]) {
    if (one->device_share != SHARE_COLUMNS) return gpus_choose(one, why);
    snprintf(why, GPUS_WHY, "all %" PRIu64 " (device.share = columns)", one->device_gpus);
    return (int64_t)one->device_gpus;
}

/* Says how all GPUs are used, if the keys allow several processes. */
static void advise_columns(const struct config *config, char why[GPUS_WHY]) {
    struct config several = {0};
    uint64_t length = strlen(why);
    int result = config_copy(&several, config);
    several.ranks = (unsigned)config->device_gpus;
    if (result || !strcmp(config->corpus_path, CORPUS_INPUT) || config_resolve(&several)) report_clear();
    else snprintf(why + length, GPUS_WHY - length, "; device.share = columns uses all");
    config_release(&several);
}

int launch_choose(struct config *config, struct launch *launch) {
    struct config one = {0};
    *launch = (struct launch){.gpus = 1};
    if (config->device_gpus < 2) {
        config->ranks = 1;
        return config_resolve(config);
    }
    int result = config_copy(&one, config);
    one.ranks = 1;
    if (!result) result = config_resolve(&one);
    int64_t gpus = result ? -1 : choose_gpus(&one, launch->why);
    if (gpus < 0) goto failed;
    if ((uint64_t)gpus < config->device_gpus) advise_columns(config, launch->why);
    config->copies = one.copies;
    launch->gpus = config->ranks = one.copies ? 1 : (unsigned)gpus;
    if (config_resolve(config)) goto failed;
    if (one.copies) goto done;
    if (gpus == 1) config->device_gpus = 0, config->train_merge_every = COUNT_AUTO; /* one GPU has no copies to merge */
    else if (strcmp(config->corpus_path, CORPUS_INPUT) && find_differences(&one, config, launch->other)) goto failed;
done:
    config_release(&one);
    return 0;
failed:
    config_release(&one);
    return -1;
}

void launch_print(const struct launch *launch, int to_stdout) {
    const char *const names[] = {"GPUs", "other results"}, *const texts[] = {launch->why, launch->other};
    for (int i = 0; i < 2; i++) {
        if (!*texts[i]) continue;
        const char *more = i ? "; in brackets, the value on one GPU" : "";
        if (to_stdout) printf("%-16s %s%s\n", names[i], texts[i], more);
        else note("%-16s %s%s", names[i], texts[i], more);
    }
}

/* ---- a process for each GPU ---- */

#define WARNED "SPTX_WARNED" /* this environment variable tells the ranks that warnings about the keys are written already */

int launch_warned(void) {
    return getenv(WARNED) != NULL;
}

/* Sets environment variables of Open MPI, unless the user has set them. By default it gives each of two ranks a single core,
 * which slows training, refuses to run as root, and refuses more ranks than cores. */
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

int launch_gpus(const struct launch *launch, char **argv) {
    char gpus[24];
    int count = 0;
    if (launch->gpus < 2) return 0;
    char *own = path_of_program();
    if (!own) return -1;
    while (argv[count]) count++;
    const char **words = mem_zalloc((uint64_t)count + 6, sizeof *words, "arguments of mpirun");
    if (!words) {
        free(own);
        return -1;
    }
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
    free(own);
    return -1;
}
