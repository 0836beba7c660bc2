#include "expected_rows.h"

#include "examples.h"

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

/* examples_capacity: computes what an epoch contains, and how large its largest batch is. */

uint64_t examples_batch(const struct examples *examples, uint64_t batch) {
    uint64_t count = example_count(&examples->source);
    return batch < count ? batch : count;
}

double examples_kept(const struct example_source *source, uint64_t row) {
    if (example_is_document(source, (uint32_t)row)) return 0;
    return source->keep ? (source->keep[row] + 1.0) / 4294967296.0 : 1;
}

/* Sums over examples of their numbers of blocks, targets, contexts and terms. `square`: sums of the squares of these numbers, or
 * upper bounds of them. */
enum { BLOCKS, TARGETS, CONTEXTS, TERMS, PAIRS, KINDS };
struct sums {
    double examples, of[KINDS], square[KINDS];
};
enum { SENTENCES_LOOKED_AT = 1 << 18, TOKENS_LOOKED_AT = 1 << 24 }; /* most sentences and tokens, evenly spaced, from which a
                                                                     * mean is computed: lengths vary little */

/* Returns the expected number of pairs of a sentence of which `kept` words are kept. A pair is two words, in order, the second
 * of which is in the drawn window of the first. kept - i pairs of words are at distance i; such a pair is in a window with the
 * chance (window - i + 1) / window, or always if windows are not shrunk. */
static double window_pairs(double kept, const struct example_source *source) {
    if (kept <= 1) return 0;
    double window = source->window, d = fmin(ceil(kept) - 1, window), ends = d * (d + 1) / 2;
    double chances = d, distances = ends; /* sums over i = 1 .. d: of the chance, and of the chance x i */
    if (source->shrink) {
        chances = ((window + 1) * d - ends) / window;
        distances = ((window + 1) * ends - ends * (2 * d + 1) / 3) / window;
    }
    return 2 * (kept * chances - distances);
}

/* Expected numbers of a sentence: its kept words, their target rows, and the contexts that predict them. */
struct kept {
    double words, rows, contexts;
};

static struct kept expected_kept(const struct example_source *source, const uint32_t *ids, uint64_t length) {
    struct kept kept = {0};
    if (!source->keep && !source->subwords.starts && !source->paths.starts && !source->documents)
        return (struct kept){(double)length, (double)length, (double)length};
    for (uint64_t i = 0; i < length; i++) {
        if (example_is_document(source, ids[i])) continue; /* no word: it has no path in a tree */
        double chance = examples_kept(source, ids[i]);
        kept.words += chance;
        kept.rows += chance * (double)example_rows_of(source, ids[i]);
        kept.contexts += chance * (double)example_contexts_of(source, ids[i]);
    }
    return kept;
}

/* Adds `value` to the sum of a kind. No position makes more than `most` of this kind, so the square of its number is at most
 * `most` x that number. */
static void add_bounded(struct sums *sums, int kind, double value, double most) {
    sums->of[kind] += value;
    sums->square[kind] += value * most;
}

/* Returns the largest number of contexts that predict a word. */
static double most_predicting(const struct example_source *source) {
    return source->paths.starts ? (double)source->paths.most : 1;
}

/* Adds windows whose middle word predicts the words around it. A word has `rows` rows, and `predicting` contexts predict it. */
static void add_predicted(const struct example_source *source, double windows, double pairs, double rows, double predicting,
                          struct sums *sums) {
    double most = 2.0 * source->window, negatives = source->negatives;
    double contexts = pairs * predicting + (source->per_pair ? pairs : windows) * negatives;
    double most_contexts = most * most_predicting(source) + (source->per_pair ? most : 1) * negatives;
    add_bounded(sums, BLOCKS, windows, 1);
    add_bounded(sums, TARGETS, windows * rows, (double)source->subwords.most);
    add_bounded(sums, CONTEXTS, contexts, most_contexts);
    add_bounded(sums, TERMS, contexts, most_contexts);
    add_bounded(sums, PAIRS, pairs, most);
}

static void add_windows(const struct example_source *source, struct kept in, uint64_t length, struct sums *sums) {
    double kept = in.words, share = kept / (double)length, rows = kept > 0 ? in.rows / kept : 1;
    double predicting = kept > 0 ? in.contexts / kept : 1;
    double most_rows = source->subwords.starts ? (double)source->subwords.most : 1;
    /* A kept word makes a block unless no other word of its sentence is kept. For short sentences the chance of that is
     * approximate. */
    double windows = length < 2 ? 0 : kept > 2 || source->documents ? kept : kept * (1 - pow(1 - share, (double)(length - 1)));
    double pairs = fmax(window_pairs(kept, source), source->documents ? 0 : windows), most = 2.0 * source->window + source->documents;
    if (source->documents) pairs += windows; /* each window's word is a pair with the document's row, too */
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
    add_bounded(sums, PAIRS, vectors, most_vectors);
}

static void add_rows(const struct example_source *source, uint64_t length, struct sums *sums) {
    int by_item = source->mode == EXAMPLE_ITEM; /* the list's own row, at the first position, makes no example */
    double times = by_item ? (double)length - 1 : example_is_position(source) ? (double)length : 1;
    sums->examples += by_item ? (double)length : times;
    struct example_row row = {.count = length};
    example_row_sizes(source, &row);
    if (!row.wanted) return;
    double pairs = (double)row.wanted, contexts = pairs + (double)row.negatives;
    const double made[KINDS] = {
        [BLOCKS] = 1, [TARGETS] = (double)row.targets, [CONTEXTS] = contexts, [TERMS] = contexts, [PAIRS] = pairs};
    for (int kind = 0; kind < KINDS; kind++) add_bounded(sums, kind, times * made[kind], made[kind]);
}

