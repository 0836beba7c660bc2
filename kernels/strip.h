/* strip: consecutive ids over which windows move: a sentence of the corpus, or a walk.
 *
 *     start                  middle                      end
 *       |  .  a  .  b  c  .  [word]  d  .  e  f  .  .  .  |
 *             <--- walk by -1 ---  --- walk by 1 --->           . : dropped by subsampling, or after a walk's end
 *
 * Every position whose word is kept makes an example. That word is the one positive; the kept words within the drawn window on each
 * side are the targets, in order. Dropped words make no example, and are not counted in a window. With shuffle_items the strip's
 * items are in the epoch's drawn order instead of the corpus's.
 *
 *   per_pair   blocks of a window          slots of negatives
 *   0          one, T x (1 + count)        0 .. count - 1
 *   1          one a target, T = 1         target j: j * count .. j * count + count - 1
 *
 * With documents the first position of a strip is dropped, and block targets begin with the document's row. It alone makes a block
 * if no word is in the window.
 *
 * Positions are counted over the whole corpus, and all draws use them, so results do not depend on where a strip's ids are stored.
 */
#ifndef SPTX_KERNELS_STRIP_H
#define SPTX_KERNELS_STRIP_H

#include "examples.h"

struct strip {
    const uint32_t *ids;  /* indexed by corpus position */
    uint64_t start, end;  /* the strip's positions [start, end) */
    struct shuffle items; /* with shuffle_items: the epoch's order of the strip's items */
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

/* Random words for positions. One Philox call makes the words of four neighbouring positions, so the last result is kept. */
struct strip_draws {
    struct draw4 drawn;
    uint64_t group; /* position / 4; UINT64_MAX: nothing is kept yet */
};
FN struct strip_draws strip_draws(void) {
    struct strip_draws none;
    none.group = UINT64_MAX;
    return none;
}

FN uint32_t strip_draw(const struct example_source *s, struct strip_draws *draws, uint32_t purpose, uint64_t position,
                       uint32_t epoch) {
    if (position >> 2 != draws->group) {
        draws->group = position >> 2;
        draws->drawn = draw_at(s->seed, purpose, draws->group, epoch, 0);
    }
    return draw_word_of(draws->drawn, position);
}

/* Returns 1 if a word with this threshold is kept. `drawn`: the random word of its position. */
FN int strip_keeps(uint32_t threshold, uint32_t drawn) {
    return drawn <= threshold;
}

/* Returns the id at a position, or DRAW_NONE if subsampling drops it. For a thread that visits positions in order. */
FN uint32_t strip_word(const struct example_source *s, const struct strip *strip, uint64_t position, uint32_t epoch,
                       struct strip_draws *draws) {
    uint32_t id = strip_id(s, strip, position), threshold;
    if (example_is_document(s, id)) return DRAW_NONE;
    if (!s->keep || id == DRAW_NONE) return id;
    threshold = portable_load32(s->keep + id);
    if (threshold == UINT32_MAX) return id; /* this word is always kept, so nothing is drawn */
    return strip_keeps(threshold, strip_draw(s, draws, DRAW_SUBSAMPLE, position, epoch)) ? id : DRAW_NONE;
}

/* Returns the id at a position of sentence `number`, or DRAW_NONE if subsampling drops it. For a lane of a warp that reads one
 * word. It finds the strip only with shuffle_items, because kernels that hold rows in registers have no register left for it
 * (windows at 128 columns spilled 128 bytes). */
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

/* Returns how many words a window has on each side. `drawn`: the random word of its position. */
FN uint32_t strip_width(const struct example_source *s, uint32_t drawn) {
    return s->shrink ? draw_window(drawn, s->window) : s->window;
}

/* Returns strip_width() for a position, for a caller that needs only this one. */
FN uint32_t strip_window(const struct example_source *s, uint64_t position, uint32_t epoch) {
    return strip_width(s, s->shrink ? draw_word(s->seed, DRAW_WINDOW, position, epoch) : 0);
}

/* A walk over a strip's kept words in one direction. The word at its first position is not visited. */
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
