#include "session.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "bench.h"
#include "corpus/cache.h"
#include "corpus/fields.h"
#include "run/model_files.h"
#include "run/run_directory.h"
#include "run/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets *ops to the backend that trains this config: the CPU's if no other one supports all of its keys. */
static int choose_backend(const struct config *config, const struct backend_ops **ops) {
    char why[HOGWILD_WHY];
    if (config_backend(config, ops)) return -1;
    if (!(*ops)->has_gpu || !config_refuses_hogwild(config, 1, why)) return 0;
    if (config_named_backend(config)) return fail("%s", why);
    *ops = backend_without_gpu();
    return 0;
}

static unsigned threads_of(const struct session *s) {
    unsigned threads = (unsigned)s->config->device_threads;
    return threads ? threads : s->cores;
}

static int open_backend(struct session *s) {
    const struct config *c = s->config;
    struct backend_options options = {.threads = threads_of(s),
                                      .index = (unsigned)c->device_index,
                                      .depth = (unsigned)c->memory_depth,
                                      .gpu_budget = c->memory_gpu_budget,
                                      .matmul = (enum matmul_type)c->device_matmul,
                                      .ranks = s->ranks,
                                      .exchange = (enum exchange_way)c->device_exchange};
    if (choose_backend(c, &s->ops)) return -1;
    return s->ops->open(&s->backend, &options) || s->ops->info(s->backend, &s->machine) ? -1 : 0;
}

/* Sets the machine for which the plan is made: with a GPU of the given memory size, which need not exist. */
static int imagine_gpu(struct session *s) {
    char why[256] = "";
    const struct config *c = s->config;
    const struct backend_ops *named = config_named_backend(c);
    if (!named || named->present(why, sizeof why)) return open_backend(s);
    if (c->memory_gpu_budget == COUNT_AUTO)
        return fail("device.backend = %s: %s; to plan for a GPU that is not here, say its size (memory.gpu_budget = 11GiB)",
                    named->name, why);
    s->ops = named;
    s->machine = (struct backend_info){.name = "a GPU that is not here",
                                       .threads = pool_threads(s->pool),
                                       .gpu_total = c->memory_gpu_budget,
                                       .gpu_free = c->memory_gpu_budget};
    return 0;
}

static int open_corpus(struct session *s) {
    char **paths;
    if (s->data) return (s->corpus = corpus_open_gathered(s->data)) ? 0 : -1;
    int64_t count = config_paths("corpus.path", s->config->corpus_path, &paths);
    if (count < 0) return -1;
    int input = count > 0 && ranks_count(s->ranks) > 1 && !strcmp(paths[0], CORPUS_INPUT);
    if (input)
        fail("corpus.path = " CORPUS_INPUT ": several ranks read the corpus, and standard input comes once, to one; put it into a file first");
    else if (count == 0)
        fail("corpus.path is empty: say which files to read (corpus.path = FILE, or --corpus.path=FILE)");
    else
        s->corpus = corpus_open(paths, (uint64_t)count);
    mem_free_texts(paths, count);
    return s->corpus ? 0 : -1;
}

/* ---- what may take long, and is a ranks_do() therefore ---- */

/* Examines the corpus' first lines, and stores what was found in the config: the line that was printed, and keys with which the same files are
 * read the same way again. */
static int look_at_corpus(struct session *s, const struct corpus_options *options) {
    struct config *c = s->config;
    if (corpus_find(s->corpus, options, &s->found)) return -1;
    c->corpus_header = (int)s->found.keys.header;
    c->corpus_names = (int)s->found.keys.names;
    c->corpus_separator = (int)s->found.keys.separator;
    if (*s->found.said) memcpy(c->said, s->found.said, sizeof c->said);
    if (!*s->found.columns) return 0;
    char *columns = mem_text(s->found.columns, strlen(s->found.columns), "the configuration");
    if (!columns) return -1;
    free(c->corpus_columns);
    c->corpus_columns = columns;
    return 0;
}

