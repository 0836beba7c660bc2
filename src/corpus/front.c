#include "front.h"

#include "base/memory.h"
#include "base/report.h"
#include "pairs.h"
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first bytes of the file. */
struct piece {
    struct reader reader;
    char *bytes; /* [FRONT_BYTES] */
    uint64_t length;
    int whole; /* 1: the file has no more */
};

static int fill(struct piece *piece) {
    piece->length = 0;
    while (piece->length < FRONT_BYTES) {
        int64_t n = reader_read(&piece->reader, piece->bytes + piece->length, FRONT_BYTES - piece->length);
        if (n < 0) return -1;
        piece->whole = n == 0;
        if (piece->whole) return 0;
        piece->length += (uint64_t)n;
    }
    return 0;
}

/* Whether an LF stands in the rest of the file. -1 after fail(). */
static int has_newline(struct reader *reader) {
    char bytes[4096];
    int64_t n;
    while ((n = reader_read(reader, bytes, sizeof bytes)) > 0)
        if (memchr(bytes, '\n', (size_t)n)) return 1;
    return (int)n;
}

/* Lines that end in CR alone are those of a file that has CR and no LF at all. */
static int look_at_ends(struct front *front, struct piece *piece) {
    int more = 0;
    if (memchr(piece->bytes, '\n', piece->length) || !memchr(piece->bytes, '\r', piece->length)) return 0;
    if (!piece->whole && (more = has_newline(&piece->reader)) < 0) return -1;
    front->cr_ends = !more;
    for (uint64_t i = 0; front->cr_ends && i < piece->length; i++)
        if (piece->bytes[i] == '\r') piece->bytes[i] = '\n';
    return 0;
}

static int look_for_header(struct front *front, const struct piece *piece, enum corpus_header header,
                           const char *path) {
    const char *data = piece->bytes + front->skip, *end = piece->bytes + piece->length;
    struct pairs_front found = pairs_front(data, (uint64_t)(end - data), piece->whole);
    if (header == HEADER_YES && !found.first_length && !piece->whole)
        return fail("the first line of '%s' is longer than %d bytes: corpus.header = yes has no header to leave out",
                    path, FRONT_BYTES);
    if (header == HEADER_AUTO && !found.is_header) return 0;
    snprintf(front->header, sizeof front->header, "%.*s", (int)found.first_length, found.first);
    front->skip += found.data;
    return 0;
}

static int look(struct front *front, struct piece *piece, const char *path, enum corpus_header header) {
    if (fill(piece) || look_at_ends(front, piece)) return -1;
    if (piece->length >= 3 && !memcmp(piece->bytes, "\xEF\xBB\xBF", 3)) front->skip = 3;
    front->like_pairs = pairs_likely(piece->bytes + front->skip, piece->length - front->skip, piece->whole);
    return header == HEADER_NO ? 0 : look_for_header(front, piece, header, path);
}

int front_look(struct front *front, const char *path, enum corpus_header header) {
    struct piece piece = {.bytes = mem_alloc(FRONT_BYTES, 1, "the front of a file")};
    *front = (struct front){0};
    int result = -1;
    if (!piece.bytes) return -1;
    if (!reader_open(&piece.reader, path, NULL)) result = look(front, &piece, path, header);
    reader_close(&piece.reader);
    free(piece.bytes);
    return result;
}
