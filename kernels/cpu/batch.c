/* batch: makes a batch in its stage. Workers build chunks of CPU_GRAIN examples, which are then copied in order, so that the result does not
 * depend on the number of workers. */
#include "cpu.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "kernels/examples.h"
#include "kernels/triples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ==== walks over a graph ====
 *
 * Draws several walks at the same time, since each step of a walk waits for memory that is not in the cache. */

enum {
    SIDE_BY_SIDE = 16, /* walks that a worker draws at the same time: one step of each in turn */
    WALKS_AT_ONCE = 256
};

/* Draws at most SIDE_BY_SIDE walks. */
static void draw_side_by_side(const struct example_source *s, uint64_t first, uint64_t count, uint32_t epoch, uint32_t *ids) {
    struct {
        struct walk walk;
        uint32_t *ids;
    } going[SIDE_BY_SIDE];
    uint64_t left = count;
    for (uint64_t i = 0; i < count; i++) {
        going[i].walk = walk_begin(&s->walks, s->seed, first + i, epoch);
        going[i].ids = ids + i * s->walks.length;
        walk_write(&s->walks, &going[i].walk, going[i].ids);
    }
    while (left)
        for (uint64_t i = 0; i < left;) {
            struct walk *walk = &going[i].walk;
            if (walk_go(&s->walks, s->seed, epoch, walk)) {
                walk_write(&s->walks, walk, going[i++].ids);
            } else {
                walk_end(&s->walks, walk, going[i].ids);
                going[i] = going[--left];
            }
        }
}

/* Draws walks into ids [count x length], in the caller's thread. */
static void cpu_draw(const struct example_source *s, uint64_t first, uint64_t count, uint32_t epoch, uint32_t *ids) {
    for (uint64_t at = 0; at < count; at += SIDE_BY_SIDE)
        draw_side_by_side(s, first + at, count - at < SIDE_BY_SIDE ? count - at : SIDE_BY_SIDE, epoch, ids + at * s->walks.length);
}

/* ---- for those who ask for walks and not for examples ---- */

struct drawing {
    struct backend *backend;
    uint32_t epoch;
    uint64_t first, count;
    uint32_t *ids; /* [count x length] where to store the walks' ids; NULL: they are not needed */
    _Atomic uint64_t taken;
};

static int draw_some(void *context, unsigned worker) {
    struct drawing *d = context;
    const struct example_source *s = &d->backend->source;
    struct cpu_piece *piece = &d->backend->scratch[worker].piece;
    uint64_t at, end, length = s->walks.length;
    if (mem_reserve(&piece->walk, &piece->walk_capacity, WALKS_AT_ONCE * length, sizeof *piece->walk, "walks")) return -1;
    while (pool_take(&d->taken, d->count, WALKS_AT_ONCE, &at, &end))
        cpu_draw(s, d->first + at, end - at, d->epoch, d->ids ? d->ids + at * length : piece->walk);
    return 0;
}

int cpu_draw_walks(struct backend *backend, uint32_t epoch, uint64_t first, uint64_t count, uint32_t *ids) {
    struct drawing d = {.backend = backend, .epoch = epoch, .first = first, .count = count, .ids = ids};
    return pool_run(backend->pool, draw_some, &d);
}

/* ==== blocks of examples ====
 *
 * Builds examples as blocks of row ids, from the id stream (or a graph) and from draws. kernels/examples.h says what each draw decides. A block
 * depends on nothing else: not on its batch, the worker, or earlier examples. */

/* ---- arrays ---- */

void cpu_blocks_clear(struct cpu_blocks *b) {
    b->count = b->targets = b->contexts = b->logits = b->words = 0;
}

void cpu_blocks_release(struct cpu_blocks *b) {
    mem_free(b->block, b->target, b->context, b->weight);
    *b = (struct cpu_blocks){0};
}

void cpu_piece_release(struct cpu_piece *p) {
    mem_free(p->id, p->at, p->walk, p->start);
    *p = (struct cpu_piece){0};
}

/* Arguments of one call of cpu_build(). */
struct build {
    const struct example_source *source;
    struct cpu_piece *piece;
    struct cpu_blocks *blocks;
    uint32_t epoch;
    int held_out;
    uint64_t before; /* difference between an example's number in the epoch and its number in this build */
    uint64_t count;  /* number of examples */
};

/* Begins a block of an example, with memory for at most t targets and c contexts. */
static struct cpu_block *begin_block(const struct build *build, uint64_t example, uint64_t t, uint64_t c) {
    struct cpu_blocks *b = build->blocks;
    if (mem_grow(&b->block, &b->block_capacity, b->count + 1, sizeof *b->block, "a batch's examples") ||
        mem_grow(&b->target, &b->target_capacity, b->targets + t, sizeof *b->target, "a batch's targets") ||
        mem_grow(&b->context, &b->context_capacity, b->contexts + c, sizeof *b->context, "a batch's contexts") ||
        (build->source->weights && mem_grow(&b->weight, &b->weight_capacity, b->contexts + c, sizeof *b->weight, "a batch's weights")))
        return NULL;
    b->block[b->count] = (struct cpu_block){.targets = b->targets, .contexts = b->contexts, .example = (uint32_t)(example - build->before)};
    return &b->block[b->count];
}

