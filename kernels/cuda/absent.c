/* absent: compiled in place of the CUDA backend where nvcc is missing. Memory of a run can still be planned; every other call fails and says what
 * to install. */
#include "arrays.h"

#include "base/machine.h"
#include "base/report.h"
#include "kernels/backend.h"

#include <stdio.h>

static const char *reason(void) {
    return pci_without_nvidia() ? "this program was built without CUDA, and this machine has no NVIDIA GPU; use device.backend = cpu"
                                : "this program was built without CUDA; install the CUDA Toolkit (nvcc) and build again, or use "
                                  "device.backend = cpu";
}

static int present(char *why, size_t capacity) {
    if (why) snprintf(why, capacity, "%s", reason());
    return 0;
}

static int devices(struct backend_info *info, int capacity) {
    return 0;
}

static int absent_open(struct backend **backend, const struct backend_options *options) {
    *backend = NULL;
    return fail("%s", reason());
}

const struct backend_ops backend_cuda = {
    .name = "cuda", .has_gpu = 1, .present = present, .devices = devices, .estimate = cuda_estimate, .open = absent_open};
