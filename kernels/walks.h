/* walks: random walks over a graph, each a function of (seed, epoch, number). No walk is stored, and each can be drawn alone.
 *
 *   number   0 .. nodes - 1           nodes .. 2 nodes - 1        ..
 *   begins   at each node once,       once more,                          per_node times in all
 *            in a drawn order         in another order
 *
 * Over triples (RDF2Vec, Ristoski and Paulheim 2016), an arc has a label, the row of its triple's relation. A walk writes it between the two
 * nodes: head, relation, tail = head, relation, tail ..; its draws are those of the same walk without labels. Such walks begin only at nodes
 * that have arcs, `begun` in number, since a walk of one node trains nothing.
 *
 * A walk goes from a node to a neighbour, with a chance proportional to the arc's weight. With biases (Grover
 * and Leskovec 2016, node2vec), a walk that came from `before` to `at` multiplies the weight of the arc from `at` to x by
 *
 *   1 / p   x is `before`, the way back
 *   1       an arc leads from `before` to x
 *   1 / q   no arc leads from `before` to x
 *
 * A candidate x is drawn by weight and accepted with the chance bias / largest bias; if it is refused, another is drawn. So nothing
 * is precomputed for pairs of nodes. If the way back has the largest bias, nearly all candidates would be refused: candidates are
 * then accepted by bias / largest other bias, and the part of the way back's bias above that is drawn first (`aside`). A node's
 * only arc is accepted whatever its bias, since a leaf's way back could be refused a million times (p = 1000, q = 0.001).
 *
 * If walk_most_tries() candidates of one step have been refused, walk_draw_exactly() draws that step: it adds up the weights of all
 * the node's arcs, and has the same distribution. This does not happen in practice if the biases (1 / p, 1, 1 / q) differ by a
 * factor of at most 100: each candidate is then accepted with a chance of at least 1 in 100, whatever the weights, so that 4,096
 * refusals occur once in 10^17 steps.
 *
 * A walk ends at a node without arcs; its remaining places are DRAW_NONE, as if subsampling had dropped them.
 *
 * Draws are WALK at (number, epoch), with a running index; each has four words:
 *
 *   walks             index           words of a step
 *   first order       step / 4        one, which chooses the neighbour
 *   first order,      step / 2        two, for a column of the node's alias table
 *     weights
 *   with biases       tries before    0 (with weights 0 and 1): the candidate; 2: whether it is accepted; 3: whether
 *                                     the walk goes back without a candidate. An exactly drawn step uses 0 and 1 only
 */
#ifndef SPTX_KERNELS_WALKS_H
#define SPTX_KERNELS_WALKS_H

#include "draws.h"

enum { WALK_TRIES = 4096 }; /* after so many refused candidates, plus one for each arc of the node, a step is drawn exactly */

/* A graph, and how walks over it are drawn. The caller owns the arrays. */
struct walks {
    const uint64_t *starts;     /* [nodes + 1] node v has arcs starts[v] .. starts[v + 1] - 1 */
    const uint32_t *neighbours; /* [arcs] rising within a node */
    const struct alias *alias;  /* [arcs] for weights: each node's alias table, in which `other` is relative to the node's first arc; NULL: all
                                 * arcs weigh the same */
    const uint32_t *labels;     /* [arcs] rows of the arcs' relations; NULL: a walk writes only nodes. With labels several arcs of a node may lead to
                                 * one neighbour, each with another label, and no arc has a weight */
    const uint32_t *begins;     /* [begun] nodes at which walks begin, each once; NULL: all nodes */
    uint64_t nodes, arcs, begun;
    uint32_t length;            /* ids of a walk: its nodes, and with labels the relations between them; 0: no graph: examples come from a corpus */
    uint32_t per_node;          /* number of walks that begin at each node in an epoch */
    uint32_t steps;             /* most steps of a walk: its nodes but the first */
    int biased;                 /* 1: the biases of node2vec; 0: first order */
    int mutual;                 /* 1: undirected: each arc has one in the opposite direction */
    uint32_t back, near_, away; /* thresholds, times 2^32, for accepting a candidate: the way back; a neighbour of `before`; any other node */
    float aside;                /* how much the way back's bias exceeds the largest other bias, in units of the latter */
};

