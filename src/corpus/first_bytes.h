/* first_bytes: what stands in a file before its data, and how its lines end: a look at its first bytes, unpacked. */
#ifndef SPTX_FIRST_BYTES_H
#define SPTX_FIRST_BYTES_H

#include "kind.h"

#include <stdint.h>

/* corpus.header: whether the first line of a file of pairs names its columns. */
enum corpus_header { HEADER_NO, HEADER_YES, HEADER_AUTO };

/* Bytes that are looked at: more than a header and the line after it have in any file. */
enum { FIRST_BYTES = KIND_BYTES };

struct first_bytes {
    uint64_t skip;   /* bytes before the data: a byte order mark of UTF-8, a header */
    int cr_ends;     /* 1: CR alone ends a line, as on old Macs: the file has no LF */
    int ratings;     /* 1: its first lines look like ratings (line_form.h) */
    char header[64]; /* what is left out, as it begins; "" where nothing is */
};

/* -1 after fail() where the file holds no text (kind.h) or cannot be unpacked, otherwise 0. */
int first_bytes_check(const char *path);

/* 0, or -1 after fail(). Headers are those of pairs; other formats have none (HEADER_NO). */
int first_bytes_look(struct first_bytes *front, const char *path, enum corpus_header header);

/* Does the same and returns the bytes that it looked at: at most FIRST_BYTES, up to the end of the last whole line.
 * Where CR ends the lines, LF stands there instead. The caller frees them. NULL after fail(). */
char *first_bytes_read(struct first_bytes *front, const char *path, enum corpus_header header, uint64_t *length);

#endif
