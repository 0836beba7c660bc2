#include "examples.h"

#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { NODES_AT_ONCE = 1024 };

/* ---- walks over a graph as sentences: alias tables of weighted arcs ---- */

struct tables {
    const struct graph *graph;
    struct alias *arcs;
    double *weights; /* [threads x most arcs of a node] */
    uint64_t most;
    _Atomic uint64_t taken;
};

static uint64_t arcs_of(const struct graph *graph, uint64_t node) {
    return graph->starts[node + 1] - graph->starts[node];
}

static int make_table(const struct tables *t, uint64_t node, double *weights) {
    uint64_t first = t->graph->starts[node], count = arcs_of(t->graph, node);
    if (!count) return 0;
    for (uint64_t i = 0; i < count; i++) weights[i] = t->graph->weights[first + i];
    return examples_alias(t->arcs + first, weights, count);
}

static int make_tables_of_nodes(void *context, unsigned worker) {
    struct tables *t = context;
    uint64_t node, end;
    while (pool_take(&t->taken, t->graph->nodes, NODES_AT_ONCE, &node, &end))
        for (; node < end; node++)
            if (make_table(t, node, t->weights + worker * t->most)) return -1;
    return 0;
}

/* Makes an alias table for each node, by which a walk draws its next arc, in proportion to the weights, with one draw. */
static int make_arcs(struct examples *examples, const struct graph *graph, struct pool *pool) {
    struct tables t = {.graph = graph};
    for (uint64_t i = 0; i < graph->nodes; i++)
        if (arcs_of(graph, i) > t.most) t.most = arcs_of(graph, i);
    t.arcs = examples->arcs = mem_alloc(graph->arcs, sizeof *t.arcs, "the tables of a graph's weights");
    t.weights = mem_alloc(t.most * pool_threads(pool), sizeof *t.weights, "the tables of a graph's weights");
    int result = t.arcs && t.weights ? pool_run(pool, make_tables_of_nodes, &t) : -1;
    free(t.weights);
    return result;
}

/* ---- the graph ---- */

/* Lists the nodes that have arcs, since walks over triples begin only at these. */
static int list_begins(struct examples *examples, const struct graph *graph) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < graph->nodes; i++) count += arcs_of(graph, i) > 0;
    uint32_t *begins = examples->begins = mem_alloc(count, sizeof *begins, "the nodes where walks begin");
    for (uint64_t i = 0; begins && i < graph->nodes; i++)
        if (arcs_of(graph, i)) *begins++ = (uint32_t)i;
    examples->source.walks.begins = examples->begins;
    examples->source.walks.begun = count;
    return begins ? 0 : -1;
}

/* Makes the graph the example source's data. If arcs have weights, also makes their alias tables. Returns 0, or -1 after fail(). */
static int examples_take_graph(struct examples *examples, const struct config *config, const struct graph *graph, struct pool *pool) {
    struct example_source *source = &examples->source;
    struct walks *walks = &source->walks;
    if (!graph->arcs)
        return fail("no edge of the graph joins two nodes of the vocabulary, so there is nowhere to walk; lower corpus.min_count, "
                    "or check corpus.format");
    if (graph->weights && make_arcs(examples, graph, pool)) return -1;
    *walks = (struct walks){.starts = graph->starts,
                            .neighbours = graph->neighbours,
                            .alias = examples->arcs,
                            .labels = graph->labels,
                            .nodes = graph->nodes,
                            .arcs = graph->arcs,
                            .begun = graph->nodes,
                            .length = (uint32_t)(graph->labels ? 2 * config->walks_length - 1 : config->walks_length),
                            .per_node = (uint32_t)config->walks_per_node};
    if (config_walks_triples(config) && list_begins(examples, graph)) return -1;
    walks_set_biases(walks, config->walks_p, config->walks_q, graph->directed);
    source->sentences = walks_count(walks);
    source->tokens = walks_positions(walks);
    source->longest = walks->length;
    return 0;
}

/* ---- subsampling and negatives ---- */

uint32_t examples_keep(uint64_t count, uint64_t total, double t) {
    if (t <= 0 || count == 0) return UINT32_MAX;
    double f = (double)count / (double)total, kept = (sqrt(f / t) + 1) * t / f;
    double threshold = kept * 4294967296.0 - 1; /* a token is kept if its 32-bit draw is at most the threshold */
    return threshold >= 4294967295.0 ? UINT32_MAX : threshold <= 0 ? 0 : (uint32_t)threshold;
}

