#include "config.h"

#include "base/report.h"
#include "kernels/backend.h"

const struct backend_ops *config_named_backend(const struct config *config) {
    int asked = config->device_backend;
    return asked == BACKEND_AUTO ? NULL : backend_named(config_choice_name("device", "backend", asked));
}

int config_backend(const struct config *config, const struct backend_ops **ops) {
    char why[512] = "";
    const struct backend_ops *named = config_named_backend(config);
    *ops = named ? named : backend_best();
    return !named || named->present(why, sizeof why) ? 0 : fail("device.backend = %s: %s", named->name, why);
}
