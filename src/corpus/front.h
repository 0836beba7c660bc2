/* front: what stands in a file before its data, and how its lines end: a look at its first bytes, unpacked. */
#ifndef SPTX_FRONT_H
#define SPTX_FRONT_H

#include <stdint.h>

/* corpus.header: whether the first line of a file of pairs names its columns. */
enum corpus_header { HEADER_NO, HEADER_YES, HEADER_AUTO };

/* Bytes that are looked at: more than a header and the line after it have in any file. */
enum { FRONT_BYTES = 64 << 10 };

struct front {
    uint64_t skip; /* bytes before the data: a byte order mark of UTF-8, a header */
    int cr_ends;   /* 1: CR alone ends a line, as on old Macs: the file has no LF */
    int like_pairs;  /* 1: its lines look like those of pairs with ratings */
    char header[64]; /* what is left out, as it begins; "" where nothing is */
};

/* 0, or -1 after fail(). Headers are those of pairs; other formats have none (HEADER_NO). */
int front_look(struct front *front, const char *path, enum corpus_header header);

#endif