/* Returns an alias column that gives row `self` with probability `share`, otherwise row `other`. Even with a share of 0, one draw in 2^32 gives
 * `self`, too few to matter. */
static struct alias column(double share, uint64_t self, uint32_t other) {
    double threshold = floor(share * 4294967296.0 + 0.5) - 1;
    if (threshold >= 4294967295.0) return (struct alias){UINT32_MAX, (uint32_t)self};
    return (struct alias){threshold <= 0 ? 0 : (uint32_t)threshold, other};
}

/* Makes the alias table by Vose's method (1991). scaled[]: the rows' shares, with mean 1; overwritten. `waiting` contains the columns whose share
 * is below 1 at its front, the others at its back. */
static int vose(struct alias *table, double *scaled, uint64_t rows) {
    OWNED uint32_t *waiting = mem_alloc(rows, sizeof *waiting, "the table of negatives");
    uint64_t small = 0, large = rows;
    if (!waiting) return -1;
    for (uint64_t i = rows; i-- > 0;) {
        if (scaled[i] < 1) waiting[small++] = (uint32_t)i;
        else waiting[--large] = (uint32_t)i;
    }
    while (small > 0 && large < rows) {
        uint32_t low = waiting[--small], high = waiting[large++];
        table[low] = column(scaled[low], low, high);
        scaled[high] = scaled[high] + scaled[low] - 1;
        if (scaled[high] < 1) waiting[small++] = high;
        else waiting[--large] = high;
    }
    /* The remaining columns have share 1, except for rounding errors. */
    while (small > 0) small--, table[waiting[small]] = column(1, waiting[small], 0);
    while (large < rows) table[waiting[large]] = column(1, waiting[large], 0), large++;
    return 0;
}

static int scale_to_mean_one(double *weights, uint64_t rows) {
    double sum = 0;
    for (uint64_t i = 0; i < rows; i++) sum += weights[i];
    if (!(sum > 0) || !isfinite(sum)) return -1;
    for (uint64_t i = 0; i < rows; i++) weights[i] *= (double)rows / sum;
    return 0;
}

int examples_alias(struct alias *table, const double *weights, uint64_t rows) {
    OWNED double *scaled = mem_alloc(rows, sizeof *scaled, "the table of negatives");
    if (!scaled) return -1;
    for (uint64_t i = 0; i < rows; i++) scaled[i] = weights[i];
    if (scale_to_mean_one(scaled, rows)) return fail("the weights of %" PRIu64 " rows have no positive, finite sum", rows);
    return vose(table, scaled, rows);
}

static int make_alias(struct examples *examples, const struct vocab *vocab, double power) {
    uint64_t rows = vocab->size - vocab->lists;
    OWNED double *weights = mem_alloc(rows, sizeof *weights, "the table of negatives");
    examples->alias = mem_zalloc(vocab->size, sizeof *examples->alias, "the table of negatives");
    if (!weights || !examples->alias) return -1;
    for (uint64_t i = 0; i < rows; i++) /* a word of count 0 gets weight 0, so that it is never drawn, whatever negatives.power is */
        weights[i] = vocab_count(vocab, i) ? pow((double)vocab_count(vocab, i), power) : 0;
    if (!scale_to_mean_one(weights, rows)) return vose(examples->alias, weights, rows);
    return fail("negatives.law = unigram needs counts: the counts of all %" PRIu64 " rows to the power of negatives.power = %g have no positive, "
                "finite sum; negatives.law = uniform needs none",
                rows, power);
}

static int make_keep(struct examples *examples, const struct vocab *vocab, double t) {
    examples->keep = mem_alloc(vocab->size, sizeof *examples->keep, "subsampling");
    if (!examples->keep) return -1;
    for (uint64_t i = 0; i < vocab->size; i++) examples->keep[i] = examples_keep(vocab_count(vocab, i), vocab->kept, t);
    return 0;
}

/* ---- what cannot work ---- */

static uint64_t longest_sentence(const struct example_source *source) {
    uint64_t longest = 0;
    for (uint64_t i = 0; i < source->sentences; i++) {
        uint64_t length = source->starts[i + 1] - source->starts[i];
        if (length > longest) longest = length;
    }
    return longest;
}

static uint64_t least_length(const struct example_source *source) {
    if (source->mode == EXAMPLE_TRIPLE) return 0;
    int may_repeat = source->mode == EXAMPLE_WINDOW || source->short_repeat || source->positives == 0;
    return may_repeat ? 2 : (uint64_t)source->positives + 1;
}

