#include "bzip2.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

static struct bzip2 loaded;
static int is_here;

static void load(void) {
    void *library = dlopen("libbz2.so.1.0", RTLD_NOW | RTLD_LOCAL); /* the name on Debian; on Fedora it is the next one */
    if (!library) library = dlopen("libbz2.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    loaded.init = (__typeof__(loaded.init))dlsym(library, "BZ2_bzDecompressInit");
    loaded.decompress = (__typeof__(loaded.decompress))dlsym(library, "BZ2_bzDecompress");
    loaded.end = (__typeof__(loaded.end))dlsym(library, "BZ2_bzDecompressEnd");
    is_here = loaded.init && loaded.decompress && loaded.end;
}

const struct bzip2 *bzip2_library(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_here ? &loaded : NULL;
}
