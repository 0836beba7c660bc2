/* examples: turns (epoch, example number) into a block of row ids. With draws.h it defines a batch completely. Both compilers
 * compile it, so a batch has the same ids on the CPU and on a GPU, and lock-free training trains the same blocks. Callers divide
 * the work differently (a CPU thread, a GPU thread, a warp); which rows they find is defined here. */
#ifndef SPTX_KERNELS_EXAMPLES_H
#define SPTX_KERNELS_EXAMPLES_H

#include "draws.h"
#include "walks.h"

#include <stddef.h>

enum example_mode { EXAMPLE_WINDOW, EXAMPLE_LIST, EXAMPLE_ADJACENCY, EXAMPLE_ITEM };
enum noise_distribution { NOISE_UNIGRAM, NOISE_UNIFORM, NOISE_LOG_UNIFORM };

/* Sizes of one example or of a batch. */
struct example_sizes {
    uint64_t blocks, targets, contexts, terms; /* terms: the sum of T x C */
};

/* Pooled targets: the block's T target rows are summed, with weights, to one vector, and only its C scores are trained. */
struct example_pool {
    int on;    /* 0: all T x C pairs are trained */
    float own; /* weight of a block's first row; the other rows share the rest of 1. 0: each row weighs 1 / T */
    int whole; /* 1: each row receives the vector's whole gradient, as in word2vec.c's CBOW; 0: its weight times the gradient */
    int sum;   /* 1: the vector is the plain sum of the rows, and each row receives 1 / T of its gradient, as with gensim's
                * cbow_mean=0; whole is 0 */
};

FN float example_pool_weight(const struct example_pool *pool, uint32_t targets, uint32_t i) {
    if (pool->sum) return 1.0f;
    if (!(pool->own > 0) || targets == 1) return 1.0f / (float)targets;
    return i ? (1.0f - pool->own) / (float)(targets - 1) : pool->own;
}

/* Returns the factor of the vector's gradient that target row i receives. */
FN float example_pool_share(const struct example_pool *pool, uint32_t targets, uint32_t i) {
    if (pool->sum) return 1.0f / (float)targets;
    return pool->whole ? 1.0f : example_pool_weight(pool, targets, i);
}

/* Returns how many vectors a block trains with its contexts: 1 if its targets are pooled, otherwise one for each target row. */
FN uint32_t example_vectors(const struct example_pool *pool, uint32_t targets) {
    return pool->on && targets ? 1 : targets;
}

/* The target rows of each word, if words share the rows of their n-grams. A window's block is then pooled:
 *
 *   by_window   targets                              positives
 *   0           all rows of the word at the          the kept words of its window
 *               position
 *   1           all rows of the kept words of        the word at the position
 *               its window
 */
struct example_subwords {
    const uint64_t *starts; /* [words + 1] where a word's rows begin in `rows`; NULL: each word has only its own row */
    const uint32_t *rows;   /* [starts[words]] for each word its own row, then the rows of its n-grams */
    uint64_t words, listed; /* listed: starts[words], the rows of all words together */
    uint64_t most;          /* most rows of one word */
    int by_window;
};

/* Hierarchical softmax: words are leaves of a binary tree, and context rows are its inner nodes. A block's contexts are then the
 * nodes on the paths of the words that it predicts, and no negatives are drawn:
 *
 *   positives   nodes after which a path continues with code 0, word after word (word2vec.c's label 1)
 *   negatives   nodes after which it continues with code 1, word after word
 */
struct example_paths {
    const uint64_t *starts; /* [2 x words + 1] word w: nodes with code 0 begin at starts[2 w], with code 1 at starts[2 w + 1];
                             * NULL: no tree, a word's own row is its context */
    const uint32_t *nodes;  /* [starts[2 x words]] */
    uint64_t words, listed; /* listed: length of `nodes` */
    uint64_t most;          /* nodes of the longest path */
};

/* Returns 1 if the row's bit is set in `bits`, which holds 32 rows in each uint32_t, the first in the lowest bit; 0 if `bits` is
 * NULL. */
FN int row_has_bit(const uint32_t *bits, uint32_t row) {
    return bits && (bits[row / 32] >> row % 32 & 1);
}