/* Returns the expected numbers of a walk. A walk visits a node about as often as arcs lead to it. */
static struct kept kept_of_walk(const struct example_source *source) {
    const struct walks *w = &source->walks;
    struct kept kept = {0};
    if (!source->keep && !source->paths.starts) return (struct kept){w->length, w->length, w->length};
    for (uint64_t i = 0; i < w->nodes; i++) {
        double share = (double)(w->starts[i + 1] - w->starts[i]) / (double)w->arcs * examples_kept(source, i);
        kept.words += share * (double)w->length;
        kept.contexts += share * (double)w->length * example_contexts_of(source, (uint32_t)i);
    }
    kept.rows = kept.words;
    return kept;
}

/* drops: 1: a walk with the expected number of kept words; 0: the largest walk, none of whose words is dropped. */
static struct sums sum_walk(const struct example_source *source, int drops) {
    struct sums sums = {0};
    struct kept kept = kept_of_walk(source);
    if (!drops && kept.words > 0) kept.contexts *= source->walks.length / kept.words;
    if (!drops) kept.words = kept.rows = source->walks.length;
    add_windows(source, kept, source->walks.length, &sums);
    return sums;
}

static struct sums sum_triple(const struct example_source *source) {
    struct sums sums = {.examples = (double)example_directions(source)};
    struct example_sizes one = example_most(source);
    const double made[KINDS] = {
        [BLOCKS] = 1, [TARGETS] = (double)one.targets, [CONTEXTS] = (double)one.contexts, [TERMS] = 1, [PAIRS] = 1};
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

struct examples_expected examples_expect(const struct examples *examples) {
    const struct example_source *source = &examples->source;
    struct examples_expected expected = {0};
    struct sums all = {0};
    uint64_t stride = source->sentences / SENTENCES_LOOKED_AT + source->tokens / TOKENS_LOOKED_AT + 1;
    if (source->walks.length) all = sum_walk(source, 1);
    else
        for (uint64_t i = 0; i < source->sentences; i += stride) {
            struct sums sums = sum_sentence(source, i);
            add_share(&all, &sums, 1);
        }
    if (all.examples > 0) expected.blocks = all.of[BLOCKS] / all.examples;
    if (all.of[BLOCKS] > 0) {
        expected.targets = all.of[TARGETS] / all.of[BLOCKS];
        expected.contexts = all.of[CONTEXTS] / all.of[BLOCKS];
        expected.pairs = all.of[PAIRS] / all.of[BLOCKS];
    }
    return expected;
}

/* Splits the examples of the sentences, in order, into batches, and finds the largest batch. */
struct batches {
    double examples; /* examples of each batch; the last may have fewer */
    struct sums open;
    double most[KINDS]; /* largest numbers of all closed batches */
};

static void close_batch(struct batches *batches) {
    for (int kind = 0; kind < KINDS; kind++) batches->most[kind] = fmax(batches->most[kind], batches->open.of[kind]);
    batches->open = (struct sums){0};
}

static void add_to_batches(struct batches *batches, const struct sums *sums) {
    double left = sums->examples;
    while (left > 0) {
        double capacity = batches->examples - batches->open.examples, taken = fmin(left, capacity);
        add_share(&batches->open, sums, taken / sums->examples);
        left -= taken;
        if (taken == capacity) close_batch(batches);
    }
}

/* Returns the capacity for one kind: the expected number of a batch, plus a margin that one batch in 10^9 exceeds. The expected
 * number is that of the mean batch if examples are shuffled or walks are drawn, otherwise that of the largest batch in file
 * order. The margin is Bernstein's bound for a sum of draws, which holds even if a few examples are far larger than the others.
 * No example makes more than `largest`. */
static double capacity_of_kind(const struct example_source *source, const struct batches *batches,
                               const struct sums *all, int kind, double share, double largest) {
    static const double log_of_chance = 20.7; /* minus the natural logarithm of 1e-9 */
    double mean = all->of[kind] / all->examples, square = all->square[kind] / all->examples;
    double base = share * (source->shuffle || source->walks.length ? mean * batches->examples : batches->most[kind]);
    double variance = batches->examples * fmax(0, share * square - share * share * mean * mean);
    if (source->mode != EXAMPLE_WINDOW && !source->shuffle && share >= 1) return base; /* the sizes of batches do not depend on
                                                                                        * draws */
    double third = largest * log_of_chance / 3;
    return fmin(base + third + sqrt(third * third + 2 * variance * log_of_chance), batches->examples * largest);
}

static void look_at_sentences(const struct example_source *source, struct sums *all, struct batches *batches) {
    for (uint64_t i = 0; i < source->sentences; i++) {
        struct sums sums = sum_sentence(source, i);
        add_share(all, &sums, 1);
        add_to_batches(batches, &sums);
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
    if (source->walks.length) all = sum_walk(source, 0);
    else look_at_sentences(source, &all, &batches);
    for (int kind = 0; kind <= TERMS && all.examples > 0; kind++)
        capacity[kind] = (uint64_t)ceil(capacity_of_kind(source, &batches, &all, kind, share, largest[kind]));
    return (struct example_sizes){capacity[BLOCKS], capacity[TARGETS], capacity[CONTEXTS], capacity[TERMS]};
}
