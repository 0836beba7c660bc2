#include "generate.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"
#include "idstream.h"
#include "kernels/backend.h"
#include "words.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

void powers_init(struct powers *powers) {
    for (int t = 0; t <= POWERS_TABLE; t++) powers->of[t] = (uint64_t)(draw_exp2((double)t / POWERS_TABLE) * 2147483648.0 + 0.5);
}

uint64_t powers_log(const struct powers *powers, uint64_t k) {
    uint64_t low = 0, high = (uint64_t)34 << POWERS_POINT;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (powers_floor(powers, middle) >= k)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

enum { ATTEMPTS = 16 }; /* how often a token is drawn again if the line already contains it */

#define SHARE(x) ((uint32_t)((x)*4294967295.0))
static const struct line_shape shapes[] = {
    [GENERATE_BOOKS] = {"books", "b", 4096, 8, 5, 80, SHARE(0.30), SHARE(0.55)},
    [GENERATE_PAPERS] = {"papers", "p", 2048, 0, 4, 44, 0, SHARE(0.90)},
    [GENERATE_WORDS] = {"words", "w", 512, 0, 20, 21, 0, SHARE(0.50)},
    [GENERATE_GRAPH] = {"graph", "", 1, 0, 1, 2, 0, 0},
    [GENERATE_TRIPLES] = {"triples", "", 1, 0, 2, 3, 0, 0},
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

static void line_source_init(struct line_source *source, const struct generate_options *options) {
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
    source->order = shuffle_make(options->rows, draw_at(options->seed, DRAW_GENERATE, 0, 2, 0));
    if (options->kind != GENERATE_TRIPLES) return;
    source->planted = (struct planted){.rows = options->rows, .groups = options->groups, .relations = options->relations,
                                       .seed = options->seed, .noise = SHARE(options->noise)};
    planted_init(&source->planted, powers);
}

/* Returns the row with this rank of popularity: the first members of all groups have the lowest ranks, then come all second members, and so on. */
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

static uint64_t draw_member(const struct line_source *source, uint64_t group, uint64_t bits) {
    uint64_t rows = group + 1 == source->groups ? source->last : source->group;
    return group * source->shape.group + powers_floor(&source->powers, draw_below(bits, rows)) - 1;
}

/* Draws the next token of a line: from the previous token's series, from one of the line's groups, or from all rows. */
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
    return (uint32_t)row_of_rank(source, powers_floor(&source->powers, draw_below(bits, source->all)) - 1);
}

/* ---- edges ---- */

/* Thresholds of a 16-bit draw that decides one bit of each of an edge's two node numbers: 0 and 0 (.57), 0 and 1 (.19), 1 and 0 (.19), 1 and 1
 * (.05). */
enum { SECOND_BIT = 37356, FIRST_BIT = 49807, BOTH_BITS = 62259, BITS_A_DRAW = 8 };

/* ---- lines ---- */

static void line_draw(const struct line_source *source, uint64_t number, struct drawn_line *line) {
    const struct generate_options *options = source->options;
    if (options->kind == GENERATE_GRAPH) {
        /* An edge is drawn again after a self-loop or a number that no node has. */
        unsigned bits = 64 - (unsigned)__builtin_clzll(options->rows - 1);
        uint64_t ends[2] = {0, 0}, rows = options->rows;
        for (uint32_t attempt = 0; attempt < DRAW_ATTEMPTS; attempt++) {
            struct draw4 drawn = {{0}};
            ends[0] = ends[1] = 0;
            for (unsigned bit = 0; bit < bits; bit++) {
                if (bit % BITS_A_DRAW == 0) drawn = draw_at(options->seed, DRAW_GENERATE, number, 3, bit / BITS_A_DRAW + (attempt << 16));
                uint32_t part = drawn.word[bit % BITS_A_DRAW / 2] >> (bit % 2 * 16) & 0xFFFF;
                ends[0] |= (uint64_t)(part >= FIRST_BIT) << bit;
                ends[1] |= (uint64_t)((part >= SECOND_BIT && part < FIRST_BIT) || part >= BOTH_BITS) << bit;
            }
            if (ends[0] != ends[1] && ends[0] < rows && ends[1] < rows) break;
        }
        ends[0] %= rows;
        ends[1] %= rows;
        line->target = (uint32_t)ends[0];
        line->rows[0] = (uint32_t)(ends[0] == ends[1] ? (ends[1] + 1) % rows : ends[1]);
        line->count = 1;
        return;
    }
    if (options->kind == GENERATE_TRIPLES) {
        struct planted_triple triple;
        planted_draw(&source->planted, number, &triple);
        *line = (struct drawn_line){.target = triple.head, .count = 2, .rows = {triple.relation, triple.tail}, .noise = triple.noise};
        return;
    }
    struct draw4 drawn = draw_at(options->seed, DRAW_GENERATE, number, 0, 0);
    uint64_t span = source->beyond - source->least, groups[4];
    uint64_t length = powers_floor(&source->powers, source->least + draw_below(draw_pair(drawn, 0), span));
    int repeats = options->kind == GENERATE_WORDS, papers = options->kind == GENERATE_PAPERS;
    line->count = 0;
    line->target = papers ? (uint32_t)shuffle_at(&source->order, number % options->rows) : 0;
    /* The line's four groups may be equal. A token that is drawn from them is drawn from each with probability 1/4. */
    struct draw4 of_groups = draw_at(options->seed, DRAW_GENERATE, number, 0, 1);
    for (int i = 0; i < 4; i++) groups[i] = (uint64_t)of_groups.word[i] * source->groups >> 32;
    if (source->options->kind == GENERATE_BOOKS) groups[1] = groups[0];
    if (source->options->kind == GENERATE_WORDS) groups[1] = groups[2] = groups[3] = groups[0];
    if (source->options->kind == GENERATE_PAPERS)
        for (int i = 0; i < 4; i++) groups[i] = line->target / source->shape.group;
    for (uint32_t slot = 0; slot < length; slot++)
        for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
            struct draw4 token = draw_at(options->seed, DRAW_GENERATE, number, 1, slot + (attempt << 16));
            uint32_t row = draw_token(source, line, groups, token);
            int again = papers && row == line->target;
            for (uint64_t i = 0; !repeats && i < line->count; i++) again |= line->rows[i] == row;
            if (again) continue;
            line->rows[line->count++] = row;
            break;
        }
}

