/* first_bytes: reads the first bytes of a file, and unpacks them if the file is compressed. It examines whether they are text, how lines end, and
 * which columns the lines have (look.h). */
#ifndef SPTX_FIRST_BYTES_H
#define SPTX_FIRST_BYTES_H

#include "look.h"

#include <stdint.h>

/* kind: recognizes, by their first bytes, files that are not text. A file's name does not matter.
 *
 *   a format with a magic number     zip, Parquet, NumPy, programs, pictures ..
 *   text in units of 16 or 32 bits   every other byte of it is zero
 *   other binary data                control characters of many kinds, or very many of a few kinds
 *
 * A token may contain any byte, even NUL, and text may have any encoding that contains ASCII. So a few odd bytes do not make a
 * file binary.
 */
/* Number of bytes at a file's beginning by which it is judged; a shorter file is judged by all its bytes. */
enum { KIND_BYTES = 64 << 10 };

/* Returns 0 if a file with these first bytes may be text; otherwise -1 after fail(), which names the kind of file and what the user can do. holds:
 * 0 if the bytes are the file's own, 1 if they were unpacked from it. */
int kind_check(const char *path, const char *bytes, uint64_t length, int holds);
/* Checks only for a magic number, as kind_check() does first; for files that need not be text. Returns 0, or -1 after fail(). */
int kind_check_format(const char *path, const char *bytes, uint64_t length, int holds);

/* Number of bytes that are examined: enough for a header and a first line of data in usual files. */
enum { FIRST_BYTES = KIND_BYTES };

struct first_bytes {
    uint64_t skip;        /* number of bytes before the data: byte order mark and header */
    int cr_ends;          /* 1: lines end in CR, as on old Macs: the file contains CR but no LF */
    struct look look;     /* the format of the lines */
    uint64_t bad_line;    /* number of the first line that is not UTF-8; 0: all examined bytes are UTF-8 */
};

/* A file to examine, and the kind of rows that its lines should be. */
struct first_look {
    const char *path; /* the file to read; a temporary copy of standard input (-), so messages use `name` */
    const char *name;
    enum look_rows rows;
    const struct look_keys *keys;
};

/* Checks that the file is text and, if it is compressed, can be unpacked. name: the file's name in messages. Returns 0, or -1 after fail(). */
int first_bytes_check(const char *path, const char *name);

/* Examines the file's first bytes and lines. Returns 0, or -1 after fail(), for example if its lines cannot be read as wanted->rows. */
int first_bytes_look(struct first_bytes *front, const struct first_look *wanted);

/* Examines the file and returns its first bytes, which the caller frees; NULL after fail(). *length: their number, at most
 * FIRST_BYTES, up to the end of the last whole line. If lines end in CR, each CR is replaced by LF. */
char *first_bytes_read(struct first_bytes *front, const struct first_look *wanted, uint64_t *length);

#endif
