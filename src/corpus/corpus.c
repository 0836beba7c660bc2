#define _GNU_SOURCE
#include "corpus.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

enum { INPUT_ROOM = 256 << 10 }; /* packed bytes read at a time */
enum packing { PLAIN, GZIP, ZSTD };

struct corpus_file {
    char *path;
    uint64_t size;
    uint64_t seconds, nanoseconds; /* of the last change */
};

/* The one file that is open. */
struct reader {
    int fd; /* -1: none */
    enum packing packing;
    z_stream gzip;
    ZSTD_DStream *zstd;
    char *input;      /* [INPUT_ROOM], packed files only */
    uint64_t at, end; /* of the input not unpacked yet */
    int between;      /* 1: a member or frame has ended and no other begun */
};

struct corpus {
    struct corpus_file *files;
    uint64_t count, room;
    uint64_t size;
    uint64_t block_bytes;
    int whole_lines;
    int stream; /* 1: the only file is an id stream */

    pthread_mutex_t lock; /* over all that follows */
    struct reader reader;
    uint64_t next; /* file to open when this one ends */
    char *carry;   /* read already, for the next block */
    uint64_t carried, carry_room;
    uint64_t number, offset, line; /* of the next block */
    int line_open;
    _Atomic uint64_t done;
};

static int refuse(const char *doing, const char *path) {
    return fail("cannot %s '%s': %s", doing, path, strerror(errno));
}

/* ---- which files ---- */

/* Opens the file once, so that one that cannot be read is known before hours of counting. */
static int add_file(struct corpus *corpus, const char *path) {
    struct stat about;
    char magic[8];
    int fd = file_open(path, O_RDONLY);
    if (fd < 0) return -1;
    int result = fstat(fd, &about) ? refuse("look at", path) : 0;
    ssize_t n = result ? 0 : pread(fd, magic, sizeof magic, 0);
    if (n < 0) result = refuse("read", path);
    close(fd);
    if (result ||
        mem_grow(&corpus->files, &corpus->room, corpus->count + 1, sizeof *corpus->files, "the corpus' files"))
        return -1;
    struct corpus_file *file = &corpus->files[corpus->count];
    file->path = mem_text(path, strlen(path), "a path");
    if (!file->path) return -1;
    file->size = (uint64_t)about.st_size;
    file->seconds = (uint64_t)about.st_mtim.tv_sec;
    file->nanoseconds = (uint64_t)about.st_mtim.tv_nsec;
    corpus->count++;
    corpus->size += file->size;
    if (n == sizeof magic && !memcmp(magic, CORPUS_STREAM_MAGIC, sizeof magic)) corpus->stream = 1;
    return 0;
}

static int add_directory(struct corpus *corpus, const char *path);

/* What a directory holds: plain files and links to them, deeper directories; a link to a directory is not followed (it
 * may lead in a circle), and a socket or a pipe is no text. */
static int add_entry(struct corpus *corpus, const char *path) {
    struct stat own, about;
    if (lstat(path, &own) || stat(path, &about)) return refuse("look at", path);
    if (S_ISDIR(own.st_mode)) return add_directory(corpus, path);
    return S_ISREG(about.st_mode) ? add_file(corpus, path) : 0;
}

static int add_directory(struct corpus *corpus, const char *path) {
    char **names;
    int64_t count = directory_list(path, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count; i++) {
        char *inner = result ? NULL : file_join(path, names[i]);
        if (!inner || add_entry(corpus, inner)) result = -1;
        free(inner);
        free(names[i]);
    }
    free(names);
    return result;
}

static int add_path(struct corpus *corpus, const char *path) {
    struct stat about;
    uint64_t before = corpus->count;
    if (stat(path, &about)) return refuse("open", path);
    if (S_ISREG(about.st_mode)) return add_file(corpus, path);
    if (!S_ISDIR(about.st_mode))
        return fail("'%s' is neither a plain file nor a directory; the corpus is read more than once", path);
    if (add_directory(corpus, path)) return -1;
    return corpus->count > before ? 0 : fail("directory '%s' holds no file", path);
}

