/* Workers encode blocks of the numbered corpus in any order. A worker that has encoded a block waits until all earlier blocks
 * have their places in the file, gives it its place, and writes it while others do the same. So the file does not depend on the
 * number of threads. Only this step in the corpus' order knows what spans several blocks: the length of the open sentence, and
 * whether the open line has its target. */
#include "encode.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/report.h"
#include "encode_block.h"
#include "encode_triples.h"
#include "group_pairs.h"
#include "phrases.h"
#include "triples.h"
#include "word_counts.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { ENCODING = 2 }; /* version of the encoding: to be raised if the same corpus gives other ids or sentences than before */
enum { LOOK = 3 << 8 }; /* version of look.h: to be raised if the same file gives other words than before */

uint64_t encode_fingerprint(const struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options) {
    if (corpus_stream(corpus)) return vocab_fingerprint(vocab);
    const struct corpus_format_properties *format = &corpus_formats[options->format];
    int grown = options->older || options->grown, has_vocab = grown || (options->vocab && *options->vocab);
    const struct look_keys *look = corpus_keys(corpus) ? corpus_keys(corpus) : &options->look;
    const char *events = look->events ? look->events : "";
    const char *columns = format->columns && look->columns ? look->columns : "";
    uint64_t keys = XXH3_64bits_withSeed(columns, strlen(columns), (uint64_t)look->separator * 16 + (uint64_t)look->names);
    keys = XXH3_64bits_withSeed(events, strlen(events), keys ^ (uint64_t)look->literals);
    uint64_t facts[] = {format->rows == LOOK_TEXT ? ENCODING : (ENCODING + LOOK) ^ keys,
                        corpus_fingerprint(corpus),
                        vocab_fingerprint(vocab),
                        (uint64_t)options->format,
                        format->sentences ? options->max_sentence : 0,
                        (uint64_t)(options->order == ORDER_GIVEN && !has_vocab),
                        grown ? UINT64_MAX : has_vocab ? 0 : options->min_count, /* UINT64_MAX cannot be a min_count */
                        has_vocab ? 0 : options->max_vocab,
                        has_vocab ? 0 : (uint64_t)options->order,
                        format->rows == LOOK_TEXT ? 0 : (uint64_t)look->header,
                        0,
                        (uint64_t)(options->list_rows + 2 * (format->triples && options->reciprocal))};
    uint64_t known = sizeof facts - (options->list_rows ? 0 : sizeof *facts); /* leaves list_rows out if it is 0, so that the
                                                                               * fingerprints of older streams stay valid */
    if (format->ratings) memcpy(&facts[10], &options->min_rating, sizeof options->min_rating);
    uint64_t sum = XXH3_64bits_withSeed(facts, known, (uint64_t)options->pair_weights);
    return options->phrases.joins ? sum ^ phrases_fingerprint(&options->phrases) : sum;
}

/* ---- the places of blocks ---- */

/* State of encoding one corpus; the workers share it. */
struct encoding {
    struct corpus *corpus;
    const struct vocab *vocab;
    const struct corpus_options *options;
    const struct numbered *numbered; /* the numbered corpus; NULL: the corpus is gathered data */
    struct pool *pool;
    _Atomic uint64_t next;           /* index of the next number to encode */
    struct progress progress;
    struct idstream_writer writer;
    uint64_t open_start; /* index in the stream of the first token of the sentence that has no end yet */
    int line_lost;       /* adjacency, 1: the open line's target is not in the vocabulary, so its contexts are dropped */
    int held;            /* adjacency, 1: of the open line, only the target is known so far; it is written when a context follows */
    uint32_t held_id;

    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t placed; /* number of blocks that have their places */
    int failed;
};

/* Ids of a block, and their place in the stream. */
struct placed {
    const uint32_t *ids; /* [count] */
    uint64_t count, at;
};

/* Ends sentences that reach max_sentence tokens, up to token `end`. line_ends = 1: also ends the sentence at `end`. */
static int cut_sentences(struct encoding *encoding, uint64_t end, int line_ends) {
    int cuts = corpus_formats[encoding->options->format].sentences && !encoding->options->list_rows;
    uint64_t most = cuts ? encoding->options->max_sentence : UINT64_MAX;
    while (end - encoding->open_start >= most) {
        encoding->open_start += most;
        if (idstream_end_sentence(&encoding->writer, encoding->open_start)) return -1;
    }
    if (!line_ends || end == encoding->open_start) return 0;
    encoding->open_start = end;
    return idstream_end_sentence(&encoding->writer, end);
}