/* Files written beside the corpus: completed before the corpus is renamed into place, and renamed after it. */
enum { GROUPS, VOCAB, VALID, TEST, BESIDE };
static const char *const endings[BESIDE] = {".groups.tsv", ".vocab.tsv", ".valid", ".test"};

/* State of generating one corpus. */
struct generator {
    const struct generate_options *options;
    struct line_source lines;
    struct file_writer beside[BESIDE];
    struct planted_held_out held_out; /* triples: zeros if none are held out */
    struct progress progress;
};

/* Returns the letter before a word's number, as in w17; 0 if words are numbers only. */
static char letter_of(const struct generator *generator) {
    return *generator->lines.shape.letter;
}

/* ---- all lines ----
 *
 * A piece is PIECE_LINES lines. In each round threads draw some pieces, each into its own buffer; then one thread writes them in order. So the output
 * does not depend on the number of threads.
 */

enum { PIECE_LINES = 4096, PIECES_A_THREAD = 4 };

/* PIECE_LINES consecutive lines; fewer at the end. */
struct piece {
    uint64_t first, lines;
    char *bytes; /* output of take_line() for all lines */
    uint64_t used, capacity;
    uint32_t length[PIECE_LINES]; /* bytes of each line in `bytes` */
    char *packed;                 /* if the corpus is compressed: `bytes` as a zstd frame */
    uint64_t packed_used, packed_capacity;
};

/* Writes a drawn line to `out`, at most LINE_BYTES bytes, and returns their number; called on any thread. */
typedef uint64_t take_line(void *context, const struct drawn_line *line, uint64_t number, char *out);
/* Writes a piece to the corpus; called in the order of the pieces. NULL instead of a function: nothing is written. */
typedef int put_piece(void *context, const struct piece *piece);
enum { LINE_BYTES = 32 * (LINE_TOKENS + 1) };

