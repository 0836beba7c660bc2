#include "directory_claim.h"

#include "directory.h"
#include "file.h"
#include "report.h"

#include <stdlib.h>

enum { TRIES = 100 }; /* attempts, in case other processes remove the directory between its creation and the lock */

int directory_claim(struct lock *lock, const char *path, const char *name, unsigned *made, char holder[LOCK_HOLDER]) {
    char *file = file_join(path, name);
    int taken = -1;
    for (int tries = 0; file && tries < TRIES; tries++) {
        if (directory_make_counted(path, made)) break;
        taken = lock_try(lock, file, holder);
        if (taken >= 0 || directory_exists(path)) break;
        if (tries + 1 < TRIES) report_clear();
    }
    free(file);
    return taken;
}
