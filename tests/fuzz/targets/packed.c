/* packed: takes any bytes as a corpus file that may be compressed, or compresses them as gzip, zstd or xz and reads that.
 *
 *   byte 0     whether the rest is the file itself, or a text to be compressed; by what, and in how many members
 *   byte 1     size of a block
 *   the rest   the file or the text
 */
#include "base/memory.h"
#include "tests/fuzz/fuzz.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

enum { AS_IT_STANDS, AS_GZIP, AS_ZSTD, AS_XZ, WAYS, PACKED_MOST = 1 << 16, TEXT_MOST = 1 << 22 };

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    return fuzz_begin();
}

/* Returns the text of all blocks of a file, at most TEXT_MOST bytes; NULL if the file cannot be read. */
static char *text_of(char *path, uint64_t block_bytes, uint64_t *length) {
    struct corpus *corpus = scratch_corpus(path, block_bytes);
    struct corpus_block block = {0};
    char *text = NULL;
    uint64_t capacity = 0;
    int more = corpus ? 1 : -1;
    *length = 0;
    while (more > 0 && *length < TEXT_MOST && (more = corpus_next(corpus, &block)) > 0) {
        HOLDS(block.offset == *length, "a block begins elsewhere than the one before it ends");
        HOLDS(!mem_grow(&text, &capacity, *length + block.length + 1, 1, "a text"), "no memory");
        memcpy(text + *length, block.bytes, block.length);
        *length += block.length;
    }
    corpus_block_release(&block);
    corpus_close(corpus);
    if (fuzz_accepted(more < 0 ? -1 : 0)) return text ? text : calloc(1, 1);
    free(text);
    return NULL;
}

static uint64_t gzip(const uint8_t *text, uint64_t length, uint8_t *out) {
    z_stream stream = {0};
    HOLDS(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "no memory");
    stream.next_in = (uint8_t *)(uintptr_t)text;
    stream.avail_in = (unsigned)length;
    stream.next_out = out;
    stream.avail_out = PACKED_MOST;
    HOLDS(deflate(&stream, Z_FINISH) == Z_STREAM_END, "the text does not fit");
    uint64_t packed = PACKED_MOST - stream.avail_out;
    deflateEnd(&stream);
    return packed;
}

static uint64_t xz(const uint8_t *text, uint64_t length, uint8_t *out) {
    size_t packed = 0;
    HOLDS(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, text, length, out, &packed, PACKED_MOST) == LZMA_OK,
          "the text does not fit");
    return packed;
}

static uint64_t pack(int way, const uint8_t *text, uint64_t length, uint8_t *out) {
    if (way == AS_GZIP) return gzip(text, length, out);
    if (way == AS_XZ) return xz(text, length, out);
    size_t packed = ZSTD_compress(out, PACKED_MOST, text, length, 1);
    HOLDS(!ZSTD_isError(packed), "the text does not fit");
    return packed;
}

/* Returns 1 if a text begins like a compressed file, which would be unpacked again, or like an encoded corpus, which may not be
 * compressed. */
static int is_packed(const uint8_t *text, uint64_t length) {
    if (length > 7 && !memcmp(text, "SPTX-IDS", 8)) return 1;
    if (length > 2 && (!memcmp(text, "\x1F\x8B\x08", 3) || !memcmp(text, "BZh", 3))) return 1;
    if (length > 5 && !memcmp(text,
                              "\xFD"
                              "7zXZ",
                              5))
        return 1;
    return length > 3 && (!memcmp(text, "\x28\xB5\x2F\xFD", 4) || !memcmp(text + 1, "\x2A\x4D\x18", 3));
}

/* Compresses the text in `members` parts. Reading the result must give the text, or fail with the message that reading the text
 * itself gives. */
static void check_packed(int way, unsigned members, uint64_t block_bytes, const uint8_t *text, uint64_t length) {
    static uint8_t packed[8 * PACKED_MOST];
    uint64_t used = 0, n, m;
    for (unsigned i = 0; i < members; i++) {
        uint64_t first = length * i / members, end = length * (i + 1) / members;
        used += pack(way, text + first, end - first, packed + used);
    }
    char *got = text_of(scratch_file("packed", packed, used), block_bytes, &n);
    char *plain = text_of(scratch_file("plain", text, length), block_bytes, &m);
    HOLDS(!got == !plain && n == m && (!got || !memcmp(got, plain, n)), "%u members: %llu bytes, not packed %llu bytes",
          members, (unsigned long long)n, (unsigned long long)m);
    free(got);
    free(plain);
}

static void check_file(const uint8_t *bytes, uint64_t length, uint64_t block_bytes) {
    uint64_t n, m;
    char *path = scratch_file("given", bytes, length), *a = text_of(path, block_bytes, &n), *b = text_of(path, 0, &m);
    HOLDS(!a == !b || n >= TEXT_MOST || m >= TEXT_MOST, "one size of blocks can be read and another cannot");
    if (a && b && n < TEXT_MOST && m < TEXT_MOST)
        HOLDS(n == m && !memcmp(a, b, n), "sizes of blocks differ in the text");
    free(a);
    free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    struct fuzz_input input = {bytes, length};
    unsigned how = fuzz_byte(&input), way = how % WAYS, members = 1 + how / WAYS % 8;
    uint64_t block_bytes = 1 + fuzz_byte(&input);
    if (input.left > PACKED_MOST / 2) return 0;
    if (way == AS_IT_STANDS)
        check_file(input.at, input.left, block_bytes);
    else if (input.left && !is_packed(input.at, input.left))
        check_packed((int)way, members, block_bytes, input.at, input.left);
    return 0;
}
