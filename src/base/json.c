#include "json.h"

#include "memory.h"
#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPED_BYTES = 6 }; /* \u003c */

void json_release(struct json *json) {
    free(json->bytes);
    *json = (struct json){.used = 0};
}

/* Reserves `length` more bytes and one for a NUL. Returns where they begin, or NULL if memory is short. */
static char *more(struct json *json, uint64_t length) {
    if (!json->failed && mem_grow(&json->bytes, &json->capacity, json->used + length + 1, 1, "a text")) json->failed = 1;
    return json->failed ? NULL : json->bytes + json->used;
}

void json_print(struct json *json, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *at = length < 0 ? NULL : more(json, (uint64_t)length);
    if (!at) return;
    va_start(args, format);
    vsnprintf(at, (size_t)length + 1, format, args);
    va_end(args);
    json->used += (uint64_t)length;
}

/* ---- strings ---- */

/* Returns 1 for a character that is written as a \u escape: control characters, quotes, backslashes, and <, > and &. The last
 * byte of each is its Unicode number, even for a C1 control character, which has two bytes. */
static int is_escaped(const unsigned char *at) {
    return *at < 0x20 || *at == 0x7F || *at == '"' || *at == '\\' || *at == '<' || *at == '>' || *at == '&' ||
           (*at == 0xC2 && at[1] < 0xA0);
}

void json_string(struct json *json, const char *text, uint64_t length) {
    uint64_t most;
    if (__builtin_mul_overflow(length, (uint64_t)ESCAPED_BYTES, &most)) most = UINT64_MAX / 2;
    char *out = more(json, most + 2);
    if (!out) return;
    *out++ = '"';
    for (const unsigned char *at = (const unsigned char *)text, *end = at + length; at < end;) {
        unsigned bytes = text_utf8((const char *)at, (uint64_t)(end - at));
        if (!bytes || is_escaped(at)) {
            out += snprintf(out, ESCAPED_BYTES + 1, "\\u%04x", bytes ? at[bytes - 1] : 0xFFFD);
            at += bytes ? bytes : 1;
        } else {
            memcpy(out, at, bytes);
            out += bytes;
            at += bytes;
        }
    }
    *out++ = '"';
    *out = 0;
    json->used = (uint64_t)(out - json->bytes);
}

char *json_of(char *out, double value) {
    if (isfinite(value))
        snprintf(out, JSON_NUMBER, "%.6g", value);
    else
        strcpy(out, "null");
    return out;
}

void json_number(struct json *json, double value) {
    char number[JSON_NUMBER];
    json_print(json, "%s", json_of(number, value));
}

void json_decimals(struct json *json, double value, int decimals) {
    if (isfinite(value))
        json_print(json, "%.*f", decimals, value);
    else
        json_print(json, "null");
}

void json_base64(struct json *json, const void *data, uint64_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = data;
    char *out = more(json, length / 3 * 4 + 4 + 2);
    if (!out) return;
    *out++ = '"';
    for (uint64_t i = 0; i < length; i += 3) {
        uint64_t left = length - i;
        uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[three & 63] : '=';
    }
    *out++ = '"';
    *out = 0;
    json->used = (uint64_t)(out - json->bytes);
}
