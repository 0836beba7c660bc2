/* text: reads and writes numbers, sizes and times in the form that people use; suggests a name for a misspelt one. */
#ifndef SPTX_TEXT_H
#define SPTX_TEXT_H

#include <locale.h>
#include <stddef.h>
#include <stdint.h>

/* Each function reads all of `text`, which may have blanks around the value. Returns 0 and sets *value, or returns -1 without calling fail(),
 * since the caller knows the file and line for the message. */
int text_count(const char *text, uint64_t *value); /* 5000, 1e6, 2_000_000; an integer below 2^63 */
int text_real(const char *text, double *value);    /* finite */
int text_bytes(const char *text, uint64_t *value); /* 11GiB, 512 MB, 4096; KB = 1000, KiB = 1024, K alone = KiB */
int text_time(const char *text, double *seconds);  /* 90, 90s, 10m, 2h, 1d */
int text_truth(const char *text, int *value);      /* yes no true false on off 1 0 */

/* Each function writes a value as people write it to `out` (at least TEXT_BYTES bytes), and returns `out`. */
enum { TEXT_BYTES = 32 };
char *text_of_bytes(char *out, uint64_t bytes);    /* 1.53 GiB */
char *text_of_count(char *out, uint64_t count);    /* 14,886,545 */
char *text_of_rate(char *out, double per_second);  /* 2.63 M */
char *text_of_time(char *out, double seconds);     /* 1h02m, 3m20s, 12s */
static inline const char *text_plural(uint64_t count) { /* returns the ending of a noun: 1 epoch, 2 epochs */
    return count == 1 ? "" : "s";
}
/* A noun in the plural, for "%.*s", without its s for a count of 1. */
#define TEXT_NOUN(count, plural) (int)strlen(plural) - ((count) == 1), plural

/* Returns the precision for printf's "%.*s" with which a message shows at most 60 bytes of a user's text. */
static inline int text_shown(uint64_t length) {
    return length < 60 ? (int)length : 60;
}

/* Prints at out[at], the end of the text in out[capacity], and cuts off what does not fit. Returns the index of the new end, a NUL. */
size_t text_add(char *out, size_t capacity, size_t at, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns the bytes of the UTF-8 character that begins here; 0 if it is invalid: a stray or missing byte, a longer form than needed, half of a
 * surrogate pair, or a number above U+10FFFF. */
unsigned text_utf8(const char *text, uint64_t left);

/* Returns 3 if the text begins with a byte order mark (three bytes), otherwise 0. Some programs write it before UTF-8; it is not part of the text. */
uint64_t text_mark(const char *text, uint64_t length);

/* Returns 1 for white space other than LF. */
static inline int text_is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\v' || byte == '\f';
}

/* Removes white space at both ends, in place. Returns the first byte that is left. */
char *text_strip(char *text);

/* Returns the entry of names[count] that needs the fewest edits to become `word` (insertions, deletions, changes of a letter, swaps of two
 * neighbours); NULL if none is near enough to suggest. Skips entries equal to the word. */
const char *text_nearest(const char *word, const char *const *names, size_t count);

/* numbers: reads and writes numbers with a decimal point, whatever the caller's locale is.
 *
 * printf() and strtod() follow the locale, which the caller of a library sets, perhaps to one with a decimal comma. So each thread that runs this
 * code switches to the C locale and back: library calls in enter() and leave() (library/handles.h), and each thread that the program starts. Numbers
 * may then be written by printf(). They are read by the functions below, which always use the C locale.
 */

/* Makes this thread write numbers with a decimal point. numbers_leave() undoes it; it needs the returned value. */
locale_t numbers_enter(void);
void numbers_leave(locale_t before);

/* Do the same as strtod() and strtof() in the C locale: *end is `text` if it does not begin with a number. */
double numbers_read(const char *text, char **end);
float numbers_read_float(const char *text, char **end);

/* json: makes a JSON text in memory by appending; with json_print() alone, any text.
 *
 * If memory is short, fail() is called and `failed` is set; later calls do nothing, so the caller checks `failed` once, at the end.
 */

struct json {
    char *bytes; /* owned */
    uint64_t used, capacity;
    int failed; /* 1: memory was short and fail() was called; further calls do nothing */
};
void json_release(struct json *json); /* may be called on a struct of zeros */

/* Appends formatted text without escapes: brackets, commas, the program's own names. */
void json_print(struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a string in double quotes. Invalid UTF-8 becomes U+FFFD; '<', '>', '&' and control characters become \u escapes, so that no string can
 * end the <script> of an HTML page. */
void json_string(struct json *json, const char *text, uint64_t length);

/* Appends a number with six significant digits, or null if it is not finite. */
void json_number(struct json *json, double value);
void json_decimals(struct json *json, double value, int decimals);
/* Writes what json_number() would append to `out` (at least JSON_NUMBER bytes), for a line that is printed. Returns out. */
enum { JSON_NUMBER = 32 };
char *json_of(char *out, double value);

/* Appends bytes as a string in base64. */
void json_base64(struct json *json, const void *data, uint64_t length);

#endif
