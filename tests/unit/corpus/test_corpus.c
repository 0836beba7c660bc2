#include "tests/testing.h"

#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <zlib.h>
#include <bzlib.h>
#include <dlfcn.h>
#include <lzma.h>
#include <zstd.h>

#include "base/pool.h"
#include "tests/unit/sentence.h"

/* ---- the tokenizer against a plain one ---- */

static int white(unsigned char c) {
    return c == ' ' || (c >= 9 && c <= 13);
}

/* Writes the tokens and line ends of some bytes as a text: each token as <token>, each line end as /. */
static char *plain_trace(const char *bytes, uint64_t length, char *out) {
    char newline = memchr(bytes, '\n', length) ? '\n' : '\r';
    for (uint64_t i = 0; i < length;) {
        if (bytes[i] == newline) *out++ = '/';
        if (white((unsigned char)bytes[i])) {
            i++;
            continue;
        }
        *out++ = '<';
        while (i < length && !white((unsigned char)bytes[i])) *out++ = bytes[i++];
        *out++ = '>';
    }
    return out;
}

/* State of a trace of blocks, after the last traced block. */
struct tracing {
    uint64_t number, offset, line;
    const char *path;
    int open;
    char *out;
};

/* Adds the text of the next block, and checks the block's numbers. */
static void trace_block(struct tracing *t, const struct corpus_block *block) {
    struct corpus_cursor cursor;
    const char *word;
    uint64_t length;
    int kind;
    if (t->path != block->path) t->line = 1, t->open = 0;
    t->path = block->path;
    assert_true(block->length > 0);
    assert_int_equal(block->number, t->number++);
    assert_int_equal(block->offset, t->offset);
    assert_int_equal(block->line, t->line);
    assert_int_equal(block->continues, t->open);
    t->offset += block->length;
    corpus_cursor_start(&cursor, block);
    while ((kind = corpus_token(&cursor, "", &word, &length)) != TOKEN_END) {
        t->open = kind == TOKEN_WORD;
        t->line += kind == TOKEN_NEWLINE;
        assert_int_equal(cursor.line, t->line);
        if (kind == TOKEN_NEWLINE) {
            *t->out++ = '/';
            continue;
        }
        *t->out++ = '<';
        memcpy(t->out, word, length);
        t->out += length;
        *t->out++ = '>';
    }
    if (block->line_open) assert_true(t->open);
}

/* Makes the same text from a corpus that is read in blocks, and checks the numbers of each block. */
static char *block_trace(struct corpus *corpus, char *out) {
    struct corpus_block block = {0};
    struct tracing tracing = {.line = 1, .out = out};
    int more;
    while ((more = corpus_next(corpus, &block)) > 0) trace_block(&tracing, &block);
    assert_int_equal(more, 0);
    corpus_block_release(&block);
    return tracing.out;
}

static void trace_agrees(const char *bytes, uint64_t length, uint64_t block, char *path) {
    char *wanted = malloc(length * 3 + 16), *seen = malloc(length * 3 + 16);
    struct corpus *corpus = scratch_corpus(path, block);
    assert_non_null(corpus);
    uint64_t n = (uint64_t)(plain_trace(bytes, length, wanted) - wanted);
    for (int pass = 0; pass < 2; pass++) {
        corpus_set_threads(corpus, pass ? 4 : 1);
        corpus_rewind(corpus);
        assert_int_equal(block_trace(corpus, seen) - seen, n);
        assert_memory_equal(seen, wanted, n);
        assert_int_equal(corpus_done(corpus), corpus_size(corpus));
    }
    corpus_close(corpus);
    free(wanted);
    free(seen);
}

static const uint64_t blocks[] = {1, 2, 3, 7, 64, 1000, CORPUS_BLOCK};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

