/* bzip2: libbz2, which is loaded at run time when a file needs it.
 *
 * It is not linked: its static archive is not made for shared libraries (Debian's is built without -fPIC, and the
 * libsptx.so of a Python package is one), and its shared library has another name on each system.
 */
#ifndef SPTX_BZIP2_H
#define SPTX_BZIP2_H

#include <bzlib.h>

struct bzip2 {
    __typeof__(BZ2_bzDecompressInit) *init;
    __typeof__(BZ2_bzDecompress) *decompress;
    __typeof__(BZ2_bzDecompressEnd) *end;
};

/* Returns NULL where this machine has no libbz2. */
const struct bzip2 *bzip2_library(void);

#endif
