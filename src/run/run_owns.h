/* run_owns: recognizes the files of a run, so that a command does not overwrite them. */
#ifndef SPTX_RUN_OWNS_H
#define SPTX_RUN_OWNS_H

/* Returns 0 if the path, with links followed, is absent or is not a file of a run; otherwise -1 after fail(), whose message
 * names the option that the path was given by (`option`: "--out"). */
int run_owns_refuse(const char *path, const char *option);

#endif
