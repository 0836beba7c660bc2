#include "reader.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/retry.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INPUT_BYTES = 256 << 10, /* packed bytes read at a time */
    MAGIC_BYTES = 10,
    PIECE_MOST = 1 << 30 /* most bytes that one call reads or unpacks */
};

/* Limits of the memory for unpacking; without them a few bytes of a compressed file could ask for any amount. */
enum { WINDOW_LOG_MOST = sizeof(size_t) == 8 ? 31 : 30 };
static const uint64_t xz_memory_most = (uint64_t)5
                                       << (WINDOW_LOG_MOST - 2); /* enough for a dictionary of 2 GiB and the decoder's other
                                                                  * memory */

/* A compression format. some() unpacks input[at .. end) into `out`; it returns the number of bytes made, or -1 after fail(). */
struct packing {
    const char *name;
    int (*is)(const unsigned char magic[MAGIC_BYTES]);
    int (*begin)(struct reader *reader); /* returns 0, or -1 if memory is short; after another failure it has called fail() */
    int64_t (*some)(struct reader *reader, char *out, uint64_t capacity);
    void (*end)(struct reader *reader);
};

static int refuse(const struct reader *reader, const char *why) {
    return fail("'%s' is no whole %s file: %s", reader->path, reader->packing->name, why);
}

/* Returns 1 if all input is unpacked. Skips zeros after a member, which may pad the file to a whole tape block. */
static int is_used_up(struct reader *reader) {
    while (reader->between && reader->at < reader->end && reader->input[reader->at] == 0) reader->at++;
    return reader->at == reader->end;
}

static int refuse_memory(const struct reader *reader) {
    return fail("not enough memory to unpack '%s'", reader->path);
}

/* Restarts the unpacker for the next member of the file. Returns 0, or -1 after fail(). */
static int begin_again(struct reader *reader) {
    reader->packing->end(reader);
    return reader->packing->begin(reader) ? refuse_memory(reader) : 0;
}

static unsigned piece(uint64_t bytes) {
    return bytes > PIECE_MOST ? PIECE_MOST : (unsigned)bytes;
}

/* ---- gzip ---- */

static int is_gzip(const unsigned char magic[MAGIC_BYTES]) {
    return !memcmp(magic, "\x1F\x8B\x08", 3);
}

static int begin_gzip(struct reader *reader) {
    return inflateInit2(&reader->gzip, 15 + 16) == Z_OK ? 0 : -1;
}

static void end_gzip(struct reader *reader) {
    inflateEnd(&reader->gzip);
}

static int64_t gunzip_some(struct reader *reader, char *out, uint64_t capacity) {
    z_stream *gzip = &reader->gzip;
    if (is_used_up(reader)) return 0;
    if (reader->between) inflateReset(gzip);
    gzip->next_in = (unsigned char *)reader->input + reader->at;
    gzip->avail_in = (unsigned)(reader->end - reader->at);
    gzip->next_out = (unsigned char *)out;
    gzip->avail_out = piece(capacity);
    int result = inflate(gzip, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return refuse(reader, gzip->msg ? gzip->msg : zError(result));
    reader->at = reader->end - gzip->avail_in;
    reader->between = result == Z_STREAM_END;
    return (char *)gzip->next_out - out;
}

/* ---- zstd ---- */

/* Returns 1 if the file is compressed by zstd. Its first frame may be a skippable one (pzstd writes these). */
static int is_zstd(const unsigned char magic[MAGIC_BYTES]) {
    return !memcmp(magic, "\x28\xB5\x2F\xFD", 4) ||
           ((magic[0] & 0xF0) == 0x50 && !memcmp(magic + 1, "\x2A\x4D\x18", 3));
}

static int begin_zstd(struct reader *reader) {
    reader->zstd = ZSTD_createDStream();
    return !reader->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(reader->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MOST))
               ? -1
               : 0;
}

static void end_zstd(struct reader *reader) {
    ZSTD_freeDStream(reader->zstd);
}

