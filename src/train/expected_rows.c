#include "expected_rows.h"

#include <math.h>
#include <string.h>

/* ---- pools ---- */

static unsigned pool_of(uint64_t count) {
    if (count == 0) return 0;
    unsigned high = 63 - (unsigned)__builtin_clzll(count);
    uint64_t rest = high >= 4 ? count >> (high - 4) : count << (4 - high);
    return 1 + high * 16 + (unsigned)(rest & 15);
}

/* Groups the rows with id >= `first`. */
static void fill_pools(struct row_pools *pools, const struct expected_rows *t, uint64_t first) {
    const struct example_source *source = &t->examples->source;
    int by_id = source->noise == NOISE_LOG_UNIFORM;
    memset(pools, 0, sizeof *pools);
    for (uint64_t row = first; row < t->vocab->size; row++) {
        unsigned at = pool_of(vocab_count(t->vocab, row));
        pools->rows[at]++;
        pools->count[at] += (double)vocab_count(t->vocab, row);
        pools->kept[at] += (double)vocab_count(t->vocab, row) * examples_kept(source, row);
        if (by_id && row) pools->drawn[at] += log1p(1 / (double)row) / log((double)t->vocab->size);
    }
}

/* Returns the share of touches of n-gram rows that is left after subsampling. It is an average: it is used for every n-gram,
 * however frequent its words are. */
static double kept_share_of_ngrams(const struct expected_rows *t) {
    const struct subwords *s = &t->vocab->subwords;
    double kept = 0, all = 0;
    for (uint64_t word = 0; s->starts && word < s->words; word++) {
        double places = (double)vocab_count(t->vocab, word) * (double)(s->starts[word + 1] - s->starts[word] - 1);
        all += places;
        kept += places * examples_kept(&t->examples->source, word);
    }
    return all > 0 ? kept / all : 0;
}

/* Groups the n-gram rows with id >= `first`. */
static void fill_ngrams(struct row_pools *pools, const struct expected_rows *t, uint64_t first) {
    const struct subwords *s = &t->vocab->subwords;
    memset(pools, 0, sizeof *pools);
    for (uint64_t i = first > s->words ? first - s->words : 0; i < s->named; i++) {
        unsigned at = pool_of(s->counts[i]);
        pools->rows[at]++;
        pools->kept[at] += (double)s->counts[i] * t->ngrams_kept;
    }
}

/* Groups the tree nodes with id >= `first`. */
static void fill_nodes(struct row_pools *pools, const struct expected_rows *t, uint64_t first) {
    const struct huffman *tree = &t->examples->tree;
    memset(pools, 0, sizeof *pools);
    for (uint64_t i = first; i + 1 < tree->words; i++) {
        unsigned at = pool_of(tree->counts[i]);
        pools->rows[at]++;
        pools->count[at] += (double)tree->counts[i];
    }
}

static double total(const double *values) {
    double sum = 0;
    for (int i = 0; i < ROW_POOLS; i++) sum += values[i];
    return sum;
}

static void unigram_chances(double *chance, const struct row_pools *pools, double power) {
    double sum = 0;
    for (int i = 1; i < ROW_POOLS; i++)
        if (pools->rows[i] > 0) {
            chance[i] = pow(pools->count[i] / pools->rows[i], power);
            sum += chance[i] * pools->rows[i];
        }
    for (int i = 1; i < ROW_POOLS && sum > 0; i++) chance[i] /= sum;
}

static void fill_chances(struct expected_rows *t, double power) {
    const struct example_source *source = &t->examples->source;
    if (source->noise == NOISE_UNIGRAM) {
        unigram_chances(t->chance, &t->all, power);
        return;
    }
    for (int i = 0; i < ROW_POOLS; i++)
        t->chance[i] = t->vocab->lists && i == 0      ? 0
                       : source->noise == NOISE_EVERY   ? 1
                       : source->noise == NOISE_UNIFORM ? 1 / (double)(source->rows - source->target_only)
                       : t->all.rows[i] > 0           ? t->all.drawn[i] / t->all.rows[i]
                                                      : 0;
}

