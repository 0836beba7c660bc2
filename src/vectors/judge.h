/* judge: the held-out score of a checkpoint, as training asks for it (train.held_out_items). */
#ifndef SPTX_JUDGE_H
#define SPTX_JUDGE_H

#include "evaluate.h"

/* Finds recall@20 of the held-out items, each list scored as `evaluate` does by itself, and how many lists were asked.
 * Returns 0, or -1 after fail(). */
enum { JUDGE_PLACES = 20 };
int judge_checkpoint(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *held_out,
                     const struct config *config);

#endif
