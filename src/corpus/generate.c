/* Every line is a function of (seed, its number): draws are addressed as
 *
 *   position  line
 *   epoch     0: the line's length and groups; 1: its tokens
 *   index     slot of the token + attempt << 16; word 0 chooses where from, words 2 and 3 which one
 *
 * so an id stream is drawn twice, once to count and once to write, and nothing is kept between.
 */
#include "generate.h"

#include "kernels/backend.h" /* draws.h */
#include "base/file.h"
#include "idstream.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_TOKENS = 96, ATTEMPTS = 16 };

struct shape {
    const char *name, *letter;
    uint64_t group;                     /* rows of one */
    uint64_t series;                    /* 0: none */
    uint64_t least, beyond;             /* tokens of a line: least..beyond - 1 */
    uint32_t series_share, group_share; /* of 2^32 */
};

#define SHARE(x) ((uint32_t)((x)*4294967295.0))
static const struct shape shapes[] = {
    [GENERATE_BOOKS] = {"books", "b", 4096, 8, 5, 80, SHARE(0.30), SHARE(0.55)},
    [GENERATE_PAPERS] = {"papers", "p", 2048, 0, 4, 44, 0, SHARE(0.90)},
    [GENERATE_WORDS] = {"words", "w", 512, 0, 20, 21, 0, SHARE(0.50)},
};