static int64_t unzstd_some(struct reader *reader, char *out, uint64_t capacity) {
    ZSTD_inBuffer in = {reader->input, reader->end, reader->at};
    ZSTD_outBuffer made = {out, capacity, 0};
    if (reader->between && in.pos == in.size) return 0;
    size_t left = ZSTD_decompressStream(reader->zstd, &made, &in);
    if (ZSTD_isError(left)) return refuse(reader, ZSTD_getErrorName(left));
    reader->at = in.pos;
    reader->between = left == 0;
    return (int64_t)made.pos;
}

/* ---- xz ---- */

static int is_xz(const unsigned char magic[MAGIC_BYTES]) {
    return !memcmp(magic,
                   "\xFD"
                   "7zXZ\0",
                   6);
}

/* Prepares `xz` (LZMA_STREAM_INIT); liblzma 5.4 and newer can unpack several blocks of a file at once. threads: how many may unpack blocks; each
 * needs memory for a block, and fewer are used if that is more than an eighth of the free memory. most: bytes of memory that unpacking may need. */
static lzma_ret xz_begin(lzma_stream *xz, unsigned threads, uint64_t most) {
#if LZMA_VERSION >= 50040002
    lzma_mt several = {.threads = threads, .memlimit_threading = mem_available() / 8, .memlimit_stop = most};
    if (threads > 1) return lzma_stream_decoder_mt(xz, &several);
#endif
    return lzma_stream_decoder(xz, most, 0);
}

static int begin_xz(struct reader *reader) {
    reader->xz = (lzma_stream)LZMA_STREAM_INIT;
    return xz_begin(&reader->xz, reader->threads, xz_memory_most) == LZMA_OK ? 0 : -1;
}

static void end_xz(struct reader *reader) {
    lzma_end(&reader->xz);
}

static const char *xz_error(lzma_ret result) {
    return result == LZMA_MEMLIMIT_ERROR  ? "it asks for more memory than any xz file of a corpus needs"
           : result == LZMA_OPTIONS_ERROR ? "it is packed in a way that this liblzma does not know"
                                          : "its data is damaged";
}

static int64_t unxz_some(struct reader *reader, char *out, uint64_t capacity) {
    lzma_stream *xz = &reader->xz;
    if (is_used_up(reader)) return 0;
    if (reader->between && begin_again(reader)) return -1;
    xz->next_in = (uint8_t *)reader->input + reader->at;
    xz->avail_in = reader->end - reader->at;
    xz->next_out = (uint8_t *)out;
    xz->avail_out = piece(capacity);
    lzma_ret result = lzma_code(xz, LZMA_RUN);
    if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR)
        return result == LZMA_MEM_ERROR ? refuse_memory(reader) : refuse(reader, xz_error(result));
    reader->at = reader->end - xz->avail_in;
    reader->between = result == LZMA_STREAM_END;
    return (char *)xz->next_out - out;
}

/* ---- bzip2 ---- */

/* libbz2 is loaded at run time, when a file needs it. It cannot be linked: Debian's static archive, built without -fPIC, does not fit into
 * libsptx.so, which the Python package needs, and its shared library has a different name on each system. */
static struct {
    __typeof__(BZ2_bzDecompressInit) *init;
    __typeof__(BZ2_bzDecompress) *decompress;
    __typeof__(BZ2_bzDecompressEnd) *end;
} bzip2_library;

static void load_bzip2(void) {
    void *library = dlopen("libbz2.so.1.0", RTLD_NOW | RTLD_LOCAL); /* the library's name on Debian; Fedora uses the next one */
    if (!library) library = dlopen("libbz2.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    bzip2_library.init = (__typeof__(bzip2_library.init))dlsym(library, "BZ2_bzDecompressInit");
    bzip2_library.decompress = (__typeof__(bzip2_library.decompress))dlsym(library, "BZ2_bzDecompress");
    bzip2_library.end = (__typeof__(bzip2_library.end))dlsym(library, "BZ2_bzDecompressEnd");
}

/* Returns 1 if this machine has libbz2. */
static int has_bzip2(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_bzip2);
    return bzip2_library.init && bzip2_library.decompress && bzip2_library.end;
}

/* Returns 1 if the file is compressed by bzip2: it begins with "BZh", a digit (the block size), and the magic number of a block or, if the file is
 * empty, of the end. */
