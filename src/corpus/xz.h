/* xz: begins to unpack an xz file. liblzma 5.4 and newer can unpack several blocks of a file at once. */
#ifndef SPTX_XZ_H
#define SPTX_XZ_H

#include "base/memory.h"

#include <lzma.h>
#include <stdint.h>

/* Prepares `xz` (LZMA_STREAM_INIT). threads: how many may unpack blocks; each needs memory for a block, and fewer are used if that is
 * more than an eighth of the free memory. most: bytes of memory that unpacking may need. */
static inline lzma_ret xz_begin(lzma_stream *xz, unsigned threads, uint64_t most) {
#if LZMA_VERSION >= 50040002
    lzma_mt several = {.threads = threads, .memlimit_threading = mem_available() / 8, .memlimit_stop = most};
    if (threads > 1) return lzma_stream_decoder_mt(xz, &several);
#endif
    return lzma_stream_decoder(xz, most, 0);
}

#endif