static uint64_t count_shorter(const struct example_source *source, uint64_t least) {
    uint64_t count = 0;
    if (source->walks.length || source->mode == EXAMPLE_TRIPLE) return 0;
    for (uint64_t i = 0; i < source->sentences; i++) count += source->starts[i + 1] - source->starts[i] < least;
    return count;
}

static int check_corpus(const struct example_source *source, const struct vocab *vocab, uint64_t longest) {
    if (source->mode == EXAMPLE_TRIPLE)
        return source->sentences ? 0 : fail("no triple of the corpus has a head, a relation and a tail of the vocabulary, so there is nothing "
                                            "to train on; lower corpus.min_count, or check corpus.format");
    uint64_t own = vocab->lists > 0; /* 1: the first id of each list is the list's own row */
    const char *line = source->mode == EXAMPLE_WINDOW ? "sentence" : source->mode == EXAMPLE_LIST || own ? "list" : "line";
    if (longest < 2)
        return fail("no %s of the corpus holds two words of the vocabulary, so there is nothing to train on; lower "
                    "corpus.min_count, or check corpus.format", line);
    if (longest < least_length(source))
        return fail("examples.positives = %" PRIu32 " needs a %s of %" PRIu64 " words, the longest has %" PRIu64
                    "; lower it, or set examples.short = repeat",
                    source->positives, line, least_length(source) - own, longest - own);
    return 0;
}

/* Returns how many rows can be drawn as negatives. */
static uint64_t drawable_rows(const struct example_source *source, const struct vocab *vocab) {
    uint64_t met = 0;
    if (source->noise == NOISE_UNIFORM || source->noise == NOISE_EVERY) return source->rows - source->target_only;
    if (source->noise == NOISE_LOG_UNIFORM) return source->rows - source->target_only - 1;
    for (uint64_t i = 0; i < vocab->size; i++) met += vocab_count(vocab, i) > 0;
    return met;
}

static int check_negatives(const struct example_source *source, const struct vocab *vocab, uint64_t longest) {
    uint64_t drawable = drawable_rows(source, vocab), own = 0, slots = source->negatives, numbered;
    uint64_t positives = source->mode == EXAMPLE_TRIPLE ? 1 : example_wanted(source, longest - 1);
    if (source->negatives == 0) return 0;
    if (source->noise == NOISE_LOG_UNIFORM && source->rows - source->target_only < 3)
        return fail("negatives.law = log-uniform draws from rows 1..V-1 and needs three rows, the vocabulary has %" PRIu64,
                    source->rows);
    if (source->mode != EXAMPLE_WINDOW && source->per_pair) slots *= positives;
    numbered = source->mode == EXAMPLE_WINDOW && source->per_pair ? slots * (2 * source->window + (uint64_t)source->documents) : slots;
    if (numbered > EXAMPLE_MOST_NEGATIVES && source->noise == NOISE_EVERY)
        return fail("negatives.count = all scores each example against %" PRIu64 " entities, more than %" PRIu64 "; set negatives.count to a number",
                    numbered, EXAMPLE_MOST_NEGATIVES);
    if (numbered > EXAMPLE_MOST_NEGATIVES)
        return fail("negatives.per = pair with %s would draw up to %" PRIu64 " negatives for one example, more than %" PRIu64
                    "; lower negatives.count or %s, or set negatives.per = example",
                    source->mode == EXAMPLE_WINDOW ? "this window" : "these positives", numbered, EXAMPLE_MOST_NEGATIVES,
                    source->mode == EXAMPLE_WINDOW ? "examples.window" : "examples.positives");
    if (source->exclude)
        own = source->mode == EXAMPLE_WINDOW || source->per_batch ? 1 : source->positives ? 1 + (uint64_t)source->positives : 2;
    if (drawable <= own)
        return fail("negatives.exclude leaves nothing to draw: negatives.law draws from %" PRIu64
                    " rows, an example has %" PRIu64 " of its own; set negatives.exclude = no",
                    drawable, own);
    if (source->per_batch) own = 0; /* negatives are drawn for all examples of a batch together; each example ignores the negatives that are its own
                                     * rows */
    if (source->distinct && slots > drawable - own)
        return fail("negatives.distinct asks for %" PRIu64 " different rows, and only %" PRIu64
                    " can be drawn%s; lower negatives.count or set negatives.distinct = no",
                    slots, drawable - own, own ? " beside an example's own" : "");
    return 0;
}

