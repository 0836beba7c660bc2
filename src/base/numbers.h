/* numbers: how numbers are read from text and written to it: with a point, whatever the caller's locale has.
 *
 * A library's caller sets the locale (a decimal comma, say), and printf() and strtod() follow it. A thread that runs
 * the program's code therefore takes the C locale for itself, which is the thread's alone, and gives its own back at
 * the end: the library's calls do so (enter() and leave() of library/handles.h), and each thread that the program
 * starts. Numbers are then written as the program writes them by printf() and its relatives. They are read by the
 * functions below only, which know one locale.
 */
#ifndef SPTX_NUMBERS_H
#define SPTX_NUMBERS_H

#include <locale.h>

/* This thread writes numbers with a point from now on: what numbers_leave() is given to take back. */
locale_t numbers_enter(void);
void numbers_leave(locale_t before);

/* strtod() and strtof() of the C locale: *end is `text` where no number begins there. */
double numbers_read(const char *text, char **end);
float numbers_read_float(const char *text, char **end);

#endif
