/* examples: the whole definition of a batch, beside draws.h: what turns (epoch, example number) into a block of row
 * ids. Both compilers take it, so that a batch has the same ids wherever it is made, and lock-free training the same
 * blocks. What differs between a thread that goes word by word, a GPU's thread and a warp is how they go; what they
 * find is said here.
 */
#ifndef SPTX_KERNELS_EXAMPLES_H
#define SPTX_KERNELS_EXAMPLES_H

#include "draws.h"

#include <stddef.h>

enum example_mode { EXAMPLE_WINDOW, EXAMPLE_LIST, EXAMPLE_ADJACENCY };
enum noise_distribution { NOISE_UNIGRAM, NOISE_UNIFORM, NOISE_LOG_UNIFORM };

/* What examples make. */
struct example_sizes {
    uint64_t blocks, targets, contexts, terms; /* terms: T x C summed */
};

/* Pooled targets: the block's T target rows make one vector, the weighted sum of them, and its C scores are trained. */
struct example_pool {
    int on;    /* 0: all T x C pairs are trained */
    float own; /* weight of a block's first row, the others share what it leaves of 1; 0: all rows alike, 1 / T each */
    int whole; /* each row takes the vector's whole gradient, as word2vec.c's CBOW does, and not its weight's part of it */
};

FN float example_pool_weight(const struct example_pool *pool, uint32_t targets, uint32_t i) {
    if (!(pool->own > 0) || targets == 1) return 1.0f / (float)targets;
    return i ? (1.0f - pool->own) / (float)(targets - 1) : pool->own;
}

/* What row i takes of its vector's gradient. */
FN float example_pool_share(const struct example_pool *pool, uint32_t targets, uint32_t i) {
    return pool->whole ? 1.0f : example_pool_weight(pool, targets, i);
}

/* The vectors that a block of so many target rows sets against its contexts. */
FN uint32_t example_vectors(const struct example_pool *pool, uint32_t targets) {
    return pool->on && targets ? 1 : targets;
}

/* Whether a row has its bit among `bits`, 32 rows to a word, the first in the lowest bit; NULL: none has. */
FN int row_has_bit(const uint32_t *bits, uint32_t row) {
    return bits && (bits[row / 32] >> row % 32 & 1);
}

/* Everything that turns (epoch, example number) into a block; with draws.h it is the whole definition of a batch.
 *
 * WINDOW     an example is a corpus position. Its word is the one positive context; the kept words within the drawn
 *            window each side are the targets, in order. Dropped words (subsampling) make no example and are invisible.
 *            With shuffle_items a sentence's items are permuted first (shuffle over the sentence, keys DRAW_ITEMS).
 *            per_pair: each target is a block of its own (T = 1) with negatives of its own: target j's negative n is
 *            slot j * count + n. Otherwise the block is T x (1 + count), slots 0..count-1.
 * LIST       an example is a list (targets_all = 0; a drawn item of it is the target) or a position (targets_all = 1).
 *            T = 1; positives are drawn from the list's other positions. per_pair: count negatives for each positive.
 * ADJACENCY  an example is a line: its first id is the target, positives are drawn from the others. T = 1. So it is of lists
 *            that have rows: a list's own row, then its items.
 *
 * Split:     with pool.on, a list or line is split into positives and a pool, whose rows are targets beside its own: a drawn
 *            order of the m - 1 others (shuffle over them, keys DRAW_POSITIVE, example, index 0) has the P positives first
 *            (positives == 0: half of the others, rounded up) and then the pool, at most `pooled` of them (0: all). T = 1 +
 *            the pool, the own row first; with pool.own == 0 the pool alone, and the own row where nothing is left for a
 *            pool. Positives with replacement leave no pool.
 *
 * Positives: positives == 0 takes all others in order. With replacement, slot j takes draw_below(pair j, m - 1) over
 * the m - 1 others, skipping the target's place. Without, Floyd's sample: for j = 0..P-1, i = (m - 1 - P) + j, take r =
 * draw_below(pair j, i + 1) or, where r is taken already, i. Words of slot j: half j % 2 of index j / 2. A row with
 * fewer than P others is left out (short_repeat = 0) or drawn with replacement; with none it is left out. Negatives:
 * slot s at attempt a takes half s % 2 of index s / 2 + (a << 20); a draw that is excluded or (distinct) repeats an
 * earlier slot of the same block goes to the next attempt; after DRAW_ATTEMPTS the slot is left out of the block. A
 * window's excluded row is its middle word; otherwise all targets and positives. Shuffle: example e of the epoch's
 * order is shuffle_at(e), keys draw_at(seed, DRAW_SHUFFLE, 0, epoch, 0). Held out: example e (before shuffling, its own
 * number) is held out where draw_word(seed, DRAW_HELD_OUT, e, 0) is below held_out; a batch holds either only those or
 * none of them.
 */
