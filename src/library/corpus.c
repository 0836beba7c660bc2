/* corpus: sptx_corpus_*: converts structs of sptx.h to structs of corpus/gathered.h, and trains on the gathered data. */
#include "handles.h"

#include "base/memory.h"
#include "corpus/columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct sptx_corpus {
    struct sptx_context *context;
    struct config keys;   /* the caller's keys, not resolved */
    struct config config; /* `keys`, resolved */
    struct corpus_options options; /* how `config` reads a corpus */
    struct gathered gathered;
    int closed; /* 1: no more calls: an earlier call failed after adding some of its data, or the corpus was trained on */
};

static int open_corpus(struct sptx_corpus *corpus, const char *path, const char *const *settings, uint64_t count) {
    if (!corpus->context->backend) return fail_usage("the context is not open");
    if (read_keys(&corpus->keys, corpus->context, path, settings, count) || config_copy(&corpus->config, &corpus->keys) ||
        config_resolve(&corpus->config))
        return -1;
    if (*corpus->config.corpus_path)
        return fail_usage("corpus.path = %s: a corpus that is given by calls has no files", corpus->config.corpus_path);
    corpus->options = config_corpus(&corpus->config);
    corpus->gathered.options = &corpus->options;
    return 0;
}

static void release(struct sptx_corpus *corpus) {
    gathered_release(&corpus->gathered);
    config_release(&corpus->config);
    config_release(&corpus->keys);
    free(corpus);
}

enum sptx_status sptx_corpus_open(struct sptx_context *context, const char *config, const char *const *settings,
                                  uint64_t count, struct sptx_corpus **out) {
    if (!context) return SPTX_USAGE;
    enter(context);
    if (!out) return leave(context, fail_usage("a corpus is opened into a pointer; it is NULL"));
    *out = NULL;
    struct sptx_corpus *corpus = mem_zalloc(1, sizeof *corpus, "a corpus");
    if (!corpus) return leave(context, -1);
    corpus->context = context;
    int result = open_corpus(corpus, config, settings, count);
    if (result)
        release(corpus);
    else
        *out = corpus;
    return leave(context, result);
}

void sptx_corpus_close(struct sptx_corpus *corpus) {
    if (corpus) release(corpus);
}

/* ---- tokens ---- */

static int read_tokens(struct tokens *out, const struct sptx_tokens *in, const char *what) {
    if (!in) return fail_usage("%s are NULL", what);
    if (in->kind > SPTX_KNOWN) return fail_usage("%s are of kind %u; wanted 0 (text), 1 (numbers) or 2 (known)", what, in->kind);
    if (in->bits != 32 && in->bits != 64) return fail_usage("%s have %u bits, wanted 32 or 64", what, in->bits);
    if (in->count && (!in->data || (in->kind == SPTX_TEXT && !in->offsets))) return fail_usage("%s lie at NULL", what);
    if (check_count(in->count, what) || check_aligned(in->kind == SPTX_TEXT ? in->offsets : in->data, in->bits / 8, what))
        return -1;
    *out = (struct tokens){(enum token_kind)in->kind, in->bits, in->data, in->offsets, in->count};
    return 0;
}

/* Begins a call that adds data. Fails if the corpus is closed. */
static int begin_adding(struct sptx_corpus *corpus) {
    enter(corpus->context);
    return corpus->closed ? fail_usage("the corpus is closed: it was trained on, or a call has failed halfway") : 0;
}

/* Returns a number that grows whenever data is added. */
static uint64_t held(const struct sptx_corpus *corpus) {
    return corpus->gathered.tokens + corpus->gathered.named + corpus->gathered.sentences;
}

/* Ends a call that adds data. before: held() at its beginning. If the call failed after adding some of its data, closes the
 * corpus. */
static int taken(struct sptx_corpus *corpus, uint64_t before, int result) {
    corpus->closed |= result && held(corpus) != before;
    return result;
}

enum sptx_status sptx_corpus_words(struct sptx_corpus *corpus, uint32_t lists, const struct sptx_tokens *words) {
    struct tokens given;
    if (!corpus) return SPTX_USAGE;
    uint64_t before = held(corpus);
    int result = begin_adding(corpus) || read_tokens(&given, words, "words") ? -1 : 0;
    if (!result && (lists > 1 || given.kind == TOKENS_KNOWN))
        result = fail_usage("words are text or numbers, of items (lists = 0) or of lists (1)");
    if (!result) result = taken(corpus, before, gathered_learn(&corpus->gathered, (int)lists, &given));
    return leave(corpus->context, result);
}

/* The calls that add data of a format. */
enum given { SENTENCES, PAIRS, EDGES, TRIPLES };

static enum given given_as(const struct corpus_format_properties *format) {
    return format->edges ? EDGES : format->triples ? TRIPLES : format->scattered ? PAIRS : SENTENCES;
}

static int check_format(const struct sptx_corpus *corpus, enum given given) {
    static const char *const names[] = {[SENTENCES] = "sentences", [PAIRS] = "pairs", [EDGES] = "edges", [TRIPLES] = "triples"};
    const struct corpus_format_properties *format = &corpus_formats[corpus->options.format];
    if (given_as(format) == given) return 0;
    return fail_usage("corpus.format = %s: such data is given as %s", format->name, names[given_as(format)]);
}