/* Refuses a batch that has too many scores of entities, if every one is a negative, or of relations. config_resolve() has checked batches with fewer
 * negatives. */
static int check_scores(const struct config *config, const struct example_source *source) {
    uint32_t entities = source->noise == NOISE_EVERY ? source->negatives : 0, relations = example_batch_relations(source);
    uint32_t most = entities > relations ? entities : relations;
    if (!most || config->train_batch == COUNT_AUTO || config->train_batch <= INT32_MAX / most) return 0;
    return fail("train.batch = %" PRIu64 " with %" PRIu32 " %s makes more than 2^31 scores a step; lower train.batch, or set %s", config->train_batch,
                most, entities == most ? "entities (negatives.count = all)" : "relations and reciprocals (train.relations)",
                entities == most ? "negatives.count to a number" : "train.relations = 0");
}

/* Refuses a vocabulary that was made without rows of lists. */
static int check_lists(const struct config *config, const struct vocab *vocab) {
    if (config->examples_mode != MODE_USER || vocab->lists) return 0;
    return fail("examples.mode = user trains rows of lists, and this vocabulary has none: an encoded corpus has lost their names");
}

/* With examples.own < 1, refuses a corpus in which all items of every list are positives, so that none is left for the mean: only the lists' own
 * rows would be trained, although lists are scored with the mean of their items' rows. */
static int check_means(const struct config *config, const struct example_source *source) {
    struct example_row row = {.count = source->longest};
    if (config->examples_mode != MODE_USER || config->examples_own == 1) return 0;
    example_row_sizes(source, &row);
    if (row.pooled) return 0;
    return fail("examples.own = %g needs a list of %" PRIu64 " items, of which its positives leave one for a mean, and the "
                "longest has %" PRIu64 "; %s",
                config->examples_own, source->positives ? (uint64_t)source->positives + 1 : 2, source->longest - 1,
                source->longest > 2 ? "lower examples.positives" : "set examples.own = 1");
}

/* ---- the source ---- */

static uint32_t share_threshold(double share) {
    return (uint32_t)(share * 4294967296.0); /* train.held_out is limited to values for which this is below 2^32 */
}

/* Sets how heads and relations of triples are combined. */
static void take_triples(struct example_source *source, const struct config *config) {
    if (config->examples_mode != MODE_TRIPLE) return;
    source->pool = (struct example_pool){.on = 1, .product = config_product(config), .tied = config->model_tied};
    source->reciprocal = config->triples_reciprocal;
    source->relations_too = config->train_relations > 0;
    if (config->negatives_count != COUNT_ALL) return;
    uint64_t entities = source->rows - source->target_only;
    source->noise = NOISE_EVERY;
    source->negatives = entities < UINT32_MAX ? (uint32_t)entities : UINT32_MAX;
    source->distinct = 0; /* each row is drawn once anyway */
}

static void take_keys(struct example_source *source, const struct config *config) {
    source->mode = config_is_window(config)               ? EXAMPLE_WINDOW
                   : config->examples_mode == MODE_LIST   ? EXAMPLE_LIST
                   : config_is_by_item(config)            ? EXAMPLE_ITEM
                   : config->examples_mode == MODE_TRIPLE ? EXAMPLE_TRIPLE
                                                          : EXAMPLE_ADJACENCY;
    source->pool.on = config->examples_mode == MODE_CBOW || config->examples_own < 1 || config_subwords(config).max;
    source->pool.own = config->examples_own < 1 ? (float)config->examples_own : 0;
    source->pooled = (uint32_t)config->examples_pooled;
    source->pool.sum = config->examples_pooled_gradient == POOLED_SUM;
    source->pool.whole = config->examples_pooled_gradient == POOLED_WHOLE;
    source->documents = config_has_documents(config);
    source->window = config_trains_words(config) ? (uint32_t)config->examples_window : 0;
    source->shrink = config->examples_shrink && source->window;
    source->shuffle = config->examples_shuffle;
    source->shuffle_items = config->examples_shuffle_items;
    source->positives = config_has_counts(config) ? 0 : (uint32_t)config->examples_positives; /* a sentence of counts is trained whole */
    source->targets_all = config->examples_targets != TARGETS_ONE;
    source->replacement = config->examples_replacement;
    source->short_repeat = config->examples_short == SHORT_REPEAT;
    source->negatives = (uint32_t)config->negatives_count;
    source->per_pair = config->negatives_per == PER_PAIR;
    source->per_batch = config->negatives_per == PER_BATCH;
    source->exclude = config->negatives_exclude;
    source->distinct = config->negatives_distinct;
    source->noise = (enum noise_distribution)config->negatives_law;
    source->seed = (uint32_t)config->train_seed;
    source->held_out = share_threshold(config->train_held_out);
    take_triples(source, config);
}

