#include "reader.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT_BYTES = 256 << 10 }; /* packed bytes read at a time */

void reader_close(struct reader *reader) {
    if (reader->fd < 0) return;
    if (reader->packing == PACKING_GZIP) inflateEnd(&reader->gzip);
    ZSTD_freeDStream(reader->zstd);
    free(reader->input);
    close(reader->fd);
    *reader = (struct reader){.fd = -1};
}

static enum packing packing_of(const unsigned char magic[4]) {
    static const unsigned char gzip[] = {0x1F, 0x8B, 0x08}, zstd[] = {0x28, 0xB5, 0x2F, 0xFD},
                               skippable[] = {0x2A, 0x4D, 0x18};
    if (!memcmp(magic, gzip, sizeof gzip)) return PACKING_GZIP;
    if (!memcmp(magic, zstd, sizeof zstd)) return PACKING_ZSTD;
    /* a zstd file may begin with a frame that is to be skipped (pzstd writes one) */
    return (magic[0] & 0xF0) == 0x50 && !memcmp(magic + 1, skippable, sizeof skippable) ? PACKING_ZSTD : PACKING_NONE;
}

int reader_open(struct reader *reader, const char *path, _Atomic uint64_t *done) {
    unsigned char magic[4] = {0};
    *reader = (struct reader){.path = path, .done = done, .fd = file_open(path, O_RDONLY)};
    if (reader->fd < 0) return -1;
    posix_fadvise(reader->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (retry_read_at(reader->fd, magic, sizeof magic, 0) < 0) return fail_system("read", path);
    enum packing packing = packing_of(magic);
    if (packing == PACKING_NONE) return 0;
    reader->input = mem_alloc(INPUT_BYTES, 1, "unpacking");
    if (!reader->input) return -1;
    reader->between = 1;
    if (packing == PACKING_GZIP && inflateInit2(&reader->gzip, 15 + 16) != Z_OK)
        return fail("not enough memory to unpack '%s'", path);
    reader->packing = packing;
    if (packing == PACKING_GZIP) return 0;
    reader->zstd = ZSTD_createDStream();
    if (!reader->zstd ||
        ZSTD_isError(ZSTD_DCtx_setParameter(reader->zstd, ZSTD_d_windowLogMax, sizeof(size_t) == 8 ? 31 : 30)))
        return fail("not enough memory to unpack '%s'", path);
    return 0;
}

/* Bytes from the file itself: how many, 0 at its end, -1 after fail(). */
static int64_t read_raw(struct reader *reader, char *out, uint64_t capacity) {
    ssize_t n;
    do n = read(reader->fd, out, capacity > (1 << 30) ? 1 << 30 : capacity);
    while (n < 0 && errno == EINTR);
    if (n < 0) return fail_system("read", reader->path);
    if (reader->done) atomic_fetch_add_explicit(reader->done, (uint64_t)n, memory_order_relaxed);
    return n;
}

/* One step of unpacking: takes from input[at..end), returns the bytes made. */
static int64_t inflate_some(struct reader *reader, char *out, uint64_t capacity) {
    z_stream *gzip = &reader->gzip;
    /* A member may be padded with zeros to a whole tape block, and another one may follow. */
    while (reader->between && reader->at < reader->end && reader->input[reader->at] == 0) reader->at++;
    if (reader->at == reader->end) return 0;
    if (reader->between) inflateReset(gzip);
    reader->between = 0;
    gzip->next_in = (unsigned char *)reader->input + reader->at;
    gzip->avail_in = (unsigned)(reader->end - reader->at);
    gzip->next_out = (unsigned char *)out;
    gzip->avail_out = capacity > (1 << 30) ? 1 << 30 : (unsigned)capacity;
    int result = inflate(gzip, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return fail("'%s' is no whole gzip file: %s", reader->path, gzip->msg ? gzip->msg : zError(result));
    reader->at = reader->end - gzip->avail_in;
    reader->between = result == Z_STREAM_END;
    return (char *)gzip->next_out - out;
}

static int64_t unzstd_some(struct reader *reader, char *out, uint64_t capacity) {
    ZSTD_inBuffer in = {reader->input, reader->end, reader->at};
    ZSTD_outBuffer made = {out, capacity, 0};
    if (reader->between && in.pos == in.size) return 0;
    size_t left = ZSTD_decompressStream(reader->zstd, &made, &in);
    if (ZSTD_isError(left)) return fail("'%s' is no whole zstd file: %s", reader->path, ZSTD_getErrorName(left));
    reader->at = in.pos;
    reader->between = left == 0;
    return (int64_t)made.pos;
}

int64_t reader_read(struct reader *reader, char *out, uint64_t capacity) {
    if (reader->packing == PACKING_NONE) return read_raw(reader, out, capacity);
    for (;;) {
        /* What the unpacker still holds comes first: its input may be used up before its output is. */
        int64_t made =
            reader->packing == PACKING_GZIP ? inflate_some(reader, out, capacity) : unzstd_some(reader, out, capacity);
        if (made) return made;
        if (reader->at < reader->end) continue;
        int64_t n = read_raw(reader, reader->input, INPUT_BYTES);
        if (n < 0) return -1;
        if (n == 0 && !reader->between) return fail("'%s' is cut short: its last part is missing", reader->path);
        if (n == 0) return 0;
        reader->at = 0;
        reader->end = (uint64_t)n;
    }
}
