#include "cache.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"
#include "counts.h"
#include "encode.h"
#include "graph.h"
#include "numbered.h"
#include "phrases.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char words_name[] = "corpus.vocab.tsv", lock_name[] = "corpus.lock", counts_name[] = "corpus.counts";

/* The kinds of encoded corpora: an id stream or a graph. A file's first bytes tell its kind. */
enum { IDS, GRAPH, KINDS };
static const struct {
    const char *name, *magic;
} kinds[KINDS] = {[IDS] = {"corpus.ids", CORPUS_STREAM_MAGIC}, [GRAPH] = {"corpus.graph", GRAPH_MAGIC}};

/* State of one call of cache_open(). */
struct cache {
    const char *directory;
    char *encoded[KINDS], *words, *lock; /* paths of the cache's files; owned */
    int kind;                            /* kind of the corpus: IDS or GRAPH */
    struct corpus *corpus;
    const struct corpus_options *options;
    struct pool *pool;
    struct vocab *vocab;
    struct idstream *stream;
    struct graph *graph;
};

/* If the encoded corpus was made with this vocabulary, opens it and returns 1. Otherwise returns 0; fail() may have been called. */
static int reuse(struct cache *c) {
    const char *path = c->encoded[c->kind];
    if (c->kind == GRAPH)
        return !graph_open(c->graph, path, graph_fingerprint(c->corpus, c->vocab, c->options), c->vocab->size, c->pool);
    return idstream_reuse(c->stream, path, encode_fingerprint(c->corpus, c->vocab, c->options), c->vocab->size, c->pool);
}

/* If the vocabulary and the encoded corpus exist and belong together, opens both and returns 1. Otherwise returns 0, without a
 * message: the caller then makes both again, and if the directory cannot be used, that fails with its own message. */
static int find(struct cache *c) {
    const char *given = c->options->vocab; /* the user's vocabulary, which is read instead of the cache's copy, since it may have
                                            * changed */
    const char *words = c->options->grown ? c->options->grown : c->words;
    if (c->options->older) return 0; /* the cached vocabulary may contain words of another older run, so words are counted again */
    int of_user = given && *given, there = file_exists(c->encoded[c->kind]) == 1 && file_exists(c->words) == 1;
    if (there && !vocab_read_words(c->vocab, of_user ? given : words, of_user, c->pool) && reuse(c)) return 1;
    report_clear();
    vocab_release(c->vocab);
    return 0;
}

static int is_leftover(const char *name) {
    return file_is_partial(name, kinds[IDS].name) || file_is_partial(name, kinds[GRAPH].name) ||
           file_is_partial(name, words_name) || file_is_partial(name, counts_name) || encode_is_leftover(name, kinds[IDS].name);
}

int cache_owns(const char *name) {
    return !strcmp(name, kinds[IDS].name) || !strcmp(name, kinds[GRAPH].name) || !strcmp(name, words_name) ||
           !strcmp(name, lock_name) || !strcmp(name, counts_name) || is_leftover(name);
}

int cache_remove(const char *directory) {
    char **names = NULL;
    int64_t count = directory_is_plain(directory) ? directory_list(directory, &names) : 0;
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count && !result; i++)
        if (cache_owns(names[i])) result = file_remove_in(directory, names[i]);
    mem_free_texts(names, count);
    return result;
}

/* Removes files that killed processes left half written. The caller must hold the lock: without it no process writes these
 * files. */
static int remove_leftovers(const struct cache *c) {
    char **names;
    int64_t count = directory_list(c->directory, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count && !result; i++)
        if (is_leftover(names[i])) result = file_remove_in(c->directory, names[i]);
    mem_free_texts(names, count);
    return result;
}

static int refuse_cache(const char *path) {
    return fail("'%s' is in the way: the encoded corpus has a file of this name, and this is none; move it away, or choose "
                "another corpus.cache (or run.dir)",
                path);
}

/* Returns 1 if the file is an encoded corpus of this kind, perhaps an incomplete one; 0 if it does not exist; -1 after fail() if
 * it is another file. */
static int check_encoded(const struct cache *c, int kind) {
    char head[16] = "";
    _Static_assert(sizeof CORPUS_STREAM_MAGIC <= sizeof head && sizeof GRAPH_MAGIC <= sizeof head, "a magic number fits");
    int there = file_head(c->encoded[kind], head, strlen(kinds[kind].magic) + 1);
    if (there < 0) return -1;
    return there && (there != 1 || strncmp(head, kinds[kind].magic, strlen(head))) ? refuse_cache(c->encoded[kind]) : there;
}