static void keeps_every_byte_of_a_token(void **state) {
    static const char odd[] = "a\0b \xFF\xFE\xC3( caf\xC3\xA9\r\n\r\n\n  x\ty\vz\fq \n\x80\0 \0\0 end";
    for (int i = 0; i < BLOCKS; i++)
        trace_agrees(odd, sizeof odd - 1, blocks[i], scratch_file("odd", odd, sizeof odd - 1));
}

static void random_bytes_are_read_alike_at_every_block_size(void **state) {
    static const char letters[] = "ab \n\r\tc\0\xC3";
    char bytes[600];
    for (int round = 0; round < 200; round++) {
        uint64_t length = scratch_random(sizeof bytes);
        for (uint64_t i = 0; i < length; i++) bytes[i] = letters[scratch_random(sizeof letters - 1)];
        trace_agrees(bytes, length, 1 + scratch_random(40), scratch_file("random", bytes, length));
    }
}

/* Blocks that several threads have read, by the blocks' numbers. */
enum { MOST_BLOCKS = 4096 };
struct together {
    struct corpus *corpus;
    struct corpus_block blocks[MOST_BLOCKS];
};

static int keep_blocks(void *context, unsigned worker) {
    struct together *together = context;
    struct corpus_block block = {0};
    int more;
    while ((more = corpus_next(together->corpus, &block)) > 0) {
        assert_in_range(block.number, 0, MOST_BLOCKS - 1);
        together->blocks[block.number] = block;
        block = (struct corpus_block){0};
    }
    corpus_block_release(&block);
    return more;
}

/* Threads read ranges of files, some of them compressed. Words and lines may be longer than a range, and some files end without a line end. */
static void threads_that_read_ranges_make_the_blocks_of_one(void **state) {
    static const char letters[] = "abc \n\n\r\t";
    struct together *together = calloc(1, sizeof *together);
    char *bytes = malloc(4 * 3000), *wanted = malloc(4 * 10000), *seen = malloc(4 * 10000);
    struct pool *pool = pool_open(5);
    for (int round = 0; round < 60; round++) {
        char *end = wanted, *paths[4], name[16];
        for (int f = 0; f < 4; f++) {
            uint64_t length = scratch_random(3000), words = 1 + scratch_random(400);
            bytes[0] = '\n'; /* the file's lines end in LF */
            for (uint64_t i = 1; i < length; i++)
                bytes[i] = scratch_random((uint32_t)words) ? 'w' : letters[scratch_random(sizeof letters - 1)];
            sprintf(name, "file%d", f);
            if (f == 2) {
                gzFile file = gzopen(in_scratch(name), "wb");
                if (length) gzwrite(file, bytes, (unsigned)length);
                gzclose(file);
            }
            paths[f] = strdup(f == 2 ? in_scratch(name) : scratch_file(name, bytes, length));
            end = plain_trace(bytes, length, end);
        }
        together->corpus = corpus_open(paths, 4);
        assert_non_null(together->corpus);
        corpus_set_block(together->corpus, 8 + scratch_random(300));
        assert_int_equal(pool_run(pool, keep_blocks, together), 0);
        struct tracing tracing = {.line = 1, .out = seen};
        for (uint64_t n = 0; n < MOST_BLOCKS && together->blocks[n].bytes; n++) {
            trace_block(&tracing, &together->blocks[n]);
            corpus_block_release(&together->blocks[n]);
        }
        assert_int_equal(tracing.out - seen, end - wanted);
        assert_memory_equal(seen, wanted, (size_t)(end - wanted));
        assert_int_equal(corpus_done(together->corpus), corpus_size(together->corpus));
        corpus_close(together->corpus);
        for (int f = 0; f < 4; f++) free(paths[f]);
    }
    pool_close(pool);
    free(together);
    free(bytes);
    free(wanted);
    free(seen);
}