static int place_lines(struct encoding *encoding, const struct encoded *block, struct placed *placed) {
    uint64_t before = encoding->writer.tokens;
    for (uint64_t i = 0; i < block->lines; i++)
        if (cut_sentences(encoding, before + block->ends[i], 1)) return -1;
    if (cut_sentences(encoding, before + block->count, 0)) return -1;
    *placed = (struct placed){block->ids, block->count, before};
    encoding->writer.tokens += block->count;
    return 0;
}

/* Places ids of a line that began in an earlier block. If the line's target was held back until now, it is placed before them. If
 * the target is not in the vocabulary, the ids are dropped. */
static void place_rest_of_line(struct encoding *encoding, const struct encoded *block, uint64_t count, struct placed *placed) {
    if (encoding->line_lost || !count) return;
    unsigned held = (unsigned)encoding->held;
    if (held) block->ids[-1] = encoding->held_id;
    encoding->held = 0;
    *placed = (struct placed){block->ids - held, count + held, encoding->writer.tokens};
    encoding->writer.tokens += count + held;
}

static int place_adjacency(struct encoding *encoding, const struct encoded *block, struct placed *placed) {
    uint64_t from = 0, line = 0;
    if (block->continues) {
        from = block->lines ? block->ends[0] : block->count;
        place_rest_of_line(encoding, block, from, placed);
        if (!block->lines && block->line_open) return 0;
        if (cut_sentences(encoding, encoding->writer.tokens, 1)) return -1;
        line = 1;
    }
    encoding->held = 0;
    uint64_t base = encoding->writer.tokens - from;
    for (; line < block->lines; line++)
        if (cut_sentences(encoding, base + block->ends[line], 1)) return -1;
    encoding->line_lost = block->target_lost;
    uint64_t closed = block->lines ? block->ends[block->lines - 1] : from, end = block->count;
    if (end - closed == 1) {
        encoding->held = 1;
        encoding->held_id = block->ids[--end];
    }
    if (!placed->count) *placed = (struct placed){block->ids + from, 0, encoding->writer.tokens};
    placed->count += end - from;
    encoding->writer.tokens += end - from;
    return 0;
}

static int place(struct encoding *encoding, const struct encoded *block, struct placed *placed) {
    *placed = (struct placed){.count = 0};
    return encode_has_targets(encoding->options) ? place_adjacency(encoding, block, placed) : place_lines(encoding, block, placed);
}

/* Places a block when all earlier ones are placed, and writes it. */
static int put_block(struct encoding *encoding, const struct encoded *block) {
    struct placed placed;
    pthread_mutex_lock(&encoding->lock);
    while (!encoding->failed && encoding->placed != block->number) pthread_cond_wait(&encoding->moved, &encoding->lock);
    int result = encoding->failed || place(encoding, block, &placed) ? -1 : 0;
    encoding->placed++;
    pthread_cond_broadcast(&encoding->moved);
    pthread_mutex_unlock(&encoding->lock);
    return result || idstream_put_at(&encoding->writer, placed.at, placed.ids, placed.count) ? -1 : 0;
}

/* Returns the size of a block of the numbered corpus, in numbers. It has as many bytes as a block of the corpus, whose size tests
 * can set. */
static uint64_t numbers_of_block(const struct encoding *encoding) {
    uint64_t bytes = corpus_block_bytes(encoding->corpus);
    return bytes < sizeof(uint32_t) ? 1 : bytes / sizeof(uint32_t);
}

static int encode_blocks(void *context, unsigned worker) {
    struct encoding *encoding = context;
    struct encoded mine = {0};
    uint64_t first, end, numbers = numbers_of_block(encoding);
    int result = 0;
    while (!result && pool_take(&encoding->next, encoding->numbered->count, numbers, &first, &end)) {
        mine.number = first / numbers;
        result = interrupt_check() || encode_numbered(&mine, encoding->numbered, encoding->options, first, end) ||
                         put_block(encoding, &mine)
                     ? -1
                     : 0;
        progress_show(&encoding->progress, end, encoding->numbered->count, "tok");
    }
    if (result) {
        pthread_mutex_lock(&encoding->lock);
        encoding->failed = 1;
        pthread_cond_broadcast(&encoding->moved);
        pthread_mutex_unlock(&encoding->lock);
    }
    encoded_release(&mine);
    return result;
}

