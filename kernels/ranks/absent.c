/* The group of a program that is built without MPI: it is a single process. */
#include "group.h"
#include "join.h"

#include "base/report.h"

#include <stddef.h>

static int open_group(struct group **group, struct group_place *place) {
    struct join_place launched = join_place();
    *group = NULL;
    *place = (struct group_place){.count = 1, .local = 1};
    if (launched.count > 1)
        return fail("mpirun began %u of these processes, and this program was built without MPI: scripts/setup.sh installs it "
                    "(libopenmpi-dev), and make then finds it",
                    launched.count);
    return 0;
}

const struct group_ops group_ops = {.open = open_group};
