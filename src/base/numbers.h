/* numbers: reads and writes numbers with a decimal point, whatever the caller's locale is.
 *
 * The caller of a library sets the locale (with a decimal comma, for example), and printf() and strtod() obey it. Each thread that
 * runs this program's code therefore switches itself to the C locale and back: library calls in enter() and leave()
 * (library/handles.h), and each thread that the program starts. Code may then write numbers by printf(). It reads numbers by the
 * functions below, which always use the C locale.
 */
#ifndef SPTX_NUMBERS_H
#define SPTX_NUMBERS_H

#include <locale.h>

/* Makes this thread write numbers with a decimal point. Returns the argument for numbers_leave(), which undoes this. */
locale_t numbers_enter(void);
void numbers_leave(locale_t before);

/* Like strtod() and strtof(), in the C locale: *end is `text` if no number begins there. */
double numbers_read(const char *text, char **end);
float numbers_read_float(const char *text, char **end);

#endif
