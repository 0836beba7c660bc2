/* cmd_help: the manual in its other forms, all from the command table and the table of keys. */
#ifndef SPTX_CMD_HELP_H
#define SPTX_CMD_HELP_H

/* Prints the manual page, sptx-w2v.1. Returns 0, or -1 after fail(). */
int help_man(void);

/* Print the text that a shell needs to complete commands, options, keys and their values. Return 0, or -1 after fail(). */
int help_bash(void);
int help_zsh(void);

#endif
