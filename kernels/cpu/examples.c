/* examples: examples as blocks of row ids, from the id stream and the draws alone. struct example_source says what
 * each draw decides; nothing here depends on the batch, the worker or what was built before. */
#include "cpu.h"

#include "base/memory.h"
#include "base/report.h"

#include <stdlib.h>
#include <string.h>

/* ---- arrays ---- */

void cpu_blocks_clear(struct cpu_blocks *b) {
    b->count = b->targets = b->contexts = b->logits = 0;
}

void cpu_blocks_release(struct cpu_blocks *b) {
    free(b->block);
    free(b->target);
    free(b->context);
    *b = (struct cpu_blocks){0};
}

void cpu_piece_release(struct cpu_piece *p) {
    free(p->id);
    free(p->at);
    *p = (struct cpu_piece){0};
}

/* What one call of cpu_build() builds from and into. */
struct build {
    const struct example_source *source;
    struct cpu_piece *piece;
    struct cpu_blocks *blocks;
    uint32_t epoch;
    int held_out;
    uint64_t before; /* an example's own number less its place in this build */
};

/* Opens a block of an example that may take up to t targets and c contexts. */
static struct cpu_block *begin_block(const struct build *build, uint64_t example, uint64_t t, uint64_t c) {
    struct cpu_blocks *b = build->blocks;
    if (mem_grow(&b->block, &b->block_room, b->count + 1, sizeof *b->block, "a batch's examples") ||
        mem_grow(&b->target, &b->target_room, b->targets + t, sizeof *b->target, "a batch's targets") ||
        mem_grow(&b->context, &b->context_room, b->contexts + c, sizeof *b->context, "a batch's contexts"))
        return NULL;
    b->block[b->count] = (struct cpu_block){
        .targets = b->targets, .contexts = b->contexts, .example = (uint32_t)(example - build->before)};
    return &b->block[b->count];
}

static void end_block(struct cpu_blocks *b, struct cpu_block *block) {
    b->targets += block->t;
    b->contexts += block->c;
    b->logits += (uint64_t)block->t * block->c;
    b->count++;
}

/* ---- negatives ---- */

static int among(uint32_t id, const uint32_t *ids, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (ids[i] == id) return 1;
    return 0;
}

/* Appends the negatives of slots [slot, slot + count) to the block's contexts. Left out are `own` and, in list and
 * adjacency blocks, the target; both only if the source excludes. */
static void add_negatives(const struct build *build, struct cpu_block *block, uint64_t example, uint32_t slot,
                          uint32_t count) {
    const struct example_source *s = build->source;
    struct cpu_blocks *b = build->blocks;
    uint32_t *contexts = b->context + block->contexts, positives = block->c;
    int window = s->mode == EXAMPLE_WINDOW;
    uint32_t target = b->target[block->targets];
    struct draw4 drawn = {{0}};
    uint32_t drawn_index = UINT32_MAX;
    for (uint32_t i = slot; i < slot + count; i++) {
        for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
            uint32_t index = draw_negative_index(i, attempt);
            if (index != drawn_index)
                drawn = draw_at(s->seed, DRAW_NEGATIVE, example, build->epoch, index), drawn_index = index;
            uint32_t id = example_negative(s, draw_pair(drawn, i & 1));
            if (s->exclude && (among(id, contexts, positives) || (!window && id == target))) continue;
            if (s->distinct && among(id, contexts + positives, block->c - positives)) continue;
            contexts[block->c++] = id;
            break;
        }
    }
}

/* ---- windows ---- */

struct sentence {
    uint64_t start, length;
    struct shuffle items; /* of shuffle_items */
};

static struct sentence find_sentence(const struct example_source *s, uint64_t number, uint32_t epoch) {
    struct sentence out = {s->starts[number], s->starts[number + 1] - s->starts[number], {0}};
    if (s->shuffle_items) out.items = shuffle_make(out.length, draw_at(s->seed, DRAW_ITEMS, number, epoch, 0));
    return out;
}