/* The pieces that threads draw together; the workers share this struct. */
struct round {
    struct generator *generator;
    take_line *take;
    void *context;
    struct piece *pieces;
    uint64_t count;
    int packed; /* 1: each piece is also packed */
    _Atomic uint64_t next;
};

enum { PACKING = 3 }; /* zstd compression level */

static int draw_pieces(void *context, unsigned worker) {
    struct round *round = context;
    struct drawn_line line;
    uint64_t at, end;
    while (pool_take(&round->next, round->count, 1, &at, &end)) {
        struct piece *piece = &round->pieces[at];
        piece->used = 0;
        for (uint64_t i = 0; i < piece->lines; i++) {
            line_draw(&round->generator->lines, piece->first + i, &line);
            const struct planted_triple triple = {line.target, line.rows[0], line.rows[1], line.noise};
            if (round->generator->held_out.count && planted_take(&round->generator->held_out, &triple)) return -1;
            if (mem_grow(&piece->bytes, &piece->capacity, piece->used + LINE_BYTES, 1, "lines")) return -1;
            uint64_t length = round->take(round->context, &line, piece->first + i, piece->bytes + piece->used);
            INVARIANT(length <= LINE_BYTES);
            piece->length[i] = (uint32_t)length;
            piece->used += length;
        }
        if (!round->packed) continue;
        uint64_t most = ZSTD_compressBound(piece->used);
        if (mem_grow(&piece->packed, &piece->packed_capacity, most, 1, "packing lines")) return -1;
        piece->packed_used = ZSTD_compress(piece->packed, most, piece->bytes, piece->used, PACKING);
        if (ZSTD_isError(piece->packed_used)) return fail("cannot pack lines: %s", ZSTD_getErrorName(piece->packed_used));
    }
    return 0;
}

static int each_line(struct generator *generator, const char *what, take_line *take, put_piece *put, void *context, int packed) {
    ENDED_BY(pool_end) struct pool *pool = pool_open(0);
    uint64_t capacity = pool ? (uint64_t)PIECES_A_THREAD * pool_threads(pool) : 0, lines = generator->options->lists;
    struct round round = {.generator = generator, .take = take, .context = context, .packed = packed};
    int result = pool && (round.pieces = mem_zalloc(capacity, sizeof *round.pieces, "lines")) ? 0 : -1;
    progress_start(&generator->progress, what, 1);
    for (uint64_t at = 0; at < lines && !result;) {
        progress_show(&generator->progress, at, lines, "line");
        for (round.next = round.count = 0; round.count < capacity && at < lines; at += round.pieces[round.count++].lines) {
            struct piece *piece = &round.pieces[round.count];
            piece->first = at;
            piece->lines = lines - at < PIECE_LINES ? lines - at : PIECE_LINES;
        }
        result = interrupt_asked() ? fail("stopped by a signal: nothing is written") : pool_run(pool, draw_pieces, &round);
        for (uint64_t i = 0; i < round.count && put && !result; i++) result = put(context, &round.pieces[i]);
    }
    progress_end(&generator->progress);
    for (uint64_t i = 0; i < capacity && round.pieces; i++) {
        mem_free(round.pieces[i].bytes, round.pieces[i].packed);
    }
    free(round.pieces);
    return result;
}

/* Syncs the files beside the corpus before the corpus is renamed into place; commit_beside() renames them right after it. So if the disk is full,
 * all older files stay as they were. */
static int finish_beside(struct generator *generator) {
    for (int i = 0; i < BESIDE; i++)
        if (generator->beside[i].path && file_finish(&generator->beside[i])) return -1;
    return 0;
}

static int commit_beside(struct generator *generator) {
    for (int i = 0; i < BESIDE; i++)
        if (generator->beside[i].path && file_commit(&generator->beside[i])) return -1;
    return 0;
}

/* ---- writing text ---- */

