/* triples: which rows make an example of a triple (EXAMPLE_TRIPLE). Both compilers compile it.
 *
 * The source's ids are head, relation and tail of each triple; it has no starts. Heads and tails are entities, whose rows may be
 * contexts; relations are the rows after them, which are only targets. With `reciprocal`, the second half of the relations' rows
 * are their reciprocals, for triples from tail to head. Example e is triple e / directions:
 *
 *   e % directions   head   relation                             tail
 *   0                head   relation                             tail
 *   1                tail   relation + number of relations       head
 *
 *   pool.tied        targets          contexts
 *   0                head, relation   tail
 *   1                relation         tail, head
 *
 * The tail is the only positive. A head that is a context has no score: it is a context only because its row is in the context
 * table.
 */
#ifndef SPTX_KERNELS_TRIPLES_H
#define SPTX_KERNELS_TRIPLES_H

#include "examples.h"

struct example_triple {
    uint32_t head, relation, tail;
};

FN struct example_triple example_triple(const struct example_source *s, uint64_t example) {
    uint64_t directions = example_directions(s), first = 3 * (example / directions);
    int backwards = example % directions != 0;
    struct example_triple triple;
    triple.head = portable_load32_at(s->ids, first + (backwards ? 2 : 0));
    triple.relation = portable_load32_at(s->ids, first + 1) + (backwards ? (uint32_t)(s->target_only / 2) : 0);
    triple.tail = portable_load32_at(s->ids, first + (backwards ? 0 : 2));
    return triple;
}

/* Writes the targets and the contexts of a triple. */
FN void example_put_triple(const struct example_source *s, uint64_t example, uint32_t *targets, uint32_t *contexts) {
    const struct example_triple triple = example_triple(s, example);
    contexts[0] = triple.tail;
    *(s->pool.tied ? contexts + 1 : targets) = triple.head;
    targets[!s->pool.tied] = triple.relation;
}

#endif
