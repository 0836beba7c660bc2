/* text: numbers, sizes and times as people write them, and back; the nearest name for a misspelt one. */
#ifndef SPTX_TEXT_H
#define SPTX_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Each reads the whole of `text` (blanks around it allowed): 0 with *value, -1 where it is not such a thing.
 * They keep no sentence: the caller knows the file and the line. */
int text_count(const char *text, uint64_t *value); /* 5000, 1e6, 2_000_000; an integer below 2^63 */
int text_real(const char *text, double *value);    /* finite */
int text_bytes(const char *text, uint64_t *value); /* 11GiB, 512 MB, 4096; KB = 1000, KiB = 1024, K alone = KiB */
int text_time(const char *text, double *seconds);  /* 90, 90s, 10m, 2h, 1d */
int text_truth(const char *text, int *value);      /* yes no true false on off 1 0 */

/* Writes a value for people into `out` (at least TEXT_BYTES bytes) and returns out. */
enum { TEXT_BYTES = 32 };
char *text_of_bytes(char *out, uint64_t bytes);    /* 1.53 GiB */
char *text_of_count(char *out, uint64_t count);    /* 14,886,545 */
char *text_of_rate(char *out, double per_second);  /* 2.63 M */
char *text_of_time(char *out, double seconds);     /* 1h02m, 3m20s, 12s */

/* Limits how much of a user's text a sentence shows: the precision for printf's "%.*s". */
static inline int text_shown(uint64_t length) {
    return length < 60 ? (int)length : 60;
}

/* Prints at out[at], the end of a text in out[capacity], as far as there is room. Returns the new end, where a NUL
 * stands. */
size_t text_add(char *out, size_t capacity, size_t at, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns the bytes of the UTF-8 character that begins here; 0 where none does: a stray or missing byte, a longer form
 * than needed, half of a surrogate pair, or a number past U+10FFFF. */
unsigned text_utf8(const char *text, uint64_t left);

/* Returns the bytes of a byte order mark at the beginning (3), or 0. Some programs put one before a text in UTF-8; it
 * is no part of the text. */
uint64_t text_mark(const char *text, uint64_t length);

/* Returns 1 for a blank within a line: white space but LF. */
static inline int text_is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\v' || byte == '\f';
}

/* Strips blanks (and CR, LF) at both ends, in place; returns the first kept byte. */
char *text_strip(char *text);

/* Returns the entry of names[count] that needs the fewest edits to become `word`; an edit changes one letter or swaps two. NULL
 * if no entry is near enough to help. Entries equal to the word are skipped. */
const char *text_nearest(const char *word, const char *const *names, size_t count);

#endif
