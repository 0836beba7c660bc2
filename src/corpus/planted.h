/* planted: a knowledge graph whose best MRR is known, for `generate triples`, and that MRR.
 *
 * Entities are in groups, and groups in types of TYPE_GROUPS. Entity x is in group x % groups, which is number group % TYPE_GROUPS of type
 * group / TYPE_GROUPS, and is member x / groups of it. Of a group of S members, member m is drawn with probability log2(1 + 1/(m+1)) / log2(S+1).
 *
 *   head      every second triple: the next of a random order of all entities, so that each occurs. Others: a member of any group
 *   relation  of those of the head's type, by Zipf's law. Relation r belongs to type r % types; its layer is r / types
 *   tail      a member of the group to which the relation leads from the head's group; with probability `noise`, of any group
 *
 * A relation leads to one type, by a permutation of the types that its layer has; there, to the group whose number is the head's XOR a number that
 * the relation has. Both depend on no seed: another seed gives other triples of the same graph.
 *
 *   best       ranks the group's members first, by popularity, then all other entities by popularity. No ranking that knows the groups and the
 *              relations is better, except that a few very popular entities of other groups should rank before rare members
 *   inferred   the same for entities whose group their triples of training tell; for others the relation's type is known, and no group. An entity
 *              tells its group if two of its triples are no noise, or with probability 1 / (1 + n) if one is, beside n that are. One that no triple
 *              of training has is a miss
 *
 * Both leave out known answers, as evaluate --triples does, and rank among the entities that it takes: all, or a sample, of which the mean over all
 * samples is computed: rank 1 + X for a sum X of independent choices has E[1 / (1 + X)] = the integral of E[s^X] over s from 0 to 1.
 */
#ifndef SPTX_PLANTED_H
#define SPTX_PLANTED_H

#include "kernels/backend.h"

#include <pthread.h>
#include <stdint.h>

enum {
    TYPE_GROUPS = 16,
    RANK_ALL_MOST = 1000000, /* most entities of which evaluate --triples ranks all */
    RANK_SAMPLE = 10000 /* otherwise: size of its sample, half drawn evenly, half by occurrence, as in "Marius: Learning Massive Graph Embeddings" */
};

struct powers;

/* The law of one graph, and the triples that a seed draws of it. */
struct planted {
    const struct powers *powers;
    uint64_t rows, groups, types, relations;
    uint32_t seed, noise;        /* noise: probability, times 2^32 */
    uint64_t members[2];         /* powers_log() of a group's members + 1: of small groups, and of those with one more */
    uint64_t layers[2];          /* powers_log() of a type's relations + 1: of types with few relations, and of those with one more */
    struct shuffle order;        /* of heads that are drawn evenly */
};

struct planted_triple {
    uint32_t head, relation, tail;
    int noise; /* 1: the tail was drawn from any group */
};

void planted_init(struct planted *planted, const struct powers *powers);          /* after the caller has set rows to noise */
void planted_draw(const struct planted *planted, uint64_t number, struct planted_triple *triple);

/* The triples that are drawn after the training triples. Those that repeat a training triple are marked, and do not count as held out. */
struct planted_held_out {
    const struct planted *planted;
    struct planted_triple *triples; /* [count] */
    uint64_t count, training;       /* training: number of triples of training */
    _Atomic uint8_t *repeated;      /* [count] 1: a triple of training, or an earlier one here, is the same */
    uint32_t *asked;                /* [rows / 32 + 1] bit map of the entities of these triples */
    struct planted_question {
        uint64_t key; /* entity << 32 | relation */
        uint32_t at;  /* 2 * triple + 1 if its head is asked for */
    } *questions;     /* [2 * count] rising */
    _Atomic uint32_t (*seen)[2]; /* [2 * count] of the entity of a question, at its first question: triples of training by the law, and noise */
    uint64_t *ahead;  /* [known] at << 32 | member: known answers that would rank before the one that is asked for */
    uint64_t known, capacity;
    pthread_mutex_t lock; /* held while `ahead` changes */
};

struct planted_best {
    double best[2], inferred[2], popular[2]; /* MRR of tails, and of heads */
    double random;
    uint64_t triples, among; /* how many triples were asked for, among how many entities */
};

/* Draws held-out triples `training` .. `training` + count - 1. The caller releases the struct in any case. */
int planted_hold_out(struct planted_held_out *held_out, const struct planted *planted, uint64_t training, uint64_t count);
/* Records a training triple. Any thread may call it. Returns 0, or -1 after fail(). */
int planted_take(struct planted_held_out *held_out, const struct planted_triple *triple);
/* Marks held-out triples that repeat others, and computes the best possible MRR of the second half, which is the test. Must be called after the last
 * training triple. Returns 0, or -1 after fail(). */
int planted_judge(struct planted_held_out *held_out, struct planted_best *best);
void planted_release(struct planted_held_out *held_out); /* may be called on a struct of zeros */

#endif
