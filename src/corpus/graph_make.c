#include "graph_make.h"

#include "base/report.h"
#include "edges.h"
#include "encode.h"
#include "encode_block.h"
#include "gathered.h"
#include "graph_write.h"
#include "word_counts.h"

#include <inttypes.h>
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

static void say_left_out(uint64_t loops, uint64_t zeros) {
    if (loops) note("graph      %" PRIu64 " self-loop%s left out", loops, loops == 1 ? "" : "s");
    if (zeros) note("graph      %" PRIu64 " edge%s of weight 0 left out", zeros, zeros == 1 ? "" : "s");
}

/* The data and files from which a graph is made: edges read from files (numbered), or edges that the caller passed (gathered). */
struct making {
    const char *path; /* path of the graph's file */
    uint64_t fingerprint, nodes;
    const struct corpus_options *options;
    struct pool *pool;
};

static int write_edges(const struct making *making, const struct edges *edges, const struct corpus_left *left) {
    const struct corpus_options *options = making->options;
    struct graph_wanted wanted = {.fingerprint = making->fingerprint,
                                  .nodes = making->nodes,
                                  .directed = options->directed,
                                  .report_seconds = options->report_seconds};
    uint64_t loops = 0;
    if (graph_write(making->path, &wanted, edges, making->pool, &loops)) return -1;
    say_left_out(left->loops + loops, left->zeros);
    return 0;
}

/* Returns 1 if each node's count is the number of its arcs: edges lead both ways, every node of the edges has a row of its own,
 * and the counts were made from this corpus alone. */
static int counts_are_degrees(const struct corpus_options *options, const struct numbered *numbered, const struct vocab *vocab) {
    return numbered->items && !options->directed && options->order != ORDER_GIVEN && vocab->kept == vocab->tokens;
}

static int make_of_files(const struct making *making, struct corpus *corpus, const struct vocab *vocab) {
    struct numbered own;
    const struct numbered *numbered;
    int result = encode_numbers(&numbered, &own, corpus, making->options, vocab, making->path, making->pool) ||
                         corpus_check_unchanged(corpus)
                     ? -1
                     : 0;
    unsigned fields = numbered_fields(making->options);
    if (!result) {
        struct edges edges = {.ends = numbered->numbers,
                              .rows = numbered->items,
                              .weights = fields == 3 ? (const float *)(const void *)(numbered->numbers + 2) : NULL,
                              .stride = fields,
                              .weight_stride = fields,
                              .weighted = fields == 3,
                              .count = numbered->count / fields};
        if (counts_are_degrees(making->options, numbered, vocab)) edges.degrees = vocab;
        result = write_edges(making, &edges, &numbered->left);
    }
    numbered_close(&own);
    return result;
}

static int make_of_gathered(const struct making *making, const struct gathered *gathered, const struct vocab *vocab) {
    struct gathered_rows rows = {0};
    int weighted = making->options->weights == WEIGHTS_YES;
    if (weighted && !gathered->weights) return fail("graph.weights = yes, and the edges have none");
    int result = gathered_rows_find(&rows, gathered, vocab);
    struct edges edges = {.ends = gathered->ids,
                          .rows = rows.items,
                          .weights = weighted ? gathered->weights : NULL,
                          .stride = 2,
                          .weight_stride = 1,
                          .weighted = weighted,
                          .count = gathered->tokens / 2};
    if (!result) result = write_edges(making, &edges, &gathered->left);
    gathered_rows_release(&rows);
    return result;
}

int graph_make(struct graph *graph, const char *path, struct corpus *corpus, const struct vocab *vocab,
               const struct corpus_options *options, struct pool *pool) {
    const struct gathered *gathered = corpus_gathered(corpus);
    const struct making making = {path, graph_fingerprint(corpus, vocab, options), vocab->size, options, pool};
    *graph = (struct graph){0};
    if (gathered ? make_of_gathered(&making, gathered, vocab) : make_of_files(&making, corpus, vocab)) return -1;
    return graph_open(graph, path, making.fingerprint, vocab->size, pool);
}