/* Opens or makes the counts of pairs of the corpus. */
static int find_counts(struct session *s, const char *directory) {
    const struct config *c = s->config;
    const struct counts_wanted wanted = {.text = s->graph.nodes ? NULL : &s->stream,
                                         .graph = &s->graph,
                                         .words = s->vocab.size,
                                         .window = s->graph.nodes ? 0 : (uint32_t)c->examples_window,
                                         .together = (uint32_t)c->examples_positives};
    int reused;
    if (s->stream.weights) { /* the corpus itself is an id stream of counts (counts.h), made by the command glove */
        s->counts = s->stream;
        s->stream = (struct idstream){0};
        return 0;
    }
    if (s->graph.nodes && !s->graph.weights)
        return fail("train.loss = glove fits the logarithms of the weights of edges, and '%s' has none: a third column has them (graph.weights)",
                    c->corpus_path);
    return cache_counts(directory, &wanted, s->pool, &s->counts, &reused);
}

static int count_term(void *user, const struct corpus_field *field) {
    *(uint64_t *)user += field->weight != 0; /* 0: the label of a false triple */
    return 0;
}

/* Reads train.evaluate before anything is encoded or removed, so that a file without triples is refused at once. Standard input can be read only
 * once: trainer.c reads it. */
static int check_evaluate(struct session *s) {
    const char *path = s->config->train_evaluate;
    struct corpus_options options = {.format = FORMAT_TRIPLES, .look = config_corpus(s->config).look, .said = s->said};
    uint64_t terms = 0;
    memcpy(s->said, s->config->said, sizeof s->said);
    options.look.hints = options.look.labelled = 1;
    if (!*path || !strcmp(path, CORPUS_INPUT)) return 0;
    if (fields_read_file(path, &options, count_term, &terms)) return -1;
    return terms ? 0 : fail("train.evaluate = %s holds no triple; wanted lines of head, relation, tail", path);
}

/* Opens the encoded corpus and its vocabulary, which it encodes if necessary. */
static int find_corpus(void *session) {
    struct session *s = session;
    const struct config *c = s->config;
    struct corpus_options options = config_corpus(c);
    options.older = warm_start_older(&s->grow, c);
    options.grown = s->grown;
    const char *directory = *c->corpus_cache ? c->corpus_cache : c->run_dir;
    if (open_corpus(s) || look_at_corpus(s, &options) || check_evaluate(s) || ratings_note(s->corpus, &options) ||
        (directory == c->run_dir && run_directory_check(directory)))
        return -1;
    if (cache_open(directory, s->corpus, &options, s->pool, &s->vocab, &s->stream, &s->graph, &s->reused)) return -1;
    return config_has_counts(c) ? find_counts(s, directory) : 0;
}

/* Reads the corpus on all ranks. The first rank encodes it; the others then open its files, or, on machines that do not see them, encode their
 * own. */
static int read_corpus(struct session *s) {
    int first = ranks_first(s->ranks);
    if (ranks_do(s->ranks, first ? find_corpus : NULL, s)) return -1;
    return ranks_count(s->ranks) > 1 ? ranks_do(s->ranks, first ? NULL : find_corpus, s) : 0;
}

/* Returns the size of the data, on which some defaults depend. For text, the number of tokens is that of the stream or the sum of the vocabulary's
 * counts, whichever is larger: the counts may include those of an older run, or come from corpus.vocab. */
static struct data_size size_of(const struct session *s) {
    uint64_t own = s->vocab.lists ? s->stream.sentences : 0; /* number of first tokens of lists, which are the lists' own rows */
    uint64_t tokens = s->stream.tokens - own;
    int text = corpus_formats[s->config->corpus_format].sentences;
    return (struct data_size){.tokens = text && s->vocab.kept > tokens ? s->vocab.kept : tokens,
                              .words = s->vocab.size - s->vocab.lists,
                              .lists = s->stream.sentences,
                              .arcs = s->graph.arcs,
                              .relations = s->vocab.lists};
}

/* Sets the defaults that depend on the data's size; not for a resumed run, which keeps its values. */
static int settle_defaults(struct session *s, const char *checkpoint) {
    const struct data_size size = size_of(s);
    return checkpoint ? 0 : defaults_by_size(s->config, &size, s->defaults);
}

/* Makes the rows of n-grams. They depend only on the vocabulary, so each rank makes them by itself. */
static int find_subwords(struct session *s) {
    const struct subword_form form = config_subwords(s->config);
    return subwords_make(&s->vocab.subwords, &form, &s->vocab);
}

