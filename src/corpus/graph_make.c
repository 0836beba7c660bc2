#include "graph_make.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/retry.h"
#include "edges.h"
#include "encode.h"
#include "encode_block.h"
#include "gathered.h"
#include "graph_write.h"
#include "integers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

int graph_settle(struct corpus_options *options, const struct corpus *corpus) {
    const struct gathered *gathered = corpus_gathered(corpus);
    if (options->weights != WEIGHTS_AUTO) return 0;
    int weighted = gathered ? gathered->weights != NULL : edges_look_weighted(corpus, options);
    if (weighted > 0) options->weights = WEIGHTS_YES;
    return weighted < 0 ? -1 : 0;
}

uint64_t graph_fingerprint(const struct corpus *corpus, const struct vocab *vocab,
                           const struct corpus_options *options) {
    uint64_t facts[] = {encode_fingerprint(corpus, vocab, options), (uint64_t)options->directed,
                        options->weights == WEIGHTS_YES};
    return XXH3_64bits(facts, sizeof facts);
}

/* ---- from lines to rows ---- */

/* State of reading the edges of one corpus; the workers share it. */
struct reading {
    struct corpus *corpus;
    const struct vocab *vocab;
    const struct corpus_options *options;
    const char *path; /* path of the graph's file, for messages */
    struct integer_rows integers;
    struct progress progress;
    int ends, weights; /* descriptors of nameless files, which threads fill in any order; weights: -1 if edges have no weights */
    _Atomic uint64_t edges, loops, zeros;
    atomic_int failed;
};

/* Number of nodes whose rows are looked up together. */
enum { NODES = WORDS_BATCH };

/* A block, and its edges as rows of their nodes. */
struct edge_block {
    struct corpus_block block;
    struct edges_left left;
    uint32_t integers[NODES]; /* [waiting]: nodes whose rows are still to be looked up: their integers, or NO_INTEGER */
    float asked_weights[NODES / 2];
    unsigned waiting;
    struct word_query asked[NODES]; /* [asked_waiting]: queries for the nodes with NO_INTEGER */
    unsigned asked_waiting;
    uint32_t *ends; /* [2 * count]: rows of the edges' nodes */
    float *weights; /* [count] */
    uint64_t count, ends_capacity, weights_capacity;
};

static int grow(struct edge_block *block) {
    return mem_grow(&block->ends, &block->ends_capacity, 2 * block->count + NODES, sizeof *block->ends,
                    "the edges of a block") ||
                   mem_grow(&block->weights, &block->weights_capacity, block->count + NODES / 2, sizeof *block->weights,
                            "the edges of a block")
               ? -1
               : 0;
}

/* Looks up the rows of the waiting nodes, and keeps the edges of which both nodes have a row. */
static int find_rows(const struct reading *reading, struct edge_block *block) {
    uint32_t rows[NODES], others[NODES];
    unsigned other = 0;
    if (grow(block)) return -1;
    if (block->asked_waiting) encode_rows(reading->vocab, reading->options, block->asked, block->asked_waiting, others);
    for (unsigned i = 0; i < block->waiting; i++)
        rows[i] = block->integers[i] == NO_INTEGER ? others[other++] : reading->integers.rows[block->integers[i]];
    for (unsigned i = 0; i < block->waiting; i += 2) {
        block->ends[2 * block->count] = rows[i];
        block->ends[2 * block->count + 1] = rows[i + 1];
        block->weights[block->count] = block->asked_weights[i / 2];
        block->count += rows[i] != WORDS_ABSENT && rows[i + 1] != WORDS_ABSENT;
    }
    block->waiting = block->asked_waiting = 0;
    return 0;
}

static void ask(const struct reading *reading, struct edge_block *block, const char *node, uint64_t length) {
    uint32_t integer = integer_of(node, length);
    int in_table = integer < reading->integers.size;
    if (in_table)
        __builtin_prefetch(&reading->integers.rows[integer]);
    else
        words_ask(&reading->vocab->words, &block->asked[block->asked_waiting++], words_hash(node, length), node,
                  length);
    block->integers[block->waiting++] = in_table ? integer : NO_INTEGER;
}

static int read_block(const struct reading *reading, struct edge_block *block) {
    struct corpus_cursor cursor;
    struct edge_line edge;
    int more;
    block->count = 0;
    corpus_cursor_start(&cursor, &block->block);
    while ((more = edges_next(&cursor, &block->block, reading->options->weights, &block->left, &edge)) > 0) {
        block->asked_weights[block->waiting / 2] = edge.weight;
        ask(reading, block, edge.from, edge.from_length);
        ask(reading, block, edge.to, edge.to_length);
        if (block->waiting == NODES && find_rows(reading, block)) return -1;
    }
    return more || find_rows(reading, block) ? -1 : 0;
}

static int put_block(struct reading *reading, const struct edge_block *block) {
    uint64_t at = atomic_fetch_add(&reading->edges, block->count), ends = 2 * sizeof *block->ends;
    int bad = retry_write_at(reading->ends, block->ends, block->count * ends, at * ends);
    if (!bad && reading->weights >= 0)
        bad = retry_write_at(reading->weights, block->weights, block->count * sizeof *block->weights,
                             at * sizeof *block->weights);
    return bad ? fail_system("write beside", reading->path) : 0;
}

