/* first_bytes: reads a file's first bytes, unpacked, and looks at them: is it text, how do its lines end, how are its rows
 * read (look.h). */
#ifndef SPTX_FIRST_BYTES_H
#define SPTX_FIRST_BYTES_H

#include "kind.h"
#include "look.h"

#include <stdint.h>

/* Bytes that are looked at, which hold more than any file's header and the line after it. */
enum { FIRST_BYTES = KIND_BYTES };

struct first_bytes {
    uint64_t skip;        /* bytes before the data: a byte order mark of UTF-8, a header */
    int cr_ends;          /* 1: CR alone ends a line, as on old Macs: the file has no LF */
    struct look look;     /* how rows are read */
    const char *rows;     /* of text and lists: what their lines look like instead (look_for_rows), or NULL */
    uint64_t bad_line;    /* the first line that is not UTF-8; 0: none among these bytes */
};

/* What a look is for. */
struct first_look {
    const char *path; /* the file; with - it is a spool (corpus.c), so sentences call it `name` */
    const char *name;
    enum look_rows rows;
    const struct look_keys *keys;
};

/* Sentences call the file `name`. Returns -1 after fail() where it holds no text (kind.h) or cannot be unpacked, otherwise 0. */
int first_bytes_check(const char *path, const char *name);

/* Looks at the file. Returns 0, or -1 after fail(): its lines are not such rows. */
int first_bytes_look(struct first_bytes *front, const struct first_look *wanted);

/* Looks at the file and returns the bytes it has looked at, for the caller to free: at most FIRST_BYTES, up to the end
 * of the last whole line. Where CR ends the lines, it is replaced by LF. NULL after fail(). */
char *first_bytes_read(struct first_bytes *front, const struct first_look *wanted, uint64_t *length);

#endif
