/* terminal: words, names and titles of the user's files on stdout.
 *
 * They may hold any byte, and a terminal obeys some: an escape sequence moves its cursor, sets its title, types for its
 * user. In a pipe or a file they stay as they are, byte for byte; on a terminal its control characters are shown: \x1b
 * for ESC, \x09 for a tab, \u009b for the sequence that begins with one character of two bytes.
 */
#ifndef SPTX_TERMINAL_H
#define SPTX_TERMINAL_H

#include <stdint.h>

void terminal_print(const char *text, uint64_t length);
void terminal_print_name(const char *text); /* to its NUL */

/* Sentences stay one line: each control character of the text, of C1 too, becomes '?'. Safe in a signal's handler. */
void terminal_make_line(char *text);

#endif
