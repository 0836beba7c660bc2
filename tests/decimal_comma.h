/* decimal_comma: makes a locale that writes 0.5 as "0,5", in a directory of the test's own. */
#ifndef SPTX_TESTS_DECIMAL_COMMA_H
#define SPTX_TESTS_DECIMAL_COMMA_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets the locale for the whole process, as a graphical toolkit may do. Returns 0, or -1 if this machine cannot make it. */
static inline int decimal_comma_set(const char *directory) {
    char command[512], text[8];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1", directory);
    if (system(command) || setenv("LOCPATH", directory, 1) || !setlocale(LC_ALL, "de_DE.UTF-8")) return -1;
    snprintf(text, sizeof text, "%.1f", 0.5);
    return strcmp(text, "0,5") ? -1 : 0;
}

#endif
