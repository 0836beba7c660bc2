/* numbers: reads and writes numbers with a decimal point, whatever the caller's locale is.
 *
 * A library's caller sets the locale (a decimal comma, say), and printf() and strtod() follow it. Each thread that runs
 * the program's code therefore takes the C locale for itself alone, and gives the old one back at the end. The
 * library's calls do so (enter() and leave() of library/handles.h), and so does each thread that the program starts.
 * Code then writes numbers by printf() and its relatives, and reads them by the functions below, which know only the C
 * locale.
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