static int open_source(void *session) {
    struct session *s = session;
    return warm_start_open(&s->grow, s->config);
}

static int find_examples(void *session) {
    struct session *s = session;
    if (s->config->examples_mode == MODE_WALK) return examples_init_walks(&s->examples, s->config, &s->vocab, &s->graph, s->pool);
    if (config_has_counts(s->config)) return examples_init(&s->examples, s->config, &s->vocab, &s->counts);
    /* The first id of a list is never held out if it is the list's own row, or the target of an adjacency line. */
    int own = s->vocab.lists > 0 || corpus_formats[s->config->corpus_format].targets;
    double share = s->config->train_held_out_items;
    if (share > 0 && held_out_split(&s->held_out, &s->stream, own, share, (uint32_t)s->config->train_seed)) return -1;
    return examples_init(&s->examples, s->config, &s->vocab, s->held_out.lists ? &s->held_out.trained : &s->stream);
}

/* Returns the speeds of the GPU's copies, for the expected speed of a plan. measure = 0: only stored ones, since training must begin at once. For
 * lock-free training there is no such estimate. */
static struct bench_limits find_rates(struct session *s, int measure) {
    struct bench_limits rates = {0};
    if (!s->backend || !s->ops->bench_limits || s->config->train_update != UPDATE_BATCH) return rates;
    if (measure)
        rates_get(s->backend, &s->machine, s->ops->bench_limits, &rates);
    else
        rates_find(&s->machine, &rates);
    return rates;
}

/* Finds which values rows begin with, and which rows are frozen. */
static int find_rows(struct session *s, const char *checkpoint) {
    if (frozen_init(&s->frozen, s->config, vocab_targets(&s->vocab))) return -1;
    if (!checkpoint || !s->frozen.known) return warm_start_match(&s->grow, &s->vocab, &s->frozen, s->ranks);
    return frozen_resume(&s->frozen, checkpoint, s->ranks);
}

static int open_with(struct session *s, struct config *config, int (*machine)(struct session *), const char *checkpoint,
                     int measure) {
    if (tables_check_init(config) || !(s->pool = pool_open(threads_of(s))) || read_corpus(s)) return -1;
    if (s->reads_older) warm_start_release(&s->grow);
    if (settle_defaults(s, checkpoint) || ranks_agree(s->ranks, find_subwords(s)) || find_rows(s, checkpoint) ||
        ranks_do(s->ranks, find_examples, s) || machine(s))
        return -1;
    if (config->examples_targets == TARGETS_NEW) s->examples.source.known = s->frozen.bits[TABLE_TARGET];
    uint64_t space = UINT64_MAX, older = 0;
    if (*config->train_evaluate && ranks_count(s->ranks) > 1)
        return fail("train.evaluate is for one process, and %u train", ranks_count(s->ranks));
    if (ranks_first(s->ranks) && config->run_checkpoint && run_directory_space(config->run_dir, &space, &older)) return -1;
    const struct planner_machine planned = {.ops = s->ops,
                                            .info = s->machine,
                                            .local = s->local,
                                            .host_available = mem_available(),
                                            .disk_free = space,
                                            .disk_older = older,
                                            .rates = find_rates(s, measure)};
    if (planner_make(&s->plan, config, &s->vocab, &s->examples, &planned)) return -1;
    if (config_has_documents(config)) s->plan.sentences = s->vocab.lists;
    memcpy(s->plan.defaults, s->defaults, sizeof s->defaults);
    return 0;
}

static int check_ranks(const struct config *config, const struct ranks *ranks) {
    if (config->device_gpus > 1 && ranks_count(ranks) == 1 && config->copies < 2)
        return fail("device.gpus = %" PRIu64 " begins a process for each GPU, which the command 'sptx-w2v train' alone does; this is "
                    "one process: leave the key out",
                    config->device_gpus);
    if (!config->device_ranks || config->device_ranks == ranks_count(ranks)) return 0;
    return fail("device.ranks = %" PRIu64 ", and this run has %u: begin it by mpirun -n %" PRIu64 ", or leave the key out, which is for plan",
                config->device_ranks, ranks_count(ranks), config->device_ranks);
}

/* Sets s->grown if a resumed run may have kept words of an older run: its words are then read from its own vocab.tsv, since the older run may no
 * longer exist. */
