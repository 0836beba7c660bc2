/* gpus: decides on how many of the GPUs that device.gpus allows a run is trained.
 *
 * Several GPUs share out the columns of all rows, and each step waits until the parts of its dot products are added up. So they
 * help a model that does not fit one GPU, or whose steps take long. A run that one GPU trains faster is trained on one.
 */
#ifndef SPTX_GPUS_H
#define SPTX_GPUS_H

#include "config/config.h"

struct plan;

enum { GPUS_WHY = 1024 };

/* Returns the number of GPUs, from 1 to device.gpus, and writes the reason to why[GPUS_WHY], as one line. Sets alone->copies if
 * each of the GPUs trains a copy of the tables. Returns -1 after fail(). Encodes the corpus, as a plan does. alone: the
 * configuration resolved for one process; its defaults are settled by the data's size. */
int64_t gpus_choose(struct config *alone, char why[GPUS_WHY]);

/* Sets *seconds to the expected time of a step on `gpus` GPUs. plan: made for one GPU. windows: 1 for words and walks. Returns 0,
 * or -1 if the speed of the GPU's copies is unknown. */
int gpus_seconds(const struct plan *plan, int windows, uint64_t gpus, double *seconds);

#endif
