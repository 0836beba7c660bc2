/* triple_answers: the tails that suit a head and a relation best, and the heads that suit a relation and a tail. */
#ifndef SPTX_TRIPLE_ANSWERS_H
#define SPTX_TRIPLE_ANSWERS_H

#include "run_triples.h"
#include "search.h"

struct triple_answers {
    const struct model *model;
    struct search search; /* among the context rows of the entities */
    struct idstream
        stream; /* the triples that the run was trained on; opened by the first question that leaves out known answers */
    int looked; /* 1: the stream was opened, or is gone */
};

/* Opens a search on the device that device.* of `config` chooses (NULL: the CPU). */
int triple_answers_open(struct triple_answers *answers, const struct model *model, const struct config *config);
void triple_answers_close(struct triple_answers *answers); /* may be called on a struct of zeros */

/* Finds the k best entities for each question. Question i has entities[i] and relations[i]: a relation's row asks for tails, a
 * reciprocal's row for heads. ids, scores: [count x k], as in struct topk_request. seen: 1: training triples may be found again.
 * Returns 0, or -1 after fail(). */
int triple_answers_ask(struct triple_answers *answers, const uint32_t *entities, const uint32_t *relations, uint64_t count,
                       uint32_t k, int seen, struct pool *pool, uint32_t *ids, float *scores);

#endif