static int is_bzip2(const unsigned char magic[MAGIC_BYTES]) {
    return !memcmp(magic, "BZh", 3) && magic[3] >= '1' && magic[3] <= '9' &&
           (!memcmp(magic + 4, "\x31\x41\x59\x26\x53\x59", 6) || !memcmp(magic + 4, "\x17\x72\x45\x38\x50\x90", 6));
}

static int begin_bzip2(struct reader *reader) {
    reader->bzip2 = (bz_stream){.bzalloc = NULL};
    if (has_bzip2()) return bzip2_library.init(&reader->bzip2, 0, 0) == BZ_OK ? 0 : -1;
    return fail(
        "'%s' is packed by bzip2, and its library, libbz2, is not here: install it, or unpack the file first (bunzip2)",
        reader->path);
}

static void end_bzip2(struct reader *reader) {
    if (has_bzip2()) bzip2_library.end(&reader->bzip2);
}

static int64_t bunzip2_some(struct reader *reader, char *out, uint64_t capacity) {
    bz_stream *bzip2 = &reader->bzip2;
    if (is_used_up(reader)) return 0;
    if (reader->between && begin_again(reader)) return -1;
    bzip2->next_in = reader->input + reader->at;
    bzip2->avail_in = (unsigned)(reader->end - reader->at);
    bzip2->next_out = out;
    bzip2->avail_out = piece(capacity);
    int result = bzip2_library.decompress(bzip2);
    if (result != BZ_OK && result != BZ_STREAM_END)
        return result == BZ_MEM_ERROR ? refuse_memory(reader) : refuse(reader, "its data is damaged");
    reader->at = reader->end - bzip2->avail_in;
    reader->between = result == BZ_STREAM_END;
    return bzip2->next_out - out;
}

/* ---- any file ---- */

static const struct packing packings[] = {{"gzip", is_gzip, begin_gzip, gunzip_some, end_gzip},
                                          {"zstd", is_zstd, begin_zstd, unzstd_some, end_zstd},
                                          {"xz", is_xz, begin_xz, unxz_some, end_xz},
                                          {"bzip2", is_bzip2, begin_bzip2, bunzip2_some, end_bzip2}};

static const struct packing *packing_of(const unsigned char magic[MAGIC_BYTES]) {
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++)
        if (packings[i].is(magic)) return &packings[i];
    return NULL;
}

void reader_close(struct reader *reader) {
    if (reader->fd < 0) return;
    if (reader->packing) reader->packing->end(reader);
    free(reader->input);
    close(reader->fd);
    *reader = (struct reader){.fd = -1};
}

int reader_open(struct reader *reader, const char *path, unsigned threads, _Atomic uint64_t *done) {
    unsigned char magic[MAGIC_BYTES] = {0};
    *reader = (struct reader){.path = path, .done = done, .fd = file_open(path, O_RDONLY), .threads = threads};
    if (reader->fd < 0) return -1;
    posix_fadvise(reader->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (retry_read_at(reader->fd, magic, sizeof magic, 0) < 0) return fail_system("read", path);
    const struct packing *packing = packing_of(magic);
    if (!packing) return 0;
    reader->input = mem_alloc(INPUT_BYTES, 1, "unpacking");
    if (!reader->input) return -1;
    reader->packing = packing;
    return packing->begin(reader) ? refuse_memory(reader) : 0;
}

/* Reads the file's own bytes, without unpacking them. Returns the number of bytes; 0 at the end of the file; -1 after fail(). */
static int64_t read_raw(struct reader *reader, char *out, uint64_t capacity) {
    ssize_t n;
    do n = read(reader->fd, out, piece(capacity));
    while (n < 0 && errno == EINTR);
    if (n < 0) return fail_system("read", reader->path);
    if (reader->done) atomic_fetch_add_explicit(reader->done, (uint64_t)n, memory_order_relaxed);
    return n;
}

int64_t reader_read(struct reader *reader, char *out, uint64_t capacity) {
    if (!reader->packing) return read_raw(reader, out, capacity);
    for (;;) {
        /* Called before more input is read, since output may be left after all input was used. */
        int64_t made = reader->packing->some(reader, out, capacity);
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