static void end_block(const struct build *build, struct cpu_block *block) {
    struct cpu_blocks *b = build->blocks;
    INVARIANT(block->contexts == b->contexts && block->targets == b->targets); /* there are no gaps between blocks */
    if (build->source->mode != EXAMPLE_WINDOW) block->predicted = block->positives;
    b->targets += block->t;
    b->contexts += block->c;
    b->logits += (uint64_t)example_vectors(&build->source->pool, block->t) * block->c;
    b->count++;
}

/* ---- negatives ---- */

enum { TOGETHER = 16 }; /* number of slots whose first draws are made at the same time */

/* Makes the first draws of slots slot .. slot + count - 1 (two slots share a draw), and prefetches for each the column of the alias table that it
 * selects: the columns are seldom in the cache, and one wait for all of them is shorter than many. */
static void draw_together(const struct build *build, uint64_t example, uint32_t slot, uint32_t count, struct draw4 *drawn) {
    const struct example_source *s = build->source;
    for (uint32_t half = slot / 2; half <= (slot + count - 1) / 2; half++) {
        struct draw4 both = example_negative_draws(s, build->epoch, example, 2 * half, 0);
        *drawn++ = both;
        if (s->noise != NOISE_UNIGRAM) continue;
        for (uint32_t i = 0; i < 2; i++) __builtin_prefetch(s->alias + draw_below(draw_half(both, i), s->rows - s->target_only));
    }
}

/* Appends the negatives of slots slot .. slot + count - 1 to the block's contexts, which are only positives so far. */
static void add_negatives(const struct build *build, struct cpu_block *block, uint64_t example, uint32_t slot, uint32_t count) {
    const struct example_source *s = build->source;
    uint32_t *contexts = build->blocks->context + block->contexts, positives = block->c, first = slot;
    struct example_own own = example_own(s, contexts, positives, build->blocks->target + block->targets, block->t);
    struct draw4 drawn[TOGETHER / 2 + 1];
    for (uint32_t i = slot, end = slot + count; i < end; i++) {
        if ((i - slot) % TOGETHER == 0) draw_together(build, example, first = i, end - i < TOGETHER ? end - i : TOGETHER, drawn);
        for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
            struct draw4 at = attempt ? example_negative_draws(s, build->epoch, example, i, attempt) : drawn[i / 2 - first / 2];
            uint32_t id = example_negative_of(s, at, i);
            if (example_excludes(&own, id)) continue;
            if (s->distinct && example_among(id, contexts + positives, block->c - positives)) continue;
            contexts[block->c++] = id;
            break;
        }
    }
}

int cpu_build_shared(const struct example_source *s, struct cpu_blocks *b, uint32_t epoch, uint64_t first) {
    struct build build = {.source = s, .blocks = b, .epoch = epoch, .before = first};
    uint32_t shared = example_batch_negatives(s);
    if (!shared) return 0;
    uint32_t relations = example_batch_relations(s);
    struct cpu_block *block = begin_block(&build, first, relations, shared);
    if (!block) return -1;
    add_negatives(&build, block, first, 0, shared);
    for (; block->t < relations; block->t++) b->target[block->targets + block->t] = (uint32_t)(s->rows - relations + block->t);
    end_block(&build, block);
    return 0;
}

/* ---- windows ---- */

static void add_kept(struct cpu_piece *p, uint32_t id, uint64_t position) {
    p->id[p->count] = id;
    p->at[p->count++] = position;
}

/* Reverses the order of the kept words before the piece, which were found from last to first. */
static void turn_round(struct cpu_piece *p) {
    for (uint64_t i = 0; i < p->count / 2; i++) {
        uint64_t j = p->count - 1 - i, at = p->at[i];
        uint32_t id = p->id[i];
        p->id[i] = p->id[j], p->at[i] = p->at[j];
        p->id[j] = id, p->at[j] = at;
    }
}

/* Fills the piece with the kept words at positions first .. end - 1 of one strip, and at most `window` kept words before and after. */
static int fill_piece(const struct build *build, const struct strip *strip, uint64_t first, uint64_t end) {
    const struct example_source *s = build->source;
    struct cpu_piece *p = build->piece;
    struct strip_draws draws = strip_draws();
    struct strip_walk back = {first, -1}, on = {first - 1, 1};
    uint64_t most = build->count + 2 * (uint64_t)s->window + 1, behind = 0; /* even with window 0, one word after the positions is needed */
    uint32_t id;
    if (mem_reserve(&p->id, &p->capacity, most, sizeof *p->id, "a sentence") ||
        mem_reserve(&p->at, &p->at_capacity, most, sizeof *p->at, "a sentence"))
        return -1;
    p->count = 0;
    while (p->count < s->window && (id = strip_next(s, strip, &back, build->epoch, &draws)) != DRAW_NONE) add_kept(p, id, back.at);
    turn_round(p);
    p->first = p->count;
    while ((on.at + 1 < end || behind < s->window) && (id = strip_next(s, strip, &on, build->epoch, &draws)) != DRAW_NONE) {
        behind += on.at >= end;
        add_kept(p, id, on.at);
    }
    p->end = p->count - behind;
    return 0;
}

