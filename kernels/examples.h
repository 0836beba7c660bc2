/* examples: turns (epoch, example number) into a block of row ids. Together with draws.h it defines batches completely. The C compiler and nvcc
 * compile it, so a batch has the same ids on the CPU and on a GPU, and lock-free training trains the same blocks. Callers only divide the work
 * differently: a CPU thread, a GPU thread, a warp. */
#ifndef SPTX_KERNELS_EXAMPLES_H
#define SPTX_KERNELS_EXAMPLES_H

#include "draws.h"
#include "walks.h"

#include <stddef.h>

enum example_mode { EXAMPLE_WINDOW, EXAMPLE_LIST, EXAMPLE_ADJACENCY, EXAMPLE_ITEM, EXAMPLE_TRIPLE };
enum noise_distribution { NOISE_UNIGRAM, NOISE_UNIFORM, NOISE_LOG_UNIFORM, NOISE_EVERY };

/* How a triple's head and relation are combined to one vector u, which predicts the tail:
 *
 *   COMPLEX      columns j and j + dim / 2 are the real and the imaginary part of a complex number: u = head x relation (ComplEx)
 *   REAL         column by column: u = head x relation (DistMult, CP)
 *   ROTATION     the same, with a relation's numbers scaled to length 1; tails near u are predicted (RotatE: Sun et al. 2019)
 *   TRANSLATION  u = head + relation; tails near u are predicted (TransE: Bordes et al. 2013)
 */
enum example_product { PRODUCT_NONE, PRODUCT_COMPLEX, PRODUCT_REAL, PRODUCT_ROTATION, PRODUCT_TRANSLATION };

/* The sizes of one example, or of a batch. */
struct example_sizes {
    uint64_t blocks, targets, contexts, terms; /* terms: targets x contexts, summed over blocks */
};

/* How a block's targets are pooled to one vector: its T target rows are added, with weights (a triple's head and relation are multiplied instead),
 * and only the C scores of this vector are trained. */
struct example_pool {
    int on;    /* 1: targets are pooled; 0: all T x C pairs are trained */
    enum example_product product; /* PRODUCT_NONE: targets are added; otherwise head and relation are multiplied, and only `tied` is used below */
    int tied;  /* 1: heads are rows of the context table, like tails; 0: of the target table, like relations */
    float own; /* weight of the block's first target row; the others share 1 - own equally. 0: all weigh 1 / T */
    int whole; /* 1: each row gets the vector's whole gradient, as in word2vec.c's CBOW; 0: the gradient x the row's weight */
    int sum;   /* 1: rows are added without weights, and each gets 1 / T of the gradient, as with gensim's cbow_mean=0; `whole` is 0 then */
};

FN float example_pool_weight(const struct example_pool *pool, uint32_t targets, uint32_t i) {
    if (pool->sum) return 1.0f;
    if (!(pool->own > 0) || targets == 1) return 1.0f / (float)targets;
    return i ? (1.0f - pool->own) / (float)(targets - 1) : pool->own;
}

/* Returns by which factor of the vector's gradient target row i changes. */
FN float example_pool_share(const struct example_pool *pool, uint32_t targets, uint32_t i) {
    if (pool->sum) return 1.0f / (float)targets;
    return pool->whole ? 1.0f : example_pool_weight(pool, targets, i);
}

/* Returns how many vectors of a block are trained with its contexts: 1 if targets are pooled, otherwise one for each target row. */
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
    const uint64_t *starts; /* [words + 1] rows of word w: rows[starts[w]] .. rows[starts[w + 1] - 1]; NULL: each word has one row */
    const uint32_t *rows;   /* [listed] each word's own row, then the rows of its n-grams */
    uint64_t words, listed; /* listed: length of `rows`, which is starts[words] */
    uint64_t most;          /* most rows that any word has */
    int by_window;
};

/* Hierarchical softmax: words are leaves of a binary tree, and context rows are its inner nodes. A block's contexts are then the
 * nodes on the paths of the words that it predicts, and no negatives are drawn:
 *
 *   positives   nodes after which the path continues with code 0; those of the first word come first, then those of the next (word2vec.c's label 1)
 *   negatives   nodes after which it continues with code 1, word after word
 */