/* Fails if another program's file is where the cache must write one. The cache knows its encoded corpus by the first bytes, and its vocabulary by
 * the encoded corpus beside it, which is written first. */
static int check_names(const struct cache *c) {
    int ids = check_encoded(c, IDS), graph = ids < 0 ? -1 : check_encoded(c, GRAPH);
    int words = graph < 0 ? -1 : file_head(c->words, (char[2]){0}, 2);
    if (words < 0) return -1;
    if (words && !ids && !graph)
        return fail("'%s' is in the way: the encoded corpus has a file of this name, and nothing says that this one is it, since "
                    "'%s' is not there; remove it, or choose another corpus.cache (or run.dir)",
                    c->words, c->encoded[c->kind]);
    return words && words != 1 ? refuse_cache(c->words) : 0;
}

/* Makes the encoded corpus of c->kind. */
static int encode(struct cache *c) {
    int reused;
    if (c->options->older && reuse(c)) return 0; /* with an older run, find() returned before it tried to reuse the encoded
                                                  * corpus */
    if (c->options->older) report_clear();
    if (c->kind == GRAPH) return graph_make(c->graph, c->encoded[GRAPH], c->corpus, c->vocab, c->options, c->pool);
    return encode_open(c->stream, c->encoded[IDS], c->corpus, c->vocab, c->options, c->pool, &reused);
}

static int make(struct cache *c) {
    struct numbered numbered;
    int result = check_names(c) || remove_leftovers(c) ||
                 (c->options->phrases.joins && phrases_join_corpus(c->corpus, c->options, c->pool)) ||
                 numbered_open(&numbered, c->encoded[c->kind]);
    if (result) return -1;
    corpus_set_numbered(c->corpus, &numbered);
    result = vocab_build(c->vocab, c->corpus, c->options, c->pool) || vocab_check_size(c->vocab) || encode(c) ||
             file_remove(c->encoded[!c->kind]) || vocab_write(c->vocab, c->words);
    corpus_set_numbered(c->corpus, NULL);
    numbered_close(&numbered);
    return result ? -1 : 0;
}

static int take_lock(const struct cache *c, struct lock *lock) {
    char holder[LOCK_HOLDER];
    int held = lock_try(lock, c->lock, holder);
    if (held <= 0) return held;
    note("waiting    for %s, which encodes the corpus into '%s'", holder, c->directory);
    return lock_wait(lock, c->lock);
}

/* Removes the files of a killed process: its lock file, which locks nothing any more, and its half-written files. */
static void tidy(const struct cache *c) {
    char holder[LOCK_HOLDER];
    struct lock lock;
    if (file_exists(c->lock) == 1 && !lock_try(&lock, c->lock, holder)) {
        remove_leftovers(c);
        lock_give(&lock);
    }
    report_clear();
}

static int open_in(struct cache *c, const char *directory, int *reused) {
    char *place = path_resolve(directory);
    struct lock lock;
    int result = place ? 0 : -1;
    for (int kind = 0; kind < KINDS && !result; kind++) result = (c->encoded[kind] = file_join(place, kinds[kind].name)) ? 0 : -1;
    if (!result && (!(c->words = file_join(place, words_name)) || !(c->lock = file_join(place, lock_name)))) result = -1;
    c->directory = place;
    if (!result && !find(c)) { /* opened or made under the lock: another process cannot replace the files in between */
        result = directory_make(c->directory) || take_lock(c, &lock) ? -1 : 0;
        if (!result) {
            *reused = find(c); /* another process may have made the files while this process waited for the lock */
            result = *reused ? 0 : make(c);
            lock_give(&lock);
        }
    }
    if (!result && *reused) tidy(c);
    free(place);
    for (int kind = 0; kind < KINDS; kind++) free(c->encoded[kind]);
    mem_free(c->words, c->lock);
    return result;
}

/* Refuses a vocabulary with rows that the run does not train: rows of lists for text, or of relations for documents. */
static int check_list_rows(const struct cache *c) {
    const struct vocab *vocab = c->vocab;
    const char *prefix = vocab_prefix(vocab);
    uint64_t length;
    if (!vocab->lists || (c->options->list_rows && !c->options->walked && !strcmp(prefix, vocab_prefix_of(c->options)))) return 0;
    const char *last = vocab_word(vocab, vocab->size - 1, &length);
    return fail("the vocabulary ends with rows of %s (its last word is '%.*s'), and this run has no such rows: leave their lines out of "
                "the file that corpus.vocab names", strcmp(prefix, VOCAB_RELATION) ? "lists" : "relations", text_shown(length), last);
}