/* Appends a word's rows to the block's targets. */
static void add_rows(const struct build *build, struct cpu_block *block, uint32_t word) {
    const struct example_source *s = build->source;
    uint64_t count = example_rows_of(s, word);
    memcpy(build->blocks->target + block->targets + block->t, s->subwords.rows + s->subwords.starts[word], count * sizeof *s->subwords.rows);
    block->t += (uint32_t)count;
}

/* ---- paths in a tree ---- */

/* Returns the number of contexts by which words first .. end - 1 of the piece, without word `but`, are predicted. */
static uint64_t contexts_of(const struct build *build, uint64_t first, uint64_t end, uint64_t but) {
    uint64_t contexts = 0;
    for (uint64_t i = first; i < end; i++)
        if (i != but) contexts += example_contexts_of(build->source, build->piece->id[i]);
    return contexts;
}

/* Appends to the block's contexts the nodes of a word's path at which the path takes code `code`. */
static void add_nodes(const struct build *build, struct cpu_block *block, uint32_t word, int code) {
    const struct example_source *s = build->source;
    const struct example_path path = example_path(s, word);
    uint32_t *contexts = build->blocks->context + block->contexts + block->c;
    const uint32_t *nodes = s->paths.nodes + path.first[code];
    for (uint32_t i = 0; i < path.count[code]; i++) contexts[i] = nodes[i];
    block->c += path.count[code];
}

/* Appends the contexts by which words first .. end - 1 of the piece, without word `but`, are predicted: the words themselves as positives, or the
 * nodes of their paths. */
static void add_predicted(const struct build *build, struct cpu_block *block, uint64_t first, uint64_t end, uint64_t but) {
    const uint32_t *id = build->piece->id;
    int paths = build->source->paths.starts != NULL;
    for (int code = 0; code < 2; code++) {
        for (uint64_t i = first; i < end; i++) {
            if (i == but) continue;
            if (paths) add_nodes(build, block, id[i], code);
            else if (!code) build->blocks->context[block->contexts + block->c++] = id[i];
            block->predicted += !code;
        }
        if (!code) block->positives = block->c;
    }
}

/* ---- blocks of windows ---- */

/* Appends the block of a window in which words have several rows each: words first .. end - 1 of the piece; `middle` is the word at the window's
 * position. */
static int add_pooled_window(const struct build *build, uint64_t middle, uint64_t first, uint64_t end) {
    const struct example_source *s = build->source;
    const struct cpu_piece *p = build->piece;
    int by_window = s->subwords.by_window;
    uint64_t around = end - first - 1, rows = by_window ? 0 : example_rows_of(s, p->id[middle]);
    uint64_t negatives = example_window_negatives(s, (uint32_t)around);
    for (uint64_t i = first; i < end && by_window; i++)
        if (i != middle) rows += example_rows_of(s, p->id[i]);
    uint64_t from = by_window ? middle : first, to = by_window ? middle + 1 : end, but = by_window ? end : middle;
    struct cpu_block *block = begin_block(build, p->at[middle], rows, contexts_of(build, from, to, but) + negatives);
    if (!block) return -1;
    for (uint64_t i = first; i < end; i++)
        if ((i == middle) != by_window) add_rows(build, block, p->id[i]);
    add_predicted(build, block, from, to, but);
    add_negatives(build, block, p->at[middle], 0, (uint32_t)negatives);
    end_block(build, block);
    return 0;
}

/* Appends the blocks of a window: one block, or one for each pair if each pair has its own negatives. middle: index, among the piece's kept words,
 * of the word at the window's position. document: row of the window's document, if any. */
static int add_window(const struct build *build, uint64_t middle, uint32_t width, uint32_t document) {
    const struct example_source *s = build->source;
    const struct cpu_piece *p = build->piece;
    struct cpu_blocks *b = build->blocks;
    uint64_t first = middle > width ? middle - width : 0, end = middle + width + 1;
    if (end > p->count) end = p->count;
    if (s->subwords.starts && end - first > 1) return add_pooled_window(build, middle, first, end);
    uint32_t t = (uint32_t)(end - first - 1) + (uint32_t)s->documents, blocks = s->per_pair ? t : 1, each = s->per_pair ? 1 : t;
    uint64_t next = first;
    if (!t) return 0;
    for (uint32_t i = 0; i < blocks; i++) {
        struct cpu_block *block = begin_block(build, p->at[middle], each, contexts_of(build, middle, middle + 1, end) + s->negatives);
        if (!block) return -1;
        if (s->documents && !i) b->target[block->targets + block->t++] = document;
        for (; block->t < each; next++)
            if (next != middle) b->target[block->targets + block->t++] = p->id[next];
        add_predicted(build, block, middle, middle + 1, end);
        add_negatives(build, block, p->at[middle], i * s->negatives, s->negatives);
        end_block(build, block);
    }
    return 0;
}

