/* bzip2: loads libbz2 at run time, when a file needs it.
 *
 * libbz2 is not linked: its static archive does not fit into shared libraries (Debian's is built without -fPIC, and the Python
 * package needs libsptx.so), and its shared library has a different name on each system.
 */
#ifndef SPTX_BZIP2_H
#define SPTX_BZIP2_H

#include <bzlib.h>

struct bzip2 {
    __typeof__(BZ2_bzDecompressInit) *init;
    __typeof__(BZ2_bzDecompress) *decompress;
    __typeof__(BZ2_bzDecompressEnd) *end;
};

/* Returns the library's functions, or NULL if this machine has no libbz2. */
const struct bzip2 *bzip2_library(void);

#endif