/* If one thread fails, the other threads, which wait for its block, end as well. */
static void a_failure_ends_all_threads_that_read(void **state) {
    struct together *together = calloc(1, sizeof *together);
    struct corpus_options options = {.format = FORMAT_TEXT, .max_word = 100};
    char text[4000];
    memset(text, 'x', sizeof text);
    for (unsigned i = 0; i < sizeof text; i += 50)
        if (i < 2000 || i > 2200) text[i] = '\n';
    struct pool *pool = pool_open(4);
    together->corpus = scratch_corpus(scratch_file("long", text, sizeof text), 20);
    corpus_read_as(together->corpus, &options);
    assert_int_equal(pool_run(pool, keep_blocks, together), -1);
    sentence_holds("long' line 41: the word that begins with 'xxx");
    for (uint64_t n = 0; n < MOST_BLOCKS; n++) corpus_block_release(&together->blocks[n]);
    corpus_close(together->corpus);
    pool_close(pool);
    free(together);
}

static void a_token_may_be_longer_than_any_buffer(void **state) {
    uint64_t length = 300001;
    char *bytes = malloc(length);
    memset(bytes, 'x', length);
    bytes[5] = bytes[200000] = ' ';
    for (int i = 0; i < BLOCKS; i++) trace_agrees(bytes, length, blocks[i], scratch_file("long", bytes, length));
    free(bytes);
}

/* Reads the whole file with these options. Returns 0, or -1 on failure. */
static int read_with(char *path, enum corpus_format format, uint64_t max_word, uint64_t block_bytes) {
    struct corpus_options options = {.format = format, .look = {.header = HEADER_AUTO, .no_values = 1}, .max_word = max_word};
    struct corpus *corpus = scratch_corpus(path, block_bytes);
    struct corpus_block block = {0};
    int more;
    assert_non_null(corpus);
    corpus_read_as(corpus, &options);
    while ((more = corpus_next(corpus, &block)) > 0) continue;
    corpus_block_release(&block);
    corpus_close(corpus);
    return more;
}

/* A word that is too long is refused wherever it is in the file and wherever blocks end. */
static void a_word_is_as_long_as_it_may_be(void **state) {
    char text[400];
    for (int round = 0; round < 300; round++) {
        uint64_t length = 100 + scratch_random(300), word = 1 + scratch_random(60),
                 at = scratch_random((uint32_t)(length - word));
        for (uint64_t i = 0; i < length; i++) text[i] = i % 3 == 2 ? '\n' : 'a';
        memset(text + at, 'w', word);
        if (at) text[at - 1] = ' ';
        if (at + word < length) text[at + word] = round % 2 ? ' ' : '\n';
        char *path = scratch_file("long", text, length);
        uint64_t block = 1 + scratch_random(100);
        enum corpus_format format = round % 3 ? FORMAT_TEXT : FORMAT_GRAPH;
        if (word < 2) word = 2; /* the test's other words need two bytes */
        assert_int_equal(read_with(path, format, word, block), 0);
        if (word == 2) continue;
        assert_int_equal(read_with(path, format, word - 1, block), -1);
        char wanted[64];
        uint64_t line = 1;
        for (uint64_t i = 0; i < at; i++) line += text[i] == '\n';
        snprintf(wanted, sizeof wanted, "long' line %" PRIu64 ": the word that begins with 'www", line);
        sentence_holds(word > 3 ? wanted : "corpus.max_word");
    }
}

/* A few compressed bytes may expand to an endless word, or to an endless line of pairs. Reading must end with an error before
 * memory is full. */