/* Sets the biases, and the steps that `length` allows. `aside` is used only for undirected graphs without weights and labels, where every step has a
 * way back, by one arc that weighs as much as the others. */
void walks_set_biases(struct walks *walks, double p, double q, int directed);

/* A node, whose arcs are first .. first + degree - 1. */
struct walk_node {
    uint32_t id, degree;
    uint64_t first;
};

FN struct walk_node walk_node(const struct walks *w, uint32_t id) {
    struct walk_node node;
    node.id = id;
    node.first = portable_load64(w->starts + id);
    node.degree = (uint32_t)(portable_load64(w->starts + id + 1) - node.first);
    return node;
}

/* Returns the node where a walk begins. */
FN uint32_t walk_start(const struct walks *w, uint32_t seed, uint64_t number, uint32_t epoch) {
    uint64_t pass = number / w->begun;
    struct shuffle order = shuffle_make(w->begun, draw_at(seed, DRAW_SHUFFLE, pass + 1, epoch, 0));
    uint64_t place = shuffle_at(&order, number - pass * w->begun);
    return w->begins ? portable_load32(w->begins + place) : (uint32_t)place;
}

/* Returns the neighbour to which a node's arc number `place` leads. *label: the arc's label, if arcs have labels. */
FN uint32_t walk_follow(const struct walks *w, const struct walk_node *node, uint32_t place, uint32_t *label) {
    if (w->labels) *label = portable_load32(w->labels + node->first + place);
    return portable_load32(w->neighbours + node->first + place);
}

/* Returns a random neighbour, in proportion to the arcs' weights. first, second: random bits; if all arcs weigh the same, `second` is not used. */
FN uint32_t walk_neighbour(const struct walks *w, const struct walk_node *node, uint32_t first, uint32_t second, uint32_t *label) {
    uint64_t bits = (uint64_t)first << 32 | second;
    return walk_follow(w, node, w->alias ? draw_alias(bits, w->alias + node->first, node->degree) : (uint32_t)((uint64_t)first * node->degree >> 32),
                       label);
}

/* Returns 1 if an arc leads from `from` to `to`. */
FN int walk_has_arc(const struct walks *w, const struct walk_node *from, uint32_t to) {
    uint64_t low = from->first, end = low + from->degree, high = end;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (portable_load32(w->neighbours + middle) < to)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && portable_load32(w->neighbours + low) == to;
}

/* Returns the next node of a first-order walk. `drawn` must be kept for the next steps, which share a draw. */
FN uint32_t walk_step(const struct walks *w, uint32_t seed, uint64_t number, uint32_t epoch, uint32_t step,
                      const struct walk_node *at, struct draw4 *drawn, uint32_t *label) {
    uint32_t shared = w->alias ? 1 : 3; /* how many other steps share a draw */
    if (!(step & shared)) *drawn = draw_at(seed, DRAW_WALK, number, epoch, step / (shared + 1));
    if (!w->alias) return walk_neighbour(w, at, draw_word_of(*drawn, step), 0, label);
    return walk_neighbour(w, at, step & 1 ? drawn->word[2] : drawn->word[0], step & 1 ? drawn->word[3] : drawn->word[1], label);
}

/* Returns 1 if an arc leads from `from` to `to`. If arcs are mutual, the arcs of the node with fewer are searched. */
FN int walk_are_linked(const struct walks *w, const struct walk_node *from, uint32_t to) {
    struct walk_node other;
    if (!w->mutual) return walk_has_arc(w, from, to);
    other = walk_node(w, to);
    return other.degree < from->degree ? walk_has_arc(w, &other, from->id) : walk_has_arc(w, from, to);
}

/* Returns the threshold of candidate `x`, which is accepted if a random 32-bit number is at most that. */
FN uint32_t walk_threshold(const struct walks *w, const struct walk_node *before, uint32_t x) {
    if (x == before->id) return w->back;
    return w->near_ != w->away && walk_are_linked(w, before, x) ? w->near_ : w->away;
}

