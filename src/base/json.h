/* json: makes a JSON text in memory, by appending; json_print() alone makes any text.
 *
 * If memory is short, fail() is called and `failed` is set; later calls do nothing, so the caller checks `failed` once, at the end.
 */
#ifndef SPTX_JSON_H
#define SPTX_JSON_H

#include <stdint.h>

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