static void words_without_an_end_are_not_held(void **state) {
    static const struct {
        enum corpus_format format;
        const char *piece, *sentence;
    } cases[] = {{FORMAT_TEXT, "xxxxxxxx", "zeros.gz' line 1: the word that begins with 'xxxxxxxx"},
                 {FORMAT_PAIRS, "xxxxxxxx", "has more than 1.00 MiB (corpus.max_word)"},
                 {FORMAT_PAIRS, "u i  5  ", "zeros.gz' line 1 has more than 12582912 bytes"}};
    for (int i = 0; i < 3; i++) {
        gzFile file = gzopen(in_scratch("zeros.gz"), "wb");
        for (int n = 0; n < (64 << 20) / 8; n++) gzwrite(file, cases[i].piece, 8);
        gzclose(file);
        assert_int_equal(read_with(in_scratch("zeros.gz"), cases[i].format, 0, 0), -1);
        sentence_holds(cases[i].sentence);
    }
    char *line = malloc(16 << 20); /* the same for a line of a file that is not packed, after two other lines */
    memset(line, ' ', 16 << 20);
    memcpy(line, "u i 5\nu j 5\nv i 5", 17);
    assert_int_equal(read_with(scratch_file("line", line, 16 << 20), FORMAT_PAIRS, 0, 1000), -1);
    sentence_holds("line' line 3 has more than 12582912 bytes");
    free(line);
}

static void an_open_line_is_said_only_where_it_has_tokens(void **state) {
    struct corpus *corpus = scratch_corpus(scratch_text("open", "a b\n   \n    c dd e\nf"), 4);
    struct corpus_block block = {0};
    char said[64] = "", one[16];
    while (corpus_next(corpus, &block) > 0) {
        snprintf(one, sizeof one, "%d%d ", block.continues, block.line_open);
        strcat(said, one);
    }
    /* the blocks are "a b\n" "   \n" "    " "c dd " "e\nf" */
    assert_string_equal(said, "00 00 00 01 10 ");
    corpus_block_release(&block);
    corpus_close(corpus);
}

/* ---- which files ---- */

static char *paths_trace(struct corpus *corpus, char *out) {
    struct corpus_block block = {0};
    *out = 0;
    while (corpus_next(corpus, &block) > 0) {
        strcat(out, block.path + strlen(scratch) + 1);
        strcat(out, " ");
    }
    corpus_block_release(&block);
    return out;
}

static void a_directory_is_read_by_name_and_deeper_ones_too(void **state) {
    char seen[512];
    mkdir(in_scratch("d"), 0777);
    mkdir(in_scratch("d/b"), 0777);
    mkdir(in_scratch("d/empty"), 0777);
    scratch_text("d/c", "c");
    scratch_text("d/a", "a");
    scratch_text("d/b/z", "z");
    scratch_text("d/b/y", "y\n");
    scratch_text("d/nothing", "");
    scratch_text("d/.c.swp", "hidden");
    mkdir(in_scratch("d/.git"), 0777);
    scratch_text("d/.git/config", "hidden");
    assert_int_equal(symlink("..", in_scratch("d/b/loop")), 0);
    assert_int_equal(symlink("c", in_scratch("d/link")), 0);
    assert_int_equal(mkfifo(in_scratch("d/pipe"), 0666), 0);
    char *paths[] = {in_scratch("d/c"), in_scratch("d")};
    struct corpus *corpus = corpus_open(paths, 2);
    assert_non_null(corpus);
    assert_string_equal(paths_trace(corpus, seen), "d/c d/a d/b/y d/b/z d/c d/link ");
    assert_int_equal(corpus_size(corpus), 7);
    corpus_close(corpus);
}

static void what_cannot_be_a_corpus_is_refused(void **state) {
    char *paths[] = {in_scratch("no-such"), in_scratch("none"), in_scratch("pipe"), in_scratch("links")};
    mkdir(paths[1], 0777);
    mkfifo(paths[2], 0666);
    mkdir(paths[3], 0777);
    assert_int_equal(symlink("gone", in_scratch("links/dangling")), 0);
    assert_null(corpus_open(paths, 0));
    sentence_holds("corpus.path");
    assert_null(corpus_open(&paths[0], 1));
    sentence_holds("no-such': No such file");
    assert_null(corpus_open(&paths[1], 1));
    sentence_holds("none' holds no file");
    assert_null(corpus_open(&paths[2], 1));
    sentence_holds("neither a plain file nor a directory");
    assert_null(corpus_open(&paths[3], 1));
    sentence_holds("links/dangling': No such file");
}

