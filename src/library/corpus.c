/* corpus: sptx_corpus_*: converts structs of sptx.h to structs of corpus/numbered.h, and trains on the gathered data. */
#include "handles.h"

#include "base/memory.h"
#include "corpus/columns.h"
#include "corpus/encode.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sptx_corpus {
    struct sptx_context *context;
    struct config keys;   /* the caller's keys, not resolved */
    struct config config; /* `keys`, resolved */
    struct corpus_options options; /* how `config` reads a corpus */
    struct gathered gathered;
    char said[LOOK_SAID]; /* the line that says what the columns mean ("columns ..."); "": none */
    uint64_t *offsets, *counts; /* [words + 1], [words]: the arrays that the last sptx_corpus_counted() gave */
    uint64_t offsets_capacity, counts_capacity;
    int closed; /* 1: the corpus refuses further data, because an earlier call failed after adding part of its data */
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
    corpus->gathered.pool = corpus->context->pool;
    return 0;
}

static void release(struct sptx_corpus *corpus) {
    gathered_release(&corpus->gathered);
    config_release(&corpus->config);
    config_release(&corpus->keys);
    mem_free(corpus->offsets, corpus->counts, corpus);
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

/* ---- what the data is ---- */

/* Returns a number that grows with each piece of data that is added. */
static uint64_t held(const struct sptx_corpus *corpus) {
    return corpus->gathered.tokens + corpus->gathered.named + corpus->gathered.sentences;
}

/* Prints the line that says what the columns mean, and stores it for the run's config.ini. */
static void say_taken(struct sptx_corpus *corpus, const char *said) {
    snprintf(corpus->said, sizeof corpus->said, "%s", said);
    if (*said) remark("%s", said);
}

/* Replaces the keys of a corpus by `keys`. Fails, and releases `keys`, if they cannot be resolved, or if with them the data that the corpus
 * already contains would have been read in another way. */
static int change_keys(struct sptx_corpus *corpus, struct config *keys) {
    struct config config = {0};
    int result = config_copy(&config, keys) || config_resolve(&config) ? -1 : 0;
    const struct corpus_options options = result ? corpus->options : config_corpus(&config), *now = &corpus->options;
    int alike = options.format == now->format && options.order == now->order && options.min_rating == now->min_rating &&
                options.pair_weights == now->pair_weights && options.weights == now->weights && options.max_word == now->max_word &&
                !options.list_rows == !now->list_rows;
    if (!result && held(corpus) && !alike)
        result = fail_usage("these settings change how data is read, and the corpus has data already: give them to sptx_corpus_open()");
    config_release(result ? &config : &corpus->config);
    config_release(result ? keys : &corpus->keys);
    if (result) return -1;
    corpus->config = config;
    corpus->keys = *keys;
    corpus->options = options;
    return 0;
}

static int set_format(struct sptx_corpus *corpus, enum look_rows rows) {
    struct config keys = {0};
    unsigned format = 0;
    while (format < CORPUS_FORMATS && corpus_formats[format].rows != rows) format++;
    if (format == CORPUS_FORMATS) return fail("the data is rows of %s, which no corpus has", row_properties[rows].row);
    return config_copy(&keys, &corpus->keys) || config_set(&keys, "corpus", "format", corpus_formats[format].name, "the data") ||
                   change_keys(corpus, &keys) ? -1 : 0;
}

static int check_rows(const struct sptx_rows *rows, const struct sptx_looked *looked) {
    if (!rows || rows->size != sizeof *rows || !looked || looked->size != sizeof *looked)
        return fail_usage("rows and what is found in them are structs with their sizes in `size`");
    if (!rows->what || (rows->rows && rows->columns && !rows->fields)) return fail_usage("fields, or the data's name, lie at NULL");
    if (!rows->rows || !rows->columns) return fail_usage("%s: there are no rows", rows->what);
    if (rows->columns > COLUMNS_READ || (rows->columns && rows->rows > UINT64_MAX / rows->columns / sizeof *rows->fields))
        return fail_usage("%" PRIu64 " rows of %" PRIu64 " columns are too many to look at; wanted the first %d of at most %d", rows->rows,
                          rows->columns, LOOKED_AT, COLUMNS_READ);
    for (uint64_t i = 0; i < rows->rows * rows->columns; i++)
        if (rows->fields[i].kind > SPTX_FIELD_TRUTH) return fail_usage("field %" PRIu64 " is of kind %u; wanted 0 to 5", i, rows->fields[i].kind);
    return 0;
}

_Static_assert(sizeof(struct sptx_field) == sizeof(struct look_field) && offsetof(struct sptx_field, kind) == offsetof(struct look_field, kind) &&
                   (int)SPTX_FIELD_TRUTH == (int)FIELD_TRUTH, "a field is handed to the look as it is");

enum sptx_status sptx_corpus_look(struct sptx_corpus *corpus, const struct sptx_rows *rows, struct sptx_looked *looked) {
    struct look look;
    if (!corpus) return SPTX_USAGE;
    enter(corpus->context);
    int result = corpus->closed || held(corpus) ? fail_usage("data is looked at before the corpus has some of it") : check_rows(rows, looked);
    if (!result) {
        int given = config_is_given(&corpus->keys, "corpus", "format");
        struct look_keys keys = corpus->options.look;
        if (given && !corpus_formats[corpus->options.format].columns) keys.columns = NULL;
        const struct look_data data = {(const struct look_field *)rows->fields, rows->rows, rows->columns, rows->names, rows->what};
        result = look_at_rows(&look, &data, given ? corpus_formats[corpus->options.format].rows : LOOK_ANY, &keys) ||
                         (!given && set_format(corpus, look.rows)) ? -1 : 0;
    }
    if (!result) {
        looked->format = corpus_formats[corpus->options.format].name;
        for (int c = 0; c < COLUMN_MEANINGS; c++)
            looked->column[c] = look.form.column[c] == NO_COLUMN ? -1 : look.form.column[c];
        looked->events = look.form.events;
        corpus->gathered.zeros_out = look.form.zeros_out;
        say_taken(corpus, look.said);
        if (*look.doubt) warn("the rows of %s %s", rows->what, look.doubt);
    }
    return leave(corpus->context, result);
}

enum sptx_status sptx_corpus_say(struct sptx_corpus *corpus, const char *text) {
    char said[LOOK_SAID];
    if (!corpus) return SPTX_USAGE;
    enter(corpus->context);
    if (!text || strpbrk(text, "\r\n")) return leave(corpus->context, fail_usage("what the data was taken for is one line of text"));
    snprintf(said, sizeof said, "columns    %s", text);
    say_taken(corpus, said);
    return leave(corpus->context, 0);
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
    return corpus->closed ? fail_usage("the corpus is closed: a call has failed halfway") : 0;
}

/* Ends a call that adds data. before: the result of held() at its beginning. If the call failed after adding part of its data, the corpus is
 * closed to further data. */
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

/* Kinds of data, by the calls that add them. */
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

enum sptx_status sptx_corpus_text(struct sptx_corpus *corpus, const char *text, uint64_t bytes) {
    if (!corpus) return SPTX_USAGE;
    uint64_t before = held(corpus);
    int result = begin_adding(corpus) || check_format(corpus, SENTENCES) ? -1 : 0;
    if (!result && bytes && !text) result = fail_usage("%" PRIu64 " bytes of text lie at NULL", bytes);
    if (!result && encode_has_targets(&corpus->options) && !corpus_formats[corpus->options.format].documents)
        result = fail_usage("corpus.format = %s: such data is given as sentences", corpus_formats[corpus->options.format].name);
    if (!result)
        result = taken(corpus, before, bytes ? gathered_take_text(&corpus->gathered, text, bytes) : gathered_end_line(&corpus->gathered));
    return leave(corpus->context, result);
}

enum sptx_status sptx_corpus_counted(struct sptx_corpus *corpus, struct sptx_counted *counted) {
    if (!corpus) return SPTX_USAGE;
    int result = begin_adding(corpus);
    const struct gathered_words *items = &corpus->gathered.items;
    uint64_t words = items->words.size;
    if (!result && (!counted || counted->size != sizeof *counted))
        result = fail_usage("what was counted goes to a struct sptx_counted with its size in `size`");
    if (!result && (mem_grow(&corpus->offsets, &corpus->offsets_capacity, words + 1, sizeof *corpus->offsets, "the places of words") ||
                    mem_grow(&corpus->counts, &corpus->counts_capacity, words + 1, sizeof *corpus->counts, "the words' counts")))
        result = -1;
    if (!result) {
        for (uint64_t i = 0; i <= words; i++) corpus->offsets[i] = words ? words_offset(&items->words, i) : 0;
        for (uint64_t i = 0; i < words; i++) corpus->counts[i] = items->counts[i].count;
        *counted = (struct sptx_counted){.size = sizeof *counted,
                                         .words = {SPTX_TEXT, 64, items->words.bytes, corpus->offsets, words},
                                         .counts = corpus->counts,
                                         .sentences = corpus->gathered.sentences,
                                         .tokens = corpus->gathered.tokens};
    }
    return leave(corpus->context, result);
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
        fail_usage("the corpus is closed: a call has failed halfway");
    else if (!fits)
        fail_usage("corpus.format = %s: such data is judged as %s", own->name, format ? format : "lists, pairs or adjacency");
    return corpus->closed || !fits ? NULL : &corpus->gathered;
}

/* ---- training ---- */

enum sptx_status sptx_corpus_set(struct sptx_corpus *corpus, const char *const *settings, uint64_t count) {
    struct config keys = {0};
    if (!corpus) return SPTX_USAGE;
    int result = begin_adding(corpus);
    if (!result && count && !settings) result = fail_usage("%" PRIu64 " settings at NULL", count);
    if (!result && config_copy(&keys, &corpus->keys)) result = -1;
    for (uint64_t i = 0; !result && i < count; i++) result = set_key(&keys, settings[i]);
    if (result) config_release(&keys);
    else result = change_keys(corpus, &keys);
    return leave(corpus->context, result);
}

enum sptx_status sptx_corpus_train(struct sptx_corpus *corpus, enum sptx_beginning beginning,
                                   sptx_progress_fn *progress, void *user) {
    ENDED_BY(config_release) struct config config = {0};
    if (!corpus) return SPTX_USAGE;
    int result = begin_adding(corpus) || gathered_end_line(&corpus->gathered) || config_copy(&config, &corpus->keys) ||
                         config_resolve(&config) ? -1 : 0;
    snprintf(config.said, sizeof config.said, "%s", corpus->said);
    if (!result) result = train(corpus->context, &config, &corpus->gathered, beginning, progress, user);
    return leave_training(corpus->context, result);
}

enum sptx_status sptx_corpus_tune(struct sptx_corpus *corpus, const struct sptx_tune_options *options, sptx_progress_fn *progress,
                                  void *user, struct sptx_tuned *tuned) {
    if (!corpus) return SPTX_USAGE;
    int result = begin_adding(corpus) || gathered_end_line(&corpus->gathered) ? -1 : 0;
    if (!result) result = tune(corpus->context, &corpus->keys, &corpus->gathered, options, progress, user, tuned);
    corpus->context->stop = 0;
    return leave(corpus->context, result);
}
