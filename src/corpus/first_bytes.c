#define _GNU_SOURCE
#include "first_bytes.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "reader.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- formats with a magic number ---- */

static const char unpack[] = "unpack it first", as_lines[] = "write it as lines of text first (in Python: pandas, then to_csv)",
                  want_text[] = "wanted a file with text in it";

/* A binary format and the first bytes of its files. letters = 1: these bytes are letters with which a text may begin, so a control character must
 * follow within SOON bytes. */
static const struct kind {
    const char *magic;
    unsigned length, at, letters;
    const char *what, *then;
} kinds[] = {
#define MAGIC(magic) magic, sizeof magic - 1
    {MAGIC("\x1F\x8B\x08"), 0, 0, "a gzip file", unpack},
    {MAGIC("\x28\xB5\x2F\xFD"), 0, 0, "a zstd file", unpack},
    {MAGIC("\xFD\x37zXZ"), 0, 0, "an xz file", unpack},
    {MAGIC("BZh91AY&SY"), 0, 0, "a bzip2 file", unpack},
    {MAGIC("\x5D\0\0"), 0, 0, "an lzma file", unpack},
    {MAGIC("LZIP\1"), 0, 0, "an lzip file", unpack},
    {MAGIC("\x04\x22\x4D\x18"), 0, 0, "an lz4 file", unpack},
    {MAGIC("\xFF\x06\0\0sNaPpY"), 0, 0, "a snappy file", unpack},
    {MAGIC("\x1F\x9D"), 0, 0, "a file of compress (.Z)", unpack},
    {MAGIC("PK\x03\x04"), 0, 0, "a zip archive (as documents, spreadsheets and .npz are)", unpack},
    {MAGIC("PK\x05\x06"), 0, 0, "an empty zip archive", unpack},
    {MAGIC("7z\xBC\xAF\x27\x1C"), 0, 0, "a 7z archive", unpack},
    {MAGIC("Rar!\x1A\x07"), 0, 0, "a rar archive", unpack},
    {MAGIC("ustar"), 257, 0, "a tar archive", unpack},
    {MAGIC("!<arch>\n"), 0, 0, "an ar archive (.deb, .a)", unpack},
    {MAGIC("PAR1"), 0, 1, "a Parquet file", as_lines},
    {MAGIC("ARROW1"), 0, 1, "an Arrow file", as_lines},
    {MAGIC("FEA1"), 0, 1, "a Feather file", as_lines},
    {MAGIC("ORC"), 0, 1, "an ORC file", as_lines},
    {MAGIC("Obj\x01"), 0, 0, "an Avro file", as_lines},
    {MAGIC("\x89HDF\r\n\x1A\n"), 0, 0, "an HDF5 file", as_lines},
    {MAGIC("SQLite format 3\0"), 0, 0, "an SQLite database", "write a table of it as lines first (sqlite3 -csv)"},
    {MAGIC("\x93NUMPY"), 0, 0, "a NumPy array", "write it as lines of text first (in Python: numpy.savetxt)"},
    {MAGIC("\x80\x02"), 0, 1, "a Python pickle", as_lines},
    {MAGIC("\x80\x03"), 0, 1, "a Python pickle", as_lines},
    {MAGIC("\x80\x04\x95"), 0, 0, "a Python pickle", as_lines},
    {MAGIC("\x80\x05\x95"), 0, 0, "a Python pickle", as_lines},
    {MAGIC("%PDF-"), 0, 0, "a PDF document", "write its text into a file first (pdftotext)"},
    {MAGIC("\xD0\xCF\x11\xE0"), 0, 0, "an Office document", "save it as plain text first"},
    {MAGIC("\x7F\x45LF"), 0, 0, "a program or a library", want_text},
    {MAGIC("MZ"), 0, 1, "a program or a library", want_text},
    {MAGIC("\xCF\xFA\xED\xFE"), 0, 0, "a program or a library", want_text},
    {MAGIC("\xCA\xFE\xBA\xBE"), 0, 0, "a program or a library", want_text},
    {MAGIC("\0asm"), 0, 0, "a program or a library", want_text},
    {MAGIC("\x89PNG\r\n"), 0, 0, "a picture", want_text},
    {MAGIC("\xFF\xD8\xFF"), 0, 0, "a picture", want_text},
    {MAGIC("GIF8"), 0, 1, "a picture", want_text},
    {MAGIC("RIFF"), 0, 1, "a picture, sound or film", want_text},
    {MAGIC("OggS\0"), 0, 0, "sound", want_text},
    {MAGIC("ID3"), 0, 1, "sound", want_text},
    {MAGIC("SPTX-IDS"), 0, 1, "an encoded corpus", "unpack it first"},
#undef MAGIC
};