void expected_rows_init(struct expected_rows *t, const struct config *config, const struct vocab *vocab,
                  const struct examples *examples) {
    const struct example_source *source = &examples->source;
    memset(t, 0, sizeof *t);
    t->vocab = vocab;
    t->examples = examples;
    t->expected = examples_expect(examples);
    fill_pools(&t->all, t, 0);
    t->ngrams_kept = kept_share_of_ngrams(t);
    fill_ngrams(&t->ngrams, t, 0);
    fill_nodes(&t->nodes, t, 0);
    t->places = total(t->all.kept);
    int lines = source->mode == EXAMPLE_ADJACENCY || source->mode == EXAMPLE_ITEM || source->documents;
    t->lines = source->mode == EXAMPLE_TRIPLE ? (double)example_count(source) : lines ? (double)source->sentences : 0;
    fill_chances(t, config->negatives_power);
}

/* ---- distinct rows ---- */

/* Returns (1 - share) ^ times: the chance that none of `times` draws is a row whose share of draws is `share`. */
static double missed(double share, double times) {
    return share >= 1 ? (times > 0 ? 0 : 1) : exp(times * log1p(-share));
}

static double corpus_missed(const struct expected_rows *t, const struct row_pools *pools, int pool, double draws) {
    return t->places > 0 ? missed(draws / t->places, pools->kept[pool] / pools->rows[pool]) : 1;
}

/* Returns the chance that a row is missed by draws of lines' first rows. No counts exist for lines, so they are assumed to
 * spread evenly over all rows (or over the lists' rows): each row begins the same number of lines, or, if there are fewer lines
 * than rows, some rows one line and the others none. */
static double line_missed(const struct expected_rows *t, double draws) {
    double each = t->lines / (double)(t->vocab->lists ? t->vocab->lists : t->vocab->size);
    return 1 - fmin(1, each) * (1 - missed(draws / t->lines, fmax(1, each)));
}

/* Adds up expected distinct targets: rows that lines begin with are drawn line_draws times, all others by the corpus. */
static double distinct_targets(const struct expected_rows *t, const struct row_pools *pools, const struct batch_rows *batch) {
    double sum = 0, others = batch->target_draws - batch->line_draws;
    for (int i = 0; i < ROW_POOLS; i++) {
        if (pools->rows[i] == 0) continue;
        int own = t->lines > 0 && !(t->vocab->lists && i); /* lists have counts of 0 */
        double left = corpus_missed(t, pools, i, others) * (own ? line_missed(t, batch->line_draws) : 1);
        sum += pools->rows[i] * (1 - left);
    }
    return sum;
}

static double distinct_ngrams(const struct expected_rows *t, const struct row_pools *pools, const struct batch_rows *batch) {
    double sum = 0;
    for (int i = 1; i < ROW_POOLS; i++)
        if (pools->rows[i] > 0) sum += pools->rows[i] * (1 - corpus_missed(t, pools, i, batch->target_draws));
    return sum;
}

static double distinct_contexts(const struct expected_rows *t, const struct row_pools *pools, double draws, double negatives) {
    double sum = 0;
    for (int i = 0; i < ROW_POOLS; i++) {
        if (pools->rows[i] == 0) continue;
        sum += pools->rows[i] * (1 - corpus_missed(t, pools, i, draws) * missed(t->chance[i], negatives));
    }
    return sum;
}

/* Returns the expected number of distinct tree nodes. A predicted word touches all nodes on its path; a node's count is the sum
 * of the counts of the words below it. */
static double distinct_nodes(const struct expected_rows *t, const struct row_pools *nodes, double draws) {
    double sum = 0;
    for (int i = 1; i < ROW_POOLS; i++)
        if (nodes->rows[i] > 0)
            sum += nodes->rows[i] * (1 - missed(nodes->count[i] / nodes->rows[i] / (double)t->examples->tree.counts[0], draws));
    return sum;
}

