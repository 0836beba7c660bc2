/* gpus: decides how many of the GPUs allowed by device.gpus train a run.
 *
 * In exact steps each GPU stores some columns of all rows, and every step waits until the partial dot products are added up. So several GPUs help if
 * the model does not fit one, or if its steps take long. A run that one GPU trains faster is trained on one.
 */
#ifndef SPTX_GPUS_H
#define SPTX_GPUS_H

#include "config/config.h"
#include "rows/table.h"

/* copies: several GPUs of this process train one model lock-free (kernels/hogwild.h). Each GPU has its own copy of both tables, on which it trains
 * the next examples of the run; then the copies are merged, and so on. Between two calls of copies_train() all copies have the same rows, so
 * checkpoints, held-out scores and answers read the session's tables.
 *
 * The bytes differ from run to run, as after lock-free training on one GPU.
 */

struct copies;
struct session;

/* Opens a backend and both tables on each further GPU, from device.index on, and copies the session's rows to them. The session's tables must be
 * filled or loaded before. Sets *copies to NULL if the config is for one GPU, and also, with a line of explanation, if the GPUs cannot address
 * each other's memory. Returns 0, or -1 after fail(). */
int copies_open(struct copies **copies, struct session *session);
void copies_close(struct copies *copies); /* NULL: does nothing */

/* Returns how many examples all copies train between two merges. */
uint64_t copies_round(const struct copies *copies);

/* Trains the request's examples, an equal share on each copy, and merges the copies. The learning rate is multiplied by the number of copies,
 * limited by copies_most(). */
int copies_train(struct copies *copies, const struct hogwild_request *request, struct hogwild_result *result);

struct plan;

enum { GPUS_WHY = 1024 };

/* Returns on how many GPUs, from 1 to device.gpus, to train, and writes the reason to why[GPUS_WHY], as one line; -1 after fail(). Sets
 * alone->copies if each GPU shall train a copy of the tables. Encodes the corpus, as a plan does. alone: the configuration resolved for one
 * process; its defaults are settled by the data's size. */
int64_t gpus_choose(struct config *alone, char why[GPUS_WHY]);

/* Sets *seconds to the expected time of a step on `gpus` GPUs. plan: that for one GPU. windows: 1 for words and walks. Returns 0, or -1 if the
 * speed of the GPU's copies is unknown. */
int gpus_seconds(const struct plan *plan, int windows, uint64_t gpus, double *seconds);

#endif
