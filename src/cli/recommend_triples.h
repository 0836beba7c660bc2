/* recommend_triples: prints the answers of `recommend` for a run of triples. */
#ifndef SPTX_RECOMMEND_TRIPLES_H
#define SPTX_RECOMMEND_TRIPLES_H

#include "arguments.h"
#include "vectors/names.h"

struct triples_asked {
    const struct model *model;
    const struct titles *titles;
    const char *const *entities; /* [count] names or titles; at most OPTION_TIMES */
    uint64_t count;
    const char *relation;
    int backwards, seen, json; /* backwards: 1: entities are tails, and heads are wanted */
    uint32_t k;
};

/* Prints lines of head, relation, tail and score; with `json`, an object for each question. Returns 0, or -1 after fail(). */
int recommend_triples(const struct triples_asked *asked, const struct config *config);

#endif
