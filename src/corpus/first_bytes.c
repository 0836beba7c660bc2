#define _GNU_SOURCE
#include "first_bytes.h"

#include "base/memory.h"
#include "base/text.h"
#include "reader.h"

#include <stdlib.h>
#include <string.h>

/* An open file, and its first bytes. */
struct beginning {
    struct reader reader;
    char *bytes; /* [FIRST_BYTES] */
    uint64_t length;
    int whole; /* 1: `bytes` is the whole file */
};

static int fill_head(struct beginning *file) {
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

/* Returns 1 if the rest of the file has an LF, otherwise 0; -1 after fail(). */
static int has_newline(struct reader *reader) {
    char bytes[4096];
    int64_t n;
    while ((n = reader_read(reader, bytes, sizeof bytes)) > 0)
        if (memchr(bytes, '\n', (size_t)n)) return 1;
    return (int)n;
}

/* Sets cr_ends if the whole file has CRs and no LF, and then replaces each CR in the first bytes by LF. */
static int look_at_ends(struct first_bytes *front, struct beginning *file) {
    int more = 0;
    if (memchr(file->bytes, '\n', file->length) || !memchr(file->bytes, '\r', file->length)) return 0;
    if (!file->whole && (more = has_newline(&file->reader)) < 0) return -1;
    front->cr_ends = !more;
    for (uint64_t i = 0; front->cr_ends && i < file->length; i++)
        if (file->bytes[i] == '\r') file->bytes[i] = '\n';
    return 0;
}

/* Returns the number of bytes up to the end of the last whole line. The last line of a file needs no line end to be whole. */
static uint64_t whole_lines(const struct beginning *file) {
    const char *newline = file->whole ? NULL : memrchr(file->bytes, '\n', file->length);
    return file->whole ? file->length : newline ? (uint64_t)(newline - file->bytes) + 1 : 0;
}

/* Returns the number of the line with the first byte that is not UTF-8; 0 if all bytes are UTF-8. A character may be cut off at
 * the end. */
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
    if ((row_properties[wanted->rows].free || wanted->rows == LOOK_TEXT) && end > mark) front->rows = look_for_rows(file->bytes + mark, end - mark, wanted->rows);
    if (look_at_lines(&front->look, file->bytes + mark, file->length - mark, file->whole, wanted->rows, wanted->keys, wanted->name))
        return -1;
    front->skip = mark + front->look.skip;
    return 0;
}

/* Opens a file and reads its first bytes. The caller must call beginning_close(), also after a failure. */
static int beginning_open(struct beginning *file, const char *path, const char *name) {
    *file = (struct beginning){.reader.fd = -1, .bytes = mem_alloc(FIRST_BYTES, 1, "the front of a file")};
    if (!file->bytes || reader_open(&file->reader, path, 1, NULL)) return -1;
    file->reader.path = name;
    return fill_head(file);
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
    char *bytes = first_bytes_read(front, wanted, &length);
    free(bytes);
    return bytes ? 0 : -1;
}
