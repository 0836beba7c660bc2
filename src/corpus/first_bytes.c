#define _GNU_SOURCE
#include "first_bytes.h"

#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "line_form.h"
#include "pairs.h"
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first bytes of a file. */
struct piece {
    struct reader reader;
    char *bytes; /* [FIRST_BYTES] */
    uint64_t length;
    int whole; /* 1: the file has no more bytes */
};

static int fill(struct piece *piece) {
    piece->length = 0;
    while (piece->length < FIRST_BYTES) {
        int64_t n = reader_read(&piece->reader, piece->bytes + piece->length, FIRST_BYTES - piece->length);
        if (n < 0) return -1;
        piece->whole = n == 0;
        if (piece->whole) return 0;
        piece->length += (uint64_t)n;
    }
    return 0;
}

/* Returns 1 where an LF is in the rest of the file, otherwise 0; -1 after fail(). */
static int has_newline(struct reader *reader) {
    char bytes[4096];
    int64_t n;
    while ((n = reader_read(reader, bytes, sizeof bytes)) > 0)
        if (memchr(bytes, '\n', (size_t)n)) return 1;
    return (int)n;
}

/* Lines end in CR alone where a file has CR and no LF at all. */
static int look_at_ends(struct first_bytes *front, struct piece *piece) {
    int more = 0;
    if (memchr(piece->bytes, '\n', piece->length) || !memchr(piece->bytes, '\r', piece->length)) return 0;
    if (!piece->whole && (more = has_newline(&piece->reader)) < 0) return -1;
    front->cr_ends = !more;
    for (uint64_t i = 0; front->cr_ends && i < piece->length; i++)
        if (piece->bytes[i] == '\r') piece->bytes[i] = '\n';
    return 0;
}

static int look_for_header(struct first_bytes *front, const struct piece *piece, enum corpus_header header,
                           enum column_set set, const char *path) {
    const char *data = piece->bytes + front->skip, *end = piece->bytes + piece->length;
    struct pairs_front found = pairs_front(data, (uint64_t)(end - data), piece->whole, header != HEADER_NO, set);
    if (header == HEADER_YES && !found.first_length && !piece->whole)
        return fail("the first line of '%s' is longer than %d bytes: corpus.header = yes has no header to leave out",
                    path, FIRST_BYTES);
    front->form = found.form;
    if (header == HEADER_NO || (header == HEADER_AUTO && !found.is_header)) return 0;
    snprintf(front->header, sizeof front->header, "%.*s", (int)found.first_length, found.first);
    front->skip += found.data;
    return 0;
}

/* Returns the bytes up to the end of the last whole line. At the end of a file, the last line is whole without a line
 * end, too. */
static uint64_t whole_lines(const struct piece *piece) {
    const char *newline = piece->whole ? NULL : memrchr(piece->bytes, '\n', piece->length);
    return piece->whole ? piece->length : newline ? (uint64_t)(newline - piece->bytes) + 1 : 0;
}

static int look_at_lines(struct first_bytes *front, const struct piece *piece) {
    uint64_t end = whole_lines(piece), skip = front->skip < end ? front->skip : end;
    int form = line_form(piece->bytes + skip, end - skip);
    front->ratings = form == LINES_RATINGS;
    return form < 0 ? -1 : 0;
}

static int look(struct first_bytes *front, struct piece *piece, const char *path, enum corpus_header header,
                enum column_set set) {
    if (look_at_ends(front, piece)) return -1;
    front->skip = text_mark(piece->bytes, piece->length);
    if (look_at_lines(front, piece)) return -1;
    return look_for_header(front, piece, header, set, path);
}

/* Reads the first bytes of a file. The caller releases in any case. */
static int piece_open(struct piece *piece, const char *path, const char *name) {
    *piece = (struct piece){.reader.fd = -1, .bytes = mem_alloc(FIRST_BYTES, 1, "the front of a file")};
    if (!piece->bytes || reader_open(&piece->reader, path, NULL)) return -1;
    piece->reader.path = name;
    return fill(piece);
}

static void piece_close(struct piece *piece) {
    reader_close(&piece->reader);
    free(piece->bytes);
}

int first_bytes_check(const char *path, const char *name) {
    struct piece piece;
    int result = piece_open(&piece, path, name);
    if (!result) result = kind_check(name, piece.bytes, piece.length, piece.reader.packing != NULL);
    piece_close(&piece);
    return result;
}

char *first_bytes_read(struct first_bytes *front, const char *path, const char *name, enum corpus_header header,
                       enum column_set set, uint64_t *length) {
    struct piece piece;
    char *bytes = NULL;
    *front = (struct first_bytes){0};
    if (!piece_open(&piece, path, name) && !look(front, &piece, name, header, set)) {
        *length = whole_lines(&piece);
        bytes = piece.bytes;
        piece.bytes = NULL;
    }
    piece_close(&piece);
    return bytes;
}

int first_bytes_look(struct first_bytes *front, const char *path, const char *name, enum corpus_header header,
                     enum column_set set) {
    struct piece piece;
    *front = (struct first_bytes){0};
    int result = piece_open(&piece, path, name) || look(front, &piece, name, header, set) ? -1 : 0;
    piece_close(&piece);
    return result;
}
