/* tried: the file of finished trainings, one line each, found again by epochs and keys. The first line has a fingerprint of the
 * data and of the user's keys; if it differs, the file is emptied.
 *
 *   # sptx-w2v tune 1f0c..
 *   epochs TAB score TAB seconds TAB keys
 */
#ifndef SPTX_TRIED_H
#define SPTX_TRIED_H

#include <stdint.h>

/* An open file of finished trainings. */
struct tried {
    char *path;  /* path of the file, owned */
    char *lines; /* contents of the file when it was opened; owned */
};

extern const char tried_name[]; /* name of the file, without its directory */

/* Opens the file in `directory`, or begins it. `fingerprint`: of the data and the user's keys. `anew`: 1: earlier lines are
 * removed. Returns 0, or -1 after fail(). */
int tried_open(struct tried *tried, const char *directory, uint64_t fingerprint, int anew);
void tried_close(struct tried *tried); /* may be called on a struct of zeros */

/* Finds, in earlier calls, the training with these epochs and keys. Returns 1 and sets its score and seconds; 0 if there was
 * none. */
int tried_find(const struct tried *tried, uint64_t epochs, const char *keys, double *score, double *seconds);
int tried_add(const struct tried *tried, uint64_t epochs, const char *keys, double score, double seconds);

#endif