struct example_paths {
    const uint64_t *starts; /* [2 x words + 1] the nodes of word w's path with code 0 begin at nodes[starts[2 w]], those with code 1 at
                             * nodes[starts[2 w + 1]]; NULL: no tree: a word's context is its own row */
    const uint32_t *nodes;  /* [listed] context rows */
    uint64_t words, listed; /* listed: length of `nodes`, which is starts[2 x words] */
    uint64_t most;          /* number of nodes of the longest path */
};

/* Returns the row's bit in a bit map: bit row % 32 of bits[row / 32]; 0 if `bits` is NULL. */
FN int row_has_bit(const uint32_t *bits, uint32_t row) {
    return bits && (bits[row / 32] >> row % 32 & 1);
}

/* How a run makes its examples. A block has T targets and C contexts, of which the first P are positive. Sentences of documents begin with
 * their document's row: with WINDOW it is one more target, the first one, of each window. With window = 0 it is the only target.
 *
 *   mode        an example is                            targets               positives
 *   WINDOW      a corpus position (or one of a walk)     the kept words        the word at the position
 *                                                        of its window         (with subwords: see above)
 *   LIST        a list                                   a drawn item          from the list's other items
 *    targets_all  a position of a list                   the item there        from the list's other items
 *   ADJACENCY   a line, or a list that has a row         the line's first id   from the line's other ids
 *   ITEM        a position in such a line, except its    the line's first id   the id there
 *               first one
 *   TRIPLE      a triple in one direction (triples.h)    head and relation,    the tail
 *                                                        or the relation
 *
 * With per_batch (ITEM and TRIPLE), an example has one positive, and no negatives of its own. The batch begins with a further
 * block, which has no positive: its contexts are the negatives of every example, and its targets are none, or, with relations_too, all relations,
 * among which each triple's relation is predicted. A batch without examples has no such block, since only the optimizer's state (momentum) would
 * then move those rows.
 *
 * The functions below define windows, positives, pools, negatives, shuffling and what is held out, each beside its comment.
 */
struct example_source {
    const uint32_t *ids;    /* [tokens] row ids, sentence after sentence, each a row of both tables; NULL: walks that are not drawn yet */
    const uint64_t *starts; /* [sentences + 1] first token of each sentence; starts[sentences] is `tokens` */
    const float *weights;   /* [tokens] weights of items as positives, before multiplication by weight_scale; NULL: all are 1 */
    float weight_scale;     /* 1 / mean of the items' weights, so that an epoch's positives have mean weight 1 */
    uint64_t tokens, sentences;
    struct walks walks;             /* if walks.length is above 0, sentences are walks over a graph */
    uint64_t first, first_sentence; /* first token and first sentence that ids and starts contain; 0 except for drawn walks */
    uint64_t longest; /* number of tokens of the longest sentence; 0: unknown */
    uint64_t rows;        /* number of rows of each table */
    uint64_t target_only; /* number of last rows that are never contexts: of lists, relations or n-grams */
    struct example_subwords subwords;
    struct example_paths paths; /* used only with WINDOW */
    enum example_mode mode;
    int documents; /* WINDOW only: 1: the first id of each sentence is its document's row, not a word */
    uint32_t window;
    int shrink, shuffle_items, shuffle;
    const uint32_t *keep; /* [rows] a word is kept if its draw is at most keep[id] (subsampling); NULL: all words are kept */
    uint32_t positives;
    int targets_all, replacement, short_repeat;
    int reciprocal; /* TRIPLE only: 1: each triple is also trained from tail to head */
    int relations_too; /* TRIPLE only: 1: relations are predicted, too */
    const uint32_t *known; /* LIST with targets_all: bit map of rows; positions with these rows make no example; NULL: all do */
    struct example_pool pool;
    uint32_t pooled; /* lists and lines: most rows of a pool; 0: no limit */
    uint32_t negatives;
    int per_pair, per_batch, exclude, distinct; /* per_batch: 1 always with TRIPLE, perhaps with ITEM, otherwise 0 */
    enum noise_distribution noise;
    const struct alias *alias; /* NOISE_UNIGRAM: [rows] alias table; its last `target_only` columns are not used */
    double log2_rows;          /* NOISE_LOG_UNIFORM: log2 of the number of rows that can be drawn */
    uint32_t seed;
    uint32_t held_out; /* an example is held out if its 32-bit draw is below this number; 0: none is */
    int stream_on_host; /* 1: ids and starts stay in host memory even if the backend has a GPU */
    uint64_t batch; /* number of examples of a full batch; whether batches are counted depends on it, also for an epoch's shorter last one; 0: unknown */
    /* For batches that are counted before they are filled: sizes for which each stage allocates memory at the start; zeros: unknown. */
    struct example_sizes capacity;
};

