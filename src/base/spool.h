/* spool: nameless files in $TMPDIR or /var/tmp, for data that is read more than once. The system removes such a file when its
 * descriptor is closed, even if the process is killed. */
#ifndef SPTX_SPOOL_H
#define SPTX_SPOOL_H

/* Opens an empty nameless file. Returns its descriptor, or -1 after fail(). */
int spool_open(void);
const char *spool_directory(void); /* returns the directory of these files, for messages */

/* Copies all bytes that can be read from `from` into a new nameless file. Returns its descriptor, or -1 after fail(), whose
 * message calls the data `what`. */
int spool_all(int from, const char *what);

#endif
