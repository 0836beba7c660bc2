#include "phrase_tokens.h"

#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/retry.h"
#include "base/spool.h"
#include "base/text.h"
#include "gathered.h"
#include "tokens.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* State of numbering the words of one text; the workers share it. */
struct numbering {
    struct corpus *corpus;
    const struct vocab *vocab;
    struct progress progress;
    int fd;
    pthread_mutex_t lock; /* held while the fields below are used */
    pthread_cond_t moved;
    uint64_t next; /* number of the block that gets the next place in the file */
    uint64_t ids;  /* number of ids in all blocks before that one */
    int failed;
};

/* A block and the numbers of its words; each worker has one. */
struct numbered {
    struct corpus_block block;
    uint32_t *ids;
    uint64_t count, capacity;
    struct word_query asked[WORDS_BATCH];
    unsigned waiting;
};

/* Looks up the words in `asked`, and appends their numbers. */
static int put_words(struct numbered *numbered, const struct vocab *vocab) {
    if (mem_grow(&numbered->ids, &numbered->capacity, numbered->count + WORDS_BATCH + 1, sizeof *numbered->ids,
                 "the words of a block"))
        return -1;
    uint32_t *ids = numbered->ids + numbered->count;
    words_find_batch(&vocab->words, numbered->asked, numbered->waiting, ids);
    for (unsigned i = 0; i < numbered->waiting; i++)
        if (ids[i] == WORDS_ABSENT)
            return fail("'%s' was changed while it was read; join words when nothing writes to it", numbered->block.path);
    numbered->count += numbered->waiting;
    numbered->waiting = 0;
    return 0;
}

static int put_line_end(struct numbered *numbered, const struct vocab *vocab) {
    if (put_words(numbered, vocab)) return -1;
    numbered->ids[numbered->count++] = PHRASE_LINE_END;
    return 0;
}

/* Replaces the words of a block by their numbers. A file's last line ends with the file, even without an LF. */
static int number_block(struct numbered *numbered, const struct vocab *vocab) {
    struct corpus_cursor cursor;
    const char *word;
    uint64_t length;
    int kind, in_line = numbered->block.continues;
    numbered->count = numbered->waiting = 0;
    corpus_cursor_start(&cursor, &numbered->block);
    while ((kind = corpus_token(&cursor, "", &word, &length)) != TOKEN_END) {
        in_line = kind == TOKEN_WORD;
        if (kind == TOKEN_WORD)
            words_ask(&vocab->words, &numbered->asked[numbered->waiting++], words_hash(word, length), word, length);
        if (kind == TOKEN_WORD ? numbered->waiting == WORDS_BATCH && put_words(numbered, vocab) : put_line_end(numbered, vocab))
            return -1;
    }
    return in_line && !numbered->block.line_open ? put_line_end(numbered, vocab) : put_words(numbered, vocab);
}

/* Waits until all earlier blocks have a place in the file, and then takes the place after them. Returns the index in the file of
 * the block's first id; UINT64_MAX if another worker failed. */
static uint64_t take_place(struct numbering *numbering, const struct numbered *numbered) {
    pthread_mutex_lock(&numbering->lock);
    while (numbering->next != numbered->block.number && !numbering->failed)
        pthread_cond_wait(&numbering->moved, &numbering->lock);
    uint64_t place = numbering->failed ? UINT64_MAX : numbering->ids;
    numbering->ids += numbered->count;
    numbering->next++;
    pthread_cond_broadcast(&numbering->moved);
    pthread_mutex_unlock(&numbering->lock);
    return place;
}

static int write_block(struct numbering *numbering, const struct numbered *numbered) {
    uint64_t place = take_place(numbering, numbered);
    if (place == UINT64_MAX) return -1;
    if (!retry_write_at(numbering->fd, numbered->ids, numbered->count * sizeof *numbered->ids, place * sizeof *numbered->ids))
        return 0;
    return fail("cannot keep the text's words in '%s': %s; TMPDIR names another directory", spool_directory(), strerror(errno));
}

static int number_blocks(void *context, unsigned worker) {
    struct numbering *numbering = context;
    struct numbered *mine = mem_zalloc(1, sizeof *mine, "the words of a block");
    int more = mine ? 1 : -1;
    while (more > 0 && (more = corpus_next(numbering->corpus, &mine->block)) > 0) {
        if (number_block(mine, numbering->vocab) || write_block(numbering, mine)) more = -1;
        progress_show(&numbering->progress, corpus_done(numbering->corpus), corpus_size(numbering->corpus), "B");
    }
    if (more) {
        pthread_mutex_lock(&numbering->lock);
        numbering->failed = 1;
        pthread_cond_broadcast(&numbering->moved);
        pthread_mutex_unlock(&numbering->lock);
    }
    if (mine) corpus_block_release(&mine->block), free(mine->ids);
    free(mine);
    return more;
}

static int map(struct phrase_tokens *tokens, const struct numbering *numbering) {
    uint64_t bytes = numbering->ids * sizeof *tokens->ids;
    if (!bytes) return 0;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, numbering->fd, 0);
    if (data == MAP_FAILED) return fail("cannot map %" PRIu64 " bytes of the text's words: %s", bytes, strerror(errno));
    *tokens = (struct phrase_tokens){data, numbering->ids, bytes};
    return 0;
}

int phrase_tokens_read(struct phrase_tokens *tokens, struct corpus *corpus, const struct corpus_options *options,
                       const struct vocab *vocab, struct pool *pool) {
    struct numbering numbering = {.corpus = corpus, .vocab = vocab, .fd = spool_open()};
    *tokens = (struct phrase_tokens){NULL, 0, 0};
    if (numbering.fd < 0) return -1;
    pthread_mutex_init(&numbering.lock, NULL);
    pthread_cond_init(&numbering.moved, NULL);
    corpus_read_as(corpus, options);
    corpus_rewind(corpus);
    progress_start(&numbering.progress, "numbering", options->report_seconds);
    int result = pool_run(pool, number_blocks, &numbering);
    progress_end(&numbering.progress);
    if (!result) result = map(tokens, &numbering);
    close(numbering.fd);
    pthread_cond_destroy(&numbering.moved);
    pthread_mutex_destroy(&numbering.lock);
    return result;
}

int phrase_tokens_gathered(struct phrase_tokens *tokens, const struct gathered *gathered) {
    uint64_t size = gathered->tokens + gathered->sentences, bytes = size * sizeof *tokens->ids, at = 0, length;
    *tokens = (struct phrase_tokens){NULL, 0, 0};
    for (uint64_t n = 0; n < gathered->items.words.size; n++) {
        const char *word = words_get(&gathered->items.words, n, &length);
        if (memchr(word, ' ', length))
            return fail(
                "corpus.phrases = yes: the word '%.*s' has a blank in it; join words before, as sptx.Phrases does in Python",
                text_shown(length), word);
    }
    if (!size) return 0;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return fail("not enough memory for the numbers of %" PRIu64 " words: %s", size, strerror(errno));
    *tokens = (struct phrase_tokens){data, size, bytes};
    uint32_t *out = data;
    for (uint64_t i = 0; i < gathered->sentences; i++) {
        for (; at < gathered->ends[i]; at++) *out++ = gathered->ids[at];
        *out++ = PHRASE_LINE_END;
    }
    return 0;
}

void phrase_tokens_release(struct phrase_tokens *tokens) {
    if (tokens->ids) munmap(tokens->ids, tokens->mapped);
    *tokens = (struct phrase_tokens){NULL, 0, 0};
}
