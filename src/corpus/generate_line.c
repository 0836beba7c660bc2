#include "generate_line.h"

#include "base/report.h"
#include "base/text.h"

#include <string.h>

enum { ATTEMPTS = 16 }; /* most draws of a token, if the line already has each drawn one */

#define SHARE(x) ((uint32_t)((x)*4294967295.0))
static const struct line_shape shapes[] = {
    [GENERATE_BOOKS] = {"books", "b", 4096, 8, 5, 80, SHARE(0.30), SHARE(0.55)},
    [GENERATE_PAPERS] = {"papers", "p", 2048, 0, 4, 44, 0, SHARE(0.90)},
    [GENERATE_WORDS] = {"words", "w", 512, 0, 20, 21, 0, SHARE(0.50)},
    [GENERATE_GRAPH] = {"graph", "", 1, 0, 1, 2, 0, 0},
    [GENERATE_TRIPLES] = {"triples", "", 512, 0, 2, 3, SHARE(0.60), SHARE(0.30)},
};

int generate_kind_named(const char *name) {
    const char *names[GENERATE_KINDS];
    for (int kind = 0; kind < GENERATE_KINDS; kind++) {
        names[kind] = shapes[kind].name;
        if (!strcmp(name, names[kind])) return kind;
    }
    const char *near = text_nearest(name, names, GENERATE_KINDS);
    return fail_usage("'%s' is not a kind of corpus; wanted books, papers, words, graph or triples%s%s%s", name,
                      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

void line_source_init(struct line_source *source, const struct generate_options *options) {
    *source = (struct line_source){.options = options, .shape = shapes[options->kind]};
    struct powers *powers = &source->powers;
    const struct line_shape *shape = &source->shape;
    powers_init(powers);
    source->groups = (options->rows + shape->group - 1) / shape->group;
    source->last_size = options->rows - (source->groups - 1) * shape->group;
    source->all = powers_log(powers, options->rows + 1);
    source->group = powers_log(powers, shape->group + 1);
    source->last = powers_log(powers, source->last_size + 1);
    source->least = powers_log(powers, shape->least);
    source->beyond = powers_log(powers, shape->beyond);
    source->relations = powers_log(powers, (uint64_t)options->relations + 1);
    source->order = shuffle_make(options->rows, draw_at(options->seed, DRAW_GENERATE, 0, 2, 0));
}

/* Returns the row with a rank among all rows: ranks count the first members of all groups, then all second members, and so on. */
static uint64_t row_of_rank(const struct line_source *source, uint64_t rank) {
    uint64_t full = source->last_size * source->groups, member, group;
    if (rank < full) {
        member = rank / source->groups;
        group = rank % source->groups;
    } else {
        member = source->last_size + (rank - full) / (source->groups - 1);
        group = (rank - full) % (source->groups - 1);
    }
    return group * source->shape.group + member;
}

static uint64_t draw_anywhere(const struct line_source *source, uint64_t bits) {
    return row_of_rank(source, powers_floor(&source->powers, draw_below(bits, source->all)) - 1);
}

static uint64_t draw_member(const struct line_source *source, uint64_t group, uint64_t bits) {
    uint64_t rows = group + 1 == source->groups ? source->last : source->group;
    return group * source->shape.group + powers_floor(&source->powers, draw_below(bits, rows)) - 1;
}

static int is_there(const struct drawn_line *line, uint32_t row) {
    int found = 0;
    for (uint64_t i = 0; i < line->count; i++) found |= line->rows[i] == row;
    return found;
}

/* Draws the next token of a line: from the series of the token before, from one of the line's groups, or from all rows. */
static uint32_t draw_token(const struct line_source *source, const struct drawn_line *line, const uint64_t groups[4],
                           struct draw4 drawn) {
    const struct line_shape *shape = &source->shape;
    uint32_t choice = drawn.word[0];
    if (shape->series && choice < shape->series_share && line->count) {
        uint64_t before = line->rows[line->count - 1], first = before / shape->series * shape->series;
        uint64_t next = first + (before - first + 1 + drawn.word[1] % 2) % shape->series;
        return (uint32_t)(next < source->options->rows ? next : first);
    }
    uint64_t bits = draw_pair(drawn, 1);
    if (choice - shape->series_share < shape->group_share) return (uint32_t)draw_member(source, groups[drawn.word[1] >> 30], bits);
    return (uint32_t)draw_anywhere(source, bits);
}

/* Draws the four groups of a line, some of which may be the same; each gives a quarter of the tokens that come from groups. */
static void draw_groups(const struct line_source *source, uint64_t number, uint32_t target, uint64_t groups[4]) {
    struct draw4 drawn = draw_at(source->options->seed, DRAW_GENERATE, number, 0, 1);
    for (int i = 0; i < 4; i++) groups[i] = (uint64_t)drawn.word[i] * source->groups >> 32;
    if (source->options->kind == GENERATE_BOOKS) groups[1] = groups[0];
    if (source->options->kind == GENERATE_WORDS) groups[1] = groups[2] = groups[3] = groups[0];
    if (source->options->kind == GENERATE_PAPERS)
        for (int i = 0; i < 4; i++) groups[i] = target / source->shape.group;
}

/* ---- edges ---- */

/* Bounds of a 16-bit draw, which sets one bit of each node's number: neither bit (.57), the second node's only (.19), the first
 * node's only (.19), or both (.05). */
enum { SECOND_BIT = 37356, FIRST_BIT = 49807, BOTH_BITS = 62259, BITS_A_DRAW = 8 };

/* Draws two node numbers of `bits` bits each. */
static void draw_quadrants(const struct generate_options *options, uint64_t number, uint32_t attempt, unsigned bits,
                           uint64_t ends[2]) {
    struct draw4 drawn = {{0}};
    ends[0] = ends[1] = 0;
    for (unsigned bit = 0; bit < bits; bit++) {
        if (bit % BITS_A_DRAW == 0) drawn = draw_at(options->seed, DRAW_GENERATE, number, 3, bit / BITS_A_DRAW + (attempt << 16));
        uint32_t part = drawn.word[bit % BITS_A_DRAW / 2] >> (bit % 2 * 16) & 0xFFFF;
        ends[0] |= (uint64_t)(part >= FIRST_BIT) << bit;
        ends[1] |= (uint64_t)((part >= SECOND_BIT && part < FIRST_BIT) || part >= BOTH_BITS) << bit;
    }
}

/* Draws an edge. It is drawn again if it is a self-loop or if a number is not a node's. */
static void draw_edge(const struct generate_options *options, uint64_t number, struct drawn_line *line) {
    unsigned bits = 64 - (unsigned)__builtin_clzll(options->rows - 1);
    uint64_t ends[2] = {0, 0}, rows = options->rows;
    for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
        draw_quadrants(options, number, attempt, bits, ends);
        if (ends[0] != ends[1] && ends[0] < rows && ends[1] < rows) break;
    }
    ends[0] %= rows;
    ends[1] %= rows;
    line->target = (uint32_t)ends[0];
    line->rows[0] = (uint32_t)(ends[0] == ends[1] ? (ends[1] + 1) % rows : ends[1]);
    line->count = 1;
}

/* ---- triples ---- */

/* Draws a triple. Both shares of the shape count tails in the cluster to which the relation leads: series_share counts tails with
 * the head's number in its cluster. */
static void draw_triple(const struct line_source *source, uint64_t number, struct drawn_line *line) {
    const struct generate_options *options = source->options;
    struct draw4 first = draw_at(options->seed, DRAW_GENERATE, number, 4, 0), second = draw_at(options->seed, DRAW_GENERATE, number, 4, 1);
    uint64_t of_head = draw_pair(first, 0), bits = draw_pair(second, 1), tail;
    uint64_t head = second.word[1] % 2 ? draw_below(of_head, options->rows) : draw_anywhere(source, of_head);
    uint32_t relation = (uint32_t)powers_floor(&source->powers, draw_below(draw_pair(first, 1), source->relations)) - 1;
    struct shuffle leads = shuffle_make(source->groups, draw_at(0, DRAW_GENERATE, relation, 5, 0)); /* the same for any seed */
    uint64_t cluster = shuffle_at(&leads, head / source->shape.group);
    uint64_t size = cluster + 1 == source->groups ? source->last_size : source->shape.group;
    if (second.word[0] < source->shape.series_share) tail = cluster * source->shape.group + head % source->shape.group % size;
    else if (second.word[0] - source->shape.series_share < source->shape.group_share) tail = draw_member(source, cluster, bits);
    else tail = draw_anywhere(source, bits);
    line->target = (uint32_t)head;
    line->rows[0] = relation;
    line->rows[1] = (uint32_t)tail;
    line->count = 2;
}

/* ---- lines ---- */

void line_draw(const struct line_source *source, uint64_t number, struct drawn_line *line) {
    const struct generate_options *options = source->options;
    if (options->kind == GENERATE_GRAPH) {
        draw_edge(options, number, line);
        return;
    }
    if (options->kind == GENERATE_TRIPLES) {
        draw_triple(source, number, line);
        return;
    }
    struct draw4 drawn = draw_at(options->seed, DRAW_GENERATE, number, 0, 0);
    uint64_t span = source->beyond - source->least, groups[4];
    uint64_t length = powers_floor(&source->powers, source->least + draw_below(draw_pair(drawn, 0), span));
    int repeats = options->kind == GENERATE_WORDS, papers = options->kind == GENERATE_PAPERS;
    line->count = 0;
    line->target = papers ? (uint32_t)shuffle_at(&source->order, number % options->rows) : 0;
    draw_groups(source, number, line->target, groups);
    for (uint32_t slot = 0; slot < length; slot++)
        for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
            struct draw4 token = draw_at(options->seed, DRAW_GENERATE, number, 1, slot + (attempt << 16));
            uint32_t row = draw_token(source, line, groups, token);
            if (!repeats && (is_there(line, row) || (papers && row == line->target))) continue;
            line->rows[line->count++] = row;
            break;
        }
}