static struct distinct_rows distinct(const struct expected_rows *t, const struct row_pools *words, const struct row_pools *ngrams,
                                     const struct row_pools *nodes, const struct batch_rows *batch) {
    int tree = t->examples->source.paths.starts != NULL;
    return (struct distinct_rows){distinct_targets(t, words, batch) + distinct_ngrams(t, ngrams, batch),
                                  tree ? distinct_nodes(t, nodes, batch->positive_draws)
                                       : distinct_contexts(t, words, batch->positive_draws, batch->negatives)};
}

struct distinct_rows expected_rows_from(const struct expected_rows *t, const struct batch_rows *batch, uint64_t first) {
    struct row_pools words, ngrams, nodes;
    fill_pools(&words, t, first);
    fill_ngrams(&ngrams, t, first);
    fill_nodes(&nodes, t, first);
    return distinct(t, &words, &ngrams, &nodes, batch);
}

/* ---- a batch ---- */

/* Returns how many targets of a block are rows of its line: all, if targets are not pooled. If they are pooled, it is 1, or 0 if
 * examples.own = 0. */
static double own_targets(const struct expected_rows *t) {
    const struct example_pool *pool = &t->examples->source.pool;
    if (!(t->lines > 0)) return 0;
    if (t->examples->source.documents || t->examples->source.mode == EXAMPLE_TRIPLE) return 1;
    return pool->on ? pool->own > 0 : t->expected.targets;
}

struct batch_rows expected_rows_of_batch(const struct expected_rows *t, uint64_t examples) {
    const struct examples_expected *e = &t->expected;
    int window = t->examples->source.mode == EXAMPLE_WINDOW, triples = t->examples->source.mode == EXAMPLE_TRIPLE;
    double positives = triples ? e->contexts : window && !example_predicts_window(&t->examples->source) ? 1 : e->pairs;
    double words = (double)examples * total(t->all.kept) / total(t->all.count);
    struct batch_rows batch = {.blocks = (double)examples * e->blocks};
    batch.pairs = batch.blocks * e->pairs;
    batch.targets = batch.blocks * e->targets;
    batch.positives = batch.blocks * positives;
    batch.negatives = batch.blocks * fmax(0, e->contexts - positives) + example_batch_negatives(&t->examples->source);
    batch.line_draws = batch.blocks * own_targets(t);
    batch.target_draws = window ? fmin(words, batch.targets - batch.line_draws) + batch.line_draws : batch.targets;
    batch.positive_draws = window ? fmin(words, batch.positives) : batch.positives;
    struct distinct_rows rows = distinct(t, &t->all, &t->ngrams, &t->nodes, &batch);
    batch.distinct_targets = rows.targets;
    batch.distinct_contexts = rows.contexts;
    return batch;
}

static double lines_below(const struct expected_rows *t, uint64_t rows) {
    const struct example_source *source = &t->examples->source;
    uint64_t stride = source->sentences / 65536 + 1;
    double below = 0, all = 0;
    for (uint64_t i = 0; i < source->sentences; i += stride) {
        all++;
        below += source->ids[source->mode == EXAMPLE_TRIPLE ? 3 * i + 1 : source->starts[i]] < rows;
    }
    return all > 0 ? below / all : 0;
}

static double corpus_below(const struct expected_rows *t, uint64_t rows) {
    const struct subwords *subwords = &t->vocab->subwords;
    double below = 0, all = 0;
    for (uint64_t row = 0; row < t->vocab->size; row++) {
        double touched = (double)vocab_count(t->vocab, row) * examples_kept(&t->examples->source, row);
        all += touched;
        if (row < rows) below += touched;
    }
    for (uint64_t i = 0; i < subwords->named; i++) {
        double touched = (double)subwords->counts[i] * t->ngrams_kept;
        all += touched;
        if (subwords->words + i < rows) below += touched;
    }
    return all > 0 ? below / all : 0;
}

double expected_rows_below(const struct expected_rows *t, uint64_t rows) {
    double own = t->expected.targets > 0 ? own_targets(t) / t->expected.targets : 0;
    if (rows == 0) return 0;
    return (own > 0 ? own * lines_below(t, rows) : 0) + (own < 1 ? (1 - own) * corpus_below(t, rows) : 0);
}