static int ends_in(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && !strcmp(path + n - m, ending);
}

static char *put_number(char *out, uint64_t number) {
    char digits[20];
    unsigned n = 0;
    do digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n) *out++ = digits[--n];
    return out;
}

struct text_output {
    const struct generator *generator;
    struct file_writer file;
};

static uint64_t take_text(void *context, const struct drawn_line *line, uint64_t number, char *text) {
    struct text_output *output = context;
    char *at = text;
    char letter = letter_of(output->generator);
    enum generate_kind kind = output->generator->options->kind;
    if (kind == GENERATE_BOOKS) {
        memcpy(at, "user", 4);
        at = put_number(at + 4, number);
        *at++ = ' ';
    }
    if (kind == GENERATE_PAPERS || kind == GENERATE_GRAPH || kind == GENERATE_TRIPLES) {
        if (letter) *at++ = letter;
        at = put_number(at, line->target);
        *at++ = ' ';
    }
    for (uint64_t i = 0; i < line->count; i++) {
        if (letter) *at++ = letter;
        at = put_number(at, line->rows[i]);
        *at++ = ' ';
    }
    if (at == text) at++;
    at[-1] = '\n';
    return (uint64_t)(at - text);
}

static int put_text(void *context, const struct piece *piece) {
    struct text_output *output = context;
    return piece->packed ? file_write(&output->file, piece->packed, piece->packed_used)
                         : file_write(&output->file, piece->bytes, piece->used);
}

/* Writes the held-out triples: the first half is for validation, the second is the test. */
static int write_held_out(struct generator *generator, const char *const paths[BESIDE], struct planted_best *best) {
    const struct planted_held_out *h = &generator->held_out;
    if (!h->count) return 0;
    int result = planted_judge(&generator->held_out, best);
    for (int i = VALID; i <= TEST && !result; i++) result = file_writer_open(&generator->beside[i], paths[i]);
    for (uint64_t i = 0; i < h->count && !result; i++)
        if (!h->repeated[i])
            result = file_print(&generator->beside[i < h->count / 2 ? VALID : TEST], "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", h->triples[i].head,
                                h->triples[i].relation, h->triples[i].tail);
    return result;
}

static int write_text(struct generator *generator, const char *path, const char *const paths[BESIDE], struct planted_best *best) {
    struct text_output output = {generator, {.fd = -1}};
    uint64_t held_out = 2 * generator->options->held_out;
    if (held_out && planted_hold_out(&generator->held_out, &generator->lines.planted, generator->options->lists, held_out)) return -1;
    if (file_writer_open(&output.file, path)) return -1;
    if (!each_line(generator, "generating", take_text, put_text, &output, ends_in(path, ".zst")) &&
        !write_held_out(generator, paths, best) && !finish_beside(generator))
        return file_commit(&output.file);
    file_abandon(&output.file);
    return -1;
}

/* ---- the groups of rows ---- */

static int write_groups(struct generator *generator, const char *path) {
    const struct line_shape *shape = &generator->lines.shape;
    int planted = generator->options->kind == GENERATE_TRIPLES;
    if (generator->options->kind == GENERATE_GRAPH) return 0;
    int result = file_writer_open(&generator->beside[GROUPS], path);
    for (uint64_t row = 0; row < generator->options->rows && !result; row++) {
        char line[96], *at = line;
        if (letter_of(generator)) *at++ = letter_of(generator);
        at = put_number(at, row);
        *at++ = '\t';
        if (shape->series) {
            at = put_number(at, row / shape->series);
            *at++ = '\t';
        }
        at = put_number(at, planted ? row % generator->options->groups : row / shape->group);
        if (planted) {
            *at++ = '\t';
            at = put_number(at, row % generator->options->groups / TYPE_GROUPS);
        }
        *at++ = '\n';
        result = file_write(&generator->beside[GROUPS], line, (uint64_t)(at - line));
    }
    return result;
}

/* ---- as an id stream ----
 *
 * All lines are drawn twice: once to count the words, whose ranks are the ids, and once to write the ids. The lines are not kept in between.
 */

