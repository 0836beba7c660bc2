#include "run_owns.h"

#include "base/path.h"
#include "base/report.h"
#include "checkpoints.h"
#include "corpus/cache.h"
#include "run_files.h"
#include "state.h"

#include <stdlib.h>
#include <string.h>

/* Returns 1 if the file `name` in `directory` is a file of a run; 0 if not; -1 after fail(). */
static int owns(const char *directory, const char *name) {
    int config = run_file_owner(directory, RUN_CONFIG);
    if (config < 0) return -1;
    if (cache_owns(name)) return config == RUN_FILE_OWN;
    for (int file = 0; file < RUN_FILES; file++)
        if (!strcmp(name, run_file_names[file])) {
            int owner = run_file_owner(directory, (enum run_file)file);
            return owner < 0 ? -1 : owner == RUN_FILE_OWN;
        }
    return checkpoint_holds(name) ? state_is_own(directory) : 0;
}

int run_owns_refuse(const char *path, const char *option) {
    char *place = path_resolve(path), *directory = place ? path_parent(place) : NULL;
    const char *slash = place ? strrchr(place, '/') : NULL;
    int result = directory ? owns(directory, slash ? slash + 1 : place) : -1;
    if (result == 1)
        result = fail("%s = '%s' is a file of the run in '%s', which would be lost: choose another", option, path, directory);
    free(directory);
    free(place);
    return result;
}