/* Appends the blocks of the windows at positions first .. end - 1, all in one sentence. */
static int add_windows(const struct build *build, uint64_t number, uint64_t first, uint64_t end) {
    const struct example_source *s = build->source;
    const struct cpu_piece *p = build->piece;
    const struct strip strip = strip_of(s, number, build->epoch);
    struct strip_draws draws = strip_draws();
    uint32_t document = s->documents ? example_document(s, number) : DRAW_NONE;
    if (fill_piece(build, &strip, first, end)) return -1;
    for (uint64_t i = p->first; i < p->end; i++) {
        uint64_t at = p->at[i];
        if (example_held_out(s, at) != build->held_out) continue;
        uint32_t width = strip_width(s, strip_draw(s, &draws, DRAW_WINDOW, at, build->epoch));
        if (add_window(build, i, width, document)) return -1;
    }
    return 0;
}

/* ---- lists and adjacency ---- */

static float *weights_of(const struct build *build, const struct cpu_block *block) {
    return build->source->weights ? build->blocks->weight + block->contexts : NULL;
}

static void add_split(const struct build *build, const struct example_row *row, uint64_t example, const struct cpu_block *block) {
    const struct example_source *s = build->source;
    uint32_t *targets = build->blocks->target + block->targets, *contexts = build->blocks->context + block->contexts;
    float *weights = weights_of(build, block);
    const struct shuffle order = example_split(s, row, example, build->epoch);
    for (uint64_t i = 0; i < row->targets; i++) targets[i] = example_split_target(s, row, &order, i);
    for (uint64_t j = 0; j < row->wanted; j++) example_put_positive(s, row, shuffle_at(&order, j), j, contexts, weights);
}

static int add_list(const struct build *build, uint64_t example) {
    const struct example_source *s = build->source;
    struct cpu_blocks *b = build->blocks;
    if (s->known && row_has_bit(s->known, s->ids[example])) return 0;
    uint64_t number = example_is_position(s) ? example_sentence_of(s, example) : example;
    struct example_row row = example_row(s, number, example, build->epoch);
    if (!row.wanted) return 0;
    if (example_check_row(&row)) return -1;
    struct cpu_block *block = begin_block(build, example, row.targets, row.wanted + row.negatives);
    if (!block) return -1;
    block->t = (uint32_t)row.targets;
    if (row.split) {
        add_split(build, &row, example, block);
    } else {
        b->target[block->targets] = s->ids[row.start + row.target];
        example_positives(s, &row, example, build->epoch, b->context + block->contexts, weights_of(build, block));
    }
    block->c = block->positives = (uint32_t)row.wanted;
    add_negatives(build, block, example, 0, (uint32_t)row.negatives);
    end_block(build, block);
    return 0;
}

/* ---- triples ---- */

static int add_triple(const struct build *build, uint64_t example) {
    struct cpu_blocks *b = build->blocks;
    const struct example_pool *pool = &build->source->pool;
    uint32_t targets = example_shared_targets(pool), contexts = example_shared_contexts(pool);
    struct cpu_block *block = begin_block(build, example, targets, contexts);
    if (!block) return -1;
    example_put_triple(build->source, example, b->target + block->targets, b->context + block->contexts);
    block->t = targets, block->c = contexts, block->positives = 1;
    end_block(build, block);
    return 0;
}

/* ---- all ---- */

static int build_in_order(const struct build *build, uint64_t first, uint64_t count) {
    const struct example_source *s = build->source;
    if (s->mode == EXAMPLE_WINDOW) {
        uint64_t end = first + count;
        for (uint64_t number = example_sentence_of(s, first); first < end; number++) {
            uint64_t stop = strip_of(s, number, build->epoch).end;
            if (stop > end) stop = end;
            if (add_windows(build, number, first, stop)) return -1;
            first = stop;
        }
        return 0;
    }
    int triples = s->mode == EXAMPLE_TRIPLE;
    for (uint64_t e = first; e < first + count; e++)
        if (example_held_out(s, e) == build->held_out && (triples ? add_triple(build, e) : add_list(build, e))) return -1;
    return 0;
}

/* Draws the walks that contain these positions, and makes examples of them as of sentences. */
static int build_of_walks(struct build *build, uint64_t first, uint64_t count) {
    const struct example_source *s = build->source;
    const struct walks *w = &s->walks;
    struct cpu_piece *p = build->piece;
    struct walk_range range = walks_of(w, first, count);
    uint64_t walks = range.end - range.first, most = walks_at_most(w, count);
    if (mem_reserve(&p->walk, &p->walk_capacity, most * w->length, sizeof *p->walk, "walks") ||
        mem_reserve(&p->start, &p->start_capacity, most + 1, sizeof *p->start, "walks"))
        return -1;
    for (uint64_t i = 0; i <= walks; i++) p->start[i] = (range.first + i) * w->length;
    cpu_draw(s, range.first, walks, build->epoch, p->walk);
    for (uint64_t i = 0; i < count; i++) build->blocks->words -= p->walk[first - p->start[0] + i] == DRAW_NONE;
    const struct example_source drawn = example_of_walks(s, range, p->walk, p->start);
    build->source = &drawn;
    return build_in_order(build, first, count);
}