static int make_tree(struct examples *examples, const struct vocab *vocab) {
    struct huffman *tree = &examples->tree;
    uint64_t words = vocab->size - vocab->lists, *counts = mem_alloc(words, sizeof *counts, "the counts of a tree");
    for (uint64_t i = 0; counts && i < words; i++) counts[i] = vocab_count(vocab, i);
    int result = counts ? huffman_make(tree, counts, words) : -1;
    free(counts);
    if (result) return -1;
    examples->source.paths = (struct example_paths){.starts = tree->starts,
                                                    .nodes = tree->nodes,
                                                    .words = tree->words,
                                                    .listed = tree->starts[2 * tree->words],
                                                    .most = tree->longest};
    return 0;
}

static int make_tables(struct examples *examples, const struct config *config, const struct vocab *vocab) {
    struct example_source *source = &examples->source;
    if (config_has_tree(config) && make_tree(examples, vocab)) return -1;
    if (config->examples_subsample > 0 && make_keep(examples, vocab, config->examples_subsample)) return -1;
    if (source->noise == NOISE_UNIGRAM && source->negatives > 0 && make_alias(examples, vocab, config->negatives_power)) return -1;
    source->keep = examples->keep;
    source->alias = examples->alias;
    source->log2_rows = log2((double)(source->rows - source->target_only));
    return 0;
}

/* Uses the stream's weights as weights of items. A weight of 0 belongs to a list's own row. */
static int take_weights(struct examples *examples, const struct config *config, const struct idstream *stream) {
    double sum = 0, least = INFINITY, most = 0;
    uint64_t items = 0;
    if (!config->corpus_weights && !config_has_counts(config)) return 0;
    if (!config_has_counts(config) && stream->weighed != (enum pair_weights)config->corpus_weights)
        return fail("corpus.weights = %s, and the encoded corpus '%s' was made with corpus.weights = %s",
                    config_choice_name("corpus", "weights", config->corpus_weights), config->corpus_path,
                    config_choice_name("corpus", "weights", (int)stream->weighed));
    for (uint64_t i = 0; i < stream->tokens; i++) {
        double weight = stream->weights[i];
        if (weight == 0) continue;
        sum += weight, items++;
        least = fmin(least, weight), most = fmax(most, weight);
    }
    if (!items) return 0;
    examples->weights.least = least, examples->weights.most = most, examples->weights.mean = sum / (double)items;
    examples->source.weights = stream->weights;
    examples->source.weight_scale = config_has_counts(config) ? 1 : (float)(1 / examples->weights.mean);
    return 0;
}

/* Sets everything that is independent of the corpus. */
static void begin(struct examples *examples, const struct config *config, const struct vocab *vocab) {
    *examples = (struct examples){0};
    examples->source.rows = vocab_targets(vocab);
    examples->source.target_only = vocab->lists + vocab->subwords.rows;
    const struct subwords *subwords = &vocab->subwords;
    examples->source.subwords = (struct example_subwords){.starts = subwords->starts,
                                                          .rows = subwords->row,
                                                          .words = subwords->words,
                                                          .listed = subwords->starts ? subwords->starts[subwords->words] : 0,
                                                          .most = subwords->most,
                                                          .by_window = config->examples_mode == MODE_CBOW};
    take_keys(&examples->source, config);
}

/* Checks that the keys fit the corpus, and makes the tables for drawing. */
static int finish(struct examples *examples, const struct config *config, const struct vocab *vocab) {
    struct example_source *source = &examples->source;
    if (vocab_check_size(vocab) || check_lists(config, vocab) || check_corpus(source, vocab, source->longest) ||
        check_means(config, source) || check_negatives(source, vocab, source->longest) ||
        check_scores(config, source) || make_tables(examples, config, vocab))
        return -1;
    examples->least = least_length(source);
    examples->too_short = count_shorter(source, examples->least);
    return 0;
}

static int release_after(struct examples *examples, int result) {
    if (result) examples_release(examples);
    return result;
}