static int is_refused(const char *path) {
    char *paths[] = {(char *)path};
    struct corpus *corpus = corpus_open(paths, 1);
    corpus_close(corpus);
    return corpus == NULL;
}

static void what_may_not_be_read_is_refused(void **state) {
    chmod(scratch, 0755);
    mkdir(in_scratch("d"), 0755);
    mkdir(in_scratch("d/closed"), 0755);
    scratch_text("d/closed/a", "a");
    scratch_text("secret", "a");
    chmod(in_scratch("d/closed"), 0);
    chmod(in_scratch("secret"), 0);
    int refused = without_rights(is_refused, in_scratch("secret"));
    if (refused == 77) skip();
    assert_int_equal(refused, 1);
    sentence_holds("secret': Permission denied");
    assert_int_equal(without_rights(is_refused, in_scratch("d")), 1);
    sentence_holds("d/closed': Permission denied");
    chmod(in_scratch("d/closed"), 0755);
}

static void a_file_that_goes_away_is_a_failure_of_its_own(void **state) {
    char *path = scratch_text("goes", "a b");
    struct corpus_block block = {0};
    struct corpus *corpus = scratch_corpus(path, 0);
    unlink(path);
    assert_int_equal(corpus_next(corpus, &block), -1);
    sentence_holds("goes': No such file");
    corpus_close(corpus);
    corpus_block_release(&block);
}

static uint64_t fingerprint(char *path) {
    struct corpus *corpus = scratch_corpus(path, 0);
    uint64_t sum = corpus_fingerprint(corpus);
    corpus_close(corpus);
    return sum;
}

static void write_dated(char *path, const char *text, uint64_t length, const struct timespec modified) {
    const struct timespec times[2] = {modified, modified};
    assert_int_equal(file_replace(path, text, length), 0);
    utimensat(AT_FDCWD, path, times, 0);
}

static void the_fingerprint_knows_path_size_and_time(void **state) {
    const struct timespec then = {1000, 0}, later = {1000, 1};
    char *a = in_scratch("a"), *b = in_scratch("b");
    write_dated(a, "one two", 7, then);
    write_dated(b, "one two", 7, then);
    uint64_t first = fingerprint(a);
    assert_int_equal(fingerprint(a), first);
    assert_int_not_equal(fingerprint(b), first);
    write_dated(a, "one two", 7, later);
    assert_int_not_equal(fingerprint(a), first);
    write_dated(a, "one two three", 13, then);
    assert_int_not_equal(fingerprint(a), first);
}

/* Changes a byte of the file without changing its size and time. In a file of up to 64 blocks of 4 KiB every changed byte must change the
 * fingerprint, in a larger file at least the first and the last byte. */
static void the_fingerprint_knows_what_stands_in_a_file(void **state) {
    const struct timespec then = {1000, 0};
    const uint64_t sizes[] = {1, 100, 4095, 4096, 4097, 8192, 64 * 4096 - 1, 64 * 4096, 65 * 4096, 3000000};
    char *path = in_scratch("a"), *bytes = malloc(3000000);
    memset(bytes, 'a', 3000000);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        write_dated(path, bytes, sizes[s], then);
        uint64_t first = fingerprint(path);
        for (int i = 0; i < 12; i++) {
            uint64_t at = i == 0 ? 0 : i == 1 || sizes[s] > 64 * 4096 ? sizes[s] - 1 : scratch_random((uint32_t)sizes[s]);
            bytes[at] = 'b';
            write_dated(path, bytes, sizes[s], then);
            assert_int_not_equal(fingerprint(path), first);
            bytes[at] = 'a';
        }
        write_dated(path, bytes, sizes[s], then);
        assert_int_equal(fingerprint(path), first);
    }
    free(bytes);
}

/* ---- packed files ---- */

