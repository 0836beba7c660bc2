/* tried: the file of what was tried: a line a training, by its epochs and keys. A first line tells of the data and of
 * the user's keys; where these are others, the file begins anew.
 *
 *   # sptx-w2v tune 1f0c..
 *   epochs TAB score TAB seconds TAB keys
 */
#ifndef SPTX_TRIED_H
#define SPTX_TRIED_H

#include <stdint.h>

struct tried {
    char *path;  /* owned */
    char *lines; /* the file as it was when it was opened; owned */
};

extern const char tried_name[]; /* name of the file, without its directory */

/* anew: 1: existing lines are removed. Returns 0, or -1 after fail(). */
int tried_open(struct tried *tried, const char *directory, uint64_t fingerprint, int anew);
void tried_close(struct tried *tried); /* harmless on a zeroed one */

/* Returns 1 with what this training came to in an earlier call, otherwise 0. */
int tried_find(const struct tried *tried, uint64_t epochs, const char *keys, double *score, double *seconds);
int tried_add(const struct tried *tried, uint64_t epochs, const char *keys, double score, double seconds);

#endif