/* How a run makes its examples. A block has T targets and C contexts, of which the first P are positive. Sentences of documents
 * begin with their document's row: with WINDOW it is one more target, the first one, of each window. With window = 0 it is the
 * only target.
 *
 *   mode        an example is                            targets               positives
 *   WINDOW      a corpus position (or one of a walk)     the kept words        the word at the position
 *                                                        of its window         (with subwords: see above)
 *   LIST        a list                                   a drawn item          from the list's other items
 *    targets_all  a position of a list                   the item there        from the list's other items
 *   ADJACENCY   a line, or a list that has a row         the line's first id   from the line's other ids
 *   ITEM        a position in such a line, except its    the line's first id   the id there
 *               first one
 *
 * With per_batch (ITEM only), an example has one target, one positive, and no negatives of its own. The batch begins with one block
 * more, which has no target and no positive: its contexts are the negatives of every example. A batch without examples has no such
 * block, since only the optimizer's state (momentum) would then move those rows.
 *
 * The functions below define windows, positives, pools, negatives, shuffling and what is held out, each beside its comment.
 */
struct example_source {
    const uint32_t *ids;    /* [tokens] row ids, valid in both tables, sentence after sentence; NULL if walks are not drawn yet */
    const uint64_t *starts; /* [sentences + 1] first token of each; starts[sentences] == tokens */
    const float *weights;   /* [tokens] weight of each item as a positive, before weight_scale multiplies it; NULL: all weigh 1 */
    float weight_scale;     /* 1 / mean of the items' weights, so that the mean positive of an epoch weighs 1 */
    uint64_t tokens, sentences;
    struct walks walks;             /* length above 0: the sentences are walks over a graph */
    uint64_t first, first_sentence; /* lowest token and sentence that ids and starts hold; 0 except for drawn walks */
    uint64_t longest; /* tokens of the longest sentence; 0: unknown */
    uint64_t rows;        /* rows of both tables */
    uint64_t target_only; /* how many of the last rows are lists or n-grams, which are never contexts */
    struct example_subwords subwords;
    struct example_paths paths; /* only with WINDOW */
    enum example_mode mode;
    int documents; /* 1: a sentence's first id is its document's row, which is no word; only with WINDOW */
    uint32_t window;
    int shrink, shuffle_items, shuffle;
    const uint32_t *keep; /* [rows] a word is kept if its draw <= keep[id]; NULL: all are kept */
    uint32_t positives;
    int targets_all, replacement, short_repeat;
    const uint32_t *known; /* LIST with targets_all: one bit a row; a position makes no example if its row's bit is set; NULL:
                            * all make one */
    struct example_pool pool;
    uint32_t pooled; /* lists and lines: most rows of a pool; 0: no limit */
    uint32_t negatives;
    int per_pair, per_batch, exclude, distinct; /* per_batch: only with ITEM */
    enum noise_distribution noise;
    const struct alias *alias; /* [rows] for NOISE_UNIGRAM; the last `target_only` are unused */
    double log2_rows;          /* for NOISE_LOG_UNIFORM: log2 of how many rows can be drawn */
    uint32_t seed;
    uint32_t held_out; /* an example is held out if its draw is below this, of 2^32; 0: no example is held out */
    int stream_on_host; /* 1: ids and starts stay in host memory even if the backend has a GPU */
    uint64_t batch; /* examples of a full batch, which decides how an epoch's shorter last batch is made, too; 0: unknown */
    /* The sizes for which a stage has memory from the start, if its batches are counted before they are filled; zeros: unknown. */
    struct example_sizes capacity;
};

/* ---- examples of an epoch ---- */

/* Returns 1 if examples are corpus positions; 0 if they are sentences, lists or lines. */
FN int example_is_position(const struct example_source *s) {
    return s->mode == EXAMPLE_WINDOW || s->mode == EXAMPLE_ITEM || (s->mode == EXAMPLE_LIST && s->targets_all);
}

FN uint64_t example_count(const struct example_source *s) {
    return example_is_position(s) ? s->tokens : s->sentences;
}

/* Returns the shuffled order of an epoch: its place e has example shuffle_at(order, e). */
FN struct shuffle example_order(const struct example_source *s, uint32_t epoch) {
    return shuffle_make(example_count(s), draw_at(s->seed, DRAW_SHUFFLE, 0, epoch, 0));
}

/* Returns 1 if the example is held out. `example` is its number, not its place in the epoch. A batch has either only held-out
 * examples or none. */
FN int example_held_out(const struct example_source *s, uint64_t example) {
    return s->held_out && draw_word(s->seed, DRAW_HELD_OUT, example, 0) < s->held_out;
}

/* Returns the bytes of the arrays that are on the host if stream_on_host is set: a corpus's ids, starts of sentences and
 * weights, or a graph's arcs. Where a node's arcs begin is read at every step of a walk, so that array is always on the GPU. */
