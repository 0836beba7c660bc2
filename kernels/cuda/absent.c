/* backend_cuda_absent: the CUDA backend's symbols where the build found no nvcc: each says what to install. */
#include "arrays.h"

#include "base/report.h"
#include "kernels/backend.h"
#include "kernels/bench.h"

#include <stdio.h>

static const char reason[] = "this program was built without CUDA; install the CUDA Toolkit (nvcc) and build again, "
                             "or use device.backend = cpu";

int backend_cuda_present(char *why, size_t capacity) {
    if (why) snprintf(why, capacity, "%s", reason);
    return 0;
}

int backend_cuda_devices(struct backend_info *info, int capacity) {
    return 0;
}

static int absent_open(struct backend **backend, const struct backend_options *options) {
    *backend = NULL;
    return fail("%s", reason);
}

const struct backend_ops backend_cuda = {.name = "cuda", .estimate = cuda_estimate, .open = absent_open};

int cuda_bench_transfer(struct backend *backend, const struct bench_request *request, struct bench_times *times) {
    return fail("%s", reason);
}

int cuda_bench_limits(struct backend *backend, struct bench_limits *limits) {
    return fail("%s", reason);
}
