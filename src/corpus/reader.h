/* reader: the bytes of one file, unpacked where its first bytes say that it is packed (gzip, zstd, xz, bzip2); its name
 * decides nothing. */
#ifndef SPTX_READER_H
#define SPTX_READER_H

#include "bzip2.h"

#include <lzma.h>
#include <stdint.h>
#include <zlib.h>
#include <zstd.h>

struct reader {
    const char *path;       /* the caller's */
    _Atomic uint64_t *done; /* the caller's, or NULL: bytes of the file itself are added to it */
    int fd;                 /* -1: closed */
    const struct packing *packing; /* NULL: the file is not packed */
    union {
        z_stream gzip;
        ZSTD_DStream *zstd;
        lzma_stream xz;
        bz_stream bzip2;
    };
    char *input;      /* packed bytes; packed files only */
    uint64_t at, end; /* the input that is not unpacked yet */
    int between;      /* 1: between two members, frames or streams */
};

/* Opens the file. Returns 0, or -1 after fail(); the caller closes in any case. */
int reader_open(struct reader *reader, const char *path, _Atomic uint64_t *done);
void reader_close(struct reader *reader); /* harmless on a closed one */

/* Reads up to `capacity` unpacked bytes. Returns how many, 0 at the file's end, -1 after fail(). */
int64_t reader_read(struct reader *reader, char *out, uint64_t capacity);

#endif