struct corpus *corpus_open(char *const *paths, uint64_t count) {
    struct corpus *corpus = mem_zalloc(1, sizeof *corpus, "the corpus");
    if (!corpus) return NULL;
    pthread_mutex_init(&corpus->lock, NULL);
    corpus->reader.fd = -1;
    corpus->block_bytes = CORPUS_BLOCK;
    int result = count ? 0 : fail("no corpus is named; set corpus.path to a file or a directory");
    for (uint64_t i = 0; i < count && !result; i++) result = add_path(corpus, paths[i]);
    if (!result && corpus->stream && corpus->count > 1)
        result = fail("an id stream is among the %" PRIu64 " files of the corpus; it can only be the whole corpus",
                      corpus->count);
    if (result || corpus_rewind(corpus)) {
        corpus_close(corpus);
        return NULL;
    }
    return corpus;
}

const char *corpus_stream(const struct corpus *corpus) {
    return corpus->stream ? corpus->files[0].path : NULL;
}

uint64_t corpus_size(const struct corpus *corpus) {
    return corpus->size;
}

uint64_t corpus_done(const struct corpus *corpus) {
    return atomic_load_explicit(&corpus->done, memory_order_relaxed);
}

uint64_t corpus_fingerprint(const struct corpus *corpus) {
    uint64_t sum = corpus->count;
    for (uint64_t i = 0; i < corpus->count; i++) {
        const struct corpus_file *file = &corpus->files[i];
        uint64_t facts[] = {file->size, file->seconds, file->nanoseconds};
        sum = XXH3_64bits_withSeed(file->path, strlen(file->path), sum);
        sum = XXH3_64bits_withSeed(facts, sizeof facts, sum);
    }
    return sum;
}

void corpus_set_block(struct corpus *corpus, uint64_t bytes) {
    corpus->block_bytes = bytes ? bytes : 1;
}

void corpus_whole_lines(struct corpus *corpus, int whole) {
    corpus->whole_lines = whole;
}

/* ---- bytes of one file ---- */

static void reader_close(struct reader *reader) {
    if (reader->fd < 0) return;
    if (reader->packing == GZIP) inflateEnd(&reader->gzip);
    ZSTD_freeDStream(reader->zstd);
    free(reader->input);
    close(reader->fd);
    *reader = (struct reader){.fd = -1};
}

static enum packing packing_of(const unsigned char magic[4]) {
    static const unsigned char gzip[] = {0x1F, 0x8B, 0x08}, zstd[] = {0x28, 0xB5, 0x2F, 0xFD},
                               skippable[] = {0x2A, 0x4D, 0x18};
    if (!memcmp(magic, gzip, sizeof gzip)) return GZIP;
    if (!memcmp(magic, zstd, sizeof zstd)) return ZSTD;
    /* a zstd file may begin with a frame that is to be skipped (pzstd writes one) */
    return (magic[0] & 0xF0) == 0x50 && !memcmp(magic + 1, skippable, sizeof skippable) ? ZSTD : PLAIN;
}