int generate_kind_named(const char *name) {
    const char *names[3];
    for (int kind = 0; kind < 3; kind++) {
        names[kind] = shapes[kind].name;
        if (!strcmp(name, names[kind])) return kind;
    }
    const char *near = text_nearest(name, names, 3);
    return fail_usage("'%s' is not a kind of corpus; wanted books, papers or words%s%s%s", name,
                      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* ---- Zipf's law in whole numbers ----
 *
 * 2^e for a fixed-point e is a table of 2^(t / 1024) and a straight line between its entries; its floor over a uniform
 * e in [0, log2 n) falls on k with probability log2(1 + 1/k) / log2 n. No floating point, so all machines draw alike. */

enum { TABLE = 1024, POINT = 40 }; /* e has 40 bits behind its point, the first 10 of them choose the entry */

struct powers {
    uint64_t of[TABLE + 1]; /* 2^(t / 1024), 31 bits behind the point */
};

static void make_powers(struct powers *powers) {
    for (int t = 0; t <= TABLE; t++) powers->of[t] = (uint64_t)(draw_exp2((double)t / TABLE) * 2147483648.0 + 0.5);
}

static inline uint64_t power_floor(const struct powers *powers, uint64_t e) {
    unsigned whole = (unsigned)(e >> POINT), t = (unsigned)(e >> 30) & (TABLE - 1);
    uint64_t between = e & (((uint64_t)1 << 30) - 1);
    uint64_t value =
        (powers->of[t] << 30) + (powers->of[t + 1] - powers->of[t]) * between; /* 61 bits behind the point */
    return value >> (61 - whole);
}

/* The lowest e with 2^e >= k. */
static uint64_t power_of(const struct powers *powers, uint64_t k) {
    uint64_t low = 0, high = (uint64_t)34 << POINT;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (power_floor(powers, middle) >= k)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- one line ---- */

struct generator {
    const struct generate_options *options;
    struct shape shape;
    struct powers powers;
    uint64_t groups, last_size; /* the last group may be smaller */
    uint64_t all, group, last;  /* powers of rows + 1, of a whole group's size + 1, of the last group's */
    uint64_t least, beyond;     /* powers of the line's bounds */
    struct shuffle order;       /* papers: which one cites in which line */
    struct progress progress;
};

static void generator_start(struct generator *generator, const struct generate_options *options) {
    *generator = (struct generator){.options = options, .shape = shapes[options->kind]};
    struct powers *powers = &generator->powers;
    const struct shape *shape = &generator->shape;
    make_powers(powers);
    generator->groups = (options->rows + shape->group - 1) / shape->group;
    generator->last_size = options->rows - (generator->groups - 1) * shape->group;
    generator->all = power_of(powers, options->rows + 1);
    generator->group = power_of(powers, shape->group + 1);
    generator->last = power_of(powers, generator->last_size + 1);
    generator->least = power_of(powers, shape->least);
    generator->beyond = power_of(powers, shape->beyond);
    generator->order = shuffle_make(options->rows, draw_at(options->seed, DRAW_GENERATE, 0, 2, 0));
}

/* Row of overall rank `rank`: first members of all groups, then second ones. */
static uint64_t row_of_rank(const struct generator *generator, uint64_t rank) {
    uint64_t full = generator->last_size * generator->groups, member, group;
    if (rank < full) {
        member = rank / generator->groups;
        group = rank % generator->groups;
    } else {
        member = generator->last_size + (rank - full) / (generator->groups - 1);
        group = (rank - full) % (generator->groups - 1);
    }
    return group * generator->shape.group + member;
}

static uint64_t draw_anywhere(const struct generator *generator, uint64_t bits) {
    return row_of_rank(generator, power_floor(&generator->powers, draw_below(bits, generator->all)) - 1);
}

static uint64_t draw_member(const struct generator *generator, uint64_t group, uint64_t bits) {
    uint64_t rows = group + 1 == generator->groups ? generator->last : generator->group;
    return group * generator->shape.group + power_floor(&generator->powers, draw_below(bits, rows)) - 1;
}

struct drawn_line {
    uint32_t target; /* papers */
    uint64_t count;
    uint32_t rows[MOST_TOKENS];
};

static int is_there(const struct drawn_line *line, uint32_t row) {
    int found = 0;
    for (uint64_t i = 0; i < line->count; i++) found |= line->rows[i] == row;
    return found;
}

/* Where the next token of a line comes from: the series of the one before, a group of the line's, or everywhere. */
static uint32_t draw_token(const struct generator *generator, const struct drawn_line *line, const uint64_t groups[4],
                           struct draw4 drawn) {
    const struct shape *shape = &generator->shape;
    uint32_t choice = drawn.word[0];
    if (shape->series && choice < shape->series_share && line->count) {
        uint64_t before = line->rows[line->count - 1], first = before / shape->series * shape->series;
        uint64_t next = first + (before - first + 1 + drawn.word[1] % 2) % shape->series;
        return (uint32_t)(next < generator->options->rows ? next : first);
    }
    uint64_t bits = draw_pair(drawn, 1);
    if (choice - shape->series_share < shape->group_share)
        return (uint32_t)draw_member(generator, groups[drawn.word[1] >> 30], bits);
    return (uint32_t)draw_anywhere(generator, bits);
}

/* The groups a line draws from, by quarters. */
static void draw_groups(const struct generator *generator, uint64_t number, uint32_t target, uint64_t groups[4]) {
    struct draw4 drawn = draw_at(generator->options->seed, DRAW_GENERATE, number, 0, 1);
    for (int i = 0; i < 4; i++) groups[i] = (uint64_t)drawn.word[i] * generator->groups >> 32;
    if (generator->options->kind == GENERATE_BOOKS) groups[1] = groups[0];
    if (generator->options->kind == GENERATE_WORDS) groups[1] = groups[2] = groups[3] = groups[0];
    if (generator->options->kind == GENERATE_PAPERS)
        for (int i = 0; i < 4; i++) groups[i] = target / generator->shape.group;
}

static void draw_line(const struct generator *generator, uint64_t number, struct drawn_line *line) {
    const struct generate_options *options = generator->options;
    struct draw4 drawn = draw_at(options->seed, DRAW_GENERATE, number, 0, 0);
    uint64_t span = generator->beyond - generator->least, groups[4];
    uint64_t length = power_floor(&generator->powers, generator->least + draw_below(draw_pair(drawn, 0), span));
    int repeats = options->kind == GENERATE_WORDS, papers = options->kind == GENERATE_PAPERS;
    line->count = 0;
    line->target = papers ? (uint32_t)shuffle_at(&generator->order, number % options->rows) : 0;
    draw_groups(generator, number, line->target, groups);
    for (uint32_t slot = 0; slot < length; slot++)
        for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
            struct draw4 token = draw_at(options->seed, DRAW_GENERATE, number, 1, slot + (attempt << 16));
            uint32_t row = draw_token(generator, line, groups, token);
            if (!repeats && (is_there(line, row) || (papers && row == line->target))) continue;
            line->rows[line->count++] = row;
            break;
        }
}

/* ---- all lines ----
 *
 * Threads draw pieces of lines, each into its own capacity, and what is to be written is written in order between two
 * rounds of pieces: how many threads there are changes no byte. */

enum { PIECE_LINES = 4096, PIECES_A_THREAD = 4 };

struct piece {
    uint64_t first, lines;
    char *bytes; /* what take_line() made of them */
    uint64_t used, capacity;
    uint32_t length[PIECE_LINES]; /* bytes of each line */
};

/* What becomes of a drawn line, at once and on any thread: at most LINE_BYTES into `out`; how many. */
typedef uint64_t take_line(void *context, const struct drawn_line *line, uint64_t number, char *out);
/* What becomes of a piece, in order. NULL: nothing. */
typedef int put_piece(void *context, const struct piece *piece);
enum { LINE_BYTES = 32 * (MOST_TOKENS + 1) };

struct round {
    const struct generator *generator;
    take_line *take;
    void *context;
    struct piece *pieces;
    uint64_t count;
    _Atomic uint64_t next;
};

static int draw_pieces(void *context, unsigned worker) {
    struct round *round = context;
    struct drawn_line line;
    uint64_t at, end;
    while (pool_take(&round->next, round->count, 1, &at, &end)) {
        struct piece *piece = &round->pieces[at];
        piece->used = 0;
        for (uint64_t i = 0; i < piece->lines; i++) {
            draw_line(round->generator, piece->first + i, &line);
            if (mem_grow(&piece->bytes, &piece->capacity, piece->used + LINE_BYTES, 1, "lines")) return -1;
            uint64_t length = round->take(round->context, &line, piece->first + i, piece->bytes + piece->used);
            piece->length[i] = (uint32_t)length;
            piece->used += length;
        }
    }
    return 0;
}

static uint64_t next_round(struct round *round, uint64_t capacity, uint64_t first, uint64_t lines) {
    round->next = round->count = 0;
    for (; round->count < capacity && first < lines; first += round->pieces[round->count++].lines) {
        struct piece *piece = &round->pieces[round->count];
        piece->first = first;
        piece->lines = lines - first < PIECE_LINES ? lines - first : PIECE_LINES;
    }
    return first;
}

static int each_line(struct generator *generator, const char *what, take_line *take, put_piece *put, void *context) {
    struct pool *pool = pool_open(0);
    uint64_t capacity = pool ? (uint64_t)PIECES_A_THREAD * pool_threads(pool) : 0, lines = generator->options->lists;
    struct round round = {.generator = generator, .take = take, .context = context};
    int result = pool && (round.pieces = mem_zalloc(capacity, sizeof *round.pieces, "lines")) ? 0 : -1;
    progress_start(&generator->progress, what, 1);
    for (uint64_t at = 0; at < lines && !result;) {
        progress_show(&generator->progress, at, lines, "line");
        at = next_round(&round, capacity, at, lines);
        result = interrupt_asked() ? fail("stopped by a signal: nothing is written") : pool_run(pool, draw_pieces, &round);
        for (uint64_t i = 0; i < round.count && put && !result; i++) result = put(context, &round.pieces[i]);
    }
    progress_end(&generator->progress);
    for (uint64_t i = 0; i < capacity && round.pieces; i++) free(round.pieces[i].bytes);
    free(round.pieces);
    pool_close(pool);
    return result;
}

/* ---- as text ---- */

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
    char letter = *output->generator->shape.letter;
    if (output->generator->options->kind == GENERATE_BOOKS) {
        memcpy(at, "user", 4);
        at = put_number(at + 4, number);
        *at++ = ' ';
    }
    if (output->generator->options->kind == GENERATE_PAPERS) {
        *at++ = letter;
        at = put_number(at, line->target);
        *at++ = ' ';
    }
    for (uint64_t i = 0; i < line->count; i++) {
        *at++ = letter;
        at = put_number(at, line->rows[i]);
        *at++ = ' ';
    }
    if (at == text) at++;
    at[-1] = '\n';
    return (uint64_t)(at - text);
}

static int put_text(void *context, const struct piece *piece) {
    struct text_output *output = context;
    return file_write(&output->file, piece->bytes, piece->used);
}

static int write_text(struct generator *generator, const char *path) {
    struct text_output output = {generator, {.fd = -1}};
    if (file_writer_open(&output.file, path)) return -1;
    if (!each_line(generator, "generating", take_text, put_text, &output)) return file_commit(&output.file);
    file_abandon(&output.file);
    return -1;
}

/* ---- what was planted ---- */

static int write_groups(const struct generator *generator, const char *path) {
    const struct shape *shape = &generator->shape;
    struct file_writer writer;
    int result = 0;
    if (file_writer_open(&writer, path)) return -1;
    for (uint64_t row = 0; row < generator->options->rows && !result; row++) {
        char line[96], *at = line;
        *at++ = *shape->letter;
        at = put_number(at, row);
        *at++ = '\t';
        if (shape->series) {
            at = put_number(at, row / shape->series);
            *at++ = '\t';
        }
        at = put_number(at, row / shape->group);
        *at++ = '\n';
        result = file_write(&writer, line, (uint64_t)(at - line));
    }
    if (!result) return file_commit(&writer);
    file_abandon(&writer);
    return -1;
}

/* ---- as an id stream ---- */

struct id_output {
    const struct generator *generator;
    _Atomic uint64_t *counts; /* [rows], by row */
    uint32_t *ranks;  /* [rows], by row: its id */
    struct idstream_writer stream;
};

static uint64_t take_counts(void *context, const struct drawn_line *line, uint64_t number, char *out) {
    struct id_output *output = context;
    if (!line->count) return 0; /* a paper with nobody else to cite */
    for (uint64_t i = 0; i < line->count; i++)
        atomic_fetch_add_explicit(&output->counts[line->rows[i]], 1, memory_order_relaxed);
    if (output->generator->options->kind == GENERATE_PAPERS)
        atomic_fetch_add_explicit(&output->counts[line->target], 1, memory_order_relaxed);
    return 0;
}

static uint64_t take_ids(void *context, const struct drawn_line *line, uint64_t number, char *out) {
    struct id_output *output = context;
    uint32_t *ids = (uint32_t *)(void *)out;
    uint64_t count = 0;
    if (!line->count) return 0; /* a paper with nobody else to cite */
    if (output->generator->options->kind == GENERATE_PAPERS) ids[count++] = output->ranks[line->target];
    for (uint64_t i = 0; i < line->count; i++) ids[count++] = output->ranks[line->rows[i]];
    return count * sizeof *ids;
}

static int put_ids(void *context, const struct piece *piece) {
    struct id_output *output = context;
    const char *at = piece->bytes;
    int result = 0;
    for (uint64_t i = 0; i < piece->lines && !result; at += piece->length[i++])
        result =
            idstream_append(&output->stream, (const uint32_t *)(const void *)at, piece->length[i] / sizeof(uint32_t));
    return result;
}

enum { LOW_COUNTS = 1 << 16 };

struct ranked {
    uint64_t count;
    uint32_t row;
};

static int by_rank(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->row < y->row ? -1 : 1;
}

/* Rows by falling count, ties by row: few rows have high counts and are sorted; the many with low ones fall into place
 * by counting. */
static int rank_rows(const _Atomic uint64_t *counts, uint64_t size, uint32_t *rows) {
    uint64_t *places = mem_zalloc(LOW_COUNTS + 1, sizeof *places, "ranking"), high = 0;
    struct ranked *top = NULL;
    int result = -1;
    if (!places) return -1;
    for (uint64_t row = 0; row < size; row++)
        if (counts[row] >= LOW_COUNTS)
            high++;
        else
            places[counts[row]]++;
    top = mem_alloc(high, sizeof *top, "ranking");
    if (!top) goto out;
    uint64_t at = high;
    for (uint64_t count = LOW_COUNTS; count-- > 0;) {
        uint64_t there = places[count];
        places[count] = at;
        at += there;
    }
    high = 0;
    for (uint64_t row = 0; row < size; row++)
        if (counts[row] >= LOW_COUNTS)
            top[high++] = (struct ranked){counts[row], (uint32_t)row};
        else
            rows[places[counts[row]]++] = (uint32_t)row;
    qsort(top, high, sizeof *top, by_rank);
    for (uint64_t i = 0; i < high; i++) rows[i] = top[i].row;
    result = 0;
out:
    free(top);
    free(places);
    return result;
}

/* vocab.tsv by rank; *fingerprint is vocab_fingerprint() of it. */
static int write_vocab(const struct id_output *output, const uint32_t *rows, const char *path, uint64_t *fingerprint) {
    XXH3_state_t *sum = XXH3_createState();
    struct file_writer writer;
    int result = 0;
    if (!sum || XXH3_64bits_reset(sum) != XXH_OK || file_writer_open(&writer, path)) {
        if (!sum) fail("not enough memory for a checksum");
        XXH3_freeState(sum);
        return -1;
    }
    for (uint64_t id = 0; id < output->generator->options->rows && !result; id++) {
        char line[64], *at = line;
        *at++ = *output->generator->shape.letter;
        at = put_number(at, rows[id]);
        *at++ = '\t';
        at = put_number(at, output->counts[rows[id]]);
        *at++ = '\n';
        XXH3_64bits_update(sum, line, (size_t)(at - line));
        result = file_write(&writer, line, (uint64_t)(at - line));
    }
    *fingerprint = XXH3_64bits_digest(sum);
    XXH3_freeState(sum);
    if (!result) return file_commit(&writer);
    file_abandon(&writer);
    return -1;
}

static int write_ids(struct generator *generator, const char *path, const char *vocab_path) {
    uint64_t rows = generator->options->rows, fingerprint;
    struct id_output output = {.generator = generator, .stream.file.fd = -1};
    uint32_t *by_id = mem_alloc(rows, sizeof *by_id, "ranks");
    output.counts = mem_zalloc(rows, sizeof *output.counts, "counts");
    output.ranks = mem_zalloc(rows, sizeof *output.ranks, "ranks");
    int result = -1;
    if (!by_id || !output.counts || !output.ranks) goto out;
    if (each_line(generator, "counting", take_counts, NULL, &output)) goto out;
    if (rank_rows(output.counts, rows, by_id)) goto out;
    for (uint64_t id = 0; id < rows; id++) output.ranks[by_id[id]] = (uint32_t)id;
    if (write_vocab(&output, by_id, vocab_path, &fingerprint)) goto out;
    if (idstream_writer_open(&output.stream, path)) goto out;
    result = each_line(generator, "generating", take_ids, put_ids, &output);
    if (!result)
        result = idstream_writer_commit(&output.stream, fingerprint);
    else
        idstream_writer_abandon(&output.stream);
out:
    free(by_id);
    free(output.counts);
    free(output.ranks);
    return result;
}

/* ---- both ---- */

static int ends_in(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && !strcmp(path + n - m, ending);
}

static char *beside(const char *path, const char *ending) {
    char *out = mem_alloc(strlen(path) + strlen(ending) + 1, 1, "a path");
    if (out) sprintf(out, "%s%s", path, ending);
    return out;
}

int generate_write(const struct generate_options *options, const char *path) {
    struct generator *generator = mem_alloc(1, sizeof *generator, "generating");
    char *groups = beside(path, ".groups.tsv"), *vocab = beside(path, ".vocab.tsv");
    int result = generator && groups && vocab ? 0 : -1;
    if (!result && (!options->rows || options->rows > 4294967294u || !options->lists || options->lists >> 48))
        result = fail("a corpus of %" PRIu64 " rows and %" PRIu64
                      " lines cannot be made; rows go from 1 to 4294967294, lines from 1 to 2^48",
                      options->rows, options->lists);
    if (!result) {
        generator_start(generator, options);
        result = write_groups(generator, groups);
    }
    if (!result) result = ends_in(path, ".ids") ? write_ids(generator, path, vocab) : write_text(generator, path);
    free(generator);
    free(groups);
    free(vocab);
    return result;
}
