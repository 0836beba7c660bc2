/* spool: data that comes once, kept in a file without a name so that it can be read again. The file goes with its descriptor. */
#ifndef SPTX_SPOOL_H
#define SPTX_SPOOL_H

/* Reads `from` to its end. The file lies in $TMPDIR, or in /var/tmp. Returns its descriptor, or -1 after fail(), which calls the
 * data `what`. */
int spool_all(int from, const char *what);

#endif
