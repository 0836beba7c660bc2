#include "launch.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/report.h"
#include "kernels/backend.h"
#include "kernels/ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sets environment variables of Open MPI, unless the user has set them. By default it gives each of two ranks a single core,
 * which slows training, refuses to run as root, and refuses more ranks than cores. */
static int prepare_mpirun(void) {
    static const char *const settings[][2] = {{"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                              {"PRTE_MCA_hwloc_default_binding_policy", "none"},
                                              {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                              {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                              {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
    for (int i = 0; i < 5; i++)
        if (setenv(settings[i][0], settings[i][1], 0)) return fail("no memory for the environment of mpirun");
    return 0;
}

enum { GPUS_MOST = 64 }; /* most GPUs that are counted */

/* Fails if device.gpus is larger than the number of GPUs: two processes that share a GPU, or a CPU, are slower than one. */
static int check_gpus(const struct config *config) {
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

int launch_gpus(const struct config *config, char **argv) {
    char gpus[24];
    int count = 0;
    if (config->device_gpus < 2 || ranks_launched()) return 0;
    char *own = check_gpus(config) ? NULL : path_of_program();
    if (!own) return -1;
    while (argv[count]) count++;
    const char **words = mem_zalloc((uint64_t)count + 6, sizeof *words, "arguments of mpirun");
    if (!words) {
        free(own);
        return -1;
    }
    snprintf(gpus, sizeof gpus, "%" PRIu64, config->device_gpus);
    const char *const before[] = {"mpirun", "-n", gpus, own};
    memcpy(words, before, sizeof before);
    memcpy(words + 4, argv, (uint64_t)count * sizeof *words);
    if (report_is_quiet()) words[4 + count] = "--quiet";
    if (!prepare_mpirun()) {
        execvp("mpirun", (char **)words);
        fail("device.gpus = %s: cannot run mpirun, which begins a process for each GPU: %s; scripts/setup.sh installs "
             "it",
             gpus, strerror(errno));
    }
    free(words);
    free(own);
    return -1;
}
