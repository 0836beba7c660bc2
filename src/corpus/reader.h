/* reader: reads one file. It unpacks a file that begins as gzip, zstd, xz or bzip2 files do, whatever the file's name is. */
#ifndef SPTX_READER_H
#define SPTX_READER_H

#include <bzlib.h>
#include <lzma.h>
#include <stdint.h>
#include <zlib.h>
#include <zstd.h>

/* An open file. */
struct reader {
    const char *path;       /* owned by the caller */
    _Atomic uint64_t *done; /* counter of the caller, increased by the number of bytes read from the file (before unpacking);
                             * NULL: nothing is counted */
    int fd;                 /* -1: the file is closed */
    unsigned threads;       /* number of threads that may unpack the file together */
    const struct packing *packing; /* the kind of packing; NULL: the file is not packed */
    union {
        z_stream gzip;
        ZSTD_DStream *zstd;
        lzma_stream xz;
        bz_stream bzip2;
    };
    char *input;      /* bytes of a packed file, before unpacking */
    uint64_t at, end; /* input[at] .. input[end - 1] are not unpacked yet */
    int between;      /* 1: unpacking has reached the end of a member, frame or stream of the file */
};

/* Opens the file. threads: how many may unpack it together; only xz files of several blocks, which xz -T0 makes, use more than one.
 * Returns 0, or -1 after fail(); the caller must call reader_close() in both cases. */
int reader_open(struct reader *reader, const char *path, unsigned threads, _Atomic uint64_t *done);
void reader_close(struct reader *reader); /* may be called twice */

/* Reads at most `capacity` unpacked bytes. Returns how many it read; 0 at the end of the file; -1 after fail(). */
int64_t reader_read(struct reader *reader, char *out, uint64_t capacity);

#endif