enum { SOON = 64 };

/* Returns 1 for control characters that do not occur in text. These are not counted: BEL to CR, which do occur, and SO, SI and ESC, with which old
 * encodings switch alphabets. */
static int is_control(unsigned char byte) {
    return byte < 7 || (byte > 15 && byte < ' ' && byte != 27) || byte == 127;
}

static int has_control(const char *bytes, uint64_t length) {
    for (uint64_t i = 0; i < length; i++)
        if (is_control((unsigned char)bytes[i])) return 1;
    return 0;
}

static int is_of(const struct kind *kind, const char *bytes, uint64_t length) {
    uint64_t end = kind->at + kind->length;
    if (length < end || memcmp(bytes + kind->at, kind->magic, kind->length)) return 0;
    return !kind->letters || has_control(bytes + end, length - end < SOON ? length - end : SOON);
}

/* ---- files without a magic number ---- */

/* Counts of control characters in a file's first bytes: all, different ones, and zeros at even and at odd offsets. */
struct controls {
    uint64_t count, kinds, zeros[2];
};

/* Limits above which bytes are binary. Of random bytes 9 in 100 are control characters, of all 24 kinds; arrays and programs contain even more. A
 * text may contain a few kinds of them, even often. */
enum { KINDS_LEAST = 8, KINDS_SHARE = 100, FEW_LEAST = 32, FEW_SHARE = 5 };
static int are_of_no_text(const struct controls *controls, uint64_t length) {
    if (controls->kinds >= KINDS_LEAST) return controls->count >= length / KINDS_SHARE;
    return controls->count >= FEW_LEAST && controls->count >= length / FEW_SHARE;
}

static int begins(const char *bytes, uint64_t length, const char *mark, uint64_t mark_length) {
    return length >= mark_length && !memcmp(bytes, mark, mark_length);
}

/* Returns the name of the encoding if each character has 16 or 32 bits, otherwise NULL. Such a text begins with a byte order mark and contains a
 * zero byte, in a blank or a line end (Chinese text contains few others). Without a mark, nearly all bytes at even offsets are zero and hardly any
 * at odd ones, or the reverse. */
static const char *wide_encoding(const char *bytes, uint64_t length, const struct controls *controls) {
    uint64_t even = controls->zeros[0], odd = controls->zeros[1], half = length / 2;
    if (begins(bytes, length, "\xFF\xFE\0\0", 4) || begins(bytes, length, "\0\0\xFE\xFF", 4)) return "UTF-32";
    if ((begins(bytes, length, "\xFF\xFE", 2) || begins(bytes, length, "\xFE\xFF", 2)) && even + odd) return "UTF-16";
    if (even + odd <= length / 4) return NULL;
    return (odd > half / 4 * 3 && even < half / 16) || (even > half / 4 * 3 && odd < half / 16) ? "UTF-16" : NULL;
}

static const char *verb_of(int holds) {
    return holds ? "holds" : "is";
}

int kind_check_format(const char *path, const char *bytes, uint64_t length, int holds) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_of(&kinds[i], bytes, length))
            return fail("'%s' %s %s and no text: %s", path, verb_of(holds), kinds[i].what, kinds[i].then);
    return 0;
}

int kind_check(const char *path, const char *bytes, uint64_t length, int holds) {
    if (kind_check_format(path, bytes, length, holds)) return -1;
    struct controls controls = {.count = 0};
    unsigned char seen[128] = {0};
    for (uint64_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (!is_control(byte)) continue;
        controls.count++;
        controls.kinds += !seen[byte];
        seen[byte] = 1;
        if (!byte) controls.zeros[i & 1]++;
    }
    const char *wide = wide_encoding(bytes, length, &controls);
    if (wide) return fail("'%s' %s text in %s: write it in UTF-8 first (iconv -f %s -t UTF-8)", path, verb_of(holds), wide, wide);
    if (!are_of_no_text(&controls, length)) return 0;
    return fail("'%s' %s no text: %" PRIu64 " of its first %" PRIu64 " bytes are control characters; wanted lines of text, lists or pairs",
                path, verb_of(holds), controls.count, length);
}

/* An open file, and its first bytes. */
struct beginning {
    struct reader reader;
    char *bytes; /* [FIRST_BYTES] */
    uint64_t length;
    int whole; /* 1: `bytes` is the whole file */
};

