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

/* The MPIs for which the library may be compiled ("mpi": any other MPI), with the file names of each MPI's own library. */
enum { MPIS = 3, NAMES = 2 };
static const struct {
    const char *mpi, *library[NAMES];
} mpis[MPIS] = {{"openmpi", {"libmpi.so.40"}}, {"mpich", {"libmpich.so.12", "libmpi.so.12"}}, {"mpi", {"libmpi.so"}}};

struct search {
    const char *directory; /* the program's directory */
    int met;               /* 1: a library for some MPI is in that directory */
    char why[512];         /* why the first library that was found cannot be loaded */
};

/* RTLD_GLOBAL, because MPI loads further libraries, which look for MPI's symbols in the global scope. */
static void *load_globally(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/* Loads the library for an MPI. A library that was linked with its MPI loads it too; for one that was not (the wheel's), the MPI
 * is loaded first. */
static void *load_with_mpi(const char *path, int number) {
    void *library = load_globally(path);
    for (int i = 0; !library && i < NAMES && mpis[number].library[i]; i++)
        if (load_globally(mpis[number].library[i])) library = load_globally(path);
    return library;
}

static const struct group_ops *load(struct search *search, const char *folder, int number) {
    char path[4352];
    snprintf(path, sizeof path, "%s%s/libsptx_%s.so", search->directory, folder, mpis[number].mpi);
    if (access(path, F_OK)) return NULL;
    void *library = load_with_mpi(path, number);
    const void *calls = library ? dlsym(library, GROUP_SYMBOL) : NULL;
    if (!calls && !search->met) snprintf(search->why, sizeof search->why, "%s", dlerror());
    search->met = 1;
    return calls;
}

static const struct group_ops *load_anywhere(struct search *search, int number) {
    const struct group_ops *calls = load(search, "", number);
    return calls ? calls : load(search, "/../lib/sptx", number);
}

/* Returns the calls of the first MPI that can be loaded; the launcher's own MPI is tried first. NULL if none can be loaded. */
static const struct group_ops *find(struct search *search, const char *launcher) {
    const struct group_ops *calls = NULL;
    for (int i = 0; !calls && i < MPIS; i++)
        if (!strcmp(mpis[i].mpi, launcher)) calls = load_anywhere(search, i);
    for (int i = 0; !calls && i < MPIS; i++)
        if (strcmp(mpis[i].mpi, launcher)) calls = load_anywhere(search, i);
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
        return fail("mpirun began %u of these processes, and the MPI that was loaded knows of one: it is not mpirun's own "
                    "(make builds for Open MPI and MPICH where it finds both)",
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
                                  : 0; /* Slurm's launcher, which also starts programs that are no ranks */
    free(directory);
    free(program);
    return result;
}
