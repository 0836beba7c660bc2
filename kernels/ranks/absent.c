/* The program that is built without MPI: one process alone. */
#include "group.h"

#include "base/report.h"

#include <stddef.h>
#include <stdlib.h>

/* What launchers tell the processes that they begin. */
static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

static int open_group(struct group **group, struct group_place *place) {
    *group = NULL;
    *place = (struct group_place){.count = 1, .local = 1};
    for (int i = 0; i < 2; i++) {
        const char *size = getenv(sizes[i]);
        if (size && atol(size) > 1)
            return fail("mpirun began %s of these processes (%s), and this program was built without MPI: scripts/setup.sh "
                        "installs it (libopenmpi-dev), and make then finds it",
                        size, sizes[i]);
    }
    return 0;
}

const struct group_ops group_ops = {.open = open_group};
