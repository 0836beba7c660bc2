/* run_owns: tells a run's files, so that nothing else is written over them. */
#ifndef SPTX_RUN_OWNS_H
#define SPTX_RUN_OWNS_H

/* Returns 0 if the path, links followed, is not a file of a run or is absent; otherwise -1 after fail(), which names the option
 * that gave it (`option`: "--out"). */
int run_owns_refuse(const char *path, const char *option);

#endif
