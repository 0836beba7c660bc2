/* reader: reads one file. If its first bytes are those of a gzip, zstd, xz or bzip2 file, it is unpacked, whatever its name. */
#ifndef SPTX_READER_H
#define SPTX_READER_H

#include "bzip2.h"

#include <lzma.h>
#include <stdint.h>
#include <zlib.h>
#include <zstd.h>

/* An open file. */
struct reader {
    const char *path;       /* owned by the caller */
    _Atomic uint64_t *done; /* the caller's counter, or NULL: the number of bytes read from the file, before unpacking, is added
                             * to it */
    int fd;                 /* -1: closed */
    const struct packing *packing; /* how the file is packed; NULL: not packed */
    union {
        z_stream gzip;
        ZSTD_DStream *zstd;
        lzma_stream xz;
        bz_stream bzip2;
    };
    char *input;      /* packed bytes; packed files only */
    uint64_t at, end; /* input[at .. end) is not unpacked yet */
    int between;      /* 1: unpacking is between two members, frames or streams of the file */
};

/* Opens the file. Returns 0, or -1 after fail(); the caller must call reader_close() in both cases. */
int reader_open(struct reader *reader, const char *path, _Atomic uint64_t *done);
void reader_close(struct reader *reader); /* harmless on a closed one */

/* Reads up to `capacity` unpacked bytes. Returns their number, 0 at the file's end, -1 after fail(). */
int64_t reader_read(struct reader *reader, char *out, uint64_t capacity);

#endif
