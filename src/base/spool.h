/* spool: data that comes once, kept in a file without a name so that it can be read again. The file goes with its descriptor. */
#ifndef SPTX_SPOOL_H
#define SPTX_SPOOL_H

/* Reads `from` to its end into a temporary file of $TMPDIR, or of /var/tmp. Returns the file's descriptor, or -1 after fail(),
 * whose sentence calls the data `what`. */
int spool_all(int from, const char *what);

#endif