/* ---- examples of an epoch ---- */

/* Returns 1 if examples are corpus positions; 0 if they are sentences, lists or lines. */
FN int example_is_position(const struct example_source *s) {
    return s->mode == EXAMPLE_WINDOW || s->mode == EXAMPLE_ITEM || (s->mode == EXAMPLE_LIST && s->targets_all);
}

/* Returns how many examples a triple makes: one for each direction that is trained. */
FN uint64_t example_directions(const struct example_source *s) {
    return s->reciprocal ? 2 : 1;
}

FN uint64_t example_count(const struct example_source *s) {
    if (s->mode == EXAMPLE_TRIPLE) return s->sentences * example_directions(s);
    return example_is_position(s) ? s->tokens : s->sentences;
}

/* Returns the shuffled order of an epoch: at place e is example shuffle_at(order, e). */
FN struct shuffle example_order(const struct example_source *s, uint32_t epoch) {
    return shuffle_make(example_count(s), draw_at(s->seed, DRAW_SHUFFLE, 0, epoch, 0));
}

/* Returns 1 if the example (its number, not its place in the epoch's order) is held out. A batch contains only held-out examples or none. The two
 * directions of a triple are held out together. */
FN int example_held_out(const struct example_source *s, uint64_t example) {
    uint64_t number = s->mode == EXAMPLE_TRIPLE ? example / example_directions(s) : example;
    return s->held_out && draw_word(s->seed, DRAW_HELD_OUT, number, 0) < s->held_out;
}

/* Returns the bytes of the arrays that stay on the host with stream_on_host: a corpus's ids, starts and weights, or a graph's arcs. The index of a
 * graph's arcs by node is always on the GPU, since every step of a walk reads it. */
FN uint64_t example_stream_bytes(const struct example_source *s) {
    const struct walks *w = &s->walks;
    if (w->length) return w->arcs * (sizeof *w->neighbours + (w->alias ? sizeof *w->alias : 0) + (w->labels ? sizeof *w->labels : 0));
    uint64_t starts = s->mode == EXAMPLE_TRIPLE ? 0 : (s->sentences + 1) * sizeof *s->starts;
    return s->tokens * (sizeof *s->ids + (s->weights ? sizeof *s->weights : 0)) + starts;
}

/* ---- words of shared rows ---- */

/* Returns 1 if the word at a window's position predicts the words around it: its rows are the targets, and the words around it the positives
 * (n-grams without by_window). */
FN int example_predicts_window(const struct example_source *s) {
    return s->subwords.starts && !s->subwords.by_window;
}

/* Returns the number of target rows of a word. */
FN uint64_t example_rows_of(const struct example_source *s, uint32_t word) {
    return s->subwords.starts ? portable_load64_at(s->subwords.starts, word + 1) - portable_load64_at(s->subwords.starts, word) : 1;
}

/* Return, for the block of a window with `around` kept words, the number of positives, and the number of slots for negatives. */
FN uint32_t example_window_positives(const struct example_source *s, uint32_t around) {
    return s->subwords.by_window ? 1 : around;
}
FN uint64_t example_window_negatives(const struct example_source *s, uint32_t around) {
    return s->per_pair ? (uint64_t)around * s->negatives : s->negatives;
}

/* ---- paths in a tree ---- */

/* A word's path in the tree. Nodes at which it takes code c (0 or 1) are nodes[first[c]] .. nodes[first[c] + count[c] - 1]. */
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

/* Returns by how many contexts a word is predicted: 1, its own row, or with a tree the number of nodes on its path. */
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

/* Returns 1 if the id is a document's row, which is not a word: subsampling always drops it. */
FN int example_is_document(const struct example_source *s, uint32_t id) {
    return s->documents && id >= s->rows - s->target_only;
}