int cpu_build(const struct example_source *s, struct cpu_piece *p, struct cpu_blocks *b, uint32_t epoch, uint64_t first,
              uint64_t count, int held_out) {
    struct build build = {s, p, b, epoch, held_out, first, count};
    if (!count) return 0;
    if (s->mode == EXAMPLE_WINDOW) b->words += count;
    if (s->walks.length) return build_of_walks(&build, first, count);
    if (!s->shuffle) return build_in_order(&build, first, count);
    struct shuffle order = example_order(s, epoch);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t example = shuffle_at(&order, first + i);
        build.before = example - i;
        if (build_in_order(&build, example, 1)) return -1;
    }
    return 0;
}

struct making {
    struct backend *backend;
    struct cpu_stage *stage;
    const struct batch_request *request;
    struct cpu_chunk *chunk; /* [chunks] */
    uint64_t chunks;
    _Atomic uint64_t taken;
    atomic_int stopped; /* 1: the batch is given up because of a signal or the caller */
};

static int build_chunks(void *context, unsigned worker) {
    struct making *build = context;
    struct backend *backend = build->backend;
    int may_stop = !build->request->held_out && ranks_count(backend->ranks) == 1;
    uint64_t chunk, end;
    while (pool_take(&build->taken, build->chunks, 1, &chunk, &end)) {
        build->stopped |= may_stop && interrupt_asked();
        if (build->stopped) break;
        uint64_t first = chunk * CPU_GRAIN, left = build->request->count - first;
        struct cpu_blocks *blocks = &build->chunk[chunk].blocks;
        cpu_blocks_clear(blocks);
        if (cpu_build(&backend->source, &backend->scratch[worker].piece, blocks, build->request->epoch,
                      build->request->first + first, left < CPU_GRAIN ? left : CPU_GRAIN, build->request->held_out))
            return -1;
    }
    return 0;
}

static int lay_out_chunks(void *context, unsigned worker) {
    struct making *build = context;
    struct cpu_stage *stage = build->stage;
    uint64_t chunk, end;
    while (pool_take(&build->taken, build->chunks, 1, &chunk, &end)) {
        const struct cpu_chunk *from = &build->chunk[chunk];
        const struct cpu_blocks *blocks = &from->blocks;
        struct cpu_block *block = stage->all.block + from->first_block;
        /* chunks follow each other without gaps, and the last one ends at the end of the batch */
        INVARIANT(from->first_block + blocks->count == (chunk + 1 < build->chunks ? from[1].first_block : stage->all.count));
        INVARIANT(from->first_target + blocks->targets == (chunk + 1 < build->chunks ? from[1].first_target : stage->all.targets));
        INVARIANT(from->first_context + blocks->contexts == (chunk + 1 < build->chunks ? from[1].first_context : stage->all.contexts));
        for (uint64_t i = 0; i < blocks->count; i++) {
            block[i] = blocks->block[i];
            block[i].targets += from->first_target;
            block[i].contexts += from->first_context;
        }
        if (blocks->targets) memcpy(stage->all.target + from->first_target, blocks->target, blocks->targets * sizeof *blocks->target);
        if (blocks->contexts) memcpy(stage->all.context + from->first_context, blocks->context, blocks->contexts * sizeof *blocks->context);
        if (blocks->contexts && stage->weighted)
            memcpy(stage->all.weight + from->first_context, blocks->weight, blocks->contexts * sizeof *blocks->weight);
    }
    return 0;
}

static int grow_blocks(struct cpu_stage *stage, uint64_t blocks, uint64_t targets, uint64_t contexts) {
    struct cpu_blocks *b = &stage->all;
    uint64_t weights = stage->weighted ? contexts : 0;
    return mem_grow(&b->block, &b->block_capacity, blocks, sizeof *b->block, "a batch's examples") ||
                   mem_grow(&b->target, &b->target_capacity, targets, sizeof *b->target, "a batch's targets") ||
                   mem_grow(&b->context, &b->context_capacity, contexts, sizeof *b->context, "a batch's contexts") ||
                   mem_grow(&b->weight, &b->weight_capacity, weights, sizeof *b->weight, "a batch's weights")
               ? -1
               : 0;
}

/* Computes the number of each occurrence's block, and the index of each block's first coefficient. */
int cpu_index_batch(struct cpu_stage *stage) {
    struct cpu_blocks *b = &stage->all;
    if (mem_grow(&stage->logit_starts, &stage->logit_start_capacity, b->count, sizeof(uint64_t), "a batch's examples") ||
        mem_grow(&stage->target_block, &stage->target_block_capacity, b->targets, sizeof(uint64_t), "a batch's targets") ||
        mem_grow(&stage->context_block, &stage->context_block_capacity, b->contexts, sizeof(uint64_t), "a batch's contexts"))
        return -1;
    stage->result = (struct step_result){.words = stage->words, .examples = b->count - (stage->shared.count > 0)};
    b->logits = 0;
    for (uint64_t i = 0; i < b->count; i++) {
        const struct cpu_block *block = &b->block[i];
        stage->logit_starts[i] = b->logits;
        uint64_t vectors = example_vectors(&stage->pool, block->t);
        b->logits += vectors * (stage->shared.count ? block->positives : block->c);
        stage->result.pairs += vectors * block->predicted;
        for (uint32_t t = 0; t < block->t; t++) stage->target_block[block->targets + t] = i;
        for (uint32_t c = 0; c < block->c; c++) stage->context_block[block->contexts + c] = i;
    }
    stage->result.terms = b->logits + stage->result.examples * stage->shared.count;
    if (b->targets > UINT32_MAX || b->contexts > UINT32_MAX)
        return fail("a batch of %llu targets and %llu contexts is more than 2^32; lower train.batch",
                    (unsigned long long)b->targets, (unsigned long long)b->contexts);
    return 0;
}