/* Returns 1 if candidate `x` is accepted. drawn: 32 random bits, most of which decide without searching for an arc. */
FN int walk_takes(const struct walks *w, const struct walk_node *before, uint32_t x, uint32_t drawn) {
    uint32_t least = w->near_ < w->away ? w->near_ : w->away;
    return (x != before->id && drawn <= least) || drawn <= walk_threshold(w, before, x);
}

/* Returns the next node of a biased walk, or DRAW_NONE if the candidate was refused. */
FN uint32_t walk_try(const struct walks *w, uint32_t seed, uint64_t number, uint32_t epoch, uint32_t tries,
                     const struct walk_node *at, const struct walk_node *before, uint32_t *label) {
    struct draw4 drawn = draw_at(seed, DRAW_WALK, number, epoch, tries);
    uint32_t x;
    if (before->id != DRAW_NONE && w->aside > 0 && draw_unit(drawn.word[3]) * ((float)at->degree + w->aside) < w->aside) return before->id;
    x = walk_neighbour(w, at, drawn.word[0], drawn.word[1], label);
    return before->id == DRAW_NONE || at->degree == 1 || walk_takes(w, before, x, drawn.word[2]) ? x : DRAW_NONE;
}

/* ---- a step with too many refused candidates ---- */

/* Returns the number of refused candidates after which a step is drawn exactly. Drawing exactly takes as long as trying one candidate for each
 * arc. */
FN uint32_t walk_most_tries(const struct walk_node *at) {
    return at->degree < DRAW_NONE - WALK_TRIES ? WALK_TRIES + at->degree : DRAW_NONE;
}

/* Returns a number proportional to the probability that one try draws node x and accepts it. share: proportional to the probability of drawing x. If
 * x is the node before, adds w->aside, the part of its bias that walk_try() draws first (0 if the graph has weights). */
FN double walk_mass(const struct walks *w, const struct walk_node *before, uint32_t x, double share) {
    double taken = (double)walk_threshold(w, before, x) + 1;
    if (x == before->id) taken += portable_mul((double)w->aside, 4294967296.0);
    return portable_mul(share, taken);
}

/* Adds up walk_mass() over the node's arcs in order, and returns the neighbour at which *sum exceeds `stop`, or else the last one. With weights it
 * goes through the node's alias table, whose columns have two neighbours each. *label: of the arc to that neighbour. */
FN uint32_t walk_add_masses(const struct walks *w, const struct walk_node *at, const struct walk_node *before, double stop, double *sum,
                            uint32_t *label) {
    uint32_t x = DRAW_NONE;
    *sum = 0;
    for (uint32_t place = 0; place < at->degree; place++) {
        double other = w->alias ? 4294967295.0 - (double)w->alias[at->first + place].threshold : 0;
        x = walk_follow(w, at, place, label);
        *sum += walk_mass(w, before, x, 4294967296.0 - other);
        if (*sum > stop) return x;
        if (other == 0) continue;
        x = walk_follow(w, at, w->alias[at->first + place].other, label);
        *sum += walk_mass(w, before, x, other);
        if (*sum > stop) return x;
    }
    return x;
}

/* Returns the next node of a biased walk from `before` to `at`, by one draw, with the same distribution as walk_try(). */
FN_RARE uint32_t walk_draw_exactly(const struct walks *w, uint32_t seed, uint64_t number, uint32_t epoch, uint32_t tries,
                              const struct walk_node *at, const struct walk_node *before, uint32_t *label) {
    double all, passed, u = (double)(draw_pair(draw_at(seed, DRAW_WALK, number, epoch, tries), 0) >> 11) * (1.0 / 9007199254740992.0);
    walk_add_masses(w, at, before, INFINITY, &all, label);
    return walk_add_masses(w, at, before, portable_mul(u, all), &passed, label);
}

/* ---- a walk ---- */

