#include "debug.h"

#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int trace_on(void) {
    const char *asked = getenv("SPTX_TRACE");
    return asked && !strcmp(asked, "1");
}

void trace(const char *format, ...) {
    static double began;
    char text[512];
    va_list values;
    if (!trace_on()) return;
    double now = progress_now();
    if (began == 0) began = now;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(stderr, "trace %.6f %s\n", now - began, text);
}