int examples_init(struct examples *examples, const struct config *config, const struct vocab *vocab,
                  const struct idstream *stream) {
    begin(examples, config, vocab);
    examples->source.ids = stream->ids;
    examples->source.starts = stream->starts;
    examples->source.tokens = stream->tokens;
    examples->source.sentences = stream->sentences;
    examples->source.longest = examples->source.mode == EXAMPLE_TRIPLE ? 3 : longest_sentence(&examples->source);
    return release_after(examples, take_weights(examples, config, stream) || finish(examples, config, vocab) ? -1 : 0);
}

int examples_init_walks(struct examples *examples, const struct config *config, const struct vocab *vocab,
                        const struct graph *graph, struct pool *pool) {
    begin(examples, config, vocab);
    return release_after(examples, examples_take_graph(examples, config, graph, pool) || finish(examples, config, vocab) ? -1 : 0);
}

void examples_release(struct examples *examples) {
    mem_free(examples->keep, examples->alias, examples->arcs, examples->begins);
    huffman_release(&examples->tree);
    *examples = (struct examples){0};
}

uint64_t examples_bytes(const struct examples *examples) {
    uint64_t rows = examples->source.rows - (examples->source.subwords.starts ? examples->source.target_only : 0);
    return (examples->keep ? rows * sizeof *examples->keep : 0) + (examples->alias ? rows * sizeof *examples->alias : 0) +
           (examples->arcs ? examples->source.walks.arcs * sizeof *examples->arcs : 0) +
           (examples->begins ? examples->source.walks.begun * sizeof *examples->begins : 0) + huffman_bytes(&examples->tree);
}

/* ---- the largest batch ---- */

uint64_t examples_batch(const struct examples *examples, uint64_t batch) {
    uint64_t count = example_count(&examples->source);
    return batch < count ? batch : count;
}

/* Returns the probability that subsampling keeps a token of this row. */
static double examples_kept(const struct example_source *source, uint64_t row) {
    if (example_is_document(source, (uint32_t)row)) return 0;
    return source->keep ? (source->keep[row] + 1.0) / 4294967296.0 : 1;
}

/* Each example has a number of blocks, of targets, of contexts and of terms. of[]: the sums of these numbers over many examples. square[]: the
 * sums of their squares, or numbers that are at least as large. */
enum { BLOCKS, TARGETS, CONTEXTS, TERMS, KINDS };
struct sums {
    double examples, of[KINDS], square[KINDS];
};

/* Returns the expected number of pairs of a sentence of which `kept` words are kept. A pair is two words, in order, the second of which is in the
 * drawn window of the first. At distance i there are kept - i pairs; each is in a window with probability (window - i + 1) / window, or always if
 * windows are not shrunk. */
static double window_pairs(double kept, const struct example_source *source) {
    if (kept <= 1) return 0;
    double window = source->window, d = fmin(ceil(kept) - 1, window), ends = d * (d + 1) / 2;
    double chances = d, distances = ends; /* sums over i = 1 .. d: of this probability, and of i times it */
    if (source->shrink) {
        chances = ((window + 1) * d - ends) / window;
        distances = ((window + 1) * ends - ends * (2 * d + 1) / 3) / window;
    }
    return 2 * (kept * chances - distances);
}

/* Expected numbers of a sentence: its kept words, their target rows, and the contexts by which they are predicted. */
struct kept {
    double words, rows, contexts;
};

static struct kept expected_kept(const struct example_source *source, const uint32_t *ids, uint64_t length) {
    struct kept kept = {0};
    if (!source->keep && !source->subwords.starts && !source->paths.starts && !source->documents)
        return (struct kept){(double)length, (double)length, (double)length};
    for (uint64_t i = 0; i < length; i++) {
        if (example_is_document(source, ids[i])) continue; /* a document's row is not a word, and has no path in a tree */
        double chance = examples_kept(source, ids[i]);
        kept.words += chance;
        kept.rows += chance * (double)example_rows_of(source, ids[i]);
        kept.contexts += chance * (double)example_contexts_of(source, ids[i]);
    }
    return kept;
}

/* Adds `value` to the sum of a kind. No position has more than `most` of it, so the square of its number is at most `most` x the number. */
static void add_bounded(struct sums *sums, int kind, double value, double most) {
    sums->of[kind] += value;
    sums->square[kind] += value * most;
}

