/* terminal: prints words, names and titles from the user's files on stdout.
 *
 * They may contain any byte, and some bytes control a terminal: an escape sequence can move its cursor, set its title, or type for
 * its user. So on a terminal control characters are shown as \x1b for ESC, \x09 for a tab, \u009b for a two-byte C1 character.
 * In a pipe or a file the text is written unchanged.
 */
#ifndef SPTX_TERMINAL_H
#define SPTX_TERMINAL_H

#include <stdint.h>

void terminal_print(const char *text, uint64_t length);
void terminal_print_name(const char *text); /* prints the text up to its NUL */

/* Replaces each control character of the text, C1 included, by '?', so that the text stays on one line. A signal handler may
 * call it. */
void terminal_make_line(char *text);

#endif