enum sptx_status sptx_corpus_sentences(struct sptx_corpus *corpus, const struct sptx_tokens *tokens,
                                       const uint64_t *starts, uint64_t count, const struct sptx_tokens *names) {
    struct tokens given, named;
    if (!corpus) return SPTX_USAGE;
    uint64_t before = held(corpus);
    int result = begin_adding(corpus) || check_format(corpus, SENTENCES) || read_tokens(&given, tokens, "tokens") ||
                         (names && read_tokens(&named, names, "names")) || check_count(count, "sentences") ||
                         check_aligned(starts, sizeof *starts, "starts") ? -1 : 0;
    if (!result && count && !starts) result = fail_usage("starts are NULL");
    if (!result && names && named.count != count)
        result = fail_usage("%" PRIu64 " lists have %" PRIu64 " names", count, named.count);
    if (!result)
        result = taken(corpus, before, gathered_take_sentences(&corpus->gathered, &given, starts, count, names ? &named : NULL));
    return leave(corpus->context, result);
}

int sptx_column(const char *name) {
    return name ? column_meaning(COLUMNS_OF_PAIRS, name, strlen(name)) : -1;
}

int sptx_triple_column(const char *name) {
    return name ? column_meaning(COLUMNS_OF_TRIPLES, name, strlen(name)) : -1;
}

int sptx_edge_column(const char *name) {
    return name ? column_meaning(COLUMNS_OF_EDGES, name, strlen(name)) : -1;
}

enum sptx_status sptx_corpus_pairs(struct sptx_corpus *corpus, const struct sptx_tokens *lists,
                                   const struct sptx_tokens *items, const double *ratings) {
    struct tokens named, given;
    if (!corpus) return SPTX_USAGE;
    uint64_t before = held(corpus);
    int result = begin_adding(corpus) || check_format(corpus, PAIRS) || read_tokens(&named, lists, "lists") ||
                         read_tokens(&given, items, "items") || check_aligned(ratings, sizeof *ratings, "ratings") ? -1 : 0;
    if (!result) result = taken(corpus, before, gathered_take_pairs(&corpus->gathered, &named, &given, ratings));
    return leave(corpus->context, result);
}

enum sptx_status sptx_corpus_edges(struct sptx_corpus *corpus, const struct sptx_tokens *from, const struct sptx_tokens *to,
                                   const double *weights) {
    struct tokens sources, targets;
    if (!corpus) return SPTX_USAGE;
    uint64_t before = held(corpus);
    int result = begin_adding(corpus) || check_format(corpus, EDGES) || read_tokens(&sources, from, "from") ||
                         read_tokens(&targets, to, "to") || check_aligned(weights, sizeof *weights, "weights") ? -1 : 0;
    if (!result) result = taken(corpus, before, gathered_take_edges(&corpus->gathered, &sources, &targets, weights));
    return leave(corpus->context, result);
}

enum sptx_status sptx_corpus_triples(struct sptx_corpus *corpus, const struct sptx_tokens *heads, const struct sptx_tokens *relations,
                                     const struct sptx_tokens *tails) {
    struct tokens from, over, to;
    if (!corpus) return SPTX_USAGE;
    uint64_t before = held(corpus);
    int result = begin_adding(corpus) || check_format(corpus, TRIPLES) || read_tokens(&from, heads, "heads") ||
                         read_tokens(&over, relations, "relations") || read_tokens(&to, tails, "tails") ? -1 : 0;
    if (!result) result = taken(corpus, before, gathered_take_triples(&corpus->gathered, &from, &over, &to));
    return leave(corpus->context, result);
}

const struct gathered *corpus_data(const struct sptx_corpus *corpus, const char *format) {
    const struct corpus_format_properties *own = &corpus_formats[corpus->options.format];
    int fits = format ? !strcmp(own->name, format) : !own->edges && !own->sentences && !own->triples;
    if (corpus->closed)
        fail_usage("the corpus is closed: it was trained on, or a call has failed halfway");
    else if (!fits)
        fail_usage("corpus.format = %s: such data is judged as %s", own->name, format ? format : "lists, pairs or adjacency");
    return corpus->closed || !fits ? NULL : &corpus->gathered;
}

/* ---- training ---- */

enum sptx_status sptx_corpus_train(struct sptx_corpus *corpus, enum sptx_beginning beginning,
                                   sptx_progress_fn *progress, void *user) {
    if (!corpus) return SPTX_USAGE;
    int result = begin_adding(corpus);
    if (!result) {
        result = train(corpus->context, &corpus->config, &corpus->gathered, beginning, progress, user);
        corpus->closed = !(result < 0 && report_exit_code() == 2); /* a usage error: nothing was trained */
    }
    return leave_training(corpus->context, result);
}

enum sptx_status sptx_corpus_tune(struct sptx_corpus *corpus, const struct sptx_tune_options *options, sptx_progress_fn *progress,
                                  void *user, struct sptx_tuned *tuned) {
    if (!corpus) return SPTX_USAGE;
    int result = begin_adding(corpus);
    if (!result) result = tune(corpus->context, &corpus->keys, &corpus->gathered, options, progress, user, tuned);
    corpus->context->stop = 0;
    return leave(corpus->context, result);
}
