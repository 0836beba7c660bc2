/* copies: several GPUs of this process train one model lock-free (kernels/copies.h). Each gets the next examples of the run in turn,
 * trains them on its own copy of both tables, and then the copies are merged. Between two calls of copies_train() all copies are
 * alike, so checkpoints, held-out scores and answers read the session's own tables.
 *
 * The bytes differ from run to run, as those of one GPU do.
 */
#ifndef SPTX_COPIES_H
#define SPTX_COPIES_H

#include "config/config.h"
#include "rows/table.h"

struct copies;
struct session;

/* Returns how many examples a copy trains between two merges, if `count` GPUs train the session's run: train.merge_every, or so many
 * that merging takes a small part of the time. 0: the run is too short for copies, and device.share
 * leaves the choice. */
uint64_t copies_round_of(const struct session *session, unsigned count);

/* Returns the largest number of copies that may each train with that many times the learning rate (at least 1): above some rate
 * lock-free training on a GPU diverges. */
unsigned copies_most(const struct config *config);

/* Opens a backend and both tables on each further GPU, from device.index on, and copies the session's rows to them: after the tables
 * are filled or loaded. *copies: NULL for a config that one GPU trains, and if the GPUs cannot address one another's memory, which a
 * line says. Returns 0, or -1 after fail(). */
int copies_open(struct copies **copies, struct session *session);
void copies_close(struct copies *copies); /* NULL: does nothing */

/* Returns how many examples all copies train between two merges. */
uint64_t copies_round(const struct copies *copies);

/* Trains the request's examples, of which each copy takes an equal share, and merges the copies. The learning rate is multiplied by
 * the number of copies, but at most by copies_most(). */
int copies_train(struct copies *copies, const struct hogwild_request *request, struct hogwild_result *result);

#endif
