#include "config.h"

#include "base/report.h"
#include "kernels/backend.h"

int config_backend(const struct config *config, const struct backend_ops **ops) {
    char why[512] = "";
    int present = config->device_backend == BACKEND_CPU ? 0 : backend_cuda_present(why, sizeof why);
    if (config->device_backend == BACKEND_CUDA && !present) return fail("device.backend = cuda: %s", why);
    *ops = present ? &backend_cuda : &backend_cpu;
    return 0;
}