/* Returns the row of the document that contains a sentence. */
FN uint32_t example_document(const struct example_source *s, uint64_t sentence) {
    return portable_load32_at(s->ids, portable_load64_at(s->starts, sentence));
}

/* ---- walks ---- */

/* Returns a source whose sentences are the walks `drawn`. ids: [walks x length]; starts: [walks + 1] each walk's first position. May only be
 * used for positions of these walks. */
FN struct example_source example_of_walks(const struct example_source *s, struct walk_range drawn, const uint32_t *ids, const uint64_t *starts) {
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
    uint64_t start, count, target; /* items of the list or line: start .. start + count - 1; item number `target` is the target, the others are
                                    * "the others" */
    uint64_t item;                 /* ITEM: index of the positive among the others */
    uint64_t wanted, negatives;    /* wanted: number of positives; 0: no example is made. negatives: number of slots for negatives */
    uint64_t targets, pooled;      /* targets: number of target rows. The last `pooled` of them are the pool, the rows whose mean is the target;
                                    * before them is the row of the list itself, if it has one */
    int replacement, split;        /* split: 1: the others are shuffled; the first ones are positives, the rest is the pool, whose mean is part of
                                    * the list's vector */
};

/* Returns the number of positives for a row with `others` other items. */
FN uint64_t example_wanted(const struct example_source *s, uint64_t others) {
    if (s->mode == EXAMPLE_ITEM) return 1;
    if (s->positives) return s->positives;
    return s->pool.on ? others - others / 2 : others;
}

/* Computes the sizes of the example of a list or line with row->count items. */
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

/* Returns 1 if the row's example fits into a block. The number of negatives is limited since the index of a draw has 20 bits for slot / 2. */
#define EXAMPLE_MOST_POSITIVES (UINT32_MAX / 2)
#define EXAMPLE_MOST_NEGATIVES ((uint64_t)1 << 21)
FN int example_row_fits(const struct example_row *row) {
    return row->wanted <= EXAMPLE_MOST_POSITIVES && row->pooled <= EXAMPLE_MOST_POSITIVES && row->negatives <= EXAMPLE_MOST_NEGATIVES;
}

/* Returns the example of list or line `number`. If examples are positions, `number` is the sentence that contains position `example`. */
FN struct example_row example_row(const struct example_source *s, uint64_t number, uint64_t example, uint32_t epoch) {
    struct example_row row;
    row.start = portable_load64(s->starts + number);
    row.count = portable_load64(s->starts + number + 1) - row.start;
    row.target = 0;
    if (s->mode == EXAMPLE_LIST)
        row.target = s->targets_all ? example - row.start : draw_below(draw_pair(draw_at(s->seed, DRAW_TARGET, example, epoch, 0), 0), row.count);
    example_row_sizes(s, &row);
    row.item = example - row.start - 1;
    if (s->mode == EXAMPLE_ITEM && example == row.start) row.wanted = row.negatives = 0;
    return row;
}

/* Return the corpus position, and the id, of the item at a place among the row's others. */
FN uint64_t example_other_at(const struct example_row *row, uint64_t place) {
    return row->start + place + (place >= row->target);
}
FN uint32_t example_other(const struct example_source *s, const struct example_row *row, uint64_t place) {
    return portable_load32(s->ids + example_other_at(row, place));
}

/* Makes the item at `place` among the row's others positive j of the block. weights: gets the positive's weight at weights[j]; may be NULL. */
FN void example_put_positive(const struct example_source *s, const struct example_row *row, uint64_t place, uint64_t j,
                             uint32_t *contexts, float *weights) {
    contexts[j] = example_other(s, row, place);
    if (weights) weights[j] = portable_load_float(s->weights + example_other_at(row, place)) * s->weight_scale;
}

/* Returns the number `last` of Floyd's sample. For positive j a place is drawn among 0 .. last; if an earlier positive has that place already,
 * positive j is the item at place `last`. With replacement, positive j is drawn among all items of the list but the target. */
FN uint64_t example_positive_last(const struct example_row *row, uint32_t j) {
    return row->count - 1 - row->wanted + j;
}
FN uint64_t example_positive_place(const struct example_row *row, uint64_t bits, uint32_t j) {
    return draw_below(bits, row->replacement ? row->count - 1 : example_positive_last(row, j) + 1);
}