static uint64_t gzip(char *out, uint64_t capacity, const char *bytes, uint64_t length) {
    z_stream stream = {0};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = (unsigned char *)bytes;
    stream.avail_in = (unsigned)length;
    stream.next_out = (unsigned char *)out;
    stream.avail_out = (unsigned)capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    uint64_t made = stream.total_out;
    deflateEnd(&stream);
    return made;
}

static uint64_t zstd(char *out, uint64_t capacity, const char *bytes, uint64_t length) {
    return ZSTD_compress(out, capacity, bytes, length, 3);
}

static uint64_t xz(char *out, uint64_t capacity, const char *bytes, uint64_t length) {
    size_t made = 0;
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, (const uint8_t *)bytes, length, (uint8_t *)out,
                                             &made, capacity),
                     LZMA_OK);
    return made;
}

/* Compresses into blocks of 50,000 bytes, which several threads decompress at the same time. */
static uint64_t xz_blocks(char *out, uint64_t capacity, const char *bytes, uint64_t length) {
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_mt how = {.threads = 2, .block_size = 50000, .preset = 1, .check = LZMA_CHECK_CRC32};
    assert_int_equal(lzma_stream_encoder_mt(&stream, &how), LZMA_OK);
    stream.next_in = (const uint8_t *)bytes;
    stream.avail_in = length;
    stream.next_out = (uint8_t *)out;
    stream.avail_out = capacity;
    assert_int_equal(lzma_code(&stream, LZMA_FINISH), LZMA_STREAM_END);
    uint64_t made = stream.total_out;
    lzma_end(&stream);
    return made;
}

/* Compresses by the same library that the program loads. */
static uint64_t bzip2(char *out, uint64_t capacity, const char *bytes, uint64_t length) {
    void *library = dlopen("libbz2.so.1.0", RTLD_NOW);
    if (!library) library = dlopen("libbz2.so.1", RTLD_NOW);
    assert_non_null(library);
    __typeof__(BZ2_bzBuffToBuffCompress) *pack = (__typeof__(pack))dlsym(library, "BZ2_bzBuffToBuffCompress");
    unsigned made = (unsigned)capacity;
    assert_int_equal(pack(out, &made, (char *)(uintptr_t)bytes, (unsigned)length, 1, 0, 0), BZ_OK);
    return made;
}

typedef uint64_t packer(char *, uint64_t, const char *, uint64_t);

/* A text of 60,000 random words and a token of 100,000 bytes, compressed in three parts. */
enum { PARTS = 3 };
static char *long_text(uint64_t *length) {
    char *text = malloc(1 << 20), *at = text;
    for (int i = 0; i < 60000; i++) at += sprintf(at, "w%u%c", scratch_random(10000), scratch_random(9) ? ' ' : '\n');
    memset(at, 'L', 100000);
    at += 100000;
    *length = (uint64_t)(at - text);
    return text;
}

static uint64_t pack_parts(packer *pack, char *out, uint64_t capacity, const char *text, uint64_t length) {
    uint64_t used = 0;
    for (uint64_t part = 0; part < PARTS; part++) {
        uint64_t from = length * part / PARTS, to = length * (part + 1) / PARTS;
        used += pack(out + used, capacity - used, text + from, to - from);
    }
    return used;
}

static void packed_in_parts_is_the_same_text(packer *pack) {
    uint64_t length, capacity = 2 << 20;
    char *text = long_text(&length), *packed = malloc(capacity);
    uint64_t n = pack_parts(pack, packed, capacity, text, length);
    const uint64_t sizes[] = {1000, 70000, CORPUS_BLOCK};
    for (int i = 0; i < 3; i++) trace_agrees(text, length, sizes[i], scratch_file("packed", packed, n));
    free(text);
    free(packed);
}

static void packed_members_follow_each_other(void **state) {
    packed_in_parts_is_the_same_text(gzip);
    packed_in_parts_is_the_same_text(zstd);
    packed_in_parts_is_the_same_text(xz);
    packed_in_parts_is_the_same_text(xz_blocks);
    packed_in_parts_is_the_same_text(bzip2);
}