struct id_output {
    const struct generator *generator;
    _Atomic uint64_t *counts; /* [rows]: how often each row occurs */
    uint32_t *ranks;  /* [rows] id of each row */
    struct idstream_writer stream;
};

static uint64_t take_counts(void *context, const struct drawn_line *line, uint64_t number, char *out) {
    struct id_output *output = context;
    if (!line->count) return 0; /* a paper without any earlier paper that it could cite */
    for (uint64_t i = 0; i < line->count; i++) atomic_fetch_add_explicit(&output->counts[line->rows[i]], 1, memory_order_relaxed);
    if (output->generator->options->kind == GENERATE_PAPERS)
        atomic_fetch_add_explicit(&output->counts[line->target], 1, memory_order_relaxed);
    return 0;
}

static uint64_t take_ids(void *context, const struct drawn_line *line, uint64_t number, char *out) {
    struct id_output *output = context;
    uint32_t *ids = (uint32_t *)(void *)out;
    uint64_t count = 0;
    if (!line->count) return 0; /* a paper without any earlier paper that it could cite */
    if (output->generator->options->kind == GENERATE_PAPERS) ids[count++] = output->ranks[line->target];
    for (uint64_t i = 0; i < line->count; i++) ids[count++] = output->ranks[line->rows[i]];
    return count * sizeof *ids;
}

static int put_ids(void *context, const struct piece *piece) {
    struct id_output *output = context;
    const char *at = piece->bytes;
    int result = 0;
    for (uint64_t i = 0; i < piece->lines && !result; at += piece->length[i++])
        result = idstream_append(&output->stream, (const uint32_t *)(const void *)at, piece->length[i] / sizeof(uint32_t));
    return result;
}

enum { LOW_COUNTS = 1 << 16 };

/* Sorts rows by falling count; rows with equal counts by number. The few rows with high counts are sorted by qsort(), the many others by a
 * counting sort. */
static int rank_rows(const _Atomic uint64_t *counts, uint64_t size, uint32_t *rows) {
    OWNED uint64_t *places = mem_zalloc(LOW_COUNTS + 1, sizeof *places, "ranking");
    uint64_t high = 0;
    if (!places) return -1;
    for (uint64_t row = 0; row < size; row++)
        if (counts[row] >= LOW_COUNTS) high++;
        else places[counts[row]]++;
    OWNED struct mem_counted *top = mem_alloc(high, sizeof *top, "ranking");
    if (!top) return -1;
    uint64_t at = high;
    for (uint64_t count = LOW_COUNTS; count-- > 0;) {
        uint64_t there = places[count];
        places[count] = at;
        at += there;
    }
    high = 0;
    for (uint64_t row = 0; row < size; row++)
        if (counts[row] >= LOW_COUNTS) top[high++] = (struct mem_counted){counts[row], (uint32_t)row};
        else rows[places[counts[row]]++] = (uint32_t)row;
    qsort(top, high, sizeof *top, mem_by_falling_count);
    for (uint64_t i = 0; i < high; i++) rows[i] = top[i].id;
    return 0;
}

/* Writes the vocabulary in the order of ids, and stores its vocab_fingerprint() in *fingerprint. */
static int write_vocab(struct generator *generator, const struct id_output *output, const uint32_t *rows, const char *path,
                       uint64_t *fingerprint) {
    XXH3_state_t *sum = XXH3_createState();
    int result = sum && XXH3_64bits_reset(sum) == XXH_OK ? 0 : fail("not enough memory for a checksum");
    if (!result) result = file_writer_open(&generator->beside[VOCAB], path);
    for (uint64_t id = 0; id < generator->options->rows && !result; id++) {
        char line[64], *at = line;
        *at++ = letter_of(generator);
        at = put_number(at, rows[id]);
        *at++ = '\t';
        at = put_number(at, output->counts[rows[id]]);
        *at++ = '\n';
        XXH3_64bits_update(sum, line, (size_t)(at - line));
        result = file_write(&generator->beside[VOCAB], line, (uint64_t)(at - line));
    }
    if (!result) *fingerprint = XXH3_64bits_digest(sum);
    XXH3_freeState(sum);
    return result;
}