struct example_source {
    const uint32_t *ids;    /* [tokens] rows of both tables, sentence after sentence */
    const uint64_t *starts; /* [sentences + 1] first token of each; starts[sentences] == tokens */
    uint64_t tokens, sentences;
    uint64_t longest; /* tokens of the longest sentence; 0: not known */
    uint64_t rows;    /* of both tables */
    uint64_t lists;   /* the last of them, which are lists and never negatives */
    enum example_mode mode;
    uint32_t window;
    int shrink, shuffle_items, shuffle;
    const uint32_t *keep; /* [rows] a word is kept where its draw <= keep[id]; NULL: all are kept */
    uint32_t positives;
    int targets_all, replacement, short_repeat;
    const uint32_t *known; /* LIST with targets_all: a bit a row, whose positions make no examples; NULL: all do */
    struct example_pool pool;
    uint32_t pooled; /* lists and lines: most rows of a pool; 0: no bound */
    uint32_t negatives;
    int per_pair, exclude, distinct;
    enum noise_distribution noise;
    const struct alias *alias; /* [rows], those of lists unused; for NOISE_UNIGRAM */
    double log2_rows;          /* of those that are drawn; for NOISE_LOG_UNIFORM */
    uint32_t seed;
    uint32_t held_out; /* threshold of 2^32; 0: none */
    int stream_on_host; /* ids and starts stay in host memory even where a GPU would hold them */
    uint64_t batch; /* examples of a batch, where known, otherwise 0: an epoch's last, shorter one is made like the others */
    /* Where batches are counted before they are filled: what a stage can hold from the start; zeros: not known. */
    struct example_sizes capacity;
};

/* ---- examples of an epoch ---- */

/* Whether an example is a corpus position; otherwise it is a sentence, list or line. */
FN int example_is_position(const struct example_source *s) {
    return s->mode == EXAMPLE_WINDOW || (s->mode == EXAMPLE_LIST && s->targets_all);
}

FN uint64_t example_count(const struct example_source *s) {
    return example_is_position(s) ? s->tokens : s->sentences;
}

/* The order of an epoch's examples, where the source shuffles. */
FN struct shuffle example_order(const struct example_source *s, uint32_t epoch) {
    return shuffle_make(example_count(s), draw_at(s->seed, DRAW_SHUFFLE, 0, epoch, 0));
}

/* Whether an example, by its own number, is held out. */
FN int example_held_out(const struct example_source *s, uint64_t example) {
    return s->held_out && draw_word(s->seed, DRAW_HELD_OUT, example, 0) < s->held_out;
}

/* ---- sentences ---- */

