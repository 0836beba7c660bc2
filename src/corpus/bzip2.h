/* bzip2: libbz2, which is loaded when a file wants it.
 *
 * It is not linked: its static archive is not made for shared libraries (Debian's is built without -fPIC, and
 * libsptx.so of a Python package is one), and the shared one has another name on each system.
 */
#ifndef SPTX_BZIP2_H
#define SPTX_BZIP2_H

#include <bzlib.h>

struct bzip2 {
    __typeof__(BZ2_bzDecompressInit) *init;
    __typeof__(BZ2_bzDecompress) *decompress;
    __typeof__(BZ2_bzDecompressEnd) *end;
};

/* NULL where this machine has none. */
const struct bzip2 *bzip2_library(void);

#endif
