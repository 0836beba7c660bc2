/* terminal: prints words, names and titles of the user's files on stdout.
 *
 * They may hold any byte, and a terminal obeys some of them: an escape sequence moves its cursor, sets its title, types
 * for its user. In a pipe or a file they stay as they are, byte for byte; on a terminal, control characters are shown
 * as \x1b for ESC, \x09 for a tab, \u009b for the C1 character of two bytes.
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