static int find_grown(struct session *s, const char *checkpoint) {
    int kept = checkpoint ? warm_start_may_keep(s->config) : 0;
    if (kept <= 0) return kept;
    s->grown = file_join(s->config->run_dir, "vocab.tsv");
    int there = s->grown ? file_exists(s->grown) : -1;
    if (there == 1) return 0;
    free(s->grown);
    s->grown = NULL;
    if (there < 0) return -1;
    s->reads_older = 1; /* a rank that does not see the run's directory finds the words as at the beginning of the run */
    return open_source(s);
}

/* Takes over the files of features of the run in train.from, if they are there and the keys do not name others. */
static int keep_features(struct session *s) {
    const struct config *older = &s->grow.run.keys, *own = s->config;
    enum look_rows rows = corpus_formats[own->corpus_format].rows;
    const char *keys[2] = {"item_features", "list_features"}, *files[2] = {older->corpus_item_features, older->corpus_list_features};
    int fits[2] = {rows == LOOK_LISTS || rows == LOOK_PAIRS, own->examples_mode == MODE_USER && own->examples_own > 0}, kept = 0;
    for (int i = 0; i < 2 && fits[0]; i++) {
        if (!files[i] || !*files[i] || !fits[i] || config_is_given(own, "corpus", keys[i]) || file_exists(files[i]) != 1) continue;
        if (config_set(s->config, "corpus", keys[i], files[i], "train.from")) return -1;
        note("features   '%s', as in train.from (corpus.%s)", files[i], keys[i]);
        kept = 1;
    }
    return kept && !config_is_given(own, "corpus", "feature_words") && *older->corpus_feature_words
               ? config_set(s->config, "corpus", "feature_words", older->corpus_feature_words, "train.from") : 0;
}

int session_open(struct session *s, struct config *config, struct gathered *data, struct ranks *ranks,
                 const char *checkpoint) {
    *s = (struct session){.config = config,
                          .data = data,
                          .ranks = ranks,
                          .local = ranks ? ranks->local : 1,
                          .cores = ranks ? ranks->cores : 0};
    ranks_patience(ranks, config->device_rank_timeout, 0);
    if (check_ranks(config, ranks)) return -1;
    /* Checked before the corpus is read, which may take an hour. */
    if (ranks_agree(ranks, choose_backend(config, &s->ops)) || ranks_alike_device(config, s->ops->has_gpu, ranks)) return -1;
    if (ranks_do(ranks, checkpoint ? NULL : open_source, s) || ranks_agree(ranks, find_grown(s, checkpoint))) return -1;
    if (ranks_agree(ranks, checkpoint ? 0 : keep_features(s))) return -1;
    return open_with(s, config, open_backend, checkpoint, 0);
}

int session_settle(struct config *config, struct gathered *data) {
    struct session s = {.config = config, .data = data, .local = 1};
    int result = warm_start_read_words(&s.grow, config) || !(s.pool = pool_open(threads_of(&s))) || read_corpus(&s) ||
                         settle_defaults(&s, NULL) ? -1 : 0;
    session_close(&s);
    return result;
}

int session_plan(struct session *s, struct config *config, const struct ranks *ranks) {
    *s = (struct session){.config = config};
    if (ranks_count(ranks) > 1 && check_ranks(config, ranks)) return -1;
    /* Sets how many ranks share a machine and its cores: with device.gpus all processes are on this machine, with device.ranks each has its own. */
    int here = ranks_count(ranks) == 1 && s->config->device_gpus > 1 && !s->config->device_ranks;
    s->local = ranks_count(ranks) > 1 ? ranks->local : here ? config_ranks(s->config) : 1;
    s->cores = ranks_count(ranks) > 1 ? ranks->cores : s->local > 1 ? pool_cores() / s->local : 0;
    if (s->local > 1 && !s->cores) s->cores = 1;
    char why[HOGWILD_WHY];
    const struct backend_ops *named = config_named_backend(config);
    if (named && named->has_gpu && config_refuses_hogwild(config, 1, why)) return fail("%s", why);
    if (warm_start_read_words(&s->grow, config)) return -1;
    return open_with(s, config, imagine_gpu, NULL, 1);
}

