/* text: reads and writes numbers, sizes and times in the form that people use; suggests a name for a misspelt one. */
#ifndef SPTX_TEXT_H
#define SPTX_TEXT_H

#include <locale.h>
#include <stddef.h>
#include <stdint.h>

/* Each function reads all of `text`, which may have blanks around the value. Returns 0 with *value, or -1 if the text is not
 * such a value, without a call of fail(): the caller knows the file and line for the message. */
int text_count(const char *text, uint64_t *value); /* 5000, 1e6, 2_000_000; an integer below 2^63 */
int text_real(const char *text, double *value);    /* finite */
int text_bytes(const char *text, uint64_t *value); /* 11GiB, 512 MB, 4096; KB = 1000, KiB = 1024, K alone = KiB */
int text_time(const char *text, double *seconds);  /* 90, 90s, 10m, 2h, 1d */
int text_truth(const char *text, int *value);      /* yes no true false on off 1 0 */

/* Each function writes a value in the form that people use to `out` (at least TEXT_BYTES bytes) and returns `out`. */
enum { TEXT_BYTES = 32 };
char *text_of_bytes(char *out, uint64_t bytes);    /* 1.53 GiB */
char *text_of_count(char *out, uint64_t count);    /* 14,886,545 */
char *text_of_rate(char *out, double per_second);  /* 2.63 M */
char *text_of_time(char *out, double seconds);     /* 1h02m, 3m20s, 12s */
static inline const char *text_plural(uint64_t count) { /* the ending of a noun: 1 epoch, 2 epochs */
    return count == 1 ? "" : "s";
}

/* Returns the precision for printf's "%.*s", so that a message shows at most 60 bytes of a user's text. */
static inline int text_shown(uint64_t length) {
    return length < 60 ? (int)length : 60;
}

/* Prints at out[at], which is the end of the text in out[capacity]; what does not fit is cut off. Returns the index of the new
 * end, which is a NUL. */
size_t text_add(char *out, size_t capacity, size_t at, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns the number of bytes of the UTF-8 character that begins here. Returns 0 if it is invalid: a stray or missing byte, a
 * longer form than needed, half of a surrogate pair, or a number above U+10FFFF. */
unsigned text_utf8(const char *text, uint64_t left);

/* Returns 3 if the text begins with a byte order mark, which has three bytes, otherwise 0. Some programs write one before UTF-8
 * text; it is not part of the text. */
uint64_t text_mark(const char *text, uint64_t length);

/* Returns 1 for white space other than LF. */
static inline int text_is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\v' || byte == '\f';
}

/* Removes white space at both ends, in place. Returns the first byte that is left. */
char *text_strip(char *text);

/* Returns the entry of names[count] that needs the fewest edits to become `word`; an edit inserts, deletes or changes a letter,
 * or swaps two neighbours. NULL if no entry is near enough to suggest. Entries equal to the word are skipped. */
const char *text_nearest(const char *word, const char *const *names, size_t count);

/* numbers: reads and writes numbers with a decimal point, whatever the caller's locale is.
 *
 * The caller of a library sets the locale (with a decimal comma, for example), and printf() and strtod() obey it. Each thread that
 * runs this program's code therefore switches itself to the C locale and back: library calls in enter() and leave()
 * (library/handles.h), and each thread that the program starts. Code may then write numbers by printf(). It reads numbers by the
 * functions below, which always use the C locale.
 */

/* Makes this thread write numbers with a decimal point. Returns the argument for numbers_leave(), which undoes this. */
locale_t numbers_enter(void);
void numbers_leave(locale_t before);

/* Like strtod() and strtof(), in the C locale: *end is `text` if no number begins there. */
double numbers_read(const char *text, char **end);
float numbers_read_float(const char *text, char **end);

/* json: makes a JSON text in memory, by appending; json_print() alone makes any text.
 *
 * If memory is short, fail() is called and `failed` is set; later calls do nothing, so the caller checks `failed` once, at the end.
 */

struct json {
    char *bytes; /* owned */
    uint64_t used, capacity;
    int failed; /* 1: memory was short and fail() was called; later calls do nothing */
};
void json_release(struct json *json); /* may be called on a struct of zeros */

/* Appends formatted text without escaping: brackets, commas, the program's own names. */
void json_print(struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a string in double quotes. Bytes that are not UTF-8 become U+FFFD. '<', '>', '&' and control characters become \u
 * escapes, so that no string can end the <script> of an HTML page that contains it. */
void json_string(struct json *json, const char *text, uint64_t length);

/* Appends a number with six significant digits, or null if it is not finite. */
void json_number(struct json *json, double value);
void json_decimals(struct json *json, double value, int decimals);
/* Writes to `out` (at least JSON_NUMBER bytes) what json_number() would append, for a line that is printed. Returns out. */
enum { JSON_NUMBER = 32 };
char *json_of(char *out, double value);

/* Appends bytes as a string in base64. */
void json_base64(struct json *json, const void *data, uint64_t length);

#endif