FN uint64_t example_stream_bytes(const struct example_source *s) {
    const struct walks *w = &s->walks;
    if (w->length) return w->arcs * (sizeof *w->neighbours + (w->alias ? sizeof *w->alias : 0));
    return s->tokens * (sizeof *s->ids + (s->weights ? sizeof *s->weights : 0)) + (s->sentences + 1) * sizeof *s->starts;
}

/* ---- words of shared rows ---- */

/* Returns 1 if the word at a window's position is the target and the words around it are the positives (n-grams without
 * by_window). */
FN int example_predicts_window(const struct example_source *s) {
    return s->subwords.starts && !s->subwords.by_window;
}

/* Returns how many target rows a word has. */
FN uint64_t example_rows_of(const struct example_source *s, uint32_t word) {
    return s->subwords.starts ? portable_load64_at(s->subwords.starts, word + 1) - portable_load64_at(s->subwords.starts, word) : 1;
}

/* Return how many positives, and how many slots for negatives, the block of a window with `around` kept words has. */
FN uint32_t example_window_positives(const struct example_source *s, uint32_t around) {
    return s->subwords.by_window ? 1 : around;
}
FN uint64_t example_window_negatives(const struct example_source *s, uint32_t around) {
    return s->per_pair ? (uint64_t)around * s->negatives : s->negatives;
}

/* ---- paths in a tree ---- */

/* Nodes of a word's path with code c (0 or 1): nodes[first[c]] .. nodes[first[c] + count[c] - 1]. */
struct example_path {
    uint64_t first[2];
    uint32_t count[2];
};

FN struct example_path example_path(const struct example_source *s, uint32_t word) {
    struct example_path path;
    uint64_t end = portable_load64_at(s->paths.starts, 2 * (uint64_t)word + 2);
    path.first[0] = portable_load64_at(s->paths.starts, 2 * (uint64_t)word);
    path.first[1] = portable_load64_at(s->paths.starts, 2 * (uint64_t)word + 1);
    path.count[0] = (uint32_t)(path.first[1] - path.first[0]);
    path.count[1] = (uint32_t)(end - path.first[1]);
    return path;
}

/* Returns how many contexts predict a word: 1, its own row, or with a tree the nodes of its path. */
FN uint32_t example_contexts_of(const struct example_source *s, uint32_t word) {
    struct example_path path;
    if (!s->paths.starts) return 1;
    path = example_path(s, word);
    return path.count[0] + path.count[1];
}

/* ---- sentences ---- */

