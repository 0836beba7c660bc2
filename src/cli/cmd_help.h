/* cmd_help: the manual as a man page and as completions of shells, made from the command table and the table of keys. */
#ifndef SPTX_CMD_HELP_H
#define SPTX_CMD_HELP_H

/* Prints the manual page, sptx-w2v.1. Returns 0, or -1 after fail(). */
int help_man(void);

/* Print a shell's completion script: commands, options, keys and the keys' values. Return 0, or -1 after fail(). */
int help_bash(void);
int help_zsh(void);

#endif
