/* judge: scores a checkpoint during training by the items that were held out (train.held_out_items). */
#ifndef SPTX_JUDGE_H
#define SPTX_JUDGE_H

#include "evaluate.h"

/* Sets *recall to recall@JUDGE_PLACES of the held-out items, computed with the score that `evaluate` uses for the run, and
 * *lists to the number of lists that were asked. Returns 0, or -1 after fail(). */
enum { JUDGE_PLACES = 20 };
int judge_checkpoint(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *held_out,
                     const struct config *config);

#endif