/* ---- pairs ---- */

static int group(struct encoding *encoding, const struct pairs_met *met) {
    return group_pairs(&encoding->writer, met, encoding->options->pair_weights != PAIR_WEIGHTS_NONE, encoding->pool);
}

static int group_numbered(struct encoding *encoding) {
    const struct numbered *numbered = encoding->numbered;
    unsigned fields = numbered_fields(encoding->options);
    struct pairs_met met = {.count = numbered->count / fields,
                            .stride = fields,
                            .ids = numbered->numbers + 1,
                            .names = numbered->numbers,
                            .weights = fields == 3 ? (const float *)(const void *)(numbered->numbers + 2) : NULL,
                            .rows = numbered->items,
                            .list_rows = numbered->lists,
                            .list_numbers = numbered->list_numbers};
    return met.count ? group(encoding, &met) : 0;
}

/* ---- triples ---- */

static int put_triples(struct encoding *encoding, struct triples_met *met) {
    met->entities = encoding->vocab->size - encoding->vocab->lists;
    encoding->writer.triples = 1;
    return encode_triples(&encoding->writer, met, encoding->pool);
}

static int put_numbered_triples(struct encoding *encoding) {
    const struct numbered *numbered = encoding->numbered;
    struct triples_met met = {.count = numbered->count / TRIPLE_TERMS,
                              .stride = TRIPLE_TERMS,
                              .relation_stride = TRIPLE_TERMS,
                              .heads = numbered->numbers + TRIPLE_HEAD,
                              .relations = numbered->numbers + TRIPLE_RELATION,
                              .tails = numbered->numbers + TRIPLE_TAIL,
                              .rows = numbered->items,
                              .relation_rows = numbered->lists};
    return met.count ? put_triples(encoding, &met) : 0;
}

static int put_gathered_triples(struct encoding *encoding, const struct gathered *gathered, const struct gathered_rows *rows) {
    struct triples_met met = {.count = gathered->named,
                              .stride = 2,
                              .relation_stride = 1,
                              .heads = gathered->ids,
                              .relations = gathered->names,
                              .tails = gathered->ids + 1,
                              .rows = rows->items,
                              .relation_rows = rows->lists};
    return met.count ? put_triples(encoding, &met) : 0;
}

/* ---- gathered data ---- */

enum { GATHERED_BLOCK = 1 << 20 }; /* tokens of a block of gathered data; a block has whole sentences, at least one */

static int commit_sentences(struct encoding *encoding, const struct gathered *gathered,
                            const struct gathered_rows *rows) {
    struct encoded block = {.number = 0};
    int result = 0;
    for (uint64_t first = 0, end = 0; first < gathered->sentences && !result; first = end) {
        uint64_t most = (first ? gathered->ends[first - 1] : 0) + GATHERED_BLOCK;
        for (end = first + 1; end < gathered->sentences && gathered->ends[end] <= most; end++) continue;
        result =
            interrupt_check() || encode_sentences(&block, gathered, rows, first, end) || put_block(encoding, &block) ? -1 : 0;
        block.number++;
    }
    encoded_release(&block);
    return result;
}

static int group_gathered(struct encoding *encoding, const struct gathered *gathered, const struct gathered_rows *rows) {
    struct pairs_met met = {.count = gathered->tokens,
                            .stride = 1,
                            .ids = gathered->ids,
                            .names = gathered->names,
                            .weights = gathered->weights,
                            .rows = rows->items,
                            .list_rows = rows->lists,
                            .list_numbers = gathered->lists.words.size};
    return group(encoding, &met);
}

static int encode_gathered(struct encoding *encoding, const struct gathered *gathered) {
    struct gathered_rows rows = {0};
    const struct corpus_format_properties *format = &corpus_formats[encoding->options->format];
    int result = gathered_rows_find(&rows, gathered, encoding->vocab);
    if (!result && format->triples)
        result = put_gathered_triples(encoding, gathered, &rows);
    else if (!result)
        result = format->scattered ? group_gathered(encoding, gathered, &rows) : commit_sentences(encoding, gathered, &rows);
    gathered_rows_release(&rows);
    return result;
}

