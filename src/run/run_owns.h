/* run_owns: recognizes the files of a run, so that a command does not overwrite them. */
#ifndef SPTX_RUN_OWNS_H
#define SPTX_RUN_OWNS_H

/* Returns 0 if the path (with links followed) is absent, or is no file of a run; otherwise -1 after fail(). `option`: the option
 * with which the user gave the path ("--out"), for the message. */
int run_owns_refuse(const char *path, const char *option);

#endif
