/* backends: the list of all backends. They are chosen here, by name or as the best of this machine. */
#include "backend.h"

#include <string.h>

const struct backend_ops *const backends[] = {&backend_cuda, &backend_cpu, NULL};

const struct backend_ops *backend_named(const char *name) {
    for (const struct backend_ops *const *at = backends; *at; at++)
        if (!strcmp((*at)->name, name)) return *at;
    return NULL;
}

const struct backend_ops *backend_best(void) {
    const struct backend_ops *const *at = backends;
    while (!(*at)->present(NULL, 0)) at++;
    return *at;
}

const struct backend_ops *backend_without_gpu(void) {
    const struct backend_ops *const *at = backends;
    while ((*at)->has_gpu) at++;
    return *at;
}