/* Returns 1 if the rest of the file has an LF, otherwise 0; -1 after fail(). */
static int has_newline(struct reader *reader) {
    char bytes[4096];
    int64_t n;
    while ((n = reader_read(reader, bytes, sizeof bytes)) > 0)
        if (memchr(bytes, '\n', (size_t)n)) return 1;
    return (int)n;
}

/* Sets cr_ends if the whole file contains CRs and no LF; then replaces each CR in the first bytes by LF. */
static int look_at_ends(struct first_bytes *front, struct beginning *file) {
    int more = 0;
    if (memchr(file->bytes, '\n', file->length) || !memchr(file->bytes, '\r', file->length)) return 0;
    if (!file->whole && (more = has_newline(&file->reader)) < 0) return -1;
    front->cr_ends = !more;
    for (uint64_t i = 0; front->cr_ends && i < file->length; i++)
        if (file->bytes[i] == '\r') file->bytes[i] = '\n';
    return 0;
}

/* Returns the length of the whole lines at the file's beginning. The file's last line is whole even without a line end. */
static uint64_t whole_lines(const struct beginning *file) {
    const char *newline = file->whole ? NULL : memrchr(file->bytes, '\n', file->length);
    return file->whole ? file->length : newline ? (uint64_t)(newline - file->bytes) + 1 : 0;
}

/* Returns the number of the first line with a byte that is not valid UTF-8; 0 if all lines are valid. A character at the end of the bytes may be
 * cut off. */
static uint64_t find_bad_line(const char *bytes, uint64_t length) {
    uint64_t line = 1;
    for (uint64_t i = 0; i < length;) {
        unsigned n = (unsigned char)bytes[i] < 128 ? 1 : text_utf8(bytes + i, length - i);
        if (!n) return length - i < 4 ? 0 : line;
        line += bytes[i] == '\n';
        i += n;
    }
    return 0;
}

static int look(struct first_bytes *front, struct beginning *file, const struct first_look *wanted) {
    if (look_at_ends(front, file)) return -1;
    uint64_t end = whole_lines(file), mark = text_mark(file->bytes, file->length);
    front->bad_line = find_bad_line(file->bytes, file->length);
    if (look_at_lines(&front->look, file->bytes + mark, file->length - mark, file->whole, wanted->rows, wanted->keys, wanted->name))
        return -1;
    char like[LOOK_LIKE] = "";
    if ((row_properties[wanted->rows].free || wanted->rows == LOOK_TEXT) && end > mark)
        look_for_rows(like, file->bytes + mark, end - mark, wanted->rows);
    if (*like) memcpy(front->look.doubt, like, sizeof like);
    front->skip = mark + front->look.skip;
    return 0;
}

/* Opens a file and reads its first bytes. The caller must call beginning_close(), also after a failure. */
static int beginning_open(struct beginning *file, const char *path, const char *name) {
    *file = (struct beginning){.reader.fd = -1, .bytes = mem_alloc(FIRST_BYTES, 1, "the front of a file")};
    if (!file->bytes || reader_open(&file->reader, path, 1, NULL)) return -1;
    file->reader.path = name;
    file->length = 0;
    while (file->length < FIRST_BYTES) {
        int64_t n = reader_read(&file->reader, file->bytes + file->length, FIRST_BYTES - file->length);
        if (n < 0) return -1;
        file->whole = n == 0;
        if (file->whole) return 0;
        file->length += (uint64_t)n;
    }
    return 0;
}

static void beginning_close(struct beginning *file) {
    reader_close(&file->reader);
    free(file->bytes);
}

int first_bytes_check(const char *path, const char *name) {
    struct beginning file;
    int result = beginning_open(&file, path, name);
    if (!result) result = kind_check(name, file.bytes, file.length, file.reader.packing != NULL);
    beginning_close(&file);
    return result;
}

char *first_bytes_read(struct first_bytes *front, const struct first_look *wanted, uint64_t *length) {
    struct beginning file;
    char *bytes = NULL;
    *front = (struct first_bytes){0};
    if (!beginning_open(&file, wanted->path, wanted->name) && !look(front, &file, wanted)) {
        *length = whole_lines(&file);
        bytes = file.bytes;
        file.bytes = NULL;
    }
    beginning_close(&file);
    return bytes;
}

int first_bytes_look(struct first_bytes *front, const struct first_look *wanted) {
    uint64_t length;
    OWNED char *bytes = first_bytes_read(front, wanted, &length);
    return bytes ? 0 : -1;
}