/* Checks that the id stream fits corpus.format: it contains triples only for format triples, and their heads, relations and tails are rows of the
 * right kind. */
static int check_stream(const struct cache *c) {
    const struct idstream *stream = c->stream;
    int wanted = corpus_formats[c->options->format].triples;
    uint64_t entities = c->vocab->size - c->vocab->lists;
    if (wanted != (stream->triples > 0))
        return fail("corpus.format = %s, and the id stream holds %s", corpus_formats[c->options->format].name,
                    wanted ? "sentences, not triples" : "triples: set corpus.format = triples");
    if (wanted && c->options->reciprocal && !vocab_is_reciprocal(c->vocab))
        return fail("triples.reciprocal = yes, and the vocabulary has no second row RELATION" VOCAB_RECIPROCAL " for each relation; set it to no, "
                    "or leave out corpus.vocab");
    for (uint64_t i = 0; i < stream->triples; i++)
        if (stream->ids[3 * i] >= entities || stream->ids[3 * i + 1] < entities || stream->ids[3 * i + 2] >= entities)
            return fail("the id stream's triple %" PRIu64 " has the ids %" PRIu32 ", %" PRIu32 ", %" PRIu32 "; ids of entities "
                        "are below %" PRIu64 ", and all others are relations", i, stream->ids[3 * i],
                        stream->ids[3 * i + 1], stream->ids[3 * i + 2], entities);
    return 0;
}

int cache_open(const char *directory, struct corpus *corpus, const struct corpus_options *options, struct pool *pool,
               struct vocab *vocab, struct idstream *stream, struct graph *graph, int *reused) {
    struct corpus_options settled = *options;
    const char *given = corpus_stream(corpus);
    int edges = corpus_is_graph(options);
    struct cache c = {.kind = edges ? GRAPH : IDS, .corpus = corpus, .options = &settled, .pool = pool, .vocab = vocab,
                      .stream = stream, .graph = graph};
    *reused = 1;
    *vocab = (struct vocab){0};
    *stream = (struct idstream){0};
    *graph = (struct graph){0};
    if (given && edges)
        return fail("'%s' is an id stream, and walks over a graph (corpus.format = %s) need edges or triples as text", given,
                    corpus_formats[options->format].name);
    int result = given   ? vocab_build(vocab, corpus, &settled, pool) ||
                           idstream_open(stream, given, vocab_fingerprint(vocab), vocab->size, pool) ? -1 : 0
                 : edges && graph_settle(&settled, corpus) ? -1
                                                           : open_in(&c, directory, reused);
    words_drop_index(&vocab->words); /* the ids are encoded, and training looks up no word */
    if (!result) result = check_list_rows(&c);
    return result || edges ? result : check_stream(&c);
}

/* Makes the file of counts while holding the lock, unless another process has made it meanwhile. */
static int find_or_make_counts(const struct cache *c, const char *path, const struct counts_wanted *wanted, struct idstream *counts, int *reused) {
    char head[sizeof CORPUS_STREAM_MAGIC] = "";
    struct lock lock;
    uint64_t fingerprint = counts_fingerprint(wanted);
    if (directory_make(c->directory) || take_lock(c, &lock)) return -1;
    *reused = idstream_reuse(counts, path, fingerprint, wanted->words, c->pool);
    int there = *reused ? 0 : file_head(path, head, sizeof head), result = there < 0 ? -1 : 0;
    if (there > 0 && strncmp(head, CORPUS_STREAM_MAGIC, strlen(head))) result = refuse_cache(path);
    if (!result && !*reused) result = counts_make(path, wanted, c->pool) || idstream_open(counts, path, fingerprint, wanted->words, c->pool) ? -1 : 0;
    lock_give(&lock);
    return result;
}

int cache_counts(const char *directory, const struct counts_wanted *wanted, struct pool *pool, struct idstream *counts, int *reused) {
    OWNED char *place = path_resolve(directory), *path = place ? file_join(place, counts_name) : NULL,
               *lock = place ? file_join(place, lock_name) : NULL;
    struct cache c = {.directory = place, .lock = lock, .pool = pool};
    int result = path && lock ? 0 : -1;
    *counts = (struct idstream){0};
    *reused = !result && file_exists(path) == 1 && idstream_reuse(counts, path, counts_fingerprint(wanted), wanted->words, pool);
    if (!result && !*reused) result = find_or_make_counts(&c, path, wanted, counts, reused);
    return result;
}
