/* first_bytes: looks at a file's first bytes, unpacked: what is before its data, and how its lines end. */
#ifndef SPTX_FIRST_BYTES_H
#define SPTX_FIRST_BYTES_H

#include "columns.h"
#include "kind.h"

#include <stdint.h>

/* corpus.header: does the first line of a file of pairs or edges name its columns? */
enum corpus_header { HEADER_NO, HEADER_YES, HEADER_AUTO };

/* Bytes that are looked at, which hold more than any file's header and the line after it. */
enum { FIRST_BYTES = KIND_BYTES };

struct first_bytes {
    uint64_t skip;            /* bytes before the data: a byte order mark of UTF-8, a header */
    int cr_ends;              /* 1: CR alone ends a line, as on old Macs: the file has no LF */
    struct columns_form form; /* of lines with columns */
    int ratings;              /* 1: its first lines look like ratings (line_form.h) */
    char header[64];          /* the beginning of the header that is left out; "" where none is */
};

/* Sentences call the file `name`. Returns -1 after fail() where it holds no text (kind.h) or cannot be unpacked, otherwise 0. */
int first_bytes_check(const char *path, const char *name);

/* Looks at the file. Returns 0, or -1 after fail(). Only pairs and edges have headers; other formats pass HEADER_NO. */
int first_bytes_look(struct first_bytes *front, const char *path, const char *name, enum corpus_header header,
                     enum column_set set);

/* Looks at the file and returns the bytes it has looked at, for the caller to free: at most FIRST_BYTES, up to the end
 * of the last whole line. Where CR ends the lines, it is replaced by LF. NULL after fail(). */
char *first_bytes_read(struct first_bytes *front, const char *path, const char *name, enum corpus_header header,
                       enum column_set set, uint64_t *length);

#endif