/* A compressed file may contain an empty text. */
static void a_packed_file_may_be_empty(void **state) {
    static packer *const packers[] = {gzip, zstd, xz, bzip2};
    for (int i = 0; i < 4; i++) {
        char packed[4096];
        uint64_t n = packers[i](packed, sizeof packed, "", 0);
        trace_agrees("", 0, 64, scratch_file("empty", packed, n));
        n += packers[i](packed + n, sizeof packed - n, "one two", 7);
        trace_agrees("one two", 7, 64, scratch_file("empty", packed, n));
    }
}

static void padding_and_frames_to_skip_are_no_text(void **state) {
    char packed[4096] = {0};
    uint64_t n = gzip(packed, 2000, "one two", 7);
    n += gzip(packed + n, 2000, "", 0);
    trace_agrees("one two", 7, 64, scratch_file("padded.gz", packed, n + 512)); /* 512 zeros follow the compressed data */
    memcpy(packed, "\x5A\x2A\x4D\x18\x03\0\0\0abc", 11);
    n = 11 + zstd(packed + 11, 2000, "one two", 7);
    trace_agrees("one two", 7, 64, scratch_file("skip.zst", packed, n));
    memset(packed, 0, sizeof packed);
    n = xz(packed, 2000, "one two", 7) + 4;
    n += xz(packed + n, 2000, "", 0) + 8;
    trace_agrees("one two", 7, 64, scratch_file("padded.xz", packed, n));
}

static void the_name_decides_nothing(void **state) {
    trace_agrees("plain text", 10, 64, scratch_text("text.gz", "plain text"));
    trace_agrees("\x1F\x8B", 2, 64, scratch_text("short", "\x1F\x8B"));
}

static int read_through(char *path) {
    struct corpus *corpus = scratch_corpus(path, 100);
    struct corpus_block block = {0};
    int more;
    if (!corpus) return -1; /* opening failed already, because the damage is in the file's first bytes */
    corpus_set_threads(corpus, 4);
    while ((more = corpus_next(corpus, &block)) > 0) continue;
    if (more < 0) assert_int_equal(corpus_next(corpus, &block), 0); /* after a failure another thread must find no further block */
    corpus_block_release(&block);
    corpus_close(corpus);
    return more;
}

static void damaged_packing_is_refused(packer *pack, const char *kind) {
    uint64_t length, capacity = 2 << 20;
    char *text = long_text(&length), *packed = malloc(capacity);
    uint64_t n = pack_parts(pack, packed, capacity, text, length);
    const uint64_t cuts[] = {n - 1, n - 9, n / 2, 20};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(read_through(scratch_file("cut", packed, cuts[i])), -1);
        sentence_holds("cut' is cut short");
    }
    packed[n / 2] ^=
        0x55; /* the compressed data is read to its end; zstd has no checksum by default, but its structure is checked */
    packed[n / 2 + 1] ^= 0x55;
    memcpy(packed + n, "garbage behind", 14);
    assert_int_equal(read_through(scratch_file("bad", packed, n + 14)), -1);
    sentence_holds(kind);
    free(text);
    free(packed);
}

static void damaged_packed_files_are_named(void **state) {
    damaged_packing_is_refused(gzip, "bad' is no whole gzip file: ");
    damaged_packing_is_refused(zstd, "bad' is no whole zstd file: ");
    damaged_packing_is_refused(xz, "bad' is no whole xz file: ");
    damaged_packing_is_refused(xz_blocks, "bad' is no whole xz file: ");
    damaged_packing_is_refused(bzip2, "bad' is no whole bzip2 file: ");
}

/* ---- streams ---- */

