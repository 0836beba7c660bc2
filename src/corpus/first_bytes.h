/* first_bytes: reads the first bytes of a file, and unpacks them if the file is packed. It examines whether they are text, how
 * lines end, and which format the lines have (look.h). */
#ifndef SPTX_FIRST_BYTES_H
#define SPTX_FIRST_BYTES_H

#include "kind.h"
#include "look.h"

#include <stdint.h>

/* Number of bytes that are examined: enough for the header and the first line of data of any usual file. */
enum { FIRST_BYTES = KIND_BYTES };

struct first_bytes {
    uint64_t skip;        /* number of bytes before the data: byte order mark and header */
    int cr_ends;          /* 1: lines end in CR, as on old Macs: the file contains CRs but no LF */
    struct look look;     /* the format of the lines */
    const char *rows;     /* text of a warning, if lines of text, lists or adjacency look like another format (look_for_rows);
                           * otherwise NULL */
    uint64_t bad_line;    /* number of the first line that is not UTF-8; 0: all examined bytes are UTF-8 */
};

/* A file to examine, and the meaning that its lines should have. */
struct first_look {
    const char *path; /* the file to read; for standard input (-) a temporary copy, so messages use `name` */
    const char *name;
    enum look_rows rows;
    const struct look_keys *keys;
};

/* Checks that the file is text (kind.h) and, if it is packed, can be unpacked. name: the file's name in messages. Returns 0, or
 * -1 after fail(). */
int first_bytes_check(const char *path, const char *name);

/* Examines the file. Returns 0, or -1 after fail(), for example if its lines cannot be read as wanted->rows. */
int first_bytes_look(struct first_bytes *front, const struct first_look *wanted);

/* Examines the file and returns its first bytes, which the caller frees; NULL after fail(). *length: their number, at most
 * FIRST_BYTES, up to the end of the last whole line. If lines end in CR, each CR is replaced by LF. */
char *first_bytes_read(struct first_bytes *front, const struct first_look *wanted, uint64_t *length);

#endif
