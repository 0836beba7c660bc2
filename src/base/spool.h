/* spool: files without a name in $TMPDIR, or in /var/tmp, for data that is read more than once. Such a file is removed with its
 * descriptor, however the process ends. */
#ifndef SPTX_SPOOL_H
#define SPTX_SPOOL_H

/* Opens an empty file. Returns its descriptor, or -1 after fail(). */
int spool_open(void);
const char *spool_directory(void); /* for sentences */

/* Reads `from` to its end into a temporary file of $TMPDIR, or of /var/tmp. Returns the file's descriptor, or -1 after fail(),
 * whose sentence calls the data `what`. */
int spool_all(int from, const char *what);

#endif
