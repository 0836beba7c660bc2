/* kind: what a file is that holds no text, by its first bytes; its name decides nothing.
 *
 *   a format with a magic number     zip, Parquet, NumPy, programs, pictures ..
 *   text in units of 16 or 32 bits   every other byte of it is zero
 *   anything else that is no text    many kinds of control characters, or very many of few
 *
 * A token may hold any byte, NUL too, and text may have any encoding that keeps ASCII: some odd bytes make no file
 * binary.
 */
#ifndef SPTX_KIND_H
#define SPTX_KIND_H

#include <stdint.h>

/* First bytes of a file by which it is judged; fewer do where the file is shorter. */
enum { KIND_BYTES = 64 << 10 };

/* 0 where a file that begins so may be text; otherwise -1 after fail(), which says what it is and what to do. `holds`:
 * 0 where the bytes are the file's own, 1 where it is packed and they are what it holds. */
int kind_check(const char *path, const char *bytes, uint64_t length, int holds);
/* Looks for a magic number alone, as kind_check() does first: for a file that need not be text. */
int kind_check_format(const char *path, const char *bytes, uint64_t length, int holds);

#endif