static void note_counts(const struct session *s) {
    char pairs[TEXT_BYTES];
    note("counts     %s pairs, which count %.6g to %.6g", text_of_count(pairs, s->counts.tokens - s->counts.sentences), s->examples.weights.least,
         s->examples.weights.most);
}

static void note_graph(const struct session *s) {
    char arcs[TEXT_BYTES], nodes[TEXT_BYTES], walks[TEXT_BYTES];
    const char *what = s->graph.labels ? "entities and relations" : config_walks_triples(s->config) ? "entities" : "nodes";
    note("graph      %s arc%s of %s %s%s%s%s; %s walk%s of %s%" PRIu64 " an epoch", text_of_count(arcs, s->graph.arcs), text_plural(s->graph.arcs),
         text_of_count(nodes, s->graph.nodes), what, s->graph.directed ? ", directed" : "", s->graph.weights ? ", weighted" : "",
         s->reused ? " (read before)" : "", text_of_count(walks, s->examples.source.sentences), text_plural(s->examples.source.sentences),
         s->graph.directed ? "at most " : "", s->config->walks_length);
}

static void note_corpus(const struct session *s) {
    char rows[TEXT_BYTES], tokens[TEXT_BYTES], sentences[TEXT_BYTES];
    if (s->stream.triples) {
        char triples[TEXT_BYTES], entities[TEXT_BYTES], relations[TEXT_BYTES];
        int reciprocal = s->config->triples_reciprocal;
        uint64_t kinds = s->vocab.lists / (reciprocal ? 2 : 1);
        note("corpus     %s triple%s of %s entities and %s relation%s%s%s", text_of_count(triples, s->stream.triples),
             text_plural(s->stream.triples), text_of_count(entities, s->vocab.size - s->vocab.lists), text_of_count(relations, kinds),
             text_plural(kinds), reciprocal ? ", each trained backwards, too" : "", s->reused ? " (encoded before)" : "");
        return;
    }
    uint64_t own = s->vocab.lists ? s->stream.sentences : 0; /* number of first ids of lists, which are the lists' own rows */
    int named = s->vocab.lists && (config_has_documents(s->config) || s->vocab.lists < s->stream.sentences); /* lines of one name are one list */
    uint64_t lines = named ? s->vocab.lists : s->stream.sentences, words = s->vocab.size - s->vocab.lists;
    note("corpus     %s token%s in %s %.*s, %s word%s%s", text_of_count(tokens, s->stream.tokens - own), text_plural(s->stream.tokens - own),
         text_of_count(sentences, lines), TEXT_NOUN(lines, config_lines(s->config)), text_of_count(rows, words), text_plural(words),
         s->reused ? " (encoded before)" : "");
}

/* Prints the range of the weights of pairs. */
static void note_weights(const struct session *s) {
    const struct examples *e = &s->examples;
    int log = s->config->corpus_weights == PAIR_WEIGHTS_LOG;
    if (!e->source.weights || config_has_counts(s->config)) return;
    note("weights    ratings %.6g to %.6g, mean%s %.4g (corpus.weights = %s)", log ? expm1(e->weights.least) : e->weights.least,
         log ? expm1(e->weights.most) : e->weights.most, log ? " of log(1 + rating)" : "", e->weights.mean, log ? "log" : "linear");
}

/* Prints how many lists make no example; not for text, where these would just be sentences of one word. */
static void note_too_short(const struct session *s) {
    char count[TEXT_BYTES], all[TEXT_BYTES], way_out[128] = "";
    const struct examples *examples = &s->examples;
    uint64_t own = s->vocab.lists > 0;
    if (!examples->too_short || corpus_formats[s->config->corpus_format].sentences) return;
    if (examples->least > 2)
        snprintf(way_out, sizeof way_out, " (examples.positives = %" PRIu64 "; examples.short = repeat trains those of %s)",
                 s->config->examples_positives, own ? "one" : "two");
    note("left out   %s of %s %s, which have fewer than %" PRIu64 " item%s%s", text_of_count(count, examples->too_short),
         text_of_count(all, s->stream.sentences), config_lines(s->config), examples->least - own,
         text_plural(examples->least - own), way_out);
}

