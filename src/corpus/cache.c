#include "cache.h"

#include "base/directory.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/report.h"
#include "encode.h"

#include <stdlib.h>
#include <string.h>

static const char ids_name[] = "corpus.ids", words_name[] = "corpus.vocab.tsv", lock_name[] = "corpus.lock";

struct cache {
    const char *directory;
    char *ids, *words, *lock; /* paths, owned */
    struct corpus *corpus;
    const struct corpus_options *options;
    struct pool *pool;
    struct vocab *vocab;
    struct idstream *stream;
};

/* Returns 1 with vocabulary and stream open where both files are there and belong together; otherwise 0. No sentence is
 * kept: both are made again then, and if the directory is the trouble, that fails with its own sentence. */
static int find(struct cache *c) {
    const char *given = c->options->vocab; /* the user's file may have changed since, so it is read and not our copy */
    int there = file_exists(c->ids) == 1 && file_exists(c->words) == 1;
    if (there && !(given && *given ? vocab_read_given(c->vocab, given) : vocab_read(c->vocab, c->words)) &&
        idstream_reuse(c->stream, c->ids, encode_fingerprint(c->corpus, c->vocab, c->options), c->vocab->size, c->pool))
        return 1;
    report_clear();
    vocab_release(c->vocab);
    return 0;
}

static int is_leftover(const char *name) {
    return file_is_partial(name, ids_name) || file_is_partial(name, words_name) || encode_is_leftover(name, ids_name);
}

int cache_owns(const char *name) {
    return !strcmp(name, ids_name) || !strcmp(name, words_name) || !strcmp(name, lock_name) || is_leftover(name);
}

/* Removes what killed processes left half written. The caller holds the lock, without which nobody writes these
 * files. */
static int remove_leftovers(const struct cache *c) {
    char **names;
    int64_t count = directory_list(c->directory, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count && !result; i++) {
        int left = is_leftover(names[i]);
        char *path = left ? file_join(c->directory, names[i]) : NULL;
        if (left) result = path ? file_remove(path) : -1;
        free(path);
    }
    if (count >= 0) mem_free_texts(names, count);
    return result;
}

static int refuse(const char *path) {
    return fail("'%s' is in the way: the encoded corpus has a file of this name, and this is none; move it away, or choose "
                "another corpus.cache (or run.dir)",
                path);
}

/* Checks that the names are free or those of an older cache. A stream tells by its own first bytes, and a vocabulary by
 * the stream beside it, which is written first. */
static int check_names(const struct cache *c) {
    char head[sizeof CORPUS_STREAM_MAGIC] = "";
    int ids = file_head(c->ids, head, sizeof head), words = ids < 0 ? -1 : file_head(c->words, (char[2]){0}, 2);
    if (ids < 0 || words < 0) return -1;
    if (ids && (ids != 1 || strncmp(head, CORPUS_STREAM_MAGIC, strlen(head)))) return refuse(c->ids); /* also a cut one */
    if (words && !ids)
        return fail("'%s' is in the way: the encoded corpus has a file of this name, and nothing says that this one is it, since "
                    "'%s' is not there; remove it, or choose another corpus.cache (or run.dir)",
                    c->words, c->ids);
    return words && words != 1 ? refuse(c->words) : 0;
}

static int make(struct cache *c) {
    int reused;
    return check_names(c) || remove_leftovers(c) || vocab_build(c->vocab, c->corpus, c->options, c->pool) ||
                   vocab_check_size(c->vocab) ||
                   encode_open(c->stream, c->ids, c->corpus, c->vocab, c->options, c->pool, &reused) ||
                   vocab_write(c->vocab, c->words)
               ? -1
               : 0;
}

static int take_lock(const struct cache *c, struct lock *lock) {
    char holder[LOCK_HOLDER];
    int held = lock_try(lock, c->lock, holder);
    if (held <= 0) return held;
    note("waiting    for %s, which encodes the corpus into '%s'", holder, c->directory);
    return lock_wait(lock, c->lock);
}

/* Removes what a killed process leaves: its lock file, which locks nothing any more, and what it had half written. */
static void tidy(const struct cache *c) {
    char holder[LOCK_HOLDER];
    struct lock lock;
    if (file_exists(c->lock) == 1 && !lock_try(&lock, c->lock, holder)) {
        remove_leftovers(c);
        lock_give(&lock);
    }
    report_clear();
}

/* Runs under the lock, so that what is opened is what was made. */
static int find_or_make(struct cache *c, int *reused) {
    struct lock lock;
    if (directory_make(c->directory) || take_lock(c, &lock)) return -1;
    *reused = find(c); /* another process may have made it while this one waited */
    int result = *reused ? 0 : make(c);
    lock_give(&lock);
    return result;
}

int cache_open(const char *directory, struct corpus *corpus, const struct corpus_options *options, struct pool *pool,
               struct vocab *vocab, struct idstream *stream, int *reused) {
    char *place = path_resolve(directory);
    struct cache c = {place, NULL, NULL, NULL, corpus, options, pool, vocab, stream};
    const char *given = corpus_stream(corpus);
    int result = -1;
    if (place) {
        c.ids = file_join(place, ids_name);
        c.words = file_join(place, words_name);
        c.lock = file_join(place, lock_name);
    }
    *reused = 1;
    *vocab = (struct vocab){0};
    *stream = (struct idstream){0};
    if (given)
        result = vocab_build(vocab, corpus, options, pool) ||
                         idstream_open(stream, given, vocab_fingerprint(vocab), vocab->size, pool)
                     ? -1
                     : 0;
    else if (c.ids && c.words && c.lock)
        result = find(&c) ? 0 : find_or_make(&c, reused);
    if (!result && *reused && !given) tidy(&c);
    free(place);
    free(c.ids);
    free(c.words);
    free(c.lock);
    return result;
}
