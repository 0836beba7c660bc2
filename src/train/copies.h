/* copies: several GPUs of this process train one model lock-free (kernels/hogwild.h). Each GPU has its own copy of both tables. In
 * turn, the GPUs receive the next examples of the run; each trains its examples on its copy, and then the copies are merged.
 * Between two calls of copies_train() all copies have the same rows, so checkpoints, held-out scores and answers read the session's
 * tables.
 *
 * The bytes differ from run to run, as after lock-free training on one GPU.
 */
#ifndef SPTX_COPIES_H
#define SPTX_COPIES_H

#include "config/config.h"
#include "rows/table.h"

struct copies;
struct session;

/* Returns the number of examples that each of `count` GPUs trains between two merges: train.merge_every or, if that is auto, enough
 * that merging takes a small part of the time. Returns 0 if the run is too short for copies and device.share leaves the choice. */
uint64_t copies_round_of(const struct session *session, unsigned count);

/* Returns the largest number of copies that may each train with that many times the learning rate (at least 1): above some rate
 * lock-free training on a GPU diverges. */
unsigned copies_most(const struct config *config);

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

#endif