static int read_blocks(void *context, unsigned worker) {
    struct reading *reading = context;
    struct edge_block *mine = mem_zalloc(1, sizeof *mine, "reading edges");
    int more = mine ? 0 : -1;
    while (mine && !reading->failed && (more = corpus_next(reading->corpus, &mine->block)) > 0) {
        more = read_block(reading, mine) || put_block(reading, mine) ? -1 : 0;
        if (more) break;
        progress_show(&reading->progress, corpus_done(reading->corpus), corpus_size(reading->corpus), "B");
    }
    if (more) reading->failed = 1;
    if (!mine) return -1;
    atomic_fetch_add(&reading->loops, mine->left.loops);
    atomic_fetch_add(&reading->zeros, mine->left.zeros);
    corpus_block_release(&mine->block);
    free(mine->ends);
    free(mine->weights);
    free(mine);
    return more;
}

/* ---- from rows to the graph ---- */

static void say_left_out(uint64_t loops, uint64_t zeros) {
    if (loops) note("graph      %" PRIu64 " self-loop%s left out", loops, loops == 1 ? "" : "s");
    if (zeros) note("graph      %" PRIu64 " edge%s of weight 0 left out", zeros, zeros == 1 ? "" : "s");
}

static int write_edges(const struct reading *reading, const struct edges *edges, struct pool *pool) {
    const struct corpus_options *options = reading->options;
    struct graph_wanted wanted = {.fingerprint = graph_fingerprint(reading->corpus, reading->vocab, options),
                                  .nodes = reading->vocab->size,
                                  .directed = options->directed,
                                  .report_seconds = options->report_seconds};
    uint64_t loops = 0;
    if (graph_write(reading->path, &wanted, edges, pool, &loops)) return -1;
    say_left_out(reading->loops + loops, reading->zeros);
    return 0;
}

/* Maps a nameless file by its descriptor. */
static int map_unnamed(struct file_map *map, int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return file_map_open(map, path);
}

static int write_read(const struct reading *reading, struct pool *pool) {
    struct file_map ends = {0}, weights = {0};
    int weighted = reading->weights >= 0;
    int result = map_unnamed(&ends, reading->ends) || (weighted && map_unnamed(&weights, reading->weights)) ? -1 : 0;
    struct edges edges = {.ends = (const uint32_t *)(const void *)ends.data,
                          .weights = weighted ? (const float *)(const void *)weights.data : NULL,
                          .weighted = weighted,
                          .count = reading->edges};
    if (!result) result = write_edges(reading, &edges, pool);
    file_map_close(&ends);
    file_map_close(&weights);
    return result;
}

static int read_all(struct reading *reading, struct pool *pool) {
    if (!encode_are_rows(reading->options) && integer_rows_make(&reading->integers, reading->vocab)) return -1;
    corpus_read_as(reading->corpus, reading->options);
    corpus_rewind(reading->corpus);
    progress_start(&reading->progress, "reading", reading->options->report_seconds);
    int result = pool_run(pool, read_blocks, reading);
    progress_end(&reading->progress);
    return result ? -1 : corpus_check_unchanged(reading->corpus);
}

static int make_of_files(struct reading *reading, struct pool *pool) {
    int weighted = reading->options->weights == WEIGHTS_YES;
    reading->ends = file_open_unnamed(reading->path);
    if (weighted && reading->ends >= 0) reading->weights = file_open_unnamed(reading->path);
    int result = reading->ends < 0 || (weighted && reading->weights < 0) ? -1 : read_all(reading, pool);
    integer_rows_release(&reading->integers);
    if (!result) result = write_read(reading, pool);
    if (reading->ends >= 0) close(reading->ends);
    if (reading->weights >= 0) close(reading->weights);
    return result;
}

static int make_of_gathered(struct reading *reading, const struct gathered *gathered, struct pool *pool) {
    struct gathered_rows rows = {0};
    int weighted = reading->options->weights == WEIGHTS_YES;
    if (weighted && !gathered->weights) return fail("graph.weights = yes, and the edges have none");
    int result = gathered_rows_find(&rows, gathered, reading->vocab);
    struct edges edges = {.ends = gathered->ids,
                          .rows = rows.items,
                          .weights = weighted ? gathered->weights : NULL,
                          .weighted = weighted,
                          .count = gathered->tokens / 2};
    reading->loops = gathered->left.loops;
    reading->zeros = gathered->left.zeros;
    if (!result) result = write_edges(reading, &edges, pool);
    gathered_rows_release(&rows);
    return result;
}

int graph_make(struct graph *graph, const char *path, struct corpus *corpus, const struct vocab *vocab,
               const struct corpus_options *options, struct pool *pool) {
    struct reading reading = {
        .corpus = corpus, .vocab = vocab, .options = options, .path = path, .ends = -1, .weights = -1};
    const struct gathered *gathered = corpus_gathered(corpus);
    *graph = (struct graph){0};
    if (gathered ? make_of_gathered(&reading, gathered, pool) : make_of_files(&reading, pool)) return -1;
    return graph_open(graph, path, graph_fingerprint(corpus, vocab, options), vocab->size, pool);
}