static int write_ids(struct generator *generator, const char *path, const char *vocab_path) {
    uint64_t rows = generator->options->rows, fingerprint;
    struct id_output output = {.generator = generator, .stream.file.fd = -1};
    OWNED uint32_t *by_id = mem_alloc(rows, sizeof *by_id, "ranks");
    output.counts = mem_zalloc(rows, sizeof *output.counts, "counts");
    output.ranks = mem_zalloc(rows, sizeof *output.ranks, "ranks");
    int result = -1;
    if (!by_id || !output.counts || !output.ranks) goto out;
    if (each_line(generator, "counting", take_counts, NULL, &output, 0)) goto out;
    if (rank_rows(output.counts, rows, by_id)) goto out;
    for (uint64_t id = 0; id < rows; id++) output.ranks[by_id[id]] = (uint32_t)id;
    if (write_vocab(generator, &output, by_id, vocab_path, &fingerprint)) goto out;
    if (idstream_writer_open(&output.stream, path)) goto out;
    result = each_line(generator, "generating", take_ids, put_ids, &output, 0);
    if (!result) result = finish_beside(generator);
    if (!result)
        result = idstream_writer_commit(&output.stream, fingerprint);
    else
        idstream_writer_abandon(&output.stream);
out:
    mem_free(output.counts, output.ranks);
    return result;
}

/* ---- the whole corpus ---- */

int generate_write(const struct generate_options *options, const char *path, struct planted_best *best) {
    OWNED struct generator *generator = mem_zalloc(1, sizeof *generator, "generating");
    char *paths[BESIDE] = {NULL};
    int result = generator ? 0 : -1, triples = options->kind == GENERATE_TRIPLES;
    uint64_t least = options->kind == GENERATE_GRAPH ? 2 : triples ? TYPE_GROUPS : 1;
    *best = (struct planted_best){.triples = 0};
    for (int i = 0; i < BESIDE && !result; i++)
        if ((paths[i] = mem_alloc(strlen(path) + strlen(endings[i]) + 1, 1, "a path"))) sprintf(paths[i], "%s%s", path, endings[i]);
        else result = -1;
    if (!result && (options->rows < least || options->rows > WORDS_MOST || !options->lists || options->lists >> 48))
        result = fail("a corpus of %" PRIu64 " rows and %" PRIu64 " lines cannot be made; rows go from %" PRIu64 " to %u, lines from 1 to 2^48 - 1",
                      options->rows, options->lists, least, WORDS_MOST);
    if (!result && triples &&
        (!options->groups || options->groups % TYPE_GROUPS || options->groups > options->rows || options->groups / TYPE_GROUPS > options->relations))
        result = fail("%" PRIu64 " groups of %" PRIu64 " entities with %" PRIu32 " relations cannot be made: wanted a multiple of %d groups, at most "
                      "one for each entity and %d for each relation",
                      options->groups, options->rows, options->relations, TYPE_GROUPS, TYPE_GROUPS);
    if (!result && (options->kind == GENERATE_GRAPH || triples) && ends_in(path, ".ids"))
        result = fail("'%s': %s are not written as an id stream; wanted a file of lines, whose name may end in .zst", path,
                      triples ? "triples" : "edges");
    if (!result) {
        generator->options = options;
        for (int i = 0; i < BESIDE; i++) generator->beside[i].fd = -1;
        line_source_init(&generator->lines, options);
        result = write_groups(generator, paths[GROUPS]);
        if (!result)
            result = ends_in(path, ".ids") ? write_ids(generator, path, paths[VOCAB])
                                           : write_text(generator, path, (const char *const *)paths, best);
        if (!result) result = commit_beside(generator);
        for (int i = 0; i < BESIDE; i++) file_abandon(&generator->beside[i]);
        planted_release(&generator->held_out);
    }
    for (int i = 0; i < BESIDE; i++) free(paths[i]);
    return result;
}
