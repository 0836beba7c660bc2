/* gpus: decides on how many of the GPUs that device.gpus allows a run is trained.
 *
 * Several GPUs share out the columns of all rows, and each step waits until the parts of its dot products are added up. So they
 * help a model that does not fit one GPU, or whose steps take long. A run that one GPU trains faster is trained on one.
 */
#ifndef SPTX_GPUS_H
#define SPTX_GPUS_H

#include "config/config.h"
#include "rows/table.h"

/* copies: several GPUs of this process train one model lock-free (kernels/hogwild.h). Each GPU has its own copy of both tables. In
 * turn, the GPUs receive the next examples of the run; each trains its examples on its copy, and then the copies are merged.
 * Between two calls of copies_train() all copies have the same rows, so checkpoints, held-out scores and answers read the session's
 * tables.
 *
 * The bytes differ from run to run, as after lock-free training on one GPU.
 */

struct copies;
struct session;

/* Opens a backend and both tables on each further GPU, from device.index on, and copies the session's rows to them. The session's
 * tables must be filled or loaded before. *copies: NULL for a config that one GPU trains. If the GPUs cannot address one another's
 * memory, *copies is NULL, too, and a line says so. Returns 0, or -1 after fail(). */
int copies_open(struct copies **copies, struct session *session);
void copies_close(struct copies *copies); /* NULL: does nothing */

/* Returns how many examples all copies train between two merges. */
uint64_t copies_round(const struct copies *copies);

/* Trains the request's examples, of which each copy takes an equal share, and merges the copies. The learning rate is multiplied by
 * the number of copies, but at most by copies_most(). */
int copies_train(struct copies *copies, const struct hogwild_request *request, struct hogwild_result *result);

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
