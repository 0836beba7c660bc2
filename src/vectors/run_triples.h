/* run_triples: a finished run of triples (corpus.format = triples): its entities and relations, questions, and known answers.
 *
 *   question                  product of these target rows        its answers, scored by their context rows
 *   head, relation, ?         head, relation                      tails
 *   ?, relation, tail         tail, the relation's reciprocal     heads; only with triples.reciprocal = yes
 */
#ifndef SPTX_RUN_TRIPLES_H
#define SPTX_RUN_TRIPLES_H

#include "model.h"
#include "base/pool.h"
#include "corpus/gathered.h"
#include "corpus/idstream.h"

/* Returns 0; -1 after fail() if the run was not trained on triples. */
int run_triples_check(const struct model *model);
/* Return the row of an entity or a relation; -1 after fail_usage(), which suggests a similar name. */
int64_t run_triples_entity(const struct model *model, const char *name);
int64_t run_triples_relation(const struct model *model, const char *name);
/* Returns the row of a relation's reciprocal; -1 after fail_usage() if the run has none. */
int64_t run_triples_reciprocal(const struct model *model, int64_t relation);

/* Writes the product of an entity's and a relation's target row to out[dim]. Returns 0, or -1 after fail(). */
int run_triples_query(const struct model *model, uint32_t entity, uint32_t relation, float *out);

/* ---- triples of files and programs ---- */

/* Called with each triple: rows of head, relation and tail; WORDS_ABSENT: the run does not know the name. Returns 0, or -1 to stop.
 */
typedef int triple_take(void *user, const uint32_t rows[3]);
/* Reads a file, as a corpus of triples is read. Returns 0, or -1 after fail(). */
int run_triples_read(const struct model *model, const char *path, const struct look_keys *look, triple_take *take, void *user);
int run_triples_gathered(const struct model *model, const struct gathered *data, triple_take *take, void *user);

/* ---- known answers ---- */

/* The known answers to some questions. A question is entity << 32 | row of the relation or of its reciprocal. */
struct known_answers {
    const struct model *model;
    uint64_t *questions; /* [count] rising, each once */
    uint64_t count;
    uint32_t *answers; /* answers to question i, rising, each once: answers[starts[i]] .. answers[starts[i] + counts[i] - 1] */
    uint64_t *starts, *counts; /* [count] */
    struct known_pair *pairs;  /* [pair_count] all answers that were added */
    uint64_t pair_count, pairs_capacity;
    uint8_t *asked; /* [(items + 7) / 8] bits: the entity occurs in a question */
};

/* Begins with questions[count], which the struct owns from now on. The caller releases the struct in any case. */
int known_answers_begin(struct known_answers *known, const struct model *model, uint64_t *questions, uint64_t count);
/* Adds the triple's tail and its head, each only if it answers one of the questions. `known` is a struct known_answers; the
 * function is a triple_take. */
int known_answers_add(void *known, const uint32_t rows[3]);
/* Opens the triples that the run was trained on. Returns 1; 0 after a warning if they are not there any more; -1 after fail(). */
int run_triples_open(struct idstream *stream, const struct model *model, struct pool *pool);
/* Adds all triples of a stream. Returns 0, or -1 after fail(). */
int known_answers_add_stream(struct known_answers *known, const struct idstream *stream, struct pool *pool);
/* Sorts the answers that were added. More answers may be added afterwards, if this is then called again. */
int known_answers_end(struct known_answers *known);
void known_answers_release(struct known_answers *known); /* may be called on a struct of zeros */

/* Returns the index of this question in `questions`; -1 if it is not there. */
int64_t known_answers_find(const struct known_answers *known, uint32_t entity, uint32_t relation);

#endif