/* Returns the shuffled order of the others of a split row: the first ones are positives, the next ones are the pool. The second function returns
 * target row i. */
FN struct shuffle example_split(const struct example_source *s, const struct example_row *row, uint64_t example, uint32_t epoch) {
    return shuffle_make(row->count - 1, draw_at(s->seed, DRAW_POSITIVE, example, epoch, 0));
}
FN uint32_t example_split_target(const struct example_source *s, const struct example_row *row, const struct shuffle *order, uint64_t i) {
    uint64_t own = row->targets - row->pooled;
    if (i < own) return portable_load32(s->ids + row->start + row->target);
    return example_other(s, row, shuffle_at(order, row->wanted + i - own));
}

FN int example_among(uint32_t id, const uint32_t *ids, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (ids[i] == id) return 1;
    return 0;
}

/* Draws all positives of a row that is not split, in one thread. `contexts` contains places until all are drawn, then ids (places fit into 32
 * bits, since a row has fewer than 2^32 items). weights: gets their weights; may be NULL. */
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
 * example's number. NOISE_EVERY, which is only for per_batch, draws nothing: slot s is row s, and there are as many slots as rows.
 * Negatives may then be an example's positive: with `exclude`, a step leaves them out of that example's sum.
 */

/* Returns how many negatives the examples of a batch share; 0 without per_batch. */
FN uint32_t example_batch_negatives(const struct example_source *s) {
    return s->per_batch ? s->negatives : 0;
}

/* Returns how many relations are the targets of a batch's first block: all, the last `target_only` rows, or none. */
FN uint32_t example_batch_relations(const struct example_source *s) {
    return s->mode == EXAMPLE_TRIPLE && s->relations_too ? (uint32_t)s->target_only : 0;
}

/* Return the numbers of target rows and context rows of each example of a batch that shares its negatives. */
FN uint32_t example_shared_targets(const struct example_pool *pool) {
    return pool->product && !pool->tied ? 2 : 1;
}
FN uint32_t example_shared_contexts(const struct example_pool *pool) {
    return pool->product && pool->tied ? 2 : 1;
}

/* Returns draw number `attempt` of a slot and of its neighbour, which share it. */
FN struct draw4 example_negative_draws(const struct example_source *s, uint32_t epoch, uint64_t example, uint32_t slot, uint32_t attempt) {
    return draw_at(s->seed, DRAW_NEGATIVE, example, epoch, draw_negative_index(slot, attempt));
}

/* Returns the row that a slot gets from a draw. */
FN uint32_t example_negative_of(const struct example_source *s, struct draw4 drawn, uint32_t slot) {
    uint64_t bits = draw_half(drawn, slot);
    uint64_t rows = s->rows - s->target_only;
    if (s->noise == NOISE_UNIGRAM) return draw_alias(bits, s->alias, rows);
    if (s->noise == NOISE_LOG_UNIFORM) return draw_log_uniform(bits, rows, s->log2_rows);
    if (s->noise == NOISE_EVERY) return slot;
    return (uint32_t)draw_below(bits, rows);
}

FN uint32_t example_negative(const struct example_source *s, uint32_t epoch, uint64_t example, uint32_t slot, uint32_t attempt) {
    return example_negative_of(s, example_negative_draws(s, epoch, example, slot, attempt), slot);
}

/* The positives and targets of a block, which its negatives must not be. Empty with exclude = 0. */
struct example_own {
    const uint32_t *positives, *others; /* others: all targets but the first one */
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
    return id == own->target || example_among(id, own->positives, own->count) || example_among(id, own->others, own->others_count);
}

/* ---- bounds ---- */

#define EXAMPLE_MOST_PADDED ((uint64_t)1 << 19) /* batches of windows with more terms are counted; smaller ones are padded to upper bounds,
                                                 * although half of their terms are then empty */