/* Returns the number of the sentence, list or line that contains a position. */
FN uint64_t example_sentence_of(const struct example_source *s, uint64_t position) {
    uint64_t low = s->first_sentence, high = s->sentences;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (portable_load64_at(s->starts, middle) <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- documents ---- */

/* Returns 1 if the id is a document's row, which subsampling always drops: it is no word of a window. */
FN int example_is_document(const struct example_source *s, uint32_t id) {
    return s->documents && id >= s->rows - s->target_only;
}

/* Returns the row of the document that contains a sentence. */
FN uint32_t example_document(const struct example_source *s, uint64_t sentence) {
    return portable_load32_at(s->ids, portable_load64_at(s->starts, sentence));
}

/* ---- walks ---- */

/* Returns a source whose sentences are drawn walks. ids: [walks x length] their nodes; starts: [walks + 1] each walk's first
 * position. Only the positions of these walks may be used. */
FN struct example_source example_of_walks(const struct example_source *s, struct walk_range drawn, const uint32_t *ids,
                                          const uint64_t *starts) {
    struct example_source own = *s;
    own.first_sentence = drawn.first;
    own.sentences = drawn.end;
    own.first = drawn.first * s->walks.length;
    own.tokens = drawn.end * s->walks.length;
    own.ids = (const uint32_t *)((uintptr_t)ids - (uintptr_t)(own.first * sizeof *ids));
    own.starts = (const uint64_t *)((uintptr_t)starts - (uintptr_t)(own.first_sentence * sizeof *starts));
    return own;
}

/* ---- lists and lines ----
 *
 * A list or line of m items makes one example with one target, or (LIST with targets_all) one a position. With per_pair it has
 * `negatives` negatives for each positive. A line of ITEM makes an example of each of its m - 1 other ids, its only positive.
 *
 * Positives of the m - 1 others:
 *
 *   positives   replacement   which
 *   0           any           all of them, in order
 *   P           yes           P draws, draw_below(.., m - 1); one may come twice
 *   P           no            P different ones: Floyd's sample (Bentley and Floyd 1987)
 *
 * If there are fewer than P others, the row makes no example; with short_repeat, positives are then drawn with replacement. A row
 * without others never makes an example. Slot j draws half j % 2 of draw_at(seed, DRAW_POSITIVE, example, epoch, j / 2).
 *
 * Pools (pool.on) split the others into positives and rows of the pool, which are targets. A drawn order of the others
 * (example_split) says which are which:
 *
 *   the others in that order    p p p p p p                      q q q q q q q q                    . . .
 *                               P positives (positives == 0:     the pool: at most `pooled` rows    left out
 *                               half of the others, rounded up)  (0: all that follow)
 *
 *   targets                     own > 0: the row's target, then the pool
 *                               own = 0: the pool, or the row's target if the pool is empty
 *
 * If positives are drawn with replacement, the pool is empty.
 *
 * The weight of a positive is weights[its position in the corpus] x weight_scale. The weights of the target, of the other items and
 * of a pool's rows have no effect. losses.h says what a weight multiplies.
 */

struct example_row {
    uint64_t start, count, target; /* items[target] is the target, all other items are the others */
    uint64_t item;                 /* ITEM: the positive's place among the others */
    uint64_t wanted, negatives;    /* number of positives and of slots for negatives; wanted 0: the row makes no example */
    uint64_t targets, pooled;      /* number of target rows, of which the last `pooled` are the pool's; the row's target is
                                    * before them, if it is one */
    int replacement, split;        /* split: 1: a drawn order of the others splits them into positives and pool */
};

/* Returns the number of positives of a row with this number of other items. */
FN uint64_t example_wanted(const struct example_source *s, uint64_t others) {
    if (s->mode == EXAMPLE_ITEM) return 1;
    if (s->positives) return s->positives;
    return s->pool.on ? others - others / 2 : others;
}

/* Sets the sizes of the example of a list or line with row->count items. */
FN void example_row_sizes(const struct example_source *s, struct example_row *row) {
    uint64_t others = row->count ? row->count - 1 : 0;
    row->wanted = example_wanted(s, others);
    row->replacement = s->replacement || others < row->wanted;
    row->split = s->pool.on && !row->replacement && s->mode != EXAMPLE_ITEM;
    row->pooled = row->split ? others - row->wanted : 0;
    if (s->pooled && row->pooled > s->pooled) row->pooled = s->pooled;
    row->targets = row->pooled + (s->pool.own > 0 || !row->pooled);
    if (!others || (others < row->wanted && !s->short_repeat)) row->wanted = 0;
    row->negatives = s->per_batch ? 0 : s->per_pair ? row->wanted * s->negatives : s->negatives;
}

/* Returns 1 if a block can hold the row's example. Negatives are bounded because a draw's index has 20 bits for slot / 2. */
#define EXAMPLE_MOST_POSITIVES (UINT32_MAX / 2)
#define EXAMPLE_MOST_NEGATIVES ((uint64_t)1 << 21)
FN int example_row_fits(const struct example_row *row) {
    return row->wanted <= EXAMPLE_MOST_POSITIVES && row->pooled <= EXAMPLE_MOST_POSITIVES &&
           row->negatives <= EXAMPLE_MOST_NEGATIVES;
}

/* Returns the example of list or line `number`. If examples are positions, `number` is the sentence that contains position
 * `example`. */
FN struct example_row example_row(const struct example_source *s, uint64_t number, uint64_t example, uint32_t epoch) {
    struct example_row row;
    row.start = portable_load64(s->starts + number);
    row.count = portable_load64(s->starts + number + 1) - row.start;
    row.target = 0;
    if (s->mode == EXAMPLE_LIST)
        row.target = s->targets_all
                         ? example - row.start
                         : draw_below(draw_pair(draw_at(s->seed, DRAW_TARGET, example, epoch, 0), 0), row.count);
    example_row_sizes(s, &row);
    row.item = example - row.start - 1;
    if (s->mode == EXAMPLE_ITEM && example == row.start) row.wanted = row.negatives = 0;
    return row;
}

/* Return the corpus position, and the id, of the item at place `place` among the row's others. */
FN uint64_t example_other_at(const struct example_row *row, uint64_t place) {
    return row->start + place + (place >= row->target);
}
FN uint32_t example_other(const struct example_source *s, const struct example_row *row, uint64_t place) {
    return portable_load32(s->ids + example_other_at(row, place));
}

/* Makes the item at place `place` among the row's others positive j. weights: weights[j] receives its weight; NULL: not wanted. */
FN void example_put_positive(const struct example_source *s, const struct example_row *row, uint64_t place, uint64_t j,
                             uint32_t *contexts, float *weights) {
    contexts[j] = example_other(s, row, place);
    if (weights) weights[j] = portable_load_float(s->weights + example_other_at(row, place)) * s->weight_scale;
}

/* Floyd's sample: positive j draws a place among the first `last` + 1 others; if an earlier positive has that place, it takes
 * place `last` instead. With replacement it draws among all others. */
FN uint64_t example_positive_last(const struct example_row *row, uint32_t j) {
    return row->count - 1 - row->wanted + j;
}
FN uint64_t example_positive_place(const struct example_row *row, uint64_t bits, uint32_t j) {
    return draw_below(bits, row->replacement ? row->count - 1 : example_positive_last(row, j) + 1);
}

/* The drawn order of a split row's others: the first places are positives, the places behind them the pool. The second function
 * returns target row i. */
FN struct shuffle example_split(const struct example_source *s, const struct example_row *row, uint64_t example,
                                uint32_t epoch) {
    return shuffle_make(row->count - 1, draw_at(s->seed, DRAW_POSITIVE, example, epoch, 0));
}
FN uint32_t example_split_target(const struct example_source *s, const struct example_row *row, const struct shuffle *order,
                                 uint64_t i) {
    uint64_t own = row->targets - row->pooled;
    if (i < own) return portable_load32(s->ids + row->start + row->target);
    return example_other(s, row, shuffle_at(order, row->wanted + i - own));
}

FN int example_among(uint32_t id, const uint32_t *ids, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (ids[i] == id) return 1;
    return 0;
}

/* Draws all positives of a row that is not split, in one thread. `contexts` holds places until all are drawn, then ids; places
 * fit into 32 bits if a row has fewer than 2^32 items. weights: receives the positives' weights; NULL: not wanted. */
FN void example_positives(const struct example_source *s, const struct example_row *row, uint64_t example,
                          uint32_t epoch, uint32_t *contexts, float *weights) {
    uint32_t wanted = (uint32_t)row->wanted;
    struct draw4 drawn;
    if (s->mode == EXAMPLE_ITEM) {
        example_put_positive(s, row, row->item, 0, contexts, weights);
        return;
    }
    if (s->positives == 0) {
        for (uint32_t i = 0; i < wanted; i++) example_put_positive(s, row, i, i, contexts, weights);
        return;
    }
    for (uint32_t j = 0; j < wanted; j++) {
        if (j % 2 == 0) drawn = draw_at(s->seed, DRAW_POSITIVE, example, epoch, j / 2);
        uint64_t place = example_positive_place(row, draw_half(drawn, j), j);
        if (!row->replacement && example_among((uint32_t)place, contexts, j)) place = example_positive_last(row, j);
        contexts[j] = (uint32_t)place;
    }
    for (uint32_t j = 0; j < wanted; j++) example_put_positive(s, row, contexts[j], j, contexts, weights);
}

/* ---- negatives ----
 *
 * Slot s at attempt a takes half s % 2 of the draw with index s / 2 + (a << 20). If the drawn row is excluded, or with `distinct`
 * if an earlier slot of the block has it, the slot makes its next attempt; after DRAW_ATTEMPTS it is left out. `exclude` excludes
 * all targets and positives of the block; in window mode only its positives.
 *
 * With per_batch the slots belong to the batch's first block, and draws use the batch's first place in the epoch instead of an
 * example's number. Negatives may then be an example's positive: with `exclude`, a step leaves them out of that example's sum.
 */

/* Returns how many negatives the examples of a batch share. */
FN uint32_t example_batch_negatives(const struct example_source *s) {
    return s->per_batch ? s->negatives : 0;
}

/* Returns the draw that a slot and its neighbour share, at an attempt. */
FN struct draw4 example_negative_draws(const struct example_source *s, uint32_t epoch, uint64_t example, uint32_t slot,
                                       uint32_t attempt) {
    return draw_at(s->seed, DRAW_NEGATIVE, example, epoch, draw_negative_index(slot, attempt));
}

/* Returns the negative that a slot takes from its draw. */
FN uint32_t example_negative_of(const struct example_source *s, struct draw4 drawn, uint32_t slot) {
    uint64_t bits = draw_half(drawn, slot);
    uint64_t rows = s->rows - s->target_only;
    if (s->noise == NOISE_UNIGRAM) return draw_alias(bits, s->alias, rows);
    if (s->noise == NOISE_LOG_UNIFORM) return draw_log_uniform(bits, rows, s->log2_rows);
    return (uint32_t)draw_below(bits, rows);
}

FN uint32_t example_negative(const struct example_source *s, uint32_t epoch, uint64_t example, uint32_t slot,
                             uint32_t attempt) {
    return example_negative_of(s, example_negative_draws(s, epoch, example, slot, attempt), slot);
}

/* The rows that a block's negatives must not be: its own positives and targets. Empty if the source does not exclude. */
struct example_own {
    const uint32_t *positives, *others; /* others: all targets but the first */
    uint32_t count, others_count;
    uint32_t target; /* the first target; DRAW_NONE in window mode */
};

FN struct example_own example_own(const struct example_source *s, const uint32_t *positives, uint32_t count,
                                  const uint32_t *targets, uint32_t target_count) {
    struct example_own own;
    int rows = s->exclude && s->mode != EXAMPLE_WINDOW;
    own.positives = positives;
    own.count = s->exclude ? count : 0;
    own.others = targets + 1;
    own.others_count = rows && target_count ? target_count - 1 : 0;
    own.target = rows && target_count ? targets[0] : DRAW_NONE;
    return own;
}
FN int example_excludes(const struct example_own *own, uint32_t id) {
    return id == own->target || example_among(id, own->positives, own->count) ||
           example_among(id, own->others, own->others_count);
}

/* ---- bounds ---- */

#define EXAMPLE_MOST_PADDED ((uint64_t)1 << 19) /* most terms for which a batch of windows is padded, since half of the padded
                                                 * terms are empty */

/* Returns upper bounds for one example, without the negatives that a batch shares. */
FN struct example_sizes example_most(const struct example_source *s) {
    struct example_sizes most;
    uint64_t negatives = s->negatives, predicted = s->paths.starts ? s->paths.most : 1, positives;
    struct example_row row;
    if (s->subwords.starts) {
        most.blocks = 1;
        most.targets = s->subwords.most * (s->subwords.by_window ? 2 * (uint64_t)s->window : 1);
        most.contexts = most.terms =
            example_window_positives(s, 2 * s->window) * predicted + example_window_negatives(s, 2 * s->window);
    } else if (s->mode == EXAMPLE_WINDOW) {
        most.targets = 2 * (uint64_t)s->window + s->documents;
        most.blocks = s->per_pair ? most.targets : 1;
        most.contexts = most.blocks * (predicted + negatives);
        most.terms = (s->pool.on ? most.blocks : most.targets) * (predicted + negatives);
    } else {
        row.count = s->longest;
        example_row_sizes(s, &row);
        positives = example_wanted(s, s->longest ? s->longest - 1 : 0);
        most.blocks = 1;
        most.targets = row.targets;
        most.contexts = most.terms = positives + (s->per_batch ? 0 : s->per_pair ? positives * negatives : negatives);
    }
    return most;
}

/* Returns 1 if every block has one target. */
FN int example_one_target(const struct example_source *s) {
    return s->mode == EXAMPLE_WINDOW ? s->per_pair && !s->pool.on : !s->pool.on && !s->per_batch;
}

/* Returns 1 and sets *most, upper bounds for `count` examples, if the bounds are close to what a batch really needs: a stage on
 * a GPU then has that much memory, and its batches are not counted. Returns 0 otherwise, and always for pools of lists, which
 * are as long as their lists, and for words of several rows. */
FN int example_bound(const struct example_source *s, uint64_t count, struct example_sizes *most) {
    struct example_sizes one = example_most(s);
    int window = s->mode == EXAMPLE_WINDOW;
    uint64_t whole = s->batch > count ? s->batch : count, limit = window ? EXAMPLE_MOST_PADDED : ((uint64_t)1 << 31) - 1;
    if (s->subwords.starts) return 0;
    if (!window && (s->pool.on || !s->positives || one.contexts - s->positives > EXAMPLE_MOST_NEGATIVES)) return 0;
    if (!count || one.terms > limit / whole || one.contexts > limit / whole) return 0;
    most->blocks = one.blocks * count + s->per_batch;
    most->targets = one.targets * count;
    most->contexts = one.contexts * count + example_batch_negatives(s);
    most->terms = one.terms * count;
    return 1;
}

/* Returns 0 if a block can hold the row's example; -1 after fail(). */
int example_check_row(const struct example_row *row);

#endif