/* Returns the most contexts by which one word is predicted. */
static double most_predicting(const struct example_source *source) {
    return source->paths.starts ? (double)source->paths.most : 1;
}

/* Adds windows whose middle word predicts the words around it. A word has `rows` rows, and is predicted by `predicting` contexts. */
static void add_predicted(const struct example_source *source, double windows, double pairs, double rows, double predicting,
                          struct sums *sums) {
    double most = 2.0 * source->window, negatives = source->negatives;
    double contexts = pairs * predicting + (source->per_pair ? pairs : windows) * negatives;
    double most_contexts = most * most_predicting(source) + (source->per_pair ? most : 1) * negatives;
    add_bounded(sums, BLOCKS, windows, 1);
    add_bounded(sums, TARGETS, windows * rows, (double)source->subwords.most);
    add_bounded(sums, CONTEXTS, contexts, most_contexts);
    add_bounded(sums, TERMS, contexts, most_contexts);
}

static void add_windows(const struct example_source *source, struct kept in, uint64_t length, struct sums *sums) {
    double kept = in.words, share = kept / (double)length, rows = kept > 0 ? in.rows / kept : 1;
    double predicting = kept > 0 ? in.contexts / kept : 1;
    double most_rows = source->subwords.starts ? (double)source->subwords.most : 1;
    /* A kept word makes a block unless it is the only kept word of its sentence; for short sentences the probability of that is approximate. */
    double windows = length < 2 ? 0 : kept > 2 || source->documents ? kept : kept * (1 - pow(1 - share, (double)(length - 1)));
    double pairs = fmax(window_pairs(kept, source), source->documents ? 0 : windows), most = 2.0 * source->window + source->documents;
    if (source->documents) pairs += windows; /* the document's row forms a pair with the word of each window */
    double blocks = source->per_pair ? pairs : windows, most_blocks = source->per_pair ? most : 1;
    double contexts = predicting + source->negatives, most_contexts = most_predicting(source) + source->negatives;
    sums->examples += (double)length;
    if (example_predicts_window(source)) {
        add_predicted(source, windows, pairs, rows, predicting, sums);
        return;
    }
    add_bounded(sums, BLOCKS, blocks, most_blocks);
    add_bounded(sums, TARGETS, pairs * rows, most * most_rows);
    add_bounded(sums, CONTEXTS, blocks * contexts, most_blocks * most_contexts);
    double vectors = source->pool.on ? blocks : pairs, most_vectors = source->pool.on ? most_blocks : most;
    add_bounded(sums, TERMS, vectors * contexts, most_vectors * most_contexts);
}

static void add_rows(const struct example_source *source, uint64_t length, struct sums *sums) {
    int by_item = source->mode == EXAMPLE_ITEM; /* the first id of a list, the list's own row, makes no example */
    double times = by_item ? (double)length - 1 : example_is_position(source) ? (double)length : 1;
    sums->examples += by_item ? (double)length : times;
    struct example_row row = {.count = length};
    example_row_sizes(source, &row);
    if (!row.wanted) return;
    double pairs = (double)row.wanted, contexts = pairs + (double)row.negatives;
    const double made[KINDS] = {
        [BLOCKS] = 1, [TARGETS] = (double)row.targets, [CONTEXTS] = contexts, [TERMS] = contexts};
    for (int kind = 0; kind < KINDS; kind++) add_bounded(sums, kind, times * made[kind], made[kind]);
}

/* Returns the numbers for the largest walk, in which no word is dropped. A walk visits a node about as often as arcs lead to it. */
static struct sums sum_walk(const struct example_source *source) {
    const struct walks *w = &source->walks;
    struct sums sums = {0};
    double words = 0, contexts = 0, length = w->length;
    for (uint64_t i = 0; source->paths.starts && i < w->nodes; i++) {
        double visits = (double)(w->starts[i + 1] - w->starts[i]) * examples_kept(source, i);
        words += visits;
        contexts += visits * example_contexts_of(source, (uint32_t)i);
    }
    for (uint64_t i = 0; source->paths.starts && w->labels && i < w->arcs; i++) {
        double visits = examples_kept(source, w->labels[i]);
        words += visits;
        contexts += visits * example_contexts_of(source, w->labels[i]);
    }
    add_windows(source, (struct kept){length, length, words > 0 ? length * contexts / words : length}, w->length, &sums);
    return sums;
}