/* Returns upper bounds of the sizes of one example, without negatives that a batch shares. */
FN struct example_sizes example_most(const struct example_source *s) {
    struct example_sizes most;
    uint64_t negatives = s->negatives, predicted = s->paths.starts ? s->paths.most : 1, positives;
    struct example_row row;
    if (s->subwords.starts) {
        most.blocks = 1;
        most.targets = s->subwords.most * (s->subwords.by_window ? 2 * (uint64_t)s->window : 1);
        most.contexts = most.terms = example_window_positives(s, 2 * s->window) * predicted + example_window_negatives(s, 2 * s->window);
    } else if (s->mode == EXAMPLE_WINDOW) {
        most.targets = 2 * (uint64_t)s->window + s->documents;
        most.blocks = s->per_pair ? most.targets : 1;
        most.contexts = most.blocks * (predicted + negatives);
        most.terms = (s->pool.on ? most.blocks : most.targets) * (predicted + negatives);
    } else if (s->mode == EXAMPLE_TRIPLE) {
        most.blocks = most.terms = 1;
        most.targets = example_shared_targets(&s->pool);
        most.contexts = example_shared_contexts(&s->pool);
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

/* Returns 1 if every block has one vector; a context's gradient is then coefficient x vector. */
FN int example_one_vector(const struct example_source *s) {
    return example_one_target(s) || (s->pool.on && !s->per_batch);
}

/* Sets *most to upper bounds of the sizes of `count` examples and returns 1, if they are close to a batch's real sizes: on a GPU a stage then has
 * memory for the bounds, and batches are not counted. Otherwise returns 0, for example for pools of lists, which are as long as their lists, and
 * for words of several rows. */
FN int example_bound(const struct example_source *s, uint64_t count, struct example_sizes *most) {
    struct example_sizes one = example_most(s);
    int window = s->mode == EXAMPLE_WINDOW;
    uint64_t whole = s->batch > count ? s->batch : count, limit = window ? EXAMPLE_MOST_PADDED : ((uint64_t)1 << 31) - 1;
    if (s->subwords.starts) return 0;
    int lists = !window && s->mode != EXAMPLE_TRIPLE;
    if (lists && (s->pool.on || !s->positives || one.contexts - s->positives > EXAMPLE_MOST_NEGATIVES)) return 0;
    if (!count || one.terms > limit / whole || one.contexts > limit / whole || example_batch_relations(s) > limit / 2) return 0;
    most->blocks = one.blocks * count + s->per_batch;
    most->targets = one.targets * count + example_batch_relations(s);
    most->contexts = one.contexts * count + example_batch_negatives(s);
    most->terms = one.terms * count;
    return 1;
}

/* Returns 0 if the row's example fits into a block; -1 after fail(). */
int example_check_row(const struct example_row *row);

/* ==== strips ====
 *
 * A strip is consecutive ids over which windows move: a sentence of the corpus, or a walk.
 *
 *     start                  middle                      end
 *       |  .  a  .  b  c  .  [word]  d  .  e  f  .  .  .  |
 *             <--- walk by -1 ---  --- walk by 1 --->           . : dropped by subsampling, or after a walk's end
 *
 * Each position whose word is kept makes an example: that word is the one positive; the kept words in the drawn window on each side are the targets,
 * in order. Dropped words make no example, and do not count for a window's width. With shuffle_items the strip's items are in a random order for each
 * epoch.
 *
 *   per_pair   blocks of a window          slots of negatives
 *   0          one, T x (1 + count)        0 .. count - 1
 *   1          one a target, T = 1         target j: j * count .. j * count + count - 1
 *
 * With documents the first position of a strip makes no example, and targets begin with the document's row, which is a target even if no word is in
 * the window.
 *
 * Positions are counted over the whole corpus, and all draws use them, so results do not depend on where a strip's ids are stored.
 */

struct strip {
    const uint32_t *ids;  /* indexed by corpus position */
    uint64_t start, end;  /* the strip's positions [start, end) */
    struct shuffle items; /* with shuffle_items: random order of the strip's items in this epoch */
};

/* Returns the strip of sentence, list or line `number`. */
FN struct strip strip_of(const struct example_source *s, uint64_t number, uint32_t epoch) {
    struct strip out;
    out.ids = s->ids;
    out.start = portable_load64_at(s->starts, number);
    out.end = portable_load64_at(s->starts, number + 1);
    if (s->shuffle_items) out.items = shuffle_make(out.end - out.start, draw_at(s->seed, DRAW_ITEMS, number, epoch, 0));
    return out;
}

/* Returns the id at a position, in this epoch. */
FN uint32_t strip_id(const struct example_source *s, const struct strip *strip, uint64_t position) {
    if (!s->shuffle_items) return portable_load32_at(strip->ids, position);
    return portable_load32(strip->ids + strip->start + shuffle_at(&strip->items, position - strip->start));
}

/* Random words for positions. One Philox call makes those of four neighbouring positions, so the last result is kept. */
struct strip_draws {
    struct draw4 drawn;
    uint64_t group; /* position / 4 of that result; UINT64_MAX: none yet */
};
FN struct strip_draws strip_draws(void) {
    struct strip_draws none;
    none.group = UINT64_MAX;
    return none;
}

FN uint32_t strip_draw(const struct example_source *s, struct strip_draws *draws, uint32_t purpose, uint64_t position, uint32_t epoch) {
    if (position >> 2 != draws->group) {
        draws->group = position >> 2;
        draws->drawn = draw_at(s->seed, purpose, draws->group, epoch, 0);
    }
    return draw_word_of(draws->drawn, position);
}

/* Returns 1 if a word with this threshold is kept. drawn: random word of its position. */
FN int strip_keeps(uint32_t threshold, uint32_t drawn) {
    return drawn <= threshold;
}

/* Returns the id at a position, or DRAW_NONE if subsampling drops it; for threads that visit positions in order. */
FN uint32_t strip_word(const struct example_source *s, const struct strip *strip, uint64_t position, uint32_t epoch, struct strip_draws *draws) {
    uint32_t id = strip_id(s, strip, position), threshold;
    if (example_is_document(s, id)) return DRAW_NONE;
    if (!s->keep || id == DRAW_NONE) return id;
    threshold = portable_load32(s->keep + id);
    if (threshold == UINT32_MAX) return id; /* this word is always kept: no draw is needed */
    return strip_keeps(threshold, strip_draw(s, draws, DRAW_SUBSAMPLE, position, epoch)) ? id : DRAW_NONE;
}

/* Returns the id at a position of sentence `number`, or DRAW_NONE if subsampling drops it; for a lane of a warp, which reads one word. Looks for
 * the strip only with shuffle_items, since kernels that hold rows in registers have none left for it (windows at 128 columns spilled 128 bytes). */
FN uint32_t strip_word_alone(const struct example_source *s, uint64_t number, uint64_t position, uint32_t epoch) {
    uint32_t id;
    if (s->shuffle_items) {
        struct strip strip = strip_of(s, number, epoch);
        id = strip_id(s, &strip, position);
    } else {
        id = portable_load32_at(s->ids, position);
    }
    if (example_is_document(s, id)) return DRAW_NONE;
    if (!s->keep || id == DRAW_NONE) return id;
    return strip_keeps(portable_load32(s->keep + id), draw_word(s->seed, DRAW_SUBSAMPLE, position, epoch)) ? id : DRAW_NONE;
}

/* Returns how many words a window has on each side. drawn: random word of its position. */
FN uint32_t strip_width(const struct example_source *s, uint32_t drawn) {
    return s->shrink ? draw_window(drawn, s->window) : s->window;
}

/* Returns strip_width() of a position, for callers that need only this one. */
FN uint32_t strip_window(const struct example_source *s, uint64_t position, uint32_t epoch) {
    return strip_width(s, s->shrink ? draw_word(s->seed, DRAW_WINDOW, position, epoch) : 0);
}

/* A walk over the kept words of a strip in one direction, starting after its first position. */
struct strip_walk {
    uint64_t at; /* the position last visited */
    int by;      /* 1 or -1 */
};

/* Moves to the next kept word and returns its id, or DRAW_NONE if the strip has no more. */
FN uint32_t strip_next(const struct example_source *s, const struct strip *strip, struct strip_walk *walk, uint32_t epoch,
                       struct strip_draws *draws) {
    while (walk->by < 0 ? walk->at > strip->start : walk->at + 1 < strip->end) {
        walk->at = walk->by < 0 ? walk->at - 1 : walk->at + 1;
        uint32_t id = strip_word(s, strip, walk->at, epoch, draws);
        if (id != DRAW_NONE) return id;
    }
    return DRAW_NONE;
}

#endif