/* Prints which value train.effort = auto has got, and which the other one is. */
static void note_effort(const struct session *s) {
    const struct config *c = s->config;
    char negatives[TEXT_BYTES];
    int thorough = c->train_effort == EFFORT_THOROUGH;
    if (!config_has_lists(c)) return; /* for triples the plan's line "by size" shows it already */
    note("effort     %s: %" PRIu64 " columns, %s negatives of %s, %" PRIu64 " epoch%s (train.effort = %s)",
         thorough ? "thorough" : "quick", c->model_dim, text_of_count(negatives, c->negatives_count),
         c->negatives_per == PER_BATCH ? "a batch" : "a list", c->train_epochs, text_plural(c->train_epochs),
         thorough ? "quick takes less time" : "thorough takes longer and makes a better model");
}

void session_print(const struct session *s) {
    if (s->graph.nodes && !s->counts.ids) note_graph(s);
    else if (s->stream.ids) note_corpus(s);
    if (s->counts.ids) note_counts(s);
    note_weights(s);
    note_too_short(s);
    note_effort(s);
    warm_start_print(&s->grow);
    note("device     %s", s->machine.name);
    planner_print(&s->plan, s->config, 0);
}

static int open_tables(void *session) {
    struct session *s = session;
    struct config *c = s->config;
    uint32_t *const *frozen = s->frozen.bits;
    if (!s->plan.fits) return fail("the run does not fit: %s", s->plan.advice);
    c->train_batch = s->plan.batch;
    /* Replaces memory.* = auto by the places that the plan has chosen. */
    int *wanted[] = {&c->memory_target, &c->memory_target_state, &c->memory_context, &c->memory_context_state};
    const enum place settled[] = {s->plan.target, s->plan.target_state, s->plan.context, s->plan.context_state};
    for (int i = 0; i < 4; i++)
        if (*wanted[i] == PLACE_AUTO) *wanted[i] = (int)settled[i];
    s->examples.source.stream_on_host = !s->plan.stream_gpu;
    s->examples.source.batch = examples_batch(&s->examples, s->plan.batch);
    s->examples.source.capacity = s->plan.capacity;
    if (s->ops->source(s->backend, &s->examples.source)) return -1;
    struct table_options target = {
        .rows = s->plan.rows, .first_row = s->plan.first_target, .hot_rows = s->plan.hot_rows, .ranks = s->ranks};
    struct table_options context = target;
    target.frozen = frozen[TABLE_TARGET];
    context.frozen = frozen[TABLE_CONTEXT];
    context.rows = s->plan.items;
    context.first_row = 0;
    target.idle = s->vocab.subwords.rows - s->vocab.subwords.named;
    target.init.later_from = s->plan.items;
    if (tables_init(&s->target, TABLE_TARGET, c, &target, s->ops, s->backend) ||
        tables_init(&s->context, TABLE_CONTEXT, c, &context, s->ops, s->backend))
        return -1;
    return 0;
}

int session_tables(struct session *s) {
    return ranks_do(s->ranks, open_tables, s);
}

static int fill_tables(void *session) {
    struct session *s = session;
    int result = warm_start_fill(&s->grow, &s->target, s->pool) || warm_start_fill(&s->grow, &s->context, s->pool) ? -1 : 0;
    warm_start_release(&s->grow); /* these mapped files are as large as the tables, and no longer needed */
    return result;
}

int session_fill(struct session *s) {
    return ranks_do(s->ranks, fill_tables, s);
}

struct steps session_steps(struct session *s) {
    return (struct steps){.config = s->config,
                          .ops = s->ops,
                          .backend = s->backend,
                          .target = &s->target,
                          .context = &s->context,
                          .per_epoch = example_count(&s->examples.source),
                          .batch = s->plan.batch};
}

void session_close(struct session *s) {
    table_release(&s->target);
    table_release(&s->context);
    if (s->backend) s->ops->close(s->backend);
    s->backend = NULL;
    examples_release(&s->examples);
    held_out_release(&s->held_out);
    warm_start_release(&s->grow);
    free(s->grown);
    s->grown = NULL;
    frozen_release(&s->frozen);
    idstream_close(&s->stream);
    idstream_close(&s->counts);
    graph_close(&s->graph);
    vocab_release(&s->vocab);
    corpus_close(s->corpus);
    pool_close(s->pool);
    s->corpus = NULL;
    s->pool = NULL;
}
