#define _GNU_SOURCE
#include "numbers.h"

#include <stdlib.h>

/* Returns the C locale that the C library has built in: this call allocates nothing, so it cannot fail and nothing must be
 * freed. */
static locale_t c_locale(void) {
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t numbers_enter(void) {
    return uselocale(c_locale());
}

void numbers_leave(locale_t before) {
    uselocale(before);
}

double numbers_read(const char *text, char **end) {
    return strtod_l(text, end, c_locale());
}

float numbers_read_float(const char *text, char **end) {
    return strtof_l(text, end, c_locale());
}
