#include "debug.h"

#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_asked(void) {
    const char *asked = getenv("SPTX_TRACE");
    return asked && !strcmp(asked, "1");
}

void trace(const char *format, ...) {
    char text[512];
    va_list values;
    if (!is_asked()) return;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(stderr, "trace %.6f %s\n", progress_now(), text);
}