static int reader_open(struct reader *reader, const char *path) {
    unsigned char magic[4] = {0};
    *reader = (struct reader){.fd = file_open(path, O_RDONLY)};
    if (reader->fd < 0) return -1;
    posix_fadvise(reader->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (pread(reader->fd, magic, sizeof magic, 0) < 0) return refuse("read", path);
    enum packing packing = packing_of(magic);
    if (packing == PLAIN) return 0;
    reader->input = mem_alloc(INPUT_ROOM, 1, "unpacking");
    if (!reader->input) return -1;
    reader->between = 1;
    if (packing == GZIP && inflateInit2(&reader->gzip, 15 + 16) != Z_OK)
        return fail("not enough memory to unpack '%s'", path);
    reader->packing = packing;
    if (packing == GZIP) return 0;
    reader->zstd = ZSTD_createDStream();
    if (!reader->zstd ||
        ZSTD_isError(ZSTD_DCtx_setParameter(reader->zstd, ZSTD_d_windowLogMax, sizeof(size_t) == 8 ? 31 : 30)))
        return fail("not enough memory to unpack '%s'", path);
    return 0;
}

/* Bytes from the file itself: how many, 0 at its end, -1 after fail(). */
static int64_t read_raw(struct corpus *corpus, const char *path, char *out, uint64_t room) {
    ssize_t n;
    do n = read(corpus->reader.fd, out, room > (1 << 30) ? 1 << 30 : room);
    while (n < 0 && errno == EINTR);
    if (n < 0) return refuse("read", path);
    atomic_fetch_add_explicit(&corpus->done, (uint64_t)n, memory_order_relaxed);
    return n;
}

/* One step of unpacking: takes from input[at..end), returns the bytes made. */
static int64_t inflate_some(struct reader *reader, const char *path, char *out, uint64_t room) {
    z_stream *gzip = &reader->gzip;
    /* A member may be padded with zeros to a whole tape block, and another one may follow. */
    while (reader->between && reader->at < reader->end && reader->input[reader->at] == 0) reader->at++;
    if (reader->at == reader->end) return 0;
    if (reader->between) inflateReset(gzip);
    reader->between = 0;
    gzip->next_in = (unsigned char *)reader->input + reader->at;
    gzip->avail_in = (unsigned)(reader->end - reader->at);
    gzip->next_out = (unsigned char *)out;
    gzip->avail_out = room > (1 << 30) ? 1 << 30 : (unsigned)room;
    int result = inflate(gzip, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return fail("'%s' is no whole gzip file: %s", path, gzip->msg ? gzip->msg : zError(result));
    reader->at = reader->end - gzip->avail_in;
    reader->between = result == Z_STREAM_END;
    return (char *)gzip->next_out - out;
}

static int64_t unzstd_some(struct reader *reader, const char *path, char *out, uint64_t room) {
    ZSTD_inBuffer in = {reader->input, reader->end, reader->at};
    ZSTD_outBuffer made = {out, room, 0};
    if (reader->between && in.pos == in.size) return 0;
    size_t left = ZSTD_decompressStream(reader->zstd, &made, &in);
    if (ZSTD_isError(left)) return fail("'%s' is no whole zstd file: %s", path, ZSTD_getErrorName(left));
    reader->at = in.pos;
    reader->between = left == 0;
    return (int64_t)made.pos;
}

/* Up to `room` unpacked bytes: how many, 0 at the file's end, -1 after fail(). */
static int64_t read_some(struct corpus *corpus, const char *path, char *out, uint64_t room) {
    struct reader *reader = &corpus->reader;
    if (reader->packing == PLAIN) return read_raw(corpus, path, out, room);
    for (;;) {
        /* What the unpacker still holds comes first: its input may be used up before its output is. */
        int64_t made =
            reader->packing == GZIP ? inflate_some(reader, path, out, room) : unzstd_some(reader, path, out, room);
        if (made) return made;
        if (reader->at < reader->end) continue;
        int64_t n = read_raw(corpus, path, reader->input, INPUT_ROOM);
        if (n < 0) return -1;
        if (n == 0 && !reader->between) return fail("'%s' is cut short: its last part is missing", path);
        if (n == 0) return 0;
        reader->at = 0;
        reader->end = (uint64_t)n;
    }
}

/* ---- blocks ---- */

static const unsigned char white[256] = {[' '] = 1, ['\t'] = 1, ['\n'] = 1, ['\r'] = 1, ['\v'] = 1, ['\f'] = 1};

static int is_white(char byte) {
    return white[(unsigned char)byte];
}

/* Where a block may end: behind the last white byte (or line) of bytes[looked..length - 1), or 0. The very last byte
 * stays for the next block, so that a block which is not the file's last always has one behind it. */
static uint64_t find_cut(const struct corpus_block *block, uint64_t looked, int whole_lines) {
    if (whole_lines) {
        const char *newline = memrchr(block->bytes + looked, '\n', block->length - 1 - looked);
        return newline ? (uint64_t)(newline - block->bytes) + 1 : 0;
    }
    for (uint64_t i = block->length - 1; i > looked; i--)
        if (is_white(block->bytes[i - 1])) return i;
    return 0;
}

static uint64_t count_newlines(const char *bytes, uint64_t length) {
    uint64_t total = 0;
    while (length) {
        uint64_t piece = length < 4096 ? length : 4096;
        uint32_t count = 0;
        for (uint64_t i = 0; i < piece; i++) count += bytes[i] == '\n';
        total += count;
        bytes += piece;
        length -= piece;
    }
    return total;
}

static int left_open(const struct corpus_block *block, int before) {
    for (uint64_t i = block->length; i > 0; i--) {
        if (block->bytes[i - 1] == '\n') return 0;
        if (!is_white(block->bytes[i - 1])) return 1;
    }
    return before;
}

/* Reads until the block is full or the file ends (*ended), and keeps what is behind the cut for the next one. */
static int fill(struct corpus *corpus, const char *path, struct corpus_block *block, int *ended) {
    uint64_t want = (corpus->carried > corpus->block_bytes ? corpus->carried : corpus->block_bytes) + 1, looked = 0,
             cut = 0;
    *ended = 0;
    if (mem_grow(&block->bytes, &block->room, want, 1, "a block of the corpus")) return -1;
    if (corpus->carried) memcpy(block->bytes, corpus->carry, corpus->carried);
    block->length = corpus->carried;
    corpus->carried = 0;
    while (!cut) {
        while (block->length < want) {
            int64_t n = read_some(corpus, path, block->bytes + block->length, want - block->length);
            if (n < 0) return -1;
            if (n == 0) {
                *ended = 1;
                return 0;
            }
            block->length += (uint64_t)n;
        }
        cut = find_cut(block, looked, corpus->whole_lines);
        looked = block->length - 1;
        want = block->length * 2;
        if (!cut && mem_grow(&block->bytes, &block->room, want, 1, "a long token or line")) return -1;
    }
    corpus->carried = block->length - cut;
    if (mem_grow(&corpus->carry, &corpus->carry_room, corpus->carried, 1, "a block of the corpus")) return -1;
    memcpy(corpus->carry, block->bytes + cut, corpus->carried);
    block->length = cut;
    return 0;
}

static int next_locked(struct corpus *corpus, struct corpus_block *block) {
    for (;;) {
        int ended;
        if (corpus->reader.fd < 0) {
            if (corpus->next == corpus->count) return 0;
            corpus->line = 1;
            corpus->line_open = 0;
            if (reader_open(&corpus->reader, corpus->files[corpus->next++].path)) return -1;
        }
        const char *path = corpus->files[corpus->next - 1].path;
        if (fill(corpus, path, block, &ended)) return -1;
        if (ended) reader_close(&corpus->reader);
        if (!block->length) continue;
        block->path = path;
        block->number = corpus->number++;
        block->offset = corpus->offset;
        block->line = corpus->line;
        block->continues = corpus->line_open;
        block->line_open = ended ? 0 : left_open(block, corpus->line_open);
        corpus->offset += block->length;
        corpus->line += count_newlines(block->bytes, block->length);
        corpus->line_open = block->line_open;
        return 1;
    }
}

int corpus_next(struct corpus *corpus, struct corpus_block *block) {
    pthread_mutex_lock(&corpus->lock);
    int result = next_locked(corpus, block);
    pthread_mutex_unlock(&corpus->lock);
    return result;
}

void corpus_block_release(struct corpus_block *block) {
    free(block->bytes);
    *block = (struct corpus_block){0};
}

int corpus_rewind(struct corpus *corpus) {
    pthread_mutex_lock(&corpus->lock);
    reader_close(&corpus->reader);
    corpus->next = corpus->carried = corpus->number = corpus->offset = 0;
    corpus->line = 1;
    corpus->line_open = 0;
    atomic_store_explicit(&corpus->done, 0, memory_order_relaxed);
    pthread_mutex_unlock(&corpus->lock);
    return 0;
}

void corpus_close(struct corpus *corpus) {
    if (!corpus) return;
    reader_close(&corpus->reader);
    for (uint64_t i = 0; i < corpus->count; i++) free(corpus->files[i].path);
    free(corpus->files);
    free(corpus->carry);
    pthread_mutex_destroy(&corpus->lock);
    free(corpus);
}

/* ---- tokens ---- */

void corpus_cursor_start(struct corpus_cursor *cursor, const struct corpus_block *block) {
    *cursor = (struct corpus_cursor){block->bytes, block->bytes + block->length, block->line};
}

/* The end of the text is no separator, though strchr() finds it. */
static int separates(char byte, const char *separators) {
    return is_white(byte) || (*separators && byte && strchr(separators, byte));
}

int corpus_token(struct corpus_cursor *cursor, const char *separators, const char **word, uint64_t *length) {
    const char *at = cursor->at, *end = cursor->end;
    while (at < end && *at != '\n' && separates(*at, separators)) at++;
    if (at == end) {
        cursor->at = at;
        return TOKEN_END;
    }
    if (*at == '\n') {
        cursor->at = at + 1;
        cursor->line++;
        return TOKEN_NEWLINE;
    }
    *word = at;
    if (*separators)
        while (at < end && !separates(*at, separators)) at++;
    else
        while (at < end && !is_white(*at)) at++;
    *length = (uint64_t)(at - *word);
    cursor->at = at;
    return TOKEN_WORD;
}

/* ---- pairs ---- */

static int read_rating(const char *word, uint64_t length, double *rating) {
    char text[64];
    if (length == 1 && *word >= '0' && *word <= '9') {
        *rating = *word - '0';
        return 0;
    }
    if (length >= sizeof text || memchr(word, 0, length)) return -1;
    memcpy(text, word, length);
    text[length] = 0;
    return text_real(text, rating);
}

static uint64_t commas(const char *from, const char *to) {
    uint64_t count = 0;
    for (; from < to; from++) count += *from == ',';
    return count;
}

enum { PAIR_FIELDS = 4 };
struct fields {
    const char *word[PAIR_FIELDS];
    uint64_t length[PAIR_FIELDS];
    uint64_t count; /* may pass PAIR_FIELDS: then those left over are not kept */
    int hole;       /* 1: two commas, or one at an end of the line, with nothing between */
};

/* The fields of one line: 1, or 0 where the block is at its end. */
static int read_fields(struct corpus_cursor *cursor, struct fields *fields) {
    const char *word, *behind = cursor->at;
    uint64_t length;
    int kind;
    fields->count = 0;
    fields->hole = 0;
    if (cursor->at == cursor->end) return 0;
    while ((kind = corpus_token(cursor, ",", &word, &length)) == TOKEN_WORD) {
        if (commas(behind, word) > (fields->count > 0)) fields->hole = 1;
        if (fields->count < PAIR_FIELDS) {
            fields->word[fields->count] = word;
            fields->length[fields->count] = length;
        }
        fields->count++;
        behind = word + length;
    }
    if (commas(behind, cursor->at)) fields->hole = 1;
    return 1;
}

int corpus_next_pair(struct corpus_cursor *cursor, const struct corpus_block *block, double min_rating,
                     struct corpus_pair *pair) {
    struct fields fields;
    for (;;) {
        uint64_t line = cursor->line;
        double rating;
        if (!read_fields(cursor, &fields)) return 0;
        if (fields.hole)
            return fail("'%s' line %" PRIu64 ": a field is empty; wanted list, item[, rating]", block->path, line);
        if (fields.count == 0) continue;
        if (fields.count < 2 || fields.count > PAIR_FIELDS)
            return fail("'%s' line %" PRIu64 ": %" PRIu64 " field%s; wanted 2 to 4: list, item[, rating[, anything]]",
                        block->path, line, fields.count, fields.count == 1 ? "" : "s");
        if (fields.count == 2 && !isinf(min_rating))
            return fail("'%s' line %" PRIu64 ": no rating, and corpus.min_rating is set", block->path, line);
        if (fields.count > 2 && read_rating(fields.word[2], fields.length[2], &rating)) {
            if (line == 1) continue; /* the names of the columns */
            return fail("'%s' line %" PRIu64 ": the rating '%.*s' is not a number", block->path, line,
                        (int)(fields.length[2] < 60 ? fields.length[2] : 60), fields.word[2]);
        }
        if (fields.count > 2 && rating < min_rating) continue;
        *pair = (struct corpus_pair){fields.word[0], fields.word[1], fields.length[0], fields.length[1], line};
        return 1;
    }
}