int cpu_make_batch(struct backend *backend, unsigned number, const struct batch_request *request) {
    struct cpu_stage *stage = &backend->stage[number];
    struct cpu_blocks *all = &stage->all;
    struct making build = {.backend = backend, .stage = stage, .request = request};
    uint64_t examples = 0;
    build.chunks = (request->count + CPU_GRAIN - 1) / CPU_GRAIN;
    stage->pool = backend->source.pool;
    stage->shared = (struct shared_negatives){0};
    stage->weighted = backend->source.weights != NULL;
    stage->words = 0;
    struct cpu_shared *shared = &backend->shared;
    uint64_t before = shared->chunk_capacity;
    if (mem_reserve(&shared->chunk, &shared->chunk_capacity, build.chunks, sizeof *shared->chunk, "a batch's chunks")) return -1;
    if (shared->chunk_capacity > before) memset(shared->chunk + before, 0, (shared->chunk_capacity - before) * sizeof *shared->chunk);
    if (cpu_reserve_batch(backend, stage)) return -1;
    build.chunk = backend->shared.chunk;
    if (pool_run(backend->pool, build_chunks, &build)) return -1;
    if (build.stopped) return BATCH_STOPPED;
    cpu_blocks_clear(all);
    for (uint64_t i = 0; i < build.chunks; i++) examples += build.chunk[i].blocks.count;
    if (examples) {
        if (cpu_build_shared(&backend->source, all, request->epoch, request->first)) return -1;
        stage->shared = (struct shared_negatives){(uint32_t)all->contexts, backend->source.exclude, example_batch_relations(&backend->source)};
    }
    for (uint64_t i = 0; i < build.chunks; i++) {
        struct cpu_chunk *chunk = &build.chunk[i];
        chunk->first_block = all->count;
        chunk->first_target = all->targets;
        chunk->first_context = all->contexts;
        all->count += chunk->blocks.count;
        all->targets += chunk->blocks.targets;
        all->contexts += chunk->blocks.contexts;
        stage->words += chunk->blocks.words;
    }
    if (grow_blocks(stage, all->count, all->targets, all->contexts)) return -1;
    atomic_store(&build.taken, 0);
    if (pool_run(backend->pool, lay_out_chunks, &build)) return -1;
    return cpu_index_batch(stage);
}

int cpu_set_batch(struct backend *backend, unsigned number, const struct batch_view *view) {
    struct cpu_stage *stage = &backend->stage[number];
    uint64_t targets = view->target_starts[view->blocks], contexts = view->context_starts[view->blocks];
    if (shared_negatives_check(view)) return -1;
    stage->pool = view->pool;
    stage->shared = view->shared;
    stage->weighted = view->weights != NULL;
    stage->words = 0;
    if (grow_blocks(stage, view->blocks, targets, contexts)) return -1;
    cpu_blocks_clear(&stage->all);
    for (uint64_t i = 0; i < view->blocks; i++)
        stage->all.block[i] = (struct cpu_block){
            .targets = view->target_starts[i],
            .contexts = view->context_starts[i],
            .t = (uint32_t)(view->target_starts[i + 1] - view->target_starts[i]),
            .c = (uint32_t)(view->context_starts[i + 1] - view->context_starts[i]),
            .positives = view->positives[i],
            .predicted = view->positives[i],
        };
    memcpy(stage->all.target, view->target_ids, targets * sizeof(uint32_t));
    memcpy(stage->all.context, view->context_ids, contexts * sizeof(uint32_t));
    if (view->weights) memcpy(stage->all.weight, view->weights, contexts * sizeof(float));
    stage->all.count = view->blocks;
    stage->all.targets = targets;
    stage->all.contexts = contexts;
    return cpu_index_batch(stage);
}

int cpu_batch_view(struct backend *backend, unsigned number, struct batch_view *view) {
    struct cpu_stage *stage = &backend->stage[number];
    const struct cpu_blocks *b = &stage->all;
    uint64_t capacity = stage->view_capacity, other = capacity, third = capacity;
    if (mem_grow(&stage->target_starts, &capacity, b->count + 1, sizeof(uint64_t), "a view of a batch") ||
        mem_grow(&stage->context_starts, &other, b->count + 1, sizeof(uint64_t), "a view of a batch") ||
        mem_grow(&stage->positives, &third, b->count + 1, sizeof(uint32_t), "a view of a batch"))
        return -1;
    stage->view_capacity = capacity;
    for (uint64_t i = 0; i < b->count; i++) {
        stage->target_starts[i] = b->block[i].targets;
        stage->context_starts[i] = b->block[i].contexts;
        stage->positives[i] = b->block[i].positives;
    }
    stage->target_starts[b->count] = b->targets;
    stage->context_starts[b->count] = b->contexts;
    *view = (struct batch_view){.blocks = b->count,
                                .target_starts = stage->target_starts,
                                .context_starts = stage->context_starts,
                                .positives = stage->positives,
                                .target_ids = b->target,
                                .context_ids = b->context,
                                .weights = stage->weighted ? b->weight : NULL,
                                .pool = stage->pool,
                                .shared = stage->shared};
    return 0;
}

