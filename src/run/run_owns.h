/* run_owns: whether a file belongs to a run, so that nothing else is written over it. */
#ifndef SPTX_RUN_OWNS_H
#define SPTX_RUN_OWNS_H

/* 0 where the path, or what it links to, is none of a run's files or is not there; otherwise -1 after fail(), which names
 * the option that gave it (`option`: "--out"). */
int run_owns_refuse(const char *path, const char *option);

#endif