/* The sentence, list or line that holds a position. */
FN uint64_t example_sentence_of(const struct example_source *s, uint64_t position) {
    uint64_t low = 0, high = s->sentences;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (portable_load64(s->starts + middle) <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct example_sentence {
    uint64_t start, end;  /* corpus positions */
    struct shuffle items; /* the epoch's order of them, of shuffle_items */
};

FN struct example_sentence example_sentence(const struct example_source *s, uint64_t number, uint32_t epoch) {
    struct example_sentence out;
    out.start = portable_load64(s->starts + number);
    out.end = portable_load64(s->starts + number + 1);
    if (s->shuffle_items) out.items = shuffle_make(out.end - out.start, draw_at(s->seed, DRAW_ITEMS, number, epoch, 0));
    return out;
}

/* The place in ids[] of what stands at a position, where items are shuffled. */
FN uint64_t example_place(const struct example_sentence *sentence, uint64_t position) {
    return sentence->start + shuffle_at(&sentence->items, position - sentence->start);
}

/* The id that stands at a position of the sentence in its epoch. */
FN uint32_t example_id(const struct example_source *s, const struct example_sentence *sentence, uint64_t position) {
    return portable_load32(s->ids + (s->shuffle_items ? example_place(sentence, position) : position));
}

/* ---- subsampling and windows ---- */

/* Words drawn for positions: one Philox call has those of four neighbours, and the last one is kept. */
struct example_words {
    struct draw4 drawn;
    uint64_t group; /* position / 4; UINT64_MAX: none yet */
};

FN uint32_t example_word(const struct example_source *s, struct example_words *words, uint32_t purpose,
                         uint64_t position, uint32_t epoch) {
    if (position >> 2 != words->group) {
        words->group = position >> 2;
        words->drawn = draw_at(s->seed, purpose, words->group, epoch, 0);
    }
    return draw_word_of(words->drawn, position);
}

/* Whether a word is kept that meets this draw at its position. */
FN int example_keeps(uint32_t threshold, uint32_t drawn) {
    return drawn <= threshold;
}

/* The id at a position, or DRAW_NONE where subsampling drops it. */
FN uint32_t example_kept_id(const struct example_source *s, const struct example_sentence *sentence, uint64_t position,
                            uint32_t epoch, struct example_words *words) {
    uint32_t id = example_id(s, sentence, position), threshold;
    if (!s->keep) return id;
    threshold = portable_load32(s->keep + id);
    if (threshold == UINT32_MAX) return id; /* spares the draw */
    return example_keeps(threshold, example_word(s, words, DRAW_SUBSAMPLE, position, epoch)) ? id : DRAW_NONE;
}

/* Words each side of the one in the middle whose position drew this. */
FN uint32_t example_window(const struct example_source *s, uint32_t drawn) {
    return s->shrink ? draw_window(drawn, s->window) : s->window;
}

/* ---- lists and lines ---- */

struct example_row {
    uint64_t start, count, target; /* items[target] against the others */
    uint64_t wanted, negatives;    /* positives and slots of negatives; wanted 0: no example comes of it */
    uint64_t targets, pooled;      /* target rows: the pool's, and where there is one more, in front, the row's own */
    int replacement, split;        /* split: positives and pool by one drawn order of the others */
};

/* Positives of a row with so many others. */
FN uint64_t example_wanted(const struct example_source *s, uint64_t others) {
    if (s->positives) return s->positives;
    return s->pool.on ? others - others / 2 : others;
}

/* What comes of a list or line of row->count items. */
FN void example_row_sizes(const struct example_source *s, struct example_row *row) {
    uint64_t others = row->count ? row->count - 1 : 0;
    row->wanted = example_wanted(s, others);
    row->replacement = s->replacement || others < row->wanted;
    row->split = s->pool.on && !row->replacement;
    row->pooled = row->split ? others - row->wanted : 0;
    if (s->pooled && row->pooled > s->pooled) row->pooled = s->pooled;
    row->targets = row->pooled + (s->pool.own > 0 || !row->pooled);
    if (!others || (others < row->wanted && !s->short_repeat)) row->wanted = 0;
    row->negatives = s->per_pair ? row->wanted * s->negatives : s->negatives;
}

/* Whether a block can hold it: half a slot's number has 20 bits of the counter. */
#define EXAMPLE_MOST_POSITIVES (UINT32_MAX / 2)
#define EXAMPLE_MOST_NEGATIVES ((uint64_t)1 << 21)
FN int example_row_fits(const struct example_row *row) {
    return row->wanted <= EXAMPLE_MOST_POSITIVES && row->pooled <= EXAMPLE_MOST_POSITIVES &&
           row->negatives <= EXAMPLE_MOST_NEGATIVES;
}

/* The example of list or line `number`, which for examples that are positions is its sentence. */
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
    return row;
}

/* The item at one of the row's other places. */
FN uint32_t example_other(const struct example_source *s, const struct example_row *row, uint64_t place) {
    return portable_load32(s->ids + row->start + place + (place >= row->target));
}

/* The place among the others that positive j draws; without replacement, where it is taken already by an earlier one, j
 * takes example_positive_last() instead (Floyd's sample). */
FN uint64_t example_positive_last(const struct example_row *row, uint32_t j) {
    return row->count - 1 - row->wanted + j;
}
FN uint64_t example_positive_place(const struct example_row *row, uint64_t bits, uint32_t j) {
    return draw_below(bits, row->replacement ? row->count - 1 : example_positive_last(row, j) + 1);
}

/* The drawn order of the others of a row that is split; and the rows that it makes positives and targets. */
FN struct shuffle example_split(const struct example_source *s, const struct example_row *row, uint64_t example,
                                uint32_t epoch) {
    return shuffle_make(row->count - 1, draw_at(s->seed, DRAW_POSITIVE, example, epoch, 0));
}
FN uint32_t example_split_positive(const struct example_source *s, const struct example_row *row, const struct shuffle *order,
                                   uint64_t j) {
    return example_other(s, row, shuffle_at(order, j));
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

/* All positives of a row that is not split, by one thread. They are places until all are drawn, which fit where a row has
 * fewer than 2^32 items. */
FN void example_positives(const struct example_source *s, const struct example_row *row, uint64_t example,
                          uint32_t epoch, uint32_t *contexts) {
    uint32_t wanted = (uint32_t)row->wanted;
    struct draw4 drawn;
    if (s->positives == 0) {
        for (uint32_t i = 0; i < wanted; i++) contexts[i] = example_other(s, row, i);
        return;
    }
    for (uint32_t j = 0; j < wanted; j++) {
        if (j % 2 == 0) drawn = draw_at(s->seed, DRAW_POSITIVE, example, epoch, j / 2);
        uint64_t place = example_positive_place(row, draw_half(drawn, j), j);
        if (!row->replacement && example_among((uint32_t)place, contexts, j)) place = example_positive_last(row, j);
        contexts[j] = (uint32_t)place;
    }
    for (uint32_t j = 0; j < wanted; j++) contexts[j] = example_other(s, row, contexts[j]);
}

/* ---- negatives ---- */

/* The draws of a slot and its neighbour at an attempt. */
FN struct draw4 example_negative_draws(const struct example_source *s, uint32_t epoch, uint64_t example, uint32_t slot,
                                       uint32_t attempt) {
    return draw_at(s->seed, DRAW_NEGATIVE, example, epoch, draw_negative_index(slot, attempt));
}

/* The row that a slot takes of them. */
FN uint32_t example_negative_of(const struct example_source *s, struct draw4 drawn, uint32_t slot) {
    uint64_t bits = draw_half(drawn, slot);
    uint64_t rows = s->rows - s->lists;
    if (s->noise == NOISE_UNIGRAM) return draw_alias(bits, s->alias, rows);
    if (s->noise == NOISE_LOG_UNIFORM) return draw_log_uniform(bits, rows, s->log2_rows);
    return (uint32_t)draw_below(bits, rows);
}

FN uint32_t example_negative(const struct example_source *s, uint32_t epoch, uint64_t example, uint32_t slot,
                             uint32_t attempt) {
    return example_negative_of(s, example_negative_draws(s, epoch, example, slot, attempt), slot);
}

/* A block's own rows, which its negatives may not be: none where the source does not exclude. */
struct example_own {
    const uint32_t *positives, *others; /* others: all targets but the first */
    uint32_t count, others_count;
    uint32_t target; /* the first; DRAW_NONE in window mode */
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

#define EXAMPLE_MOST_PADDED ((uint64_t)1 << 19) /* terms of a batch of windows that are worth padding: half are empty */

/* The most that one example makes. */
FN struct example_sizes example_most(const struct example_source *s) {
    struct example_sizes most;
    uint64_t negatives = s->negatives, positives;
    struct example_row row;
    if (s->mode == EXAMPLE_WINDOW) {
        most.targets = 2 * (uint64_t)s->window;
        most.blocks = s->per_pair ? most.targets : 1;
        most.contexts = most.blocks * (1 + negatives);
        most.terms = (s->pool.on ? most.blocks : most.targets) * (1 + negatives);
    } else {
        row.count = s->longest;
        example_row_sizes(s, &row);
        positives = example_wanted(s, s->longest ? s->longest - 1 : 0);
        most.blocks = 1;
        most.targets = row.targets;
        most.contexts = most.terms = positives + (s->per_pair ? positives * negatives : negatives);
    }
    return most;
}

/* Whether every block has one target. */
FN int example_one_target(const struct example_source *s) {
    return s->mode == EXAMPLE_WINDOW ? s->per_pair : !s->pool.on;
}

/* 1 with *most, what `count` examples can make, where that is near to what a whole batch does make, so that a stage on a
 * GPU is better sized for it than counted; otherwise 0. Pools are as long as lists are, so they are never. */
FN int example_bound(const struct example_source *s, uint64_t count, struct example_sizes *most) {
    struct example_sizes one = example_most(s);
    int window = s->mode == EXAMPLE_WINDOW;
    uint64_t whole = s->batch > count ? s->batch : count, limit = window ? EXAMPLE_MOST_PADDED : ((uint64_t)1 << 31) - 1;
    if (!window && (s->pool.on || !s->positives || one.contexts - s->positives > EXAMPLE_MOST_NEGATIVES)) return 0;
    if (!count || one.terms > limit / whole || one.contexts > limit / whole) return 0;
    most->blocks = one.blocks * count;
    most->targets = one.targets * count;
    most->contexts = one.contexts * count;
    most->terms = one.terms * count;
    return 1;
}

/* 0 where a row's example fits a block; -1 after fail(). */
int example_check_row(const struct example_row *row);

#endif