/* ==== frozen rows ====
 *
 * If rows are frozen (table_spec), leaves out of a batch the pairs that cannot change any row.
 *
 * A pair of a frozen target with a frozen context changes nothing. In a block
 *
 *   non-frozen targets    non-frozen contexts    pairs that are kept
 *   none                  none                   nothing
 *   none                  some                   all its targets x non-frozen contexts
 *   some                  none                   non-frozen targets x all its contexts
 *   some                  some                   all
 *
 * A row that changes keeps all its pairs, in order, so it becomes the same as after the whole batch. If a tenth of a run's words is new, about a
 * fifth of the pairs is kept. The loss is that of the kept pairs. Losses that compare a pair with others of its block, and pooled targets, need whole
 * blocks: for them only the first line of the table applies. With shared negatives, which are multiplied with all targets at once, nothing is left
 * out.
 */

/* Returns how many of these rows are not frozen. */
static uint32_t count_changing(const struct table_spec *spec, const uint32_t *ids, uint32_t count) {
    uint32_t changing = 0;
    for (uint32_t i = 0; i < count; i++) changing += !table_is_frozen(spec, ids[i]);
    return changing;
}

/* Copies ids to `to`, and their weights to weights_to. changing: 1: ids of frozen rows are left out; 0: all ids are copied. Returns the number of
 * copied ids. weights: [count]; NULL: the ids have no weights. */
static uint32_t move_ids(const struct table_spec *spec, uint32_t *to, const uint32_t *ids, uint32_t count, int changing,
                         float *weights_to, const float *weights) {
    uint32_t moved = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (changing && table_is_frozen(spec, ids[i])) continue;
        if (weights) weights_to[moved] = weights[i];
        to[moved++] = ids[i];
    }
    return moved;
}

/* Appends the pairs of a block that are kept to those of earlier blocks. */
static void leave_out(struct cpu_blocks *left, struct cpu_block block, const struct step_request *request, int by_pairs, int weighted) {
    const struct table_spec *target = &request->target->spec, *context = &request->context->spec;
    const uint32_t *targets = left->target + block.targets, *contexts = left->context + block.contexts;
    uint32_t t = count_changing(target, targets, block.t), c = count_changing(context, contexts, block.c);
    float *weights_to = weighted ? left->weight + left->contexts : NULL, *weights = weighted ? left->weight + block.contexts : NULL;
    int some_targets = by_pairs && !c, some_contexts = by_pairs && !t;
    if (!t && !c) return;
    if (some_contexts) {
        uint32_t changing = count_changing(context, contexts, block.positives);
        block.predicted -= block.positives - changing; /* the nodes of a tree are frozen all or not at all */
        block.positives = changing;
    }
    block.t = move_ids(target, left->target + left->targets, targets, block.t, some_targets, NULL, NULL);
    block.c = move_ids(context, left->context + left->contexts, contexts, block.c, some_contexts, weights_to, weights);
    block.targets = left->targets;
    block.contexts = left->contexts;
    left->targets += block.t;
    left->contexts += block.c;
    left->block[left->count++] = block;
}

int cpu_leave_out_frozen(struct cpu_stage *stage, const struct step_request *request) {
    int by_pairs = request->loss.kind == LOSS_LOGISTIC && !stage->pool.on;
    if (stage->shared.count || (!request->target->spec.frozen && !request->context->spec.frozen)) return 0;
    uint64_t examples = stage->result.examples, blocks = stage->all.count;
    cpu_blocks_clear(&stage->all);
    for (uint64_t i = 0; i < blocks; i++) leave_out(&stage->all, stage->all.block[i], request, by_pairs, stage->weighted);
    if (cpu_index_batch(stage)) return -1;
    stage->result.examples = examples; /* a mean is still over all examples of the batch */
    return 0;
}

/* ==== what batches touch ==== */

enum {
    COUNTED_BATCHES = 16, /* most batches that are counted; fewer if batches are large, so that about COUNTED_EXAMPLES are counted in all */
    COUNTED_EXAMPLES = 1 << 16,
    COUNTED_FIRST = 64,      /* number of examples that are built first; each later time twice as many, up to COUNTED_TOGETHER */
    COUNTED_TOGETHER = 1024, /* most examples that are built together, since memory for a whole batch is not planned yet */
    COUNTED_MOST = 1 << 18   /* most examples of a batch that are counted; the rest is estimated by add_rest() */
};
#define COUNTED_SECONDS 5 /* longest time spent on counting, since a walk's step may be drawn thousands of times before it is accepted */

