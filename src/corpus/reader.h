/* reader: reads one file, and unpacks it if it begins like a gzip, zstd, xz or bzip2 file. The file's name does not matter. */
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
    _Atomic uint64_t *done; /* the caller's counter, to which the number of bytes read from the file (before unpacking) is added; NULL: none */
    int fd;                 /* -1: the file is closed */
    unsigned threads;       /* number of threads that may unpack the file together */
    const struct packing *packing; /* how the file is compressed; NULL: it is not compressed */
    union {
        z_stream gzip;
        ZSTD_DStream *zstd;
        lzma_stream xz;
        bz_stream bzip2;
    };
    char *input;      /* bytes of a packed file, before unpacking */
    uint64_t at, end; /* input[at] .. input[end - 1] are not unpacked yet */
    int between;      /* 1: unpacking has just finished a member, frame or stream of the file */
};

/* Opens the file. threads: how many may unpack it together; only xz files of several blocks (xz -T0) use more than one. Returns 0, or -1 after
 * fail(); the caller must call reader_close() in both cases. */
int reader_open(struct reader *reader, const char *path, unsigned threads, _Atomic uint64_t *done);
void reader_close(struct reader *reader); /* may be called twice */

/* Reads at most `capacity` unpacked bytes into `out`. Returns their number; 0 at the end of the file; -1 after fail(). */
int64_t reader_read(struct reader *reader, char *out, uint64_t capacity);

#endif
