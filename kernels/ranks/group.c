/* Finds the library that is compiled for this machine's MPI, and opens the group with it. */
#include "group.h"
#include "join.h"

#include "base/path.h"
#include "base/report.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const mpis[] = {"openmpi", "mpich", "mpi"}; /* "mpi": one that is neither of the others */
enum { MPIS = sizeof mpis / sizeof *mpis };

struct search {
    const char *directory; /* of the program */
    int met;               /* 1: a library for an MPI lies there */
    char why[512];         /* why the first of them cannot be loaded */
};

/* Loads a library. MPI itself loads more libraries, which look for its symbols among everyone's: hence RTLD_GLOBAL. */
static const struct group_ops *load(struct search *search, const char *folder, const char *mpi) {
    char path[4352];
    snprintf(path, sizeof path, "%s%s/libsptx_%s.so", search->directory, folder, mpi);
    if (access(path, F_OK)) return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const void *calls = library ? dlsym(library, GROUP_SYMBOL) : NULL;
    if (!calls && !search->met) snprintf(search->why, sizeof search->why, "%s", dlerror());
    search->met = 1;
    return calls;
}

/* Returns the calls of the first MPI that can be loaded, that of the launcher before the others; NULL where there is
 * none. */
static const struct group_ops *find(struct search *search, const char *launcher) {
    const struct group_ops *calls = NULL;
    for (int i = -1; !calls && i < MPIS; i++) {
        const char *mpi = i < 0 ? launcher : mpis[i];
        if (i >= 0 && !strcmp(mpi, launcher)) continue;
        calls = load(search, "", mpi);
        if (!calls) calls = load(search, "/../lib/sptx", mpi);
    }
    return calls;
}

static int refuse(const struct search *search, unsigned count) {
    if (!search->met)
        return fail(
            "mpirun began %u of these processes, and this program was built without MPI: scripts/setup.sh installs one "
            "(libopenmpi-dev), and make then finds it",
            count);
    return fail("mpirun began %u of these processes, and MPI cannot be loaded: %s", count, search->why);
}

static int open_over(struct group **group, const struct group_ops *calls, const struct join_place *launched,
                     struct group_place *place) {
    const char *why = calls->open(group, place);
    if (why) return fail("%s", why);
    if (launched->count > 1 && place->count == 1)
        return fail("mpirun began %u of these processes, and the MPI that was loaded knows of one: mpirun is another "
                    "MPI's (the "
                    "program has Open MPI's and MPICH's libraries where make found both)",
                    launched->count);
    return 0;
}

int group_open(struct group **group, const struct group_ops **calls, struct group_place *place) {
    struct join_place launched = join_place();
    *group = NULL;
    *calls = NULL;
    *place = (struct group_place){.count = 1, .local = 1};
    if (!launched.launched || launched.count == 1) return 0;
    char *program = path_of_program(), *directory = program ? path_parent(program) : NULL;
    struct search search = {.directory = directory};
    if (directory) *calls = find(&search, launched.mpi);
    int result = !directory       ? -1
                 : *calls         ? open_over(group, *calls, &launched, place)
                 : launched.count ? refuse(&search, launched.count)
                                  : 0; /* Slurm's launcher, which also begins programs that are no ranks */
    free(directory);
    free(program);
    return result;
}