/* Bit map of a table's rows that the batch has touched: row id is bit id % 64 of word id / 64. */
struct touched {
    uint64_t *bits;
    struct touched_rows *rows;
    struct touched_rows older, newer; /* older: rows counted when a quarter to half of the examples were; newer: when half to all were */
};

static void touch(struct touched *touched, const uint32_t *ids, uint64_t count, uint64_t hot) {
    struct touched_rows *rows = touched->rows;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t *word = &touched->bits[ids[i] / 64], bit = (uint64_t)1 << ids[i] % 64;
        rows->distinct += !(*word & bit);
        rows->distinct_cold += !(*word & bit) && ids[i] >= hot;
        rows->cold += ids[i] >= hot;
        *word |= bit;
    }
    rows->all += (double)count;
}

/* Counts the rows of a batch's blocks, which are built a few at a time. Returns how many examples were counted, 0 after fail(). *noted: how many
 * were when sides[].older was set. */
static uint64_t count_batch(const struct example_source *s, uint32_t epoch, uint64_t first, uint64_t hot, struct touched sides[2],
                            struct batch_rows *sum, double until, uint64_t *noted) {
    struct cpu_piece piece = {0};
    struct cpu_blocks b = {0};
    uint64_t done = 0, newer = 0;
    int result = cpu_build_shared(s, &b, epoch, first);
    *noted = 0;
    touch(&sides[0], b.target, b.targets, hot);
    touch(&sides[1], b.context, b.contexts, hot);
    for (uint64_t count = COUNTED_FIRST; !result && done < s->batch; count = count < COUNTED_TOGETHER ? 2 * count : count) {
        if (done && (done >= COUNTED_MOST || progress_now() > until)) break;
        if (count > s->batch - done) count = s->batch - done;
        cpu_blocks_clear(&b);
        result = interrupt_check() || cpu_build(s, &piece, &b, epoch, first + done, count, 0) ? -1 : 0;
        if (result) break;
        sum->blocks += (double)b.count;
        sum->terms += (double)b.logits;
        for (uint64_t i = 0; i < b.count; i++) sum->pairs += (double)example_vectors(&s->pool, b.block[i].t) * b.block[i].predicted;
        touch(&sides[0], b.target, b.targets, hot);
        touch(&sides[1], b.context, b.contexts, hot);
        done += count;
        if (done < 2 * newer) continue;
        *noted = newer, newer = done;
        for (int i = 0; i < 2; i++) sides[i].older = sides[i].newer, sides[i].newer = *sides[i].rows;
    }
    cpu_piece_release(&piece);
    cpu_blocks_release(&b);
    return result ? 0 : done;
}

/* Estimates the part of a batch that was not counted. Blocks, terms and rows grow in proportion to examples; different rows at the rate at which
 * the examples after number `noted` added them, which is an upper bound, since more and more rows have been met before. */
static void add_rest(const struct example_source *s, uint64_t done, uint64_t noted, struct touched sides[2], struct batch_rows *sum) {
    double more = (double)s->batch / (double)done, left = (double)(s->batch - done) / (double)(done - noted), rows = (double)s->rows;
    for (int i = 0; i < 2; i++) {
        struct touched_rows *now = sides[i].rows, *older = &sides[i].older;
        now->all *= more, now->cold *= more;
        now->distinct = fmin(rows, now->distinct + left * (now->distinct - older->distinct));
        now->distinct_cold = fmin(rows, now->distinct_cold + left * (now->distinct_cold - older->distinct_cold));
    }
    sum->blocks *= more, sum->terms *= more, sum->pairs *= more;
}

int host_count_rows(const struct example_source *source, uint64_t hot, struct batch_rows *mean) {
    struct example_source s = *source;
    uint64_t words = s.rows / 64 + 1, all = example_count(&s) / s.batch, wanted = COUNTED_EXAMPLES / s.batch;
    uint64_t batches = wanted < 1 ? 1 : wanted > COUNTED_BATCHES ? COUNTED_BATCHES : wanted;
    OWNED uint64_t *bits = mem_alloc(2 * words, sizeof *bits, "the rows that a batch touches");
    double until = progress_now() + COUNTED_SECONDS;
    struct touched sides[] = {{.bits = bits, .rows = &mean->targets}, {.bits = bits + words, .rows = &mean->contexts}};
    int result = bits ? 0 : -1;
    INVARIANT(s.batch > 0 && all > 0);
    s.held_out = 0;
    *mean = (struct batch_rows){0};
    for (uint64_t i = 0; i < batches && !result; i++) {
        memset(bits, 0, 2 * words * sizeof *bits);
        uint64_t place = all < batches ? i % all : all * i / batches; /* of few batches further epochs are counted */
        uint64_t noted,
            done = count_batch(&s, (uint32_t)(all < batches ? i / all : 0), place * s.batch, hot, sides, mean, i ? INFINITY : until, &noted);
        if (!done) result = -1;
        else if (done < s.batch) add_rest(&s, done, noted, sides, mean);
        if (progress_now() > until) batches = i + 1;
    }
    double *sums = (double *)mean;
    for (size_t i = 0; i < sizeof *mean / sizeof *sums; i++) sums[i] /= (double)batches;
    return result;
}