static struct sums sum_triple(const struct example_source *source) {
    struct sums sums = {.examples = (double)example_directions(source)};
    struct example_sizes one = example_most(source);
    const double made[KINDS] = {
        [BLOCKS] = 1, [TARGETS] = (double)one.targets, [CONTEXTS] = (double)one.contexts, [TERMS] = 1};
    for (int kind = 0; kind < KINDS; kind++) add_bounded(&sums, kind, sums.examples * made[kind], made[kind]);
    return sums;
}

static struct sums sum_sentence(const struct example_source *source, uint64_t number) {
    if (source->mode == EXAMPLE_TRIPLE) return sum_triple(source);
    uint64_t start = source->starts[number], length = source->starts[number + 1] - start;
    struct sums sums = {0};
    if (source->mode != EXAMPLE_WINDOW) add_rows(source, length, &sums);
    else if (length) add_windows(source, expected_kept(source, source->ids + start, length), length, &sums);
    return sums;
}

static void add_share(struct sums *to, const struct sums *sums, double share) {
    to->examples += sums->examples * share;
    for (int kind = 0; kind < KINDS; kind++) {
        to->of[kind] += sums->of[kind] * share;
        to->square[kind] += sums->square[kind] * share;
    }
}

/* Divides the examples of the sentences, in order, into batches, and finds the largest batch. */
struct batches {
    double examples; /* number of examples of each batch except the last, which may have fewer */
    struct sums open;
    double most[KINDS]; /* largest numbers of all closed batches */
};

static void close_batch(struct batches *batches) {
    for (int kind = 0; kind < KINDS; kind++) batches->most[kind] = fmax(batches->most[kind], batches->open.of[kind]);
    batches->open = (struct sums){0};
}

/* Returns the capacity for one kind of elements: the expected number in a batch, plus a margin that one batch in 10^9 exceeds. Expected is the
 * mean over batches if examples are shuffled or walks are drawn, otherwise the largest batch in the file's order. The margin is Bernstein's bound
 * for a sum of draws, which holds even if a few examples are far larger than the others. No example makes more than `largest`. */
static double capacity_of_kind(const struct example_source *source, const struct batches *batches,
                               const struct sums *all, int kind, double share, double largest) {
    static const double log_of_chance = 20.7; /* minus the natural logarithm of 1e-9 */
    double mean = all->of[kind] / all->examples, square = all->square[kind] / all->examples;
    double base = share * (source->shuffle || source->walks.length ? mean * batches->examples : batches->most[kind]);
    double variance = batches->examples * fmax(0, share * square - share * share * mean * mean);
    if (source->mode != EXAMPLE_WINDOW && !source->shuffle && share >= 1) return base; /* here the sizes of batches do not depend on draws */
    double third = largest * log_of_chance / 3;
    return fmin(base + third + sqrt(third * third + 2 * variance * log_of_chance), batches->examples * largest);
}

static void look_at_sentences(const struct example_source *source, struct sums *all, struct batches *batches) {
    for (uint64_t i = 0; i < source->sentences; i++) {
        struct sums sums = sum_sentence(source, i);
        add_share(all, &sums, 1);
        double left = sums.examples;
        while (left > 0) {
            double capacity = batches->examples - batches->open.examples, taken = fmin(left, capacity);
            add_share(&batches->open, &sums, taken / sums.examples);
            left -= taken;
            if (taken == capacity) close_batch(batches);
        }
    }
    close_batch(batches);
}

struct example_sizes examples_capacity(const struct examples *examples, uint64_t batch, double share) {
    const struct example_source *source = &examples->source;
    struct batches batches = {.examples = (double)examples_batch(examples, batch)};
    struct sums all = {0};
    struct example_sizes most = example_most(source);
    const double largest[] = {[BLOCKS] = (double)most.blocks,
                              [TARGETS] = (double)most.targets,
                              [CONTEXTS] = (double)most.contexts,
                              [TERMS] = (double)most.terms};
    uint64_t capacity[] = {[BLOCKS] = 0, [TARGETS] = 0, [CONTEXTS] = 0, [TERMS] = 0};
    if (source->walks.length) all = sum_walk(source);
    else look_at_sentences(source, &all, &batches);
    for (int kind = 0; kind <= TERMS && all.examples > 0; kind++)
        capacity[kind] = (uint64_t)ceil(capacity_of_kind(source, &batches, &all, kind, share, largest[kind]));
    return (struct example_sizes){capacity[BLOCKS], capacity[TARGETS], capacity[CONTEXTS], capacity[TERMS]};
}
