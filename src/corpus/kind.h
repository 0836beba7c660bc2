/* kind: recognizes, by their first bytes, files that are not text. A file's name does not matter.
 *
 *   a format with a magic number     zip, Parquet, NumPy, programs, pictures ..
 *   text in units of 16 or 32 bits   every other byte of it is zero
 *   other binary data                control characters of many kinds, or very many of a few kinds
 *
 * A token may contain any byte, even NUL, and text may have any encoding that contains ASCII. So a few odd bytes do not make a
 * file binary.
 */
#ifndef SPTX_KIND_H
#define SPTX_KIND_H

#include <stdint.h>

/* Number of bytes at a file's beginning by which it is judged; a shorter file is judged by all its bytes. */
enum { KIND_BYTES = 64 << 10 };

/* Returns 0 if a file with these first bytes may be text; otherwise -1 after fail(), which names the file's kind and a way out.
 * `holds`: 0 if the bytes are the file's own, 1 if they were unpacked from it. */
int kind_check(const char *path, const char *bytes, uint64_t length, int holds);
/* Checks only for a magic number, as kind_check() does first: for a file that need not be text. Returns 0, or -1 after fail(). */
int kind_check_format(const char *path, const char *bytes, uint64_t length, int holds);

#endif