static void a_stream_is_a_corpus_alone(void **state) {
    scratch_file("x.ids", "SPTX-IDS and more", 17);
    scratch_text("y", "a b");
    char *paths[] = {in_scratch("y"), in_scratch("x.ids")};
    struct corpus *corpus = corpus_open(&paths[1], 1);
    assert_string_equal(corpus_stream(corpus), paths[1]);
    corpus_close(corpus);
    corpus = corpus_open(paths, 1);
    assert_null(corpus_stream(corpus));
    corpus_close(corpus);
    assert_null(corpus_open(paths, 2));
    sentence_holds("can only be the whole corpus");
}

/* ---- what a front says ---- */

static void a_byte_order_mark_is_no_text(void **state) {
    trace_agrees("one two", 7, 64, scratch_text("plain", "one two"));
    for (int i = 0; i < BLOCKS; i++) {
        char seen[64];
        struct corpus *corpus = scratch_corpus(scratch_text("mark", "\xEF\xBB\xBFone \xEF\xBB\xBFtwo\nthree"), blocks[i]);
        *block_trace(corpus, seen) = 0;
        assert_string_equal(seen, "<one><\xEF\xBB\xBFtwo>/<three>");
        corpus_close(corpus);
        corpus = scratch_corpus(scratch_text("only", "\xEF\xBB\xBF"), blocks[i]);
        *block_trace(corpus, seen) = 0;
        assert_string_equal(seen, "");
        corpus_close(corpus);
        corpus = scratch_corpus(scratch_text("alone", "\xEF\xBB\xBF \n a"), blocks[i]);
        *block_trace(corpus, seen) = 0;
        assert_string_equal(seen, "/<a>");
        corpus_close(corpus);
    }
}

/* If a file has no LF, each CR ends a line, as on old Macs. If it has an LF, CR is a blank. */
static void cr_ends_lines_where_there_is_no_lf(void **state) {
    uint64_t length = FIRST_BYTES + 100;
    char *bytes = malloc(length + 1);
    for (int last = 0; last < 3; last++) {
        for (uint64_t i = 0; i < length; i++) bytes[i] = i % 7 ? 'x' : '\r';
        if (last) bytes[length - (last == 1 ? 1 : FIRST_BYTES)] = '\n';
        for (int i = 3; i < BLOCKS; i++) trace_agrees(bytes, length, blocks[i], scratch_file("mac", bytes, length));
    }
    free(bytes);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(keeps_every_byte_of_a_token),
        IN_SCRATCH(random_bytes_are_read_alike_at_every_block_size),
        IN_SCRATCH(threads_that_read_ranges_make_the_blocks_of_one),
        IN_SCRATCH(a_failure_ends_all_threads_that_read),
        IN_SCRATCH(a_token_may_be_longer_than_any_buffer),
        IN_SCRATCH(a_word_is_as_long_as_it_may_be),
        IN_SCRATCH(words_without_an_end_are_not_held),
        IN_SCRATCH(an_open_line_is_said_only_where_it_has_tokens),
        IN_SCRATCH(a_directory_is_read_by_name_and_deeper_ones_too),
        IN_SCRATCH(what_cannot_be_a_corpus_is_refused),
        IN_SCRATCH(what_may_not_be_read_is_refused),
        IN_SCRATCH(a_file_that_goes_away_is_a_failure_of_its_own),
        IN_SCRATCH(the_fingerprint_knows_path_size_and_time),
        IN_SCRATCH(the_fingerprint_knows_what_stands_in_a_file),
        IN_SCRATCH(packed_members_follow_each_other),
        IN_SCRATCH(a_packed_file_may_be_empty),
        IN_SCRATCH(padding_and_frames_to_skip_are_no_text),
        IN_SCRATCH(the_name_decides_nothing),
        IN_SCRATCH(damaged_packed_files_are_named),
        IN_SCRATCH(a_stream_is_a_corpus_alone),
        IN_SCRATCH(a_byte_order_mark_is_no_text),
        IN_SCRATCH(cr_ends_lines_where_there_is_no_lf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