/* ---- the whole corpus ---- */

static int encode_files(struct encoding *encoding) {
    const struct corpus_format_properties *format = &corpus_formats[encoding->options->format];
    if (format->triples) return put_numbered_triples(encoding);
    if (format->scattered) return group_numbered(encoding);
    progress_start(&encoding->progress, "encoding", encoding->options->report_seconds);
    int result = pool_run(encoding->pool, encode_blocks, encoding);
    progress_end(&encoding->progress);
    return result;
}

static int nothing_left(const struct encoding *encoding) {
    if (corpus_formats[encoding->options->format].triples)
        return fail("no triple of the corpus '%s' is left: none has its head and its tail in the vocabulary of %" PRIu64 " words",
                    encoding->options->path, encoding->vocab->size);
    if (corpus_formats[encoding->options->format].targets)
        return fail(
            "no line of the corpus '%s' is left: none has its target and a context in the vocabulary of %" PRIu64
            " words",
            encoding->options->path, encoding->vocab->size);
    return fail("no token of the corpus '%s' is in the vocabulary of %" PRIu64 " words", encoding->options->path,
                encoding->vocab->size);
}

static int encode_as(struct encoding *encoding, const char *path, uint64_t fingerprint) {
    const struct corpus_options *options = encoding->options;
    if (idstream_writer_open(&encoding->writer, path)) return -1;
    if (!corpus_formats[options->format].triples) encoding->writer.pool = encoding->pool;
    int result = corpus_gathered(encoding->corpus) ? encode_gathered(encoding, corpus_gathered(encoding->corpus))
                                                   : encode_files(encoding);
    if (!result) result = corpus_check_unchanged(encoding->corpus);
    if (!result && !encoding->writer.tokens) result = nothing_left(encoding);
    encoding->writer.weighed = options->pair_weights;
    if (!result) return idstream_writer_commit(&encoding->writer, fingerprint);
    idstream_writer_abandon(&encoding->writer);
    return -1;
}

static int encode(const char *path, struct corpus *corpus, const struct vocab *vocab, const struct corpus_options *options,
                  struct pool *pool, uint64_t fingerprint) {
    struct encoding encoding = {.corpus = corpus, .vocab = vocab, .options = options, .pool = pool};
    struct numbered own;
    int result = encode_numbers(&encoding.numbered, &own, corpus, options, vocab, path, pool);
    pthread_mutex_init(&encoding.lock, NULL);
    pthread_cond_init(&encoding.moved, NULL);
    if (!result) result = encode_as(&encoding, path, fingerprint);
    pthread_cond_destroy(&encoding.moved);
    pthread_mutex_destroy(&encoding.lock);
    numbered_close(&own);
    return result;
}

/* End of the name of the working file of pairs, PATH.<process>.pairs, which earlier versions wrote. */
static const char places_end[] = ".pairs";

int encode_is_leftover(const char *name, const char *of) {
    size_t length = strlen(of), digits;
    char places[NAME_MAX + 1];
    if (strlen(name) > NAME_MAX || strncmp(name, of, length) || name[length] != '.') return 0;
    digits = strspn(name + length + 1, "0123456789");
    if (!digits) return 0;
    snprintf(places, sizeof places, "%.*s%s", (int)(length + 1 + digits), name, places_end);
    return !strcmp(name, places) || file_is_partial(name, places);
}

int encode_open(struct idstream *stream, const char *path, struct corpus *corpus, const struct vocab *vocab,
                  const struct corpus_options *options, struct pool *pool, int *reused) {
    *stream = (struct idstream){0};
    *reused = 1;
    if (corpus_stream(corpus)) return idstream_open(stream, corpus_stream(corpus), vocab_fingerprint(vocab), vocab->size, pool);
    uint64_t fingerprint = encode_fingerprint(corpus, vocab, options);
    if (idstream_reuse(stream, path, fingerprint, vocab->size, pool)) return 0;
    *reused = 0;
    if (encode(path, corpus, vocab, options, pool, fingerprint)) return -1;
    return idstream_open(stream, path, fingerprint, vocab->size, pool);
}