static uint64_t sentence_of(const struct example_source *s, uint64_t position) {
    uint64_t low = 0, high = s->sentences;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (s->starts[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The id that stands at a corpus position in this epoch, or DRAW_NONE where subsampling drops it. */
static uint32_t kept_id(const struct example_source *s, const struct sentence *sentence, uint64_t position,
                        uint32_t epoch, struct draw4 *drawn, uint64_t *drawn_group) {
    uint64_t place = position;
    if (s->shuffle_items) place = sentence->start + shuffle_at(&sentence->items, position - sentence->start);
    uint32_t id = s->ids[place];
    if (!s->keep || s->keep[id] == UINT32_MAX) return id;
    if (position >> 2 != *drawn_group) {
        *drawn_group = position >> 2;
        *drawn = draw_at(s->seed, DRAW_SUBSAMPLE, *drawn_group, epoch, 0);
    }
    return drawn->word[position & 3] <= s->keep[id] ? id : DRAW_NONE;
}

static void add_kept(struct cpu_piece *p, uint32_t id, uint64_t position) {
    p->id[p->count] = id;
    p->at[p->count++] = position;
}

/* The kept words at positions [first, end) of one sentence, and up to `window` kept ones on each side. */
static int fill_piece(const struct build *build, const struct sentence *sentence, uint64_t first, uint64_t end) {
    const struct example_source *s = build->source;
    struct cpu_piece *p = build->piece;
    uint32_t epoch = build->epoch;
    struct draw4 drawn;
    uint64_t group = UINT64_MAX, room = end - first + 2 * (uint64_t)s->window;
    if (mem_grow(&p->id, &p->room, room, sizeof *p->id, "a sentence") ||
        mem_grow(&p->at, &p->at_room, room, sizeof *p->at, "a sentence"))
        return -1;
    p->count = 0;
    for (uint64_t at = first; at > sentence->start && p->count < s->window; at--) {
        uint32_t id = kept_id(s, sentence, at - 1, epoch, &drawn, &group);
        if (id != DRAW_NONE) add_kept(p, id, at - 1);
    }
    for (uint64_t i = 0; i < p->count / 2; i++) {
        uint64_t j = p->count - 1 - i, at = p->at[i];
        uint32_t id = p->id[i];
        p->id[i] = p->id[j], p->at[i] = p->at[j];
        p->id[j] = id, p->at[j] = at;
    }
    p->first = p->count;
    for (uint64_t at = first; at < end; at++) {
        uint32_t id = kept_id(s, sentence, at, epoch, &drawn, &group);
        if (id != DRAW_NONE) add_kept(p, id, at);
    }
    p->end = p->count;
    for (uint64_t at = end; at < sentence->start + sentence->length && p->count < p->end + s->window; at++) {
        uint32_t id = kept_id(s, sentence, at, epoch, &drawn, &group);
        if (id != DRAW_NONE) add_kept(p, id, at);
    }
    return 0;
}

/* The blocks of the kept word `middle` of the piece. */
static int add_window(const struct build *build, uint64_t middle, uint32_t width) {
    const struct example_source *s = build->source;
    const struct cpu_piece *p = build->piece;
    struct cpu_blocks *b = build->blocks;
    uint64_t first = middle > width ? middle - width : 0, end = middle + width + 1;
    if (end > p->count) end = p->count;
    uint32_t t = (uint32_t)(end - first - 1), blocks = s->per_pair ? t : 1, each = s->per_pair ? 1 : t;
    uint64_t next = first;
    if (!t) return 0;
    for (uint32_t i = 0; i < blocks; i++) {
        struct cpu_block *block = begin_block(build, p->at[middle], each, 1 + (uint64_t)s->negatives);
        if (!block) return -1;
        for (; block->t < each; next++)
            if (next != middle) b->target[block->targets + block->t++] = p->id[next];
        b->context[block->contexts] = p->id[middle];
        block->c = block->positives = 1;
        add_negatives(build, block, p->at[middle], i * s->negatives, s->negatives);
        end_block(b, block);
    }
    return 0;
}

/* Windows at positions [first, end), which lie in one sentence. */
static int add_windows(const struct build *build, uint64_t number, uint64_t first, uint64_t end) {
    const struct example_source *s = build->source;
    const struct cpu_piece *p = build->piece;
    struct sentence sentence = find_sentence(s, number, build->epoch);
    struct draw4 drawn = {{0}};
    uint64_t group = UINT64_MAX;
    if (fill_piece(build, &sentence, first, end)) return -1;
    for (uint64_t i = p->first; i < p->end; i++) {
        uint64_t at = p->at[i];
        if (example_held_out(s, at) != build->held_out) continue;
        if (at >> 2 != group) group = at >> 2, drawn = draw_at(s->seed, DRAW_WINDOW, group, build->epoch, 0);
        uint32_t width = s->shrink ? draw_window(drawn.word[at & 3], s->window) : s->window;
        if (add_window(build, i, width)) return -1;
    }
    return 0;
}

/* ---- lists and adjacency ---- */

static void add_positives_all(struct cpu_blocks *b, struct cpu_block *block, const uint32_t *items, uint64_t count,
                              uint64_t target) {
    for (uint64_t i = 0; i < count; i++)
        if (i != target) b->context[block->contexts + block->c++] = items[i];
}

/* `wanted` places of the count - 1 others: with replacement each by its draw, without by Floyd's sample. */
static void add_positives(const struct build *build, struct cpu_block *block, const uint32_t *items, uint64_t count,
                          uint64_t target, uint32_t wanted, int replacement, uint64_t example) {
    uint32_t *contexts = build->blocks->context + block->contexts;
    uint64_t others = count - 1;
    struct draw4 drawn = {{0}};
    for (uint32_t j = 0; j < wanted; j++) {
        if (j % 2 == 0) drawn = draw_at(build->source->seed, DRAW_POSITIVE, example, build->epoch, j / 2);
        uint64_t bits = draw_pair(drawn, j & 1), last = others - wanted + j;
        uint64_t place = draw_below(bits, replacement ? others : last + 1);
        /* Places stand in contexts[] until all are drawn: they fit 32 bits where a list has fewer than 2^32 items. */
        if (!replacement && among((uint32_t)place, contexts, j)) place = last;
        contexts[j] = (uint32_t)place;
    }
    for (uint32_t j = 0; j < wanted; j++) {
        uint64_t place = contexts[j];
        contexts[j] = items[place + (place >= target)];
    }
    block->c = wanted;
}

/* One T = 1 example: items[target] against others of items[count]. */
static int add_row(const struct build *build, const uint32_t *items, uint64_t count, uint64_t target,
                   uint64_t example) {
    const struct example_source *s = build->source;
    struct cpu_blocks *b = build->blocks;
    if (count < 2) return 0;
    uint64_t wanted = s->positives ? s->positives : count - 1;
    int too_short = count - 1 < wanted;
    if (too_short && !s->short_repeat) return 0;
    if (wanted > UINT32_MAX / 2)
        return fail("a list of %llu items is too long for one example; set examples.positives",
                    (unsigned long long)count);
    uint64_t negatives = s->per_pair ? wanted * s->negatives : s->negatives;
    if (negatives > EXAMPLE_MOST_NEGATIVES)
        return fail(
            "an example with %llu positives would draw %llu negatives, more than 2,097,152; set examples.positives or "
            "negatives.per = example",
            (unsigned long long)wanted, (unsigned long long)negatives);
    struct cpu_block *block = begin_block(build, example, 1, wanted + negatives);
    if (!block) return -1;
    b->target[block->targets] = items[target];
    block->t = 1;
    if (s->positives == 0)
        add_positives_all(b, block, items, count, target);
    else
        add_positives(build, block, items, count, target, s->positives, s->replacement || too_short, example);
    block->positives = block->c;
    add_negatives(build, block, example, 0, (uint32_t)negatives);
    end_block(b, block);
    return 0;
}

static int add_list(const struct build *build, uint64_t example) {
    const struct example_source *s = build->source;
    uint64_t number = example, target = 0;
    if (s->mode == EXAMPLE_LIST && s->targets_all) number = sentence_of(s, example);
    uint64_t start = s->starts[number], count = s->starts[number + 1] - start;
    if (s->mode == EXAMPLE_LIST)
        target = s->targets_all
                     ? example - start
                     : draw_below(draw_pair(draw_at(s->seed, DRAW_TARGET, example, build->epoch, 0), 0), count);
    return add_row(build, s->ids + start, count, target, example);
}

/* ---- all ---- */

static int build_in_order(const struct build *build, uint64_t first, uint64_t count) {
    const struct example_source *s = build->source;
    if (s->mode == EXAMPLE_WINDOW) {
        uint64_t end = first + count;
        for (uint64_t number = sentence_of(s, first); first < end; number++) {
            uint64_t stop = s->starts[number + 1] < end ? s->starts[number + 1] : end;
            if (add_windows(build, number, first, stop)) return -1;
            first = stop;
        }
        return 0;
    }
    for (uint64_t e = first; e < first + count; e++)
        if (example_held_out(s, e) == build->held_out && add_list(build, e)) return -1;
    return 0;
}

int cpu_build(const struct example_source *s, struct cpu_piece *p, struct cpu_blocks *b, uint32_t epoch, uint64_t first,
              uint64_t count, int held_out) {
    struct build build = {s, p, b, epoch, held_out, first};
    if (!s->shuffle) return count ? build_in_order(&build, first, count) : 0;
    struct shuffle order = shuffle_make(example_count(s), draw_at(s->seed, DRAW_SHUFFLE, 0, epoch, 0));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t example = shuffle_at(&order, first + i);
        build.before = example - i;
        if (build_in_order(&build, example, 1)) return -1;
    }
    return 0;
}