/* A walk while it is drawn: `at` is its node number `step`, from 0. */
struct walk {
    uint64_t number;
    struct walk_node at, before; /* before.id: DRAW_NONE at the first step */
    struct draw4 drawn;
    uint32_t step, tries;
    uint32_t label;   /* label of the arc that was drawn last, if arcs have labels. The arc led to `at`, unless its candidate was refused */
    uint32_t refused; /* number of candidates for the next step that were refused so far */
};

FN struct walk walk_begin(const struct walks *w, uint32_t seed, uint64_t number, uint32_t epoch) {
    struct walk walk;
    walk.number = number;
    walk.at = walk.before = walk_node(w, walk_start(w, seed, number, epoch));
    walk.before.id = DRAW_NONE;
    for (int i = 0; i < 4; i++) walk.drawn.word[i] = 0;
    walk.step = walk.tries = walk.refused = 0;
    walk.label = DRAW_NONE;
    return walk;
}

/* Returns the next node of a biased walk, or DRAW_NONE if the candidate was refused and the caller must try again. */
FN uint32_t walk_biased_step(const struct walks *w, uint32_t seed, uint32_t epoch, struct walk *walk) {
    if (walk->refused >= walk_most_tries(&walk->at)) return walk_draw_exactly(w, seed, walk->number, epoch, walk->tries, &walk->at, &walk->before,
                                                                              &walk->label);
    return walk_try(w, seed, walk->number, epoch, walk->tries, &walk->at, &walk->before, &walk->label);
}

/* Tries to draw one more step; the candidate may be refused. Returns 0 if the walk has ended. */
FN int walk_go(const struct walks *w, uint32_t seed, uint32_t epoch, struct walk *walk) {
    uint32_t next;
    if (walk->step >= w->steps || !walk->at.degree) return 0;
    next = w->biased ? walk_biased_step(w, seed, epoch, walk)
                     : walk_step(w, seed, walk->number, epoch, walk->step, &walk->at, &walk->drawn, &walk->label);
    walk->tries++;
    walk->refused++;
    if (next == DRAW_NONE) return 1;
    walk->refused = 0;
    walk->step++;
    walk->before = walk->at;
    walk->at = walk_node(w, next);
    return 1;
}

/* Writes to ids [length] the node that a walk has reached. If arcs have labels, the label of the arc that led to the node is written before it, and
 * nothing is written after a refused candidate. */
FN void walk_write(const struct walks *w, const struct walk *walk, uint32_t *ids) {
    if (!w->labels) {
        ids[walk->step] = walk->at.id;
        return;
    }
    if (walk->refused) return;
    ids[2 * walk->step] = walk->at.id;
    if (walk->step) ids[2 * walk->step - 1] = walk->label;
}

/* Writes DRAW_NONE to ids [length] after the node at which the walk has ended. */
FN void walk_end(const struct walks *w, const struct walk *walk, uint32_t *ids) {
    for (uint32_t place = walk->step * (w->labels ? 2 : 1) + 1; place < w->length; place++) ids[place] = DRAW_NONE;
}

/* Writes the ids of a walk to ids [length]. */
FN void walk_draw(const struct walks *w, uint32_t seed, uint64_t number, uint32_t epoch, uint32_t *ids) {
    struct walk walk = walk_begin(w, seed, number, epoch);
    do walk_write(w, &walk, ids);
    while (walk_go(w, seed, epoch, &walk));
    walk_end(w, &walk, ids);
}

/* ---- as a corpus ----
 *
 * Walk `number` has positions number * length .. (number + 1) * length - 1; draws for its windows use them. */

FN uint64_t walks_count(const struct walks *w) {
    return w->begun * w->per_node;
}
FN uint64_t walks_positions(const struct walks *w) {
    return walks_count(w) * w->length;
}

/* The walks [first, end) that contain positions [from, from + count). */
struct walk_range {
    uint64_t first, end;
};
FN struct walk_range walks_of(const struct walks *w, uint64_t from, uint64_t count) {
    struct walk_range range;
    range.first = from / w->length;
    range.end = (from + count + w->length - 1) / w->length;
    return range;
}
/* Returns the largest number of walks to which `count` consecutive positions can belong. */
FN uint64_t walks_at_most(const struct walks *w, uint64_t count) {
    return count / w->length + 2;
}

#endif
